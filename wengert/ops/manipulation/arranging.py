"""Arranging: functions that change the order of elements, the axes or the shape."""

import math
from collections.abc import Sequence
from typing import Any

from wengert.interpreters.batching import over_axes, shift_axes
from wengert.ops.axes import as_axes, as_axis, as_shape, inverse_permutation, shape_of
from wengert.ops.define import operation
from wengert.tape.tensor import Tensor

__all__ = ["expand_dims", "flip", "moveaxis", "permute_dims", "reshape", "roll", "squeeze"]

#: What is said of another order of elements than "C".
IN_ROWS = (
    "order={!r} is not supported for Tensors, whose elements are read in rows; "
    "np.transpose(np.reshape(np.transpose(x), shape[::-1])) reads columns"
)

# -- axes -----------------------------------------------------------------------------------------


def _roll_back(xp: Any, g: Any, shift: Any, axis: Any) -> Any:
    back = tuple([-n for n in shift]) if isinstance(shift, tuple) else -shift
    return xp.roll(g, back, axis=axis)


def _roll_batch(call: Any, x: Any, shift: Any, *, axis: Any = None) -> Any:
    if axis is not None:
        return call.run(x, shift=shift, axis=shift_axes(axis, call.rank(0)))
    flat = call.xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    return call.xp.reshape(call.run(flat, shift=shift, axis=1), x.shape)


