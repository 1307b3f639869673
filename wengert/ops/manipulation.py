"""Manipulation functions: the standard's chapter of that name, with their derivatives.

All but `repeat`'s and `tile`'s derivatives only move elements; broadcasting sums instead.
"""

import math
from collections.abc import Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from wengert.backends import backend_of
from wengert.ops.axes import as_axes, as_axis, raw_array, shape_of
from wengert.ops.indexing import take as _take
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def _as_shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is int:
        return (shape,)
    return tuple([n if type(n) is int else as_index(n) for n in shape])


# -- broadcasting --------------------------------------------------------------------------------

# The engine gives a cotangent its input's shape by summing: the adjoint of broadcasting.
_broadcast_to = Primitive(
    "broadcast_to", ["x"], {"x": lambda xp, g: g}, kind="linear", label="Expand"
).bind


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Tensor:
    r"""Repeat an array along axes of length 1, and along new axes in front, to a given shape.

    Parameters
    ----------
    x : array
        Of any dtype and a shape that broadcasts to ``shape``.
    shape : tuple of int
        The shape of the result.

    Returns
    -------
    Tensor
        Of shape ``shape`` and the dtype of ``x``. The cotangent is summed over what was repeated.

    Raises
    ------
    ValueError
        If ``x`` does not broadcast to ``shape``.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    target = _as_shape(shape)
    given = shape_of(x)
    skipped = len(target) - len(given)
    if skipped < 0 or any(n not in (1, m) for n, m in zip(given, target[skipped:], strict=True)):
        raise ValueError(f"shape {tuple(given)} does not broadcast to {target}")
    return _broadcast_to(x, shape=target)  # type: ignore[no-any-return]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that arrays of the given shapes have when they are broadcast together.

    Parameters
    ----------
    *shapes : tuple of int
        Any number of shapes.

    Returns
    -------
    tuple of int
        The common shape.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    common = [1] * max((len(shape) for shape in shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(reversed(shape), 1):
            if n != 1 and common[-i] not in (1, n):
                listed = ", ".join(str(tuple(each)) for each in shapes)
                raise ValueError(f"the shapes {listed} do not broadcast together")
            if n != 1:
                common[-i] = n
    return tuple(common)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Broadcast arrays against each other.

    Parameters
    ----------
    *arrays : array
        Of any dtypes, and shapes that broadcast together.

    Returns
    -------
    tuple of Tensor
        One for each array, of the common shape and its own dtype. Each cotangent is summed over
        what was repeated.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    shape = broadcast_shapes(*[shape_of(x) for x in arrays])
    return tuple([_broadcast_to(x, shape=shape) for x in arrays])


# -- axes ----------------------------------------------------------------------------------------

_expand_dims = Primitive(
    "expand_dims",
    ["x"],
    {"x": lambda xp, g, x_shape: xp.reshape(g, x_shape)},
    kind="structural",
    label="Unsqueeze",
).bind

_squeeze = Primitive(
    "squeeze",
    ["x"],
    {"x": lambda xp, g, x_shape: xp.reshape(g, x_shape)},
    kind="structural",
).bind


def _inverse(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


_permute_dims = Primitive(
    "permute_dims",
    ["x"],
    {"x": lambda xp, g, axes: xp.permute_dims(g, _inverse(axes))},
    kind="structural",
    label="Permute",
).bind

_flip = Primitive(
    "flip",
    ["x"],
    {"x": lambda xp, g, axis: xp.flip(g, axis=axis)},
    kind="structural",
).bind


def _roll_back(xp: Any, g: Any, shift: Any, axis: Any) -> Any:
    back = tuple([-n for n in shift]) if isinstance(shift, tuple) else -shift
    return xp.roll(g, back, axis=axis)


_roll = Primitive("roll", ["x"], {"x": _roll_back}, kind="structural").bind


def expand_dims(x: Any, /, axis: int | tuple[int, ...]) -> Tensor:
    """Insert axes of length 1.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    axis : int or tuple of int
        Where the new axes are in the result; negative numbers count from its end.

    Returns
    -------
    Tensor
        With the elements and dtype of ``x``.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    given = shape_of(x)
    if type(axis) is int:
        return _expand_dims(x, axis=as_axis(axis, len(given) + 1))  # type: ignore[no-any-return]
    count = len(axis) if isinstance(axis, tuple | list) else 1
    axes = as_axes(axis, len(given) + count)
    lengths = iter(given)
    shape = tuple([1 if i in axes else next(lengths) for i in range(len(given) + count)])
    return _reshape(x, shape=shape, copy=None)  # type: ignore[no-any-return]


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Tensor:
    """Remove axes of length 1.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    axis : int or tuple of int
        Which axes.

    Returns
    -------
    Tensor
        With the elements and dtype of ``x``.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError), or longer than 1.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    given = shape_of(x)
    axes = as_axes(axis, len(given))
    for one in axes:
        if given[one] != 1:
            raise ValueError(
                f"axis {one} of shape {tuple(given)} has length {given[one]} and cannot be squeezed"
            )
    return _squeeze(x, axis=axes)  # type: ignore[no-any-return]


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Reorder the axes.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    axes : tuple of int
        For each axis of the result, the axis of ``x`` that it is: a permutation of all of them.

    Returns
    -------
    Tensor
        With the elements and dtype of ``x``. The cotangent is permuted back.

    Raises
    ------
    ValueError
        If ``axes`` is no permutation.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    ndim = len(shape_of(x))
    axes = as_axes(axes, ndim)
    if len(axes) != ndim:
        raise ValueError(f"axes {axes} is no permutation of the {ndim} axes of the array")
    return _permute_dims(x, axes=axes)  # type: ignore[no-any-return]


def moveaxis(
    x: Any, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """Move axes to new places; the others keep their order.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    source, destination : int or tuple of int
        Which axes, and where each is to be. Equally many.

    Returns
    -------
    Tensor
        With the elements and dtype of ``x``.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice, or if the numbers differ.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    ndim = len(shape_of(x))
    sources, destinations = as_axes(source, ndim), as_axes(destination, ndim)
    if len(sources) != len(destinations):
        raise ValueError(f"{len(sources)} axes to move and {len(destinations)} places for them")
    rest = iter([i for i in range(ndim) if i not in sources])
    places = dict(zip(destinations, sources, strict=True))
    axes = tuple([places[i] if i in places else next(rest) for i in range(ndim)])
    return _permute_dims(x, axes=axes)  # type: ignore[no-any-return]


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverse the order of the elements along axes.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    axis : int or tuple of int, optional
        Along which axes; all by default.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    ndim = len(shape_of(x))
    axes = tuple(range(ndim)) if axis is None else as_axes(axis, ndim)
    return _flip(x, axis=axes)  # type: ignore[no-any-return]


