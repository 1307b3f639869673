"""Checks of derivatives: the tape's against differences, and the tape's conduct beside them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.tape.autograd import grad
from wengert.tape.tensor import Tensor
from wengert.testing.conduct import check_conduct
from wengert.testing.differences import Estimate, Reals, derivative, to_reals
from wengert.testing.problem import GradcheckError, Problem, like

__all__ = ["gradcheck", "gradgradcheck"]

#: The first step of the differences; the others are smaller.
EPS = 2.0**-8


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = EPS,
    atol: float = 1e-8,
    rtol: float = 1e-6,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = False,
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

    Parameters
    ----------
    func : callable
        Takes ``inputs`` and returns a Tensor or a sequence of Tensors. Only results that are
        floating or complex are checked.
    inputs : Tensor or sequence
        Arguments of ``func``. Those that are Tensors and require grad are checked, and have to be
        float64 or complex128; others, of any type, are left alone.
    eps : float
        The first, largest, step of the differences. Smaller ones follow while they help.
    atol, rtol : float
        An entry is wrong if it differs from the numerical one by more than ``atol + rtol *
        abs(numerical)`` and what rounding may explain.
    raise_exception : bool
        Whether a failed check raises; otherwise it gives False.
    nondet_tol : float
        How far the results of two runs may differ.
    fast_mode : bool
        Compare each input's gradient along one random direction and for one random cotangent
        alone: one sweep and a handful of evaluations, whatever the sizes.
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
        values.
    ValueError
        If no input requires grad, or one is not in double precision.
    """
    problem = Problem(func, inputs)
    try:
        rows = None
        if fast_mode:
            right = _right_along_random(problem, eps, atol, rtol, complex_step)
        if not fast_mode or not right:
            rows = _check_jacobian(problem, eps, atol, rtol, complex_step)
        if fast_mode and not right:
            raise GradcheckError(
                "the gradient for a random cotangent differs from the differences, although each "
                "entry of the Jacobian is right: the rules are not linear in the cotangent"
            )
        check_conduct(problem, rows, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = EPS,
    atol: float = 1e-8,
    rtol: float = 1e-6,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = False,
) -> bool:
    """Check second derivatives: `gradcheck` of the gradients of a function.

    The gradients of ``func`` with ``create_graph=True`` are themselves checked, with respect to
    both the inputs and the cotangents.

    Parameters
    ----------
    func, inputs
        As for `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        Cotangents of the floating and complex results; random ones by default.
    eps, atol, rtol, raise_exception, nondet_tol, fast_mode
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
    problem = Problem(func, inputs)
    results = problem.run()
    if all(result._node is None for result in results):
        raise ValueError("no result of func requires grad, so there are no second derivatives")
    if grad_outputs is None:
        random = np.random.default_rng(0)
        seeds = [like(result, _normal(random, result)) for result in results]
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs
        seeds = [g.detach() for g in given]
    for seed in seeds:
        seed.requires_grad = True
    count = len(problem.arguments)
    targets = [problem.arguments[i] for i in problem.checked]

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        pairs = [
            (result, g)
            for result, g in zip(
                problem.results(func(*arguments[:count])), arguments[count:], strict=True
            )
            if result._node is not None
        ]
        return grad(  # type: ignore[return-value]
            [result for result, _ in pairs],
            targets,
            [g for _, g in pairs],
            create_graph=True,
            materialize_grads=True,
        )

    return gradcheck(
        gradients,
        [*problem.arguments, *seeds],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        fast_mode=fast_mode,
    )


def _normal(random: np.random.Generator, tensor: Tensor) -> np.ndarray[Any, Any]:
    """Random values for a Tensor's shape and dtype."""
    values = random.standard_normal(tensor.shape)
    if tensor.dtype.complex:
        return np.asarray(values + 1j * random.standard_normal(tensor.shape))
    return np.asarray(values)


