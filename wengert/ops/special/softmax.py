"""Sums of exponentials, and exponentials as shares of their sum."""

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

from wengert.backends import dtype_of
from wengert.interpreters.batching import over_axes
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import all_axes, as_axes, drop_axes, keep_axes, shape_of
from wengert.ops.define import operation
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.euclidean import factor_of, without_slope
from wengert.ops.shares import in_float32, wide
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["log_softmax", "logsumexp", "softmax"]

Axes = tuple[int, ...]


def _axes(x: Any, axis: int | Sequence[int] | None) -> Axes:
    ndim = len(shape_of(x))
    return all_axes(None if axis is None else as_axes(axis, ndim), ndim)


def _below_top(xp: Any, x: Any, axis: Axes) -> Any:
    """``x`` less its largest (real part) along ``axis``, so that no exponential overflows."""
    top = xp.max(xp.real(x) if is_complex(x) else x, axis=axis, keepdims=True)
    return x - top


# -- the logarithm of the sum --------------------------------------------------------------------


@in_float32
def _logsumexp_composite(xp: Any, x: Any, *, axis: Axes, keepdims: bool) -> Any:
    shape = keep_axes(x.shape, axis) if keepdims else drop_axes(x.shape, axis)
    if any(x.shape[i] == 0 for i in axis):
        return xp.full(shape, -math.inf, dtype=x.dtype, device=xp.device(x))
    top = xp.max(xp.real(x) if is_complex(x) else x, axis=axis, keepdims=True)
    shift = xp.where(xp.isfinite(top), top, 0)
    total = xp.sum(xp.exp(x - shift), axis=axis, keepdims=True)
    empty = total == 0
    out = xp.log(xp.where(empty, 1, total)) + xp.where(empty, -math.inf, shift)
    return out if keepdims else xp.reshape(out, shape)


def _share(xp: Any, t: Any, x: Any, out: Any, axis: Axes) -> Any:
    """Tangents of the result by each element, with a result that has kept its axes."""
    # An infinite result is shared evenly by those that are equal to it.
    infinite = xp.isinf(out)
    tied = x == xp.where(infinite, out, math.nan)
    # (Two numbers in one `where` would have a dtype of their own.)
    shares = xp.softmax(xp.where(tied, 0, xp.where(infinite, -math.inf, x)), axis=axis)
    found = t * shares

    def several() -> tuple[Any, Any]:  # whose shares have no derivative
        moves = (shares != 1) & (t != 0)
        return tied & moves, x

    return without_slope(xp, found, several)


