"""`gradcheck` and `gradgradcheck`: derivatives at one point, compared with differences."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert.tape.autograd import grad
from wengert.tape.tensor import Tensor
from wengert.testing.batches import check_batched_cotangents, check_batched_tangents
from wengert.testing.comparison import Comparison
from wengert.testing.conduct import (
    check_absent,
    check_conduct,
    check_linear_in_tangents,
    check_repeatable,
    check_single,
)
from wengert.testing.problem import Problem, inexact, like, normal, spread
from wengert.testing.tracebacks import shorten
from wengert.testing.verdicts import GradcheckError, Tolerance

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
    backward passes and by central differences, extrapolated until they settle. Complex numbers
    count as pairs of reals, so the gradient of a complex input is checked in both directions,
    by the convention that the gradient of a real :math:`L` is :math:`\partial L / \partial a + i\,
    \partial L / \partial b` at :math:`z = a + ib`.

    It checks also that gradients have their input's shape and dtype, are linear in the cotangent
    (by forward mode, in the tangent), the same each time, and in memory of their own; that no rule
    loses precision; that neither inputs nor cotangents change; and that the graph is freed with its
    last Tensor.

    The parameters are those of ``torch.autograd.gradcheck``. By default ``eps`` is
    larger, ``atol`` and ``rtol`` are smaller, because the differences are extrapolated.

    Parameters
    ----------
    func : callable
        Takes ``inputs`` and returns a Tensor or Tensors, in nested containers too. Only results
        that are floating or complex are checked.
    inputs : Tensor or sequence
        Arguments of ``func``, in nested containers too. Those that are Tensors and require grad
        are checked, and have to be float64 or complex128; others, of any type, are left alone.
        Messages number the arguments through all containers.
    eps : float
        The first, largest, step of the differences. It grows with the largest number of the
        inputs, if that is above 4. Smaller steps follow while they help.
    atol, rtol : float
        An entry is wrong if it differs from the numerical one by more than ``atol + rtol *
        abs(numerical)`` and the rounding error of the differences. Where all derivatives of a
        result by an input are below 1, ``atol`` is relative to the largest.
    raise_exception : bool
        Whether a failed check raises; otherwise the result is False.
    nondet_tol : float
        How far the results of two runs may differ.
    check_undefined_grad : bool
        Whether to check, of several results, that one without a cotangent counts as one with a
        cotangent of zeros.
    check_grad_dtypes : bool
        Whether to run ``func`` on single-precision copies of the inputs too, and check that
        results, gradients and what every rule returns are in single precision.
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
        alone: one backward pass and a few evaluations, whatever the sizes.
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
        values. Its subclasses are `WrongGradientError`, `KinkError` (a kink, a jump, the edge of
        the domain) and `BadlyScaledError` (the differences do not settle).
    ValueError
        If no input requires grad, one is not in double precision, neither mode is to be checked,
        or a parameter needs the mode that is not.

    Examples
    --------
    >>> x = wg.tensor([0.5, 1.5], dtype=wg.float64, requires_grad=True)
    >>> wg.testing.gradcheck(wg.sin, x)
    True
    """
    options = locals()
    for asked, needed, what in (
        (check_batched_grad, check_backward_ad, "check_batched_grad needs check_backward_ad"),
        (
            check_batched_forward_grad,
            check_forward_ad,
            "check_batched_forward_grad needs check_forward_ad",
        ),
    ):
        if asked and not needed and (check_backward_ad or check_forward_ad):
            raise ValueError(f"{what}=True, as it compares with what that gives")
    __tracebackhide__ = True
    comparison = Comparison(Problem(func, inputs), eps, Tolerance(atol, rtol), complex_step)
    return _carry_out(comparison, options, check_backward_ad, check_forward_ad)


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

    Examples
    --------
    >>> x = wg.tensor([0.5, 1.5], dtype=wg.float64, requires_grad=True)
    >>> wg.testing.gradgradcheck(lambda x: x**3, x)
    True
    """
    options = locals()
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

    second = Problem(
        gradients, [*problem.arguments, *seeds], plain=partial(gradients, create_graph=False)
    )
    comparison = Comparison(second, eps, Tolerance(atol, rtol))
    return _carry_out(comparison, options, check_rev_over_rev, check_fwd_over_rev)


def _carry_out(
    comparison: Comparison, options: dict[str, Any], backward: bool, forward: bool
) -> bool:
    """Run the checks that were asked for; whether all of them pass."""
    if options["masked"]:
        raise ValueError("masked=True is for sparse tensors, which Wengert does not have")
    if not (forward or backward):
        raise ValueError("gradcheck needs check_backward_ad or check_forward_ad, or both")
    __tracebackhide__ = True
    problem, fast = comparison.problem, options["fast_mode"]
    nondet_tol = options["nondet_tol"]
    try:
        rows = None
        if problem.plain is not None:
            comparison.check_values()
        if backward:
            rows = comparison.check("reverse", "the gradient", fast)
        if forward:
            called = "the forward derivative" if backward else "the derivative"
            check_linear_in_tangents(problem, comparison.check("forward", called, fast))
        if options["check_batched_grad"]:
            check_batched_cotangents(problem)
        if options.get("check_batched_forward_grad"):
            check_batched_tangents(problem)
        if backward:
            if options["check_undefined_grad"]:
                check_absent(problem)
            check_conduct(problem, rows, nondet_tol)
        if options["check_grad_dtypes"]:
            check_single(problem)
    except GradcheckError as error:
        if not options["raise_exception"]:
            return False
        # A random function fails every check, and is told first.
        if problem.changed_input() is None:
            try:
                check_repeatable(problem, nondet_tol, swept=backward)
            except GradcheckError as cause:
                raise shorten(cause) from None
        shorten(error)
        raise
    except Exception as error:
        shorten(error)
        raise
    return True
