"""Checks of derivatives: the tape's against differences, and the tape's conduct beside them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wengert.tape.autograd import grad
from wengert.tape.tensor import Tensor
from wengert.testing.batches import check_batched_cotangents, check_batched_tangents
from wengert.testing.conduct import (
    check_absent,
    check_conduct,
    check_repeatable,
    check_single,
)
from wengert.testing.differences import Estimate, Reals, derivative, to_reals
from wengert.testing.likeness import Found
from wengert.testing.problem import Problem, inexact, like, normal, spread, values
from wengert.testing.tracebacks import shortened
from wengert.testing.verdicts import (
    GradcheckError,
    KinkError,
    Tolerance,
    WrongGradientError,
    judge,
)

#: The first step of the differences; the others are smaller.
EPS = 2.0**-8


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = EPS,
    atol: float = 1e-8,
    rtol: float = 1e-6,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
    complex_step: bool = False,
) -> bool:
    r"""Check the gradients of a function against differences of its values.

    The Jacobian of every result with respect to every input that requires grad is computed by
    reverse sweeps and by central differences, extrapolated until they settle. Complex numbers
    count as pairs of reals, so the gradient of a complex input is checked in both directions,
    by the convention that the gradient of a real :math:`L` is :math:`\partial L / \partial a + i\,
    \partial L / \partial b` at :math:`z = a + ib`.

    It checks also that gradients have their input's shape and dtype, are linear in the cotangent,
    the same each time, and in memory of their own; that no rule loses precision; that neither
    inputs nor cotangents change; and that the graph is freed with its last Tensor.

    The parameters are those of ``torch.autograd.gradcheck``. The defaults of the first three are
    narrower, because the differences are extrapolated.

    Parameters
    ----------
    func : callable
        Takes ``inputs`` and returns a Tensor or Tensors, in nested containers too. Only results
        that are floating or complex are checked.
    inputs : Tensor or sequence
        Arguments of ``func``, in nested containers too. Those that are Tensors and require grad
        are checked, and have to be float64 or complex128; others, of any type, are left alone.
        They are counted through all containers.
    eps : float
        The first, largest, step of the differences. Smaller ones follow while they help.
    atol, rtol : float
        An entry is wrong if it differs from the numerical one by more than ``atol + rtol *
        abs(numerical)`` and what rounding may explain.
    raise_exception : bool
        Whether a failed check raises; otherwise it gives False.
    nondet_tol : float
        How far the results of two runs may differ.
    check_undefined_grad : bool
        Whether to check that a result without a cotangent counts as one with zeros, where there
        are several results.
    check_grad_dtypes : bool
        Whether to run ``func`` on single-precision copies of the inputs too, and check that
        results, gradients and every rule on the way are in single precision.
    check_batched_grad : bool
        Whether to check that a batch of cotangents gives what they give one by one.
    check_batched_forward_grad : bool
        Whether to check that a batch of tangents gives what they give one by one.
    check_forward_ad : bool
        Whether to check forward mode against the differences, too.
    check_backward_ad : bool
        Whether to check reverse mode; without it, only what the other parameters ask for.
    fast_mode : bool
        Compare each input's gradient along one random direction and for one random cotangent
        alone: one sweep and a handful of evaluations, whatever the sizes.
    masked : bool, optional
        PyTorch's, for sparse tensors. Wengert has none, so True is an error.
    complex_step : bool
        Use :math:`\operatorname{Im} f(x + ih) / h` instead of differences, which is exact to
        rounding. For real inputs and results of a ``func`` that extends to complex numbers
        analytically (no ``abs``, ``conj``, ``real``, comparisons).

    Returns
    -------
    bool
        Whether all is right.

    Raises
    ------
    GradcheckError
        If the check fails: with the input's and the result's position, the worst entry and both
        values. Its subclasses tell what is the matter: `WrongGradientError`;
        `KinkError` (a kink, a jump, the edge of the domain); `BadlyScaledError` (the
        differences do not settle).
    ValueError
        If no input requires grad, one is not in double precision, or the parameters ask for
        nothing or for what there is not.
    """
    checks = _Checks(
        check_backward_ad,
        check_forward_ad,
        check_batched_grad,
        check_batched_forward_grad,
        check_undefined_grad,
        check_grad_dtypes,
        fast_mode,
        nondet_tol,
    )
    _demand_a_mode(checks, masked)
    for asked, needed, what in (
        (check_batched_grad, check_backward_ad, "check_batched_grad needs check_backward_ad"),
        (
            check_batched_forward_grad,
            check_forward_ad,
            "check_batched_forward_grad needs check_forward_ad",
        ),
    ):
        if asked and not needed:
            raise ValueError(f"{what}=True, as it compares with what that gives")
    __tracebackhide__ = True
    numerical = _Numerical(Problem(func, inputs), eps, Tolerance(atol, rtol), complex_step)
    return _carried_out(checks, numerical, raise_exception)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = EPS,
    atol: float = 1e-8,
    rtol: float = 1e-6,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check second derivatives: `gradcheck` of the gradients of a function.

    The gradients of ``func`` with ``create_graph=True`` are themselves checked, with respect to
    both the inputs and the cotangents. The parameters are those of
    ``torch.autograd.gradgradcheck``.

    Parameters
    ----------
    func, inputs
        As for `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        Cotangents of the floating and complex results; random ones by default.
    eps, atol, rtol
        As for `gradcheck`.
    gen_non_contig_grad_outputs : bool
        Whether the random cotangents are every second element of larger arrays, where the array
        library shows such views.
    raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad
        As for `gradcheck`.
    check_fwd_over_rev : bool
        Whether to check the derivative of the gradients by forward mode.
    check_rev_over_rev : bool
        Whether to check it by reverse mode.
    fast_mode, masked
        As for `gradcheck`.

    Returns
    -------
    bool
        Whether all is right.

    Raises
    ------
    GradcheckError, ValueError
        As for `gradcheck`.
    """
    __tracebackhide__ = True
    problem = Problem(func, inputs)
    results = problem.run()
    if all(result._node is None for result in results):
        raise ValueError("no result of func requires grad, so there are no second derivatives")
    if grad_outputs is None:
        random = np.random.default_rng(0)
        make = spread if gen_non_contig_grad_outputs else like
        seeds = [
            make(result, normal(random, result.shape, result.dtype.complex)) for result in results
        ]
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs
        seeds = [g.detach() for g in given]
    for seed in seeds:
        seed.requires_grad = True
    count = len(problem.arguments)

    def gradients(*arguments: Any, create_graph: bool = True) -> tuple[Tensor, ...]:
        pairs = [
            (result, g)
            for result, g in zip(
                inexact(problem.func(*arguments[:count])), arguments[count:], strict=True
            )
            if result._node is not None
        ]
        return grad(  # type: ignore[return-value]
            [result for result, _ in pairs],
            [arguments[i] for i in problem.checked],
            [g for _, g in pairs],
            create_graph=create_graph,
            materialize_grads=True,
        )

    checks = _Checks(
        backward=check_rev_over_rev,
        forward=check_fwd_over_rev,
        batched=check_batched_grad,
        undefined=check_undefined_grad,
        dtypes=check_grad_dtypes,
        fast=fast_mode,
        nondet_tol=nondet_tol,
    )
    _demand_a_mode(checks, masked)
    second = Problem(
        gradients, [*problem.arguments, *seeds], plain=partial(gradients, create_graph=False)
    )
    numerical = _Numerical(second, eps, Tolerance(atol, rtol))
    return _carried_out(checks, numerical, raise_exception)