def roll(
    x: Any, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None
) -> Tensor:
    """Shift the elements along axes; what leaves at one end comes in at the other.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    shift : int or tuple of int
        By how many places; one number for all axes, or one for each.
    axis : int or tuple of int, optional
        Along which axes, a repeated one being shifted by the sum. By default the array is rolled
        as if it were flat.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``. The cotangent is rolled back.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError), or the numbers of shifts and axes differ.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    ndim = len(shape_of(x))
    shifts = _as_shape(shift)
    if axis is None:
        if len(shifts) != 1:
            raise ValueError(f"{len(shifts)} shifts need as many axes")
        return _roll(x, shift=shifts[0], axis=None)  # type: ignore[no-any-return]
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"{len(shifts)} shifts and {len(axes)} axes")
    total: dict[int, int] = {}
    for by, one in zip(shifts, axes, strict=True):
        at = as_axis(one, ndim)
        total[at] = total.get(at, 0) + by
    if not total:
        return _roll(x, shift=0, axis=None)  # type: ignore[no-any-return]
    return _roll(x, shift=tuple(total.values()), axis=tuple(total))  # type: ignore[no-any-return]


# -- shape ---------------------------------------------------------------------------------------

_reshape = Primitive(
    "reshape",
    ["x"],
    {"x": lambda xp, g, x_shape: xp.reshape(g, x_shape)},
    kind="structural",
).bind


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Give the elements, in row-major order, another shape.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    shape : tuple of int
        The new shape. One length may be -1: it follows from the number of elements.
    copy : bool, optional
        True copies, False raises if the library would have to, None copies where it has to.

    Returns
    -------
    Tensor
        Of shape ``shape`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If the number of elements differs.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    return _reshape(x, shape=_as_shape(shape), copy=copy)  # type: ignore[no-any-return]


# -- joining and splitting -----------------------------------------------------------------------

# The standard's functions take a sequence where a primitive takes operands: so the primitives
# have names of their own.


def _concat_rule(
    xp: Any, g: Any, index: int, arrays_shape: tuple[tuple[int, ...], ...], axis: int
) -> Any:
    start = 0
    for shape in arrays_shape[:index]:
        start += shape[axis]
    cut = slice(start, start + arrays_shape[index][axis])
    return xp.getitem(g, key=(slice(None),) * axis + (cut, ...))


_concat = Primitive(
    "concat_arrays",
    ["*arrays"],
    {"arrays": _concat_rule},
    kind="structural",
    label="Cat",
    forward=lambda xp, *arrays, axis: xp.concat(arrays, axis=axis),
).bind

_stack = Primitive(
    "stack_arrays",
    ["*arrays"],
    {"arrays": lambda xp, g, index, axis: xp.getitem(g, key=(slice(None),) * axis + (index, ...))},
    kind="structural",
    label="Stack",
    forward=lambda xp, *arrays, axis: xp.stack(arrays, axis=axis),
).bind

_unstack = Primitive(
    "unstack",
    ["x"],
    {"x": lambda xp, g, axis: xp.stack(g, axis=axis)},
    kind="structural",
    label="Unbind",
    several=True,
).bind


def concat(arrays: tuple[Any, ...] | list[Any], /, *, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis that they have.

    Parameters
    ----------
    arrays : tuple or list of array
        At least one, of equal shapes but for ``axis``.
    axis : int, optional
        Along which axis; None flattens the arrays first.

    Returns
    -------
    Tensor
        Of the arrays' promoted dtype. Each array's cotangent is its piece.

    Raises
    ------
    ValueError
        If there are no arrays, the shapes do not fit, or the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    given = _sequence(arrays, "concat")
    if axis is None:
        given = [_reshape(x, shape=(-1,), copy=None) for x in given]
        axis = 0
    shapes = [shape_of(x) for x in given]
    axis = as_axis(axis, len(shapes[0]))
    rest = [(len(shape), *shape[:axis], *shape[axis + 1 :]) for shape in shapes]
    for shape, others in zip(shapes, rest, strict=True):
        if others != rest[0]:
            raise ValueError(
                f"concat along axis {axis} needs shapes that are equal but for it, and was given "
                f"{tuple(shapes[0])} and {tuple(shape)}"
            )
    return _concat(*given, axis=axis)  # type: ignore[no-any-return]


def stack(arrays: tuple[Any, ...] | list[Any], /, *, axis: int = 0) -> Tensor:
    """Join arrays along a new axis.

    Parameters
    ----------
    arrays : tuple or list of array
        At least one, of equal shapes.
    axis : int
        The place of the new axis in the result.

    Returns
    -------
    Tensor
        Of the arrays' promoted dtype. Each array's cotangent is its piece.

    Raises
    ------
    ValueError
        If there are no arrays, their shapes differ, or the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    given = _sequence(arrays, "stack")
    shapes = [shape_of(x) for x in given]
    for shape in shapes:
        if shape != shapes[0]:
            raise ValueError(
                f"stack needs equal shapes, and was given {tuple(shapes[0])} and {tuple(shape)}"
            )
    return _stack(*given, axis=as_axis(axis, len(shapes[0]) + 1))  # type: ignore[no-any-return]


