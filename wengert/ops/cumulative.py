"""Running sums and products along an axis, of the standard's statistical chapter."""

from typing import Any

from wengert.backends import dtype_of
from wengert.interpreters.batching import shift_axes
from wengert.ops.axes import as_axis, at_axis, keep_axes, raw_array, raw_dtype, shape_of
from wengert.ops.define import operation
from wengert.ops.shares import by_float32
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor


def preceding_products(xp: Any, x: Any, axis: int) -> Any:
    """For each element the product of those before it along an axis."""
    products = xp.cumulative_prod(x, axis=axis, include_initial=True)
    return xp.getitem(products, key=at_axis(axis, slice(0, x.shape[axis]), ...))


def _after_zero(xp: Any, x: Any, axis: int) -> Any:
    """``x`` with a zero in front."""
    zero = xp.zeros(keep_axes(x.shape, (axis,)), dtype=x.dtype, device=xp.device(x))
    return xp.concat([zero, x], axis=axis)


def _drop_initial(xp: Any, g: Any, axis: int, include_initial: bool) -> Any:
    if not include_initial:
        return g
    return xp.getitem(g, key=at_axis(axis, slice(1, None), ...))


def _cumulative_sum_rule(xp: Any, g: Any, axis: int, include_initial: bool) -> Any:
    g = xp.flip(_drop_initial(xp, g, axis, include_initial), axis=(axis,))
    return xp.flip(xp.cumulative_sum(g, axis=axis), axis=(axis,))


def _running_batch(call: Any, x: Any, *, axis: int | None = None, **parameters: Any) -> Any:
    options = {"dtype": None, "include_initial": False, **parameters}
    return call.run(x, axis=shift_axes(axis or 0, call.rank(0)), **options)


def _cumulative_prod_rule(xp: Any, g: Any, x: Any, axis: int, include_initial: bool) -> Any:
    # s[i], the sum over k >= i of g[k] x[i+1] ... x[k], is g[i] + x[i+1] s[i+1].
    g = xp.flip(_drop_initial(xp, g, axis, include_initial), axis=(axis,))
    x = xp.conj(xp.astype(x, g.dtype))
    following = xp.roll(xp.flip(x, axis=(axis,)), 1, axis=axis)
    s = xp.flip(xp.linear_recurrence(following, g, axis=axis), axis=(axis,))
    return preceding_products(xp, x, axis) * s


def _cumulative_prod_tangent(
    xp: Any, t: Any, x: Any, out: Any, axis: int, include_initial: bool
) -> Any:
    # t_y[k] = x[k] t_y[k-1] + t[k] x[0] ... x[k-1]
    x = xp.astype(x, out.dtype)
    moved = xp.linear_recurrence(x, t * preceding_products(xp, x, axis), axis=axis)
    return _after_zero(xp, moved, axis) if include_initial else moved


def _linear_recurrence(xp: Any, a: Any, b: Any, *, axis: int) -> Any:
    """Solve y[i] = a[i] y[i-1] + b[i] from y[-1] = 0, in as many steps as the length has bits.

    After each step b[i] is y[i] as if the last 2, 4, 8, ... terms were all, and a[i] the product
    of as many factors (Hillis and Steele, Data parallel algorithms, 1986).
    """
    length = b.shape[axis]
    before = (slice(None),) * axis
    width = 1
    while width < length:
        head = (*before, slice(0, width), ...)
        tail = (*before, slice(width, length), ...)
        early = (*before, slice(0, length - width), ...)
        b = xp.concat([b[head], b[tail] + a[tail] * b[early]], axis=axis)
        a = xp.concat([a[head], a[tail] * a[early]], axis=axis)
        width *= 2
    return b