class _Checks(NamedTuple):
    """What to check."""

    backward: bool = True
    forward: bool = False
    batched: bool = False
    batched_forward: bool = False
    undefined: bool = True
    dtypes: bool = False
    fast: bool = False
    nondet_tol: float = 0.0


def _demand_a_mode(checks: _Checks, masked: bool | None) -> None:
    if masked:
        raise ValueError("masked=True is for sparse tensors, which Wengert does not have")
    if not (checks.forward or checks.backward):
        raise ValueError("gradcheck needs check_backward_ad or check_forward_ad, or both")


def _carried_out(checks: _Checks, numerical: "_Numerical", raise_exception: bool) -> bool:
    """Whether all that is to be checked of a problem is right."""
    __tracebackhide__ = True
    problem = numerical.problem
    try:
        rows = None
        if problem.plain is not None:
            _compare_values(numerical)
        if checks.backward:
            rows = _check_mode(numerical, _Reverse(problem), checks.fast)
        if checks.forward:
            _check_mode(numerical, _Forward(problem, alone=not checks.backward), checks.fast)
        if checks.batched:
            check_batched_cotangents(problem)
        if checks.batched_forward:
            check_batched_tangents(problem)
        if checks.backward:
            if checks.undefined:
                check_absent(problem)
            check_conduct(problem, rows, checks.nondet_tol)
        if checks.dtypes:
            check_single(problem)
    except GradcheckError as error:
        if not raise_exception:
            return False
        if problem.changed() is None:  # of a random function nothing else is true
            try:
                check_repeatable(problem, checks.nondet_tol, swept=checks.backward)
            except GradcheckError as cause:
                raise shortened(cause) from None
        shortened(error)
        raise
    except Exception as error:
        shortened(error)
        raise
    return True