@in_float32
def _logsumexp_rule(xp: Any, g: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    if not keepdims:
        shape = keep_axes(x.shape, axis)
        g, out = xp.reshape(g, shape), xp.reshape(out, shape)
    return xp.conj(_share(xp, xp.conj(g), x, out, axis))


@in_float32
def _logsumexp_tangent(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    parts = _share(xp, t, x, xp.reshape(out, keep_axes(x.shape, axis)), axis)
    return xp.sum(parts, axis=axis, keepdims=keepdims)


_logsumexp = Primitive(
    "logsumexp",
    ("x",),
    {"x": _logsumexp_rule},
    dtypes="floating",
    jvps={"x": _logsumexp_tangent},
    composite=_logsumexp_composite,
    batch=over_axes(keepdims=False),
).bind


@overload
def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
) -> Tensor: ...
@overload
def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    r"""Logarithm of a sum of exponentials, :math:`\log \sum_i b_i e^{a_i}`, without overflow.

    The derivative is the share of each term, :math:`b_i e^{a_i} / \sum_j b_j e^{a_j}`: the softmax
    of ``a`` where there are no weights. An infinite result is shared evenly by the terms that are
    equal to it. The sum of nothing is 0, and its logarithm -inf. ``return_sign`` gives the sign of
    the sum (complex: its direction) beside the logarithm of its absolute value; without it a
    negative real sum gives nan. SciPy: ``scipy.special.logsumexp``.

    Examples
    --------
    >>> wg.logsumexp(wg.asarray([1000.0, 1000.0]))
    tensor(1000.6932)
    """
    if b is None and not return_sign:
        return _logsumexp(a, axis=_axes(a, axis), keepdims=bool(keepdims))
    return _weigh(differentiable, a, axis, b, keepdims, return_sign)


def _weigh(
    xp: Any, a: Any, axis: int | Sequence[int] | None, b: Any, keepdims: bool, return_sign: bool
) -> Any:
    if b is not None:
        a, b = xp.broadcast_arrays(xp.asarray(a), xp.asarray(b))
    a = xp.asarray(a)
    axes = _axes(a, axis)
    height = a.detach()
    height = xp.real(height) if is_complex(height) else height
    if b is not None:
        height = xp.where(b.detach() == 0, -math.inf, height)
    if any(a.shape[i] == 0 for i in axes):
        shift = xp.zeros(keep_axes(a.shape, axes), dtype=height.dtype, device=xp.device(a))
    else:
        shift = xp.max(height, axis=axes, keepdims=True)
        shift = xp.where(xp.isfinite(shift), shift, 0)
    terms = a - shift
    factor = None  # of weights, which makes the square of their sum stay in range
    if b is not None:
        held = dtype_of(b.dtype)
        if held.inexact and not held.narrow and 0 not in b.shape:
            factor = factor_of(xp, xp.abs(b.detach()), axes)
            b = b * factor
        if not is_complex(a):
            # Terms of weight 0 must not overflow. (The logarithm may have been rounded up.)
            most = math.log(xp.finfo(a.dtype).max) * (1 - 2**-10)
            terms = xp.where(b == 0, xp.minimum(terms, most), terms)
        terms = b * xp.exp(terms)
    else:
        terms = xp.exp(terms)
    total = xp.sum(terms, axis=axes, keepdims=True)
    sign = xp.sign(total)
    if return_sign:
        total = xp.abs(total)
    empty = total == 0
    out = xp.log(xp.where(empty, 1, total)) + xp.where(empty, -math.inf, shift)
    out = out if factor is None else out - xp.log(factor)
    if not keepdims:
        shape = drop_axes(a.shape, axes)
        out, sign = xp.reshape(out, shape), xp.reshape(sign, shape)
    return (out, sign) if return_sign else out


# -- shares of the sum ---------------------------------------------------------------------------


@in_float32
def _softmax_composite(xp: Any, x: Any, *, axis: Axes) -> Any:
    if 0 in x.shape:
        return x
    terms = xp.exp(_below_top(xp, x, axis))
    return terms / xp.sum(terms, axis=axis, keepdims=True)


@in_float32
def _move(xp: Any, t: Any, shares: Any, axis: Axes) -> Any:
    parts = t * shares
    return parts - shares * xp.sum(parts, axis=axis, keepdims=True)


def _of_sum_one(xp: Any, out: Any, axis: Axes) -> Any:
    """The shares; of half precision, where one may be rounded to 1, over their sum."""
    if not dtype_of(out.dtype).narrow:
        return out
    shares = wide(xp, out)
    return shares / xp.sum(shares, axis=axis, keepdims=True)


@operation(
    inputs=("x",),
    x=lambda xp, g, out, axis: _move(xp, g, xp.conj(_of_sum_one(xp, out, axis)), axis),
    dtypes="floating",
    composite=_softmax_composite,
    jvps={"x": lambda xp, t, out, axis: _move(xp, t, _of_sum_one(xp, out, axis), axis)},
    batch=over_axes(),
)
def softmax(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    r"""Softmax, :math:`s_i = e^{x_i} / \sum_j e^{x_j}`.

    It is nan along ``axis`` where all of ``x`` is -inf, or some of it is inf. The cotangent is
    :math:`s^* \left(\bar y - \sum_i \bar y_i s_i^*\right)`. By default the sum is over all axes.
    SciPy: ``scipy.special.softmax``.

    Examples
    --------
    >>> wg.softmax(wg.asarray([1.0, 2.0, 3.0]))
    tensor([0.0900, 0.2447, 0.6652])
    >>> wg.jacobian(wg.softmax)(wg.zeros(2))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    return softmax.run(x, axis=_axes(x, axis))


@in_float32
def _log_softmax_composite(xp: Any, x: Any, *, axis: Axes) -> Any:
    if 0 in x.shape:
        return x
    low = _below_top(xp, x, axis)
    return low - xp.log(xp.sum(xp.exp(low), axis=axis, keepdims=True))


def _summing_to_one(xp: Any, out: Any, axis: Axes) -> Any:
    """The result; of half precision, whose exponentials would add up to another number, anew."""
    return xp.log_softmax(wide(xp, out), axis=axis) if dtype_of(out.dtype).narrow else out


@in_float32
def _pull(xp: Any, g: Any, out: Any, axis: Axes) -> Any:
    total = xp.sum(g, axis=axis, keepdims=True)
    return g - xp.conj(xp.exp(out)) * total


@in_float32
def _push(xp: Any, t: Any, out: Any, axis: Axes) -> Any:
    return t - xp.sum(xp.exp(out) * t, axis=axis, keepdims=True)


@operation(
    inputs=("x",),
    x=lambda xp, g, out, axis: _pull(xp, g, _summing_to_one(xp, out, axis), axis),
    dtypes="floating",
    composite=_log_softmax_composite,
    jvps={"x": lambda xp, t, out, axis: _push(xp, t, _summing_to_one(xp, out, axis), axis)},
    batch=over_axes(),
)
def log_softmax(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    r"""Logarithm of the softmax, :math:`x_i - \log \sum_j e^{x_j}`, accurate in its tail.

    It is nan where `softmax` is. The cotangent is :math:`\bar y - s^* \sum_i \bar y_i`, with the
    softmax :math:`s`. By default the sum is over all axes. SciPy: ``scipy.special.log_softmax``.

    Examples
    --------
    >>> wg.log_softmax(wg.asarray([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """
    return log_softmax.run(x, axis=_axes(x, axis))