def _sequence(arrays: Any, function: str) -> list[Any]:
    given = list(arrays)
    if not given:
        raise ValueError(f"{function} needs at least one array")
    return given


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Split an array into its slices along an axis, which they no longer have.

    Parameters
    ----------
    x : array
        Of one axis at least, and any dtype.
    axis : int
        Along which axis.

    Returns
    -------
    tuple of Tensor
        As many as the axis is long. The cotangent is that of the slices, stacked.

    Raises
    ------
    ValueError
        If the axis is out of bounds (also an IndexError), as it is for a 0-d array.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    return _unstack(x, axis=as_axis(axis, len(shape_of(x))))  # type: ignore[no-any-return]


# -- repetition ----------------------------------------------------------------------------------


def _repeat_forward(xp: Any, x: Any, repeats: int, *, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = xp.reshape(x, (math.prod(x.shape),)), 0
    shape = x.shape
    x = xp.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    x = xp.broadcast_to(x, (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return xp.reshape(x, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))


def _repeat_rule(xp: Any, g: Any, x_shape: tuple[int, ...], repeats: int, axis: int) -> Any:
    g = xp.reshape(g, (*x_shape[: axis + 1], repeats, *x_shape[axis + 1 :]))
    return xp.sum(g, axis=axis + 1)


_repeat = Primitive(
    "repeat", ["x"], {"x": _repeat_rule}, kind="linear", forward=_repeat_forward
).bind


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element a number of times.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    repeats : int or integer array
        How often: one number for all elements, or a 1-d array with one for each along ``axis``.
    axis : int, optional
        Along which axis; by default the array is flattened first.

    Returns
    -------
    Tensor
        Of the dtype of ``x``. The cotangent is summed over the copies.

    Raises
    ------
    ValueError
        If a count is negative, the counts do not fit the axis, or the axis is out of bounds.
    TypeError
        If ``repeats`` is not of an integer dtype.

    Notes
    -----
    Array API standard 2025.12, manipulation functions. Counts in an array decide the shape of the
    result, so they are read back from the device.
    """
    if axis is None:
        x, axis = _reshape(x, shape=(-1,), copy=None), 0
    axis = as_axis(axis, len(shape_of(x)))
    if not hasattr(repeats, "shape"):
        times = as_index(repeats)
        if times < 0:
            raise ValueError(f"repeats cannot be negative, and is {times}")
        return _repeat(x, repeats=times, axis=axis)  # type: ignore[no-any-return]
    owner = backend_of(raw_array(x))
    counts = raw_array(repeats)
    counts = np.asarray(backend_of(counts).to_numpy(counts))
    if counts.dtype.kind not in "iu":
        raise TypeError(f"repeats needs an integer dtype, not {counts.dtype}")
    if counts.ndim > 1 or counts.size not in (1, x.shape[axis]):
        raise ValueError(f"repeats of shape {counts.shape} for an axis of length {x.shape[axis]}")
    if (counts < 0).any():
        raise ValueError("repeats cannot be negative")
    # Which element each place of the result copies; `take`'s derivative then adds the copies up.
    origin = np.repeat(np.arange(x.shape[axis]), counts.astype(np.int64))
    device = owner.device(raw_array(x))
    return _take(x, untracked(owner.from_numpy(origin, device)), axis=axis)


def _interleaved(shape: tuple[int, ...], repetitions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for pair in zip(repetitions, shape, strict=True) for n in pair])


def _padded(shape: tuple[int, ...], repetitions: tuple[int, ...]) -> tuple[Any, Any]:
    """The shape and the repetitions, the shorter of them filled up with ones in front."""
    more = len(repetitions) - len(shape)
    return (1,) * more + tuple(shape), (1,) * -more + repetitions


def _tile_forward(xp: Any, x: Any, repetitions: tuple[int, ...]) -> Any:
    shape, repetitions = _padded(x.shape, repetitions)
    x = xp.reshape(x, _interleaved(shape, (1,) * len(shape)))
    x = xp.broadcast_to(x, _interleaved(shape, repetitions))
    return xp.reshape(x, tuple([n * r for n, r in zip(shape, repetitions, strict=True)]))


def _tile_rule(xp: Any, g: Any, x_shape: tuple[int, ...], repetitions: tuple[int, ...]) -> Any:
    shape, repetitions = _padded(x_shape, repetitions)
    g = xp.reshape(g, _interleaved(shape, repetitions))
    return xp.reshape(xp.sum(g, axis=tuple(range(0, 2 * len(shape), 2))), x_shape)


_tile = Primitive("tile", ["x"], {"x": _tile_rule}, kind="linear", forward=_tile_forward).bind


def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat a whole array along its axes, like tiles on a floor.

    Parameters
    ----------
    x : array
        Of any shape and dtype.
    repetitions : tuple of int
        How often along each axis. The shorter of it and the shape is filled up with ones in front.

    Returns
    -------
    Tensor
        Of the dtype of ``x``. The cotangent is summed over the copies.

    Raises
    ------
    ValueError
        If a repetition is negative.

    Notes
    -----
    Array API standard 2025.12, manipulation functions.
    """
    times = _as_shape(repetitions)
    if min(times, default=0) < 0:
        raise ValueError(f"repetitions cannot be negative: {times}")
    return _tile(x, repetitions=times)  # type: ignore[no-any-return]