def _compare_values(numerical: "_Numerical") -> None:
    """Compare a gradient by recorded operations with the one by plain ones, which is moved."""
    problem, (atol, rtol) = numerical.problem, numerical.tolerance
    plain = problem.middle()
    recorded = np.concatenate([to_reals(values(result)) for result in problem.run()])
    wrong = np.flatnonzero(~np.isclose(recorded, plain, rtol, atol, equal_nan=True))
    if wrong.size:
        row = int(wrong[0])
        raise WrongGradientError(
            f"the gradient with create_graph=True differs from the one without: "
            f"{problem.result_entry(row)} of the gradients\n  with:    {recorded[row]:.12g}"
            f"\n  without: {plain[row]:.12g}"
        )


class _Sample(NamedTuple):
    """One random combination of the results, along one random direction in each input.

    Attributes
    ----------
    cotangents : list of ndarray
        Of the results.
    weights : ndarray of float64
        The same as one row of reals.
    directions : dict of int to ndarray
        Of unit length, for each input.
    found : dict of int to Estimate
        The derivatives of the results along each that is not empty.
    """

    cotangents: list[np.ndarray[Any, Any]]
    weights: Reals
    directions: dict[int, np.ndarray[Any, Any]]
    found: dict[int, Estimate]


class _Numerical:
    """Derivatives of a problem by differences: all results along a direction in one input."""

    def __init__(
        self, problem: Problem, eps: float, tolerance: Tolerance, complex_step: bool = False
    ) -> None:
        self.problem, self.eps, self.tolerance = problem, eps, tolerance
        self.complex_step = complex_step
        self._columns: list[Estimate] = []
        self._sample: _Sample | None = None

    def along(
        self,
        at: int,
        direction: np.ndarray[Any, Any],
        good_enough: Callable[[Estimate], bool] | None = None,
    ) -> Estimate:
        problem = self.problem
        if self.complex_step:
            return Estimate.exact(problem.imaginary_step(at, direction))
        return derivative(
            lambda t: problem.moved(at, t * direction),
            self.eps,
            good_enough or self.tolerance.settled,
            problem.middle(),
        )

    def excuses(self, column: int, row: int, given: float) -> bool:
        """Whether a result has a kink that the axes don't tell of, and an entry may be what it is.

        Then the derivatives along the axes of an input don't add up to that along another
        direction: the median of three equal numbers stays where it is when one of them moves, and
        moves with all. Beyond twice the steepest of them no entry is right.
        """
        if self.complex_step:
            return False
        sample, end = self.sample(), 0
        for at in self.problem.checked:
            weights = to_reals(sample.directions[at])
            start, end = end, end + weights.size
            if column < end:
                break
        found = sample.found[at]
        along = [(each.right[row], each.left[row]) for each in list(self.columns())[start:end]]
        right, left = np.asarray(along).T
        here = found.right[row], found.left[row]
        if not (np.isfinite(right).all() and np.isfinite(left).all() and np.isfinite(here).all()):
            return False
        size, steep = abs(weights), np.maximum(abs(right), abs(left))
        ahead = np.sum(weights * np.where(weights > 0, right, left))
        behind = np.sum(weights * np.where(weights > 0, left, right))
        far = 0.05 * (np.sum(size * steep) + np.max(np.abs(here)))
        bent = max(abs(here[0] - ahead), abs(here[1] - behind))
        reach = 2 * max(np.max(steep), np.max(np.abs(here)) / np.min(size))
        return bool(bent > far + np.sum(size) * self.tolerance.atol and abs(given) <= reach)

    def allowed(self, weights: Reals, found: Estimate) -> Reals:
        """How far each term of a weighted sum of derivatives may be off."""
        atol, rtol = self.tolerance
        return atol + rtol * abs(weights * found.value) + abs(weights) * found.rounding

    def sample(self) -> _Sample:
        """The derivatives of a random combination, computed once for both modes."""
        if self._sample is None:
            problem, random = self.problem, np.random.default_rng(0)
            cotangents = [
                normal(random, result.shape, result.dtype.complex) for result in problem.run()
            ]
            weights = np.concatenate([to_reals(g) for g in cotangents])
            moved = ((at, problem.arguments[at]) for at in problem.checked)
            directions = {at: normal(random, x.shape, x.dtype.complex) for at, x in moved}

            def settled(found: Estimate) -> bool:
                error = abs(weights) * found.error
                return bool(np.all(error <= self.allowed(weights, found) / 2))

            for at, direction in directions.items():
                directions[at] = direction / (np.linalg.norm(direction) or 1.0)
            found = {
                at: self.along(at, direction, settled)
                for at, direction in directions.items()
                if direction.size
            }
            self._sample = _Sample(cotangents, weights, directions, found)
        return self._sample

    def columns(self) -> Iterator[Estimate]:
        """The Jacobian's columns, each computed once."""
        if not self._columns:
            self._columns = [
                self.along(at, direction)
                for at in self.problem.checked
                for direction in self.problem.directions(at)
            ]
        return iter(self._columns)


