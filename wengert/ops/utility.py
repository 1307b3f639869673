"""Utility functions: the standard's chapter of that name."""

from operator import index
from typing import Any

from wengert.interpreters.batching import along, over_axes
from wengert.ops.axes import as_axes, as_axis, keep_axes, shape_of
from wengert.ops.define import operation
from wengert.ops.manipulation import concat, reshape
from wengert.tape.tensor import Tensor

__all__ = ["all", "any", "diff"]


@operation(view=None, batch=over_axes(keepdims=False))
def all(x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements along some axes are true, that is, not zero.

    Of no elements, all are true. Raises `ValueError` if an axis is out of bounds or comes twice.
    Array API standard.

    Examples
    --------
    >>> wg.all(wg.asarray([[True, False], [True, True]]), axis=1)
    tensor([False,  True])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "all")
    return all.run(x, axis=axes, keepdims=keepdims)


@operation(view=None, batch=over_axes(keepdims=False))
def any(x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    """Whether some element along some axes is true, that is, not zero.

    Of no elements, none is true. Raises `ValueError` if an axis is out of bounds or comes twice.
    Array API standard.

    Examples
    --------
    >>> wg.any(wg.asarray([[True, False], [False, False]]), axis=1)
    tensor([ True, False])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "any")
    return any.run(x, axis=axes, keepdims=keepdims)


def _diff_rule(xp: Any, g: Any, x_shape: tuple[int, ...], axis: int, n: int) -> Any:
    if x_shape[axis] <= n:
        return xp.zeros(x_shape, dtype=g.dtype, device=xp.device(g))
    end = xp.zeros(keep_axes(g.shape, (axis,)), dtype=g.dtype, device=xp.device(g))
    for _ in range(n):
        g = -xp.diff(xp.concat((end, g, end), axis=axis), axis=axis)
    return g


@operation(x=_diff_rule, linear="together", view=None, batch=along(n=1))
def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Difference of neighbours along an axis, :math:`x_{i+1} - x_i`, taken ``n`` times.

    For the gradient, the cotangent is padded with a zero at both ends, and its negative
    difference is taken, ``n`` times. The result is as ``x``, with ``prepend`` before and
    ``append`` after it, but shorter by ``n`` along ``axis``. With ``n=0`` it is a view of ``x``.
    Raises `ValueError` if ``n`` is negative or there is no such axis. Array API standard.

    Examples
    --------
    >>> wg.diff(wg.asarray([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    >>> wg.diff(wg.asarray([1.0, 4.0, 9.0]), n=2)
    tensor([2.])
    """
    n = index(n)
    if n < 0:
        raise ValueError(f"diff: n can't be negative, and is {n}")
    along = as_axis(axis, len(shape_of(x)), "diff")
    if n == 0:
        return reshape(x, tuple(shape_of(x)))
    if prepend is not None or append is not None:
        x = concat([part for part in (prepend, x, append) if part is not None], axis=along)
    return diff.run(x, axis=along, n=n)