@operation(
    x=lambda xp, g, x_shape: xp.reshape(g, x_shape),
    linear="together",
    view=True,
    batch=lambda call, x, axis=0: call.run(x, axis=shift_axes(axis, call.rank(0) + 1)),
)
def expand_dims(x: Any, /, axis: int | tuple[int, ...]) -> Tensor:
    """Insert axes of length 1.

    The cotangent is reshaped back. Raises `ValueError` if an axis is out of bounds or comes twice.
    Axes are those of the result, from its end if negative. Array API standard.

    Examples
    --------
    >>> wg.expand_dims(wg.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    given = shape_of(x)
    if type(axis) is int:
        return expand_dims.run(x, axis=as_axis(axis, len(given) + 1, "expand_dims"))
    count = len(axis) if isinstance(axis, tuple | list) else 1
    axes = as_axes(axis, len(given) + count, "expand_dims")
    lengths = iter(given)
    shape = tuple([1 if i in axes else next(lengths) for i in range(len(given) + count)])
    return reshape.run(x, shape=shape, copy=None)


@operation(
    x=lambda xp, g, x_shape: xp.reshape(g, x_shape), linear="together", view=True, batch=over_axes()
)
def squeeze(x: Any, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Remove axes of length 1.

    The cotangent is reshaped back. Raises `ValueError` if an axis is out of bounds, or longer than
    1. Array API standard.

    Examples
    --------
    >>> wg.squeeze(wg.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    given = shape_of(x)
    if axis is None:
        axis = tuple([i for i, n in enumerate(given) if n == 1])
    axes = as_axes(axis, len(given), "squeeze")
    for one in axes:
        if given[one] != 1:
            raise ValueError(
                f"axis {one} of shape {tuple(given)} has length {given[one]} and cannot be squeezed"
            )
    return squeeze.run(x, axis=axes)


@operation(
    x=lambda xp, g, axes: xp.permute_dims(g, inverse_permutation(axes)),
    linear="together",
    view=True,
    batch=lambda call, x, axes: call.run(x, axes=(0, *shift_axes(axes, call.rank(0)))),
)
def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Reorder the axes.

    The cotangent is permuted back. Raises `ValueError` if ``axes`` is no permutation. ``axes`` has
    for each axis of the result that of ``x``. Array API standard.

    Examples
    --------
    >>> wg.permute_dims(wg.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    ndim = len(shape_of(x))
    axes = as_axes(axes, ndim, "permute_dims")
    if len(axes) != ndim:
        raise ValueError(f"axes {axes} is no permutation of the {ndim} axes of the array")
    return permute_dims.run(x, axes=axes)


def moveaxis(
    x: Any, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """Move axes to new places; the others keep their order.

    The cotangent's axes are moved back. Raises `ValueError` if an axis is out of bounds or comes
    twice, or if the numbers differ. Array API standard.

    Examples
    --------
    >>> wg.moveaxis(wg.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    ndim = len(shape_of(x))
    sources, destinations = (as_axes(axes, ndim, "moveaxis") for axes in (source, destination))
    if len(sources) != len(destinations):
        raise ValueError(f"{len(sources)} axes to move and {len(destinations)} places for them")
    rest = iter([i for i in range(ndim) if i not in sources])
    places = dict(zip(destinations, sources, strict=True))
    axes = tuple([places[i] if i in places else next(rest) for i in range(ndim)])
    return permute_dims.run(x, axes=axes)


@operation(
    x=lambda xp, g, axis: xp.flip(g, axis=axis), linear="together", view=True, batch=over_axes()
)
def flip(x: Any, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverse the order of the elements along axes.

    The cotangent is reversed back. Raises `ValueError` if an axis is out of bounds or comes twice.
    Array API standard.

    Examples
    --------
    >>> wg.flip(wg.asarray([1, 2, 3]))
    tensor([3, 2, 1])
    """
    ndim = len(shape_of(x))
    axes = tuple(range(ndim)) if axis is None else as_axes(axis, ndim, "flip")
    return flip.run(x, axis=axes)


@operation(x=_roll_back, linear="together", batch=_roll_batch)
def roll(
    x: Any, /, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None
) -> Tensor:
    """Shift the elements along axes; what leaves at one end comes in at the other.

    The cotangent is rolled back. Raises `ValueError` if an axis is out of bounds, or the numbers of
    shifts and axes differ. One shift is for all axes; shifts of a repeated axis are summed. Without
    ``axis`` the array is rolled as if it were flat. Array API standard.

    Examples
    --------
    >>> wg.roll(wg.asarray([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    ndim = len(shape_of(x))
    shifts = as_shape(shift)
    if axis is None:
        if len(shifts) != 1:
            raise ValueError(f"roll: {len(shifts)} shifts need as many axes")
        return roll.run(x, shift=shifts[0], axis=None)
    axes = as_shape(axis)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: there are {len(shifts)} shifts and {len(axes)} axes")
    total: dict[int, int] = {}
    for by, one in zip(shifts, axes, strict=True):
        at = as_axis(one, ndim, "roll")
        total[at] = total.get(at, 0) + by
    if not total:
        return roll.run(x, shift=0, axis=None)
    return roll.run(x, shift=tuple(total.values()), axis=tuple(total))


# -- shape ----------------------------------------------------------------------------------------


def _reshape_batch(call: Any, x: Any, shape: Sequence[int], *, copy: bool | None = None) -> Any:
    if -1 in shape:  # which a batch without elements would leave open
        known = -math.prod(shape)
        shape = [math.prod(x.shape[1:]) // known if n == -1 else n for n in shape]
    return call.run(x, shape=(x.shape[0], *shape), copy=copy)


@operation(
    x=lambda xp, g, x_shape: xp.reshape(g, x_shape),
    linear="together",
    view=True,
    batch=_reshape_batch,
)
def reshape(
    x: Any, /, shape: int | Sequence[int], *lengths: int, copy: bool | None = None, order: str = "C"
) -> Tensor:
    """Give the elements, in row-major order, another shape.

    The cotangent is reshaped back. Raises `ValueError` if the number of elements differs. One
    length may be -1: it follows from the others. Lengths may come one by one, ``reshape(x, 2,
    -1)``. ``copy=False`` is an error where the library would have to copy. Array API standard.

    Examples
    --------
    >>> wg.reshape(wg.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    wanted = as_shape((shape, *lengths) if lengths else shape)
    copy = copy if copy is None else bool(copy)
    if order != "C":
        raise TypeError(f"reshape: {IN_ROWS.format(order)}")
    if wanted and min(wanted) < -1:
        raise ValueError(f"reshape: lengths can't be negative but for one -1, as in {wanted}")
    try:
        return reshape.run(x, shape=wanted, copy=copy)
    except (IndexError, TypeError, ValueError):
        _check_reshape(tuple(shape_of(x)), wanted)
        raise


def _check_reshape(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if wanted.count(-1) > 1:
        raise ValueError(f"reshape: only one length can be -1, and {wanted} has several") from None
    size, known = math.prod(given), math.prod(n for n in wanted if n != -1)
    if (-1 in wanted and (not known or size % known)) or (-1 not in wanted and size != known):
        raise ValueError(
            f"reshape: an array of shape {given} has {size} elements, which shape {wanted} cannot "
            "hold"
        ) from None