class _Reverse:
    """A problem's derivatives by reverse mode."""

    name = "the gradient"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def jacobian(self) -> Reals:
        return self.problem.jacobian()

    def combined(
        self, weights: list[np.ndarray[Any, Any]], directions: dict[int, np.ndarray[Any, Any]]
    ) -> dict[int, float]:
        """For each input the derivative of the weighted results along its direction."""
        problem = self.problem
        gradients = problem.sweep(problem.run(), weights, retain_graph=False)
        problem.check_unchanged("the backward pass")
        return {
            at: float(to_reals(gradient) @ to_reals(directions[at]))
            for at, gradient in zip(problem.checked, gradients, strict=True)
        }


class _Forward:
    """A problem's derivatives by forward mode, which may be the one mode that is checked."""

    def __init__(self, problem: Problem, alone: bool) -> None:
        self.problem = problem
        self.name = "the derivative" if alone else "the forward derivative"

    def jacobian(self) -> Reals:
        problem = self.problem
        columns = [
            problem.forward(at, direction)
            for at in problem.checked
            for direction in problem.directions(at)
        ]
        height = problem.middle().size
        return np.stack(columns, axis=1) if columns else np.zeros((height, 0))

    def combined(
        self, weights: list[np.ndarray[Any, Any]], directions: dict[int, np.ndarray[Any, Any]]
    ) -> dict[int, float]:
        row = np.concatenate([to_reals(g) for g in weights])
        return {
            at: float(row @ self.problem.forward(at, direction))
            for at, direction in directions.items()
        }


