"""Searching functions: the standard's chapter of that name, with their derivatives."""

import math
from typing import Any, Literal

from wengert.backends import backend_of, dtype_of, namespaces
from wengert.interpreters.batching import alone, over_axes, shift_axes
from wengert.ops.axes import as_axes, as_axis, raw_array, raw_dtype, shape_of
from wengert.ops.creation import default_dtype
from wengert.ops.define import operation
from wengert.ops.indexing import take
from wengert.tape.promotion import SCALARS, number_type
from wengert.tape.tensor import Tensor, untracked

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]


def _extreme_place_batch(
    call: Any, x: Any, *, axis: int | None = None, keepdims: bool = False
) -> Any:
    if axis is not None:
        return call.run(x, axis=shift_axes(axis, call.rank(0)), keepdims=keepdims)
    flat = call.xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    found = call.run(flat, axis=1, keepdims=False)
    return call.xp.reshape(found, (x.shape[0], *(1,) * call.rank(0))) if keepdims else found


@operation(batch=_extreme_place_batch, dtypes="real numeric")
def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element; of the first one among equals.

    Raises `ValueError` if there is no element, or the axis is out of bounds. Without ``axis`` the
    index is into the flattened array. Array API standard.

    Examples
    --------
    >>> wg.argmax(wg.asarray([[1, 5, 2], [7, 0, 3]]), axis=1)
    tensor([1, 0])
    """
    at = _extreme_axis(x, axis, "argmax")
    return argmax.run(x, axis=at, keepdims=keepdims)


@operation(batch=_extreme_place_batch, dtypes="real numeric")
def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element; of the first one among equals.

    Raises `ValueError` if there is no element, or the axis is out of bounds. Without ``axis`` the
    index is into the flattened array. Array API standard.

    Examples
    --------
    >>> wg.argmin(wg.asarray([[1, 5, 2], [7, 0, 3]]), axis=1)
    tensor([0, 1])
    """
    at = _extreme_axis(x, axis, "argmin")
    return argmin.run(x, axis=at, keepdims=keepdims)


def _extreme_axis(x: Any, axis: int | None, function: str) -> int | None:
    shape = shape_of(x)
    at = None if axis is None else as_axis(axis, len(shape), function)
    if not (math.prod(shape) if at is None else shape[at]):
        raise ValueError(f"{function} of no elements: the array has shape {tuple(shape)}")
    return at


@operation(batch=over_axes(keepdims=False))
def count_nonzero(
    x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
) -> Tensor:
    """Count the elements that are not zero (not False).

    Raises `ValueError` if an axis is out of bounds or comes twice. Array API standard.

    Examples
    --------
    >>> wg.count_nonzero(wg.asarray([[1, 0, 2], [0, 0, 3]]), axis=1)
    tensor([2, 1])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "count_nonzero")
    return count_nonzero.run(x, axis=axes, keepdims=keepdims)


@operation(several=True)
def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero (not False).

    Returns for each axis the indices along it, in row-major order. Raises `ValueError` if ``x`` is
    0-d. Array API standard.

    Examples
    --------
    >>> wg.nonzero(wg.asarray([[1, 0], [0, 2]]))
    (tensor([0, 1]), tensor([0, 1]))
    """
    if not shape_of(x):
        raise ValueError("nonzero needs an array of one axis at least")
    return nonzero.run(x)


@operation(dtypes={"x1 x2": "real numeric"}, compares=True, batch=alone(1, side="left"))
def searchsorted(
    x1: Any, x2: Any, /, side: Literal["left", "right"] = "left", *, sorter: Any = None
) -> Tensor:
    """Return where elements would have to be inserted in a sorted array to keep it sorted.

    The result is indices, of the shape of ``x2`` and the default index dtype. Raises `ValueError`
    if ``x1`` does not have one axis, or ``side`` is neither name. Indices ``sorter`` bring ``x1``
    into ascending order. ``side`` asks for the first suitable place or the last.
    Array API standard.

    Examples
    --------
    >>> wg.searchsorted(wg.asarray([1.0, 3.0, 5.0]), wg.asarray([0.0, 3.0, 4.0]))
    tensor([0, 1, 2])
    """
    if len(shape_of(x1)) != 1:
        raise ValueError(f"searchsorted needs a 1-d array, and the shape is {tuple(x1.shape)}")
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    if sorter is not None:
        if tuple(shape_of(sorter)) != tuple(x1.shape):
            raise ValueError(
                f"searchsorted: a sorter has the shape of the array, {tuple(x1.shape)}, and not "
                f"{tuple(sorter.shape)}"
            )
        x1 = take(x1, sorter, axis=0)
    return searchsorted.run(x1, x2, side=side)


@operation(
    x1=lambda xp, g, condition: xp.where(condition, g, 0),
    x2=lambda xp, g, condition: xp.where(condition, 0, g),
    elementwise=True,
    linear="together",
    dtypes={"x1 x2": "any"},
)
def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    r"""Choose elements from one array where a condition holds, and from another elsewhere.

    Each cotangent is :math:`\bar y` where its operand was chosen and 0 elsewhere, whatever the
    other operand's values are. But an infinite or NaN *derivative* in the branch that is not chosen
    still spoils the gradient, because it is multiplied by 0: choose the input before the function
    is taken, too. Raises `TypeError` if ``condition`` is not of dtype bool; `ValueError` if the
    shapes do not broadcast. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([0.0, 4.0], requires_grad=True)
    >>> safe = wg.where(x > 0, x, 1.0)  # the derivative of the root at 0 would be infinite
    >>> wg.sum(wg.where(x > 0, wg.sqrt(safe), 0.0)).backward()
    >>> x.grad
    tensor([0.0000, 0.2500])
    """
    shape_of(condition)
    if dtype_of(condition.dtype).kind != "bool":
        raise TypeError(
            f"where needs a condition of dtype bool, not {dtype_of(condition.dtype).name}; "
            "compare first, as in x != 0"
        )
    if number_type(x1) in SCALARS and number_type(x2) in SCALARS:
        raw = raw_array(condition)
        live = hasattr(x1, "regularise")  # a number that a trace follows
        xp = namespaces[type(raw)] if live else backend_of(raw).namespace
        dtype = raw_dtype(raw, default_dtype(x1, x2))
        x1 = untracked(xp.asarray(x1, dtype=dtype, device=xp.device(raw)))
    return where.run(condition, x1, x2)