def _differentiate(
    problem: Problem,
    at: int,
    direction: np.ndarray[Any, Any],
    eps: float,
    good_enough: Callable[[Estimate], bool],
    complex_step: bool,
) -> Estimate:
    """The derivative of all results along a direction in one input."""
    if complex_step:
        value = problem.imaginary_step(at, direction)
        none = np.zeros_like(value)
        return Estimate(value, none, none, none)
    return derivative(
        lambda t: problem.moved(at, t * direction), eps, good_enough, problem.middle()
    )


def _right_along_random(
    problem: Problem, eps: float, atol: float, rtol: float, complex_step: bool
) -> bool:
    """Compare the derivative of one random combination of results along random directions."""
    random = np.random.default_rng(0)
    results = problem.run()
    cotangents = [_normal(random, result) for result in results]
    gradients = problem.sweep(results, cotangents, retain_graph=False)
    weights = np.concatenate([to_reals(g) for g in cotangents])
    for at, gradient in zip(problem.checked, gradients, strict=True):
        direction = _normal(random, problem.arguments[at])
        if not direction.size:
            continue
        direction /= np.linalg.norm(direction)

        def tolerance(found: Estimate) -> Any:
            return atol + rtol * abs(weights * found.value) + abs(weights) * found.rounding

        found = _differentiate(
            problem,
            at,
            direction,
            eps,
            lambda found: bool(np.all(abs(weights) * found.error <= tolerance(found) / 2)),
            complex_step,
        )
        wrong = abs(to_reals(gradient) @ to_reals(direction) - weights @ found.value)
        if not wrong <= np.sum(tolerance(found)):
            return False
    return True


def _check_jacobian(
    problem: Problem, eps: float, atol: float, rtol: float, complex_step: bool
) -> Reals:
    """Compare all entries, and return the Jacobian: a row for each real number of the results."""
    analytic = problem.jacobian()

    def tolerance(found: Estimate) -> Any:
        return atol + rtol * abs(found.value) + found.rounding

    worst: tuple[float, int, int, Estimate] | None = None
    wrong = column = 0
    for at in problem.checked:
        for direction in problem.directions(at):
            found = _differentiate(
                problem,
                at,
                direction,
                eps,
                lambda found: bool(np.all(found.error <= tolerance(found) / 4)),
                complex_step,
            )
            with np.errstate(all="ignore"):
                excess = abs(analytic[:, column] - found.value) / tolerance(found)
            excess = np.where(np.isnan(excess), np.inf, excess)
            wrong += int(np.sum(excess > 1))
            row = int(np.argmax(excess)) if excess.size else 0
            if excess.size and excess[row] > (1 if worst is None else worst[0]):
                worst = (float(excess[row]), row, column, found)
            column += 1
    if worst is not None:
        _, row, column, found = worst
        raise GradcheckError(
            _explain(problem, row, column, float(analytic[row, column]), found, tolerance(found))
            + f"\n{wrong} of {analytic.size} entries are wrong by more than atol={atol:g} + "
            f"rtol={rtol:g} * abs(numerical)"
        )
    return analytic


def _explain(
    problem: Problem, row: int, column: int, analytic: float, found: Estimate, tolerance: Reals
) -> str:
    numerical, error, kink = found.value[row], found.error[row], found.kink[row]
    where = f"d {problem.result_entry(row)} / d {problem.input_entry(column)}"
    values = f"\n  numerical: {numerical:.12g}\n  analytic:  {analytic:.12g}"
    if not np.isfinite(numerical):
        cause = "the function is not finite, or not defined, around this point"
    elif kink > 1e-3 * max(1.0, abs(numerical)):
        cause = (
            f"the function has a kink here: its derivatives from both sides differ by {kink:.3g}, "
            "so there is no derivative to compare with"
        )
    elif error > 4 * tolerance[row]:
        cause = (
            f"the differences don't settle (to {error:.3g}): the function is not smooth here, or "
            "badly scaled"
        )
    elif not problem.tracks(row):
        cause = "the result is not tracked, but it depends on the input: the graph is broken"
    else:
        cause = "the gradient is wrong"
    return f"{cause}: {where}{values}"