def _check_mode(numerical: _Numerical, mode: _Reverse | _Forward, fast: bool) -> Reals | None:
    """Compare one mode's derivatives, and return its Jacobian if it was needed."""
    if fast:
        cause = _compare_along_random(numerical, mode)
        if cause is None:
            return None
        _compare_jacobian(numerical, mode)
        raise cause
    return _compare_jacobian(numerical, mode)


def _compare_along_random(
    numerical: _Numerical, mode: _Reverse | _Forward
) -> GradcheckError | None:
    """Compare the derivative of one random combination of results along random directions."""
    sample = numerical.sample()
    weights, analytic = sample.weights, mode.combined(sample.cotangents, sample.directions)
    for at, found in sample.found.items():
        allowed = np.sum(numerical.allowed(weights, found))
        if not abs(analytic[at] - weights @ found.value) <= allowed:
            if np.any(found.kink > 0) or np.any(found.jump):
                return KinkError(
                    f"the function has a kink here along a random direction in inputs[{at}]"
                )
            return WrongGradientError(
                f"{mode.name} for random weights of the results along a random direction in "
                f"inputs[{at}] differs from the differences, although each entry of the Jacobian "
                "is right: the rules are not linear"
            )
    return None


def _compare_jacobian(numerical: _Numerical, mode: _Reverse | _Forward) -> Reals:
    """Compare all entries, and return the Jacobian: a row for each real number of the results."""
    analytic, tolerance, problem = mode.jacobian(), numerical.tolerance, numerical.problem
    worst: tuple[bool, float] | None = None
    error: GradcheckError | None = None
    wrong = np.zeros(analytic.shape, dtype=np.bool_)
    for column, found in enumerate(numerical.columns()):
        allowed = tolerance(found)
        with np.errstate(all="ignore"):
            excess = abs(analytic[:, column] - found.value) / allowed
        excess = np.where(np.isnan(excess), np.inf, excess)
        for row in map(int, np.flatnonzero(excess > 1)):
            wrong[row, column] = True
            given = float(analytic[row, column])
            # A nan may come from another result's infinity, times a cotangent of zero.
            infinite = list(np.flatnonzero(~np.isfinite(found.value))) if np.isnan(given) else []
            at = int(infinite[0]) if infinite else row
            kind, cause = judge(found, at, given, float(problem.middle()[at]), float(allowed[at]))
            if kind is WrongGradientError and numerical.excuses(column, at, given):
                kind = KinkError
                cause = (
                    "the function has a kink here: its derivatives along the axes don't add up to "
                    "those along other directions, so there is no derivative to compare with"
                )
            # What is wrong where a derivative exists tells more than a kink elsewhere.
            rank = (kind is WrongGradientError, float(excess[row]))
            if worst is None or rank > worst:
                worst = rank
                error = kind(
                    _explain(problem, mode, row, column, given, float(found.value[row]), cause)
                )
    if error is not None:
        told = type(error)(
            f"{error}\n{np.sum(wrong)} of {analytic.size} entries are wrong by more than "
            f"atol={tolerance.atol:g} + rtol={tolerance.rtol:g} * abs(numerical)"
        )
        right = np.stack([found.value for found in numerical.columns()], axis=1)
        told.found = Found(analytic, right, wrong, *problem.kinds())
        raise told
    return analytic


def _explain(
    problem: Problem,
    mode: _Reverse | _Forward,
    row: int,
    column: int,
    analytic: float,
    numerical: float,
    cause: str,
) -> str:
    if cause == "the gradient is wrong":
        if isinstance(mode, _Reverse) and not problem.tracks(row):
            cause = "the result is not tracked, but it depends on the input: the graph is broken"
        else:
            cause = f"{mode.name} is wrong"
    return (
        f"{cause}: d {problem.result_entry(row)} / d {problem.input_entry(column)}"
        f"\n  numerical: {numerical:.12g}\n  analytic:  {analytic:.12g}"
    )