def _recurrence_cotangent(xp: Any, g: Any, a: Any, axis: int) -> Any:
    """z[i] = g[i] + conj(a[i+1]) z[i+1]: the recurrence itself, from the other end."""
    following = xp.roll(xp.flip(xp.conj(a), axis=(axis,)), 1, axis=axis)
    z = xp.linear_recurrence(following, xp.flip(g, axis=(axis,)), axis=axis)
    return xp.flip(z, axis=(axis,))


def _delay(xp: Any, x: Any, axis: int) -> Any:
    """``x`` one place later: its last element is gone, and its first a zero."""
    if not x.shape[axis]:
        return x
    return _after_zero(xp, xp.getitem(x, key=at_axis(axis, slice(0, -1), ...)), axis)


Primitive(
    "linear_recurrence",
    ["a", "b"],
    {
        "a": lambda xp, g, a, out, axis: (
            _recurrence_cotangent(xp, g, a, axis) * xp.conj(_delay(xp, out, axis))
        ),
        "b": _recurrence_cotangent,
    },
    view=None,
    jvps={
        "a": lambda xp, t, a, out, axis: xp.linear_recurrence(
            a, t * _delay(xp, out, axis), axis=axis
        ),
        "b": lambda xp, t, a, axis: xp.linear_recurrence(a, t, axis=axis),
    },
    composite=_linear_recurrence,
    batch=lambda call, a, b, axis: call.run(
        call.broadcast(0), call.broadcast(1), axis=shift_axes(axis, call.rank(1))
    ),
)


@operation(x=_cumulative_sum_rule, linear="together", batch=_running_batch, dtypes="numeric")
def cumulative_sum(
    x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    r"""Running sums, :math:`y_i = \sum_{j \le i} x_j`.

    Their cotangents are summed from the other end. Smaller integers become the default integer.
    Raises `ValueError` if ``x`` is 0-d, the axis is out of bounds, or it is left out where there
    are several. ``include_initial`` puts a 0 in front. Array API standard.

    Examples
    --------
    >>> wg.cumulative_sum(wg.asarray([1.0, 2.0, 3.0]))
    tensor([1., 3., 6.])
    >>> wg.grad(lambda x: wg.cumulative_sum(x).sum())(wg.asarray([1.0, 2.0, 3.0]))
    tensor([3., 2., 1.])
    """
    at = _running_axis(x, axis, "cumulative_sum")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    elif dtype_of(raw_array(x).dtype).narrow:
        options = {"axis": at, "include_initial": include_initial}
        return by_float32(cumulative_sum, x, **options)  # type: ignore[no-any-return]
    return cumulative_sum.run(x, axis=at, dtype=dtype, include_initial=include_initial)


@operation(
    x=_cumulative_prod_rule,
    jvps={"x": _cumulative_prod_tangent},
    batch=_running_batch,
    dtypes="numeric",
)
def cumulative_prod(
    x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    r"""Running products, :math:`y_i = \prod_{j \le i} x_j`.

    Derivative :math:`\partial y_k / \partial x_i` = the product of the other factors of
    :math:`y_k`: right at zeros, however many there are. Smaller integers become the default
    integer. Raises `ValueError` if ``x`` is 0-d, the axis is out of bounds, or it is left out where
    there are several. ``include_initial`` puts a 1 in front. Array API standard.

    Examples
    --------
    >>> wg.cumulative_prod(wg.asarray([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    >>> wg.grad(lambda x: wg.cumulative_prod(x).sum())(wg.asarray([1.0, 2.0, 3.0]))
    tensor([9., 4., 2.])
    """
    at = _running_axis(x, axis, "cumulative_prod")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return cumulative_prod.run(x, axis=at, dtype=dtype, include_initial=include_initial)


def _running_axis(x: Any, axis: int | None, function: str) -> int:
    ndim = len(shape_of(x))
    if axis is None and ndim != 1:
        raise ValueError(f"{function} of an array of {ndim} axes needs axis=")
    if not ndim:
        raise ValueError(f"{function} needs an array of one axis at least")
    return as_axis(0 if axis is None else axis, ndim, function)
