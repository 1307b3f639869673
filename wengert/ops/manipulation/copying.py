"""Copying: functions that repeat elements. Their derivatives sum over the copies."""

import math
from collections.abc import Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from wengert.interpreters.batching import shift_axes
from wengert.ops.axes import as_axis, as_shape, shape_of
from wengert.ops.conversion import beside
from wengert.ops.define import operation
from wengert.ops.indexing import take
from wengert.ops.manipulation.arranging import reshape
from wengert.tape.tensor import Tensor, host_values, wrap

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "repeat", "tile"]

# -- broadcasting ---------------------------------------------------------------------------------


def _broadcast_to_batch(call: Any, x: Any, shape: Sequence[int]) -> Any:
    return call.run(call.with_rank(0, len(shape)), shape=(x.shape[0], *shape))


# The engine gives a cotangent its input's shape by summing: the adjoint of broadcasting.
@operation(x=lambda xp, g: g, linear="together", view=np.broadcast_to, batch=_broadcast_to_batch)
def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Tensor:
    """Repeat an array along axes of length 1, and along new axes in front, to a given shape.

    The cotangent is summed over what was repeated. Raises `ValueError` if ``x`` does not broadcast
    to ``shape``. Array API standard.

    Examples
    --------
    >>> wg.broadcast_to(wg.asarray([1.0, 2.0]), (3, 2))
    tensor([[1., 2.],
            [1., 2.],
            [1., 2.]])
    >>> wg.grad(lambda x: wg.broadcast_to(x, (3, 2)).sum())(wg.ones(2))
    tensor([3., 3.])
    """
    target = as_shape(shape)
    given = shape_of(x)
    skipped = len(target) - len(given)
    fits = skipped >= 0 and (not target or min(target) >= 0)
    if not fits or any(n not in (1, m) for n, m in zip(given, target[skipped:], strict=True)):
        raise ValueError(f"shape {tuple(given)} does not broadcast to {target}")
    return broadcast_to.run(x, shape=target)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that arrays of the given shapes have when they are broadcast together.

    Raises `ValueError` if the shapes do not broadcast. Array API standard.

    Examples
    --------
    >>> wg.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    given = [as_shape(shape) for shape in shapes]
    if any(n < 0 for shape in given for n in shape):
        raise ValueError(f"broadcast_shapes: lengths can't be negative, as in {given}")
    return _common_shape(*given)


def _common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
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

    Each cotangent is summed over what was repeated. Raises `ValueError` if the shapes do not
    broadcast. Array API standard.

    Examples
    --------
    >>> x, y = wg.broadcast_arrays(wg.ones((3, 1)), wg.ones(2))
    >>> x.shape, y.shape
    ((3, 2), (3, 2))
    """
    shape = _common_shape(*[shape_of(x) for x in arrays])
    return tuple([broadcast_to.run(x, shape=shape) for x in arrays])


# -- repetition -----------------------------------------------------------------------------------


def _repeat_composite(xp: Any, x: Any, repeats: int, *, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = xp.reshape(x, (math.prod(x.shape),)), 0
    shape = x.shape
    x = xp.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    x = xp.broadcast_to(x, (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return xp.reshape(x, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))


def _repeat_rule(xp: Any, g: Any, x_shape: tuple[int, ...], repeats: int, axis: int) -> Any:
    g = xp.reshape(g, (*x_shape[: axis + 1], repeats, *x_shape[axis + 1 :]))
    return xp.sum(g, axis=axis + 1)


def _repeat_batch(call: Any, x: Any, repeats: int, *, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = call.xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), 0
    return call.run(x, repeats=repeats, axis=shift_axes(axis, len(x.shape) - 1))


@operation(
    inputs=["x"],
    x=_repeat_rule,
    linear="together",
    view=None,
    composite=_repeat_composite,
    batch=_repeat_batch,
)
def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Tensor:
    """Repeat each element a number of times.

    The cotangent is summed over the copies. Counts in an array decide the shape of the result, so
    they are read back from the device. Raises `ValueError` if a count is negative, the counts do
    not fit the axis, or the axis is out of bounds; `TypeError` if ``repeats`` is not of an integer
    dtype. Without ``axis`` the array is flattened first. Array API standard.

    Examples
    --------
    >>> wg.repeat(wg.asarray([1, 2]), 3)
    tensor([1, 1, 1, 2, 2, 2])
    >>> wg.repeat(wg.asarray([1, 2]), wg.asarray([1, 2]))
    tensor([1, 2, 2])
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = as_axis(axis, len(shape_of(x)), "repeat")
    if not hasattr(repeats, "shape"):
        times = as_index(repeats)
        if times < 0:
            raise ValueError(f"repeats cannot be negative, and is {times}")
        return repeat.run(x, repeats=times, axis=axis)
    counts = np.asarray(host_values(wrap(repeats)))
    if counts.dtype.kind not in "iu":
        raise TypeError(f"repeats needs an integer dtype, not {counts.dtype}")
    if counts.ndim > 1 or counts.size not in (1, x.shape[axis]):
        raise ValueError(
            f"repeats has shape {counts.shape}, and the axis has length {x.shape[axis]}"
        )
    if (counts < 0).any():
        raise ValueError("repeats cannot be negative")
    # Which element each place of the result copies; `take`'s derivative then adds the copies up.
    origin = np.repeat(np.arange(x.shape[axis]), counts.astype(np.int64))
    return take(x, beside(wrap(x), origin), axis=axis)


def _interleave(shape: tuple[int, ...], repetitions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for pair in zip(repetitions, shape, strict=True) for n in pair])


def _pad(shape: tuple[int, ...], repetitions: tuple[int, ...]) -> tuple[Any, Any]:
    """The shape and the repetitions, the shorter of them filled up with ones in front."""
    more = len(repetitions) - len(shape)
    return (1,) * more + tuple(shape), (1,) * -more + repetitions


def _tile_composite(xp: Any, x: Any, repetitions: tuple[int, ...]) -> Any:
    shape, repetitions = _pad(x.shape, repetitions)
    x = xp.reshape(x, _interleave(shape, (1,) * len(shape)))
    x = xp.broadcast_to(x, _interleave(shape, repetitions))
    return xp.reshape(x, tuple([n * r for n, r in zip(shape, repetitions, strict=True)]))


def _tile_rule(xp: Any, g: Any, x_shape: tuple[int, ...], repetitions: tuple[int, ...]) -> Any:
    shape, repetitions = _pad(x_shape, repetitions)
    g = xp.reshape(g, _interleave(shape, repetitions))
    return xp.reshape(xp.sum(g, axis=tuple(range(0, 2 * len(shape), 2))), x_shape)


def _tile_batch(call: Any, x: Any, repetitions: tuple[int, ...]) -> Any:
    rank = max(call.rank(0), len(repetitions))
    times = (1,) * (rank - len(repetitions)) + tuple(repetitions)
    return call.run(call.with_rank(0, rank), repetitions=(1, *times))


@operation(
    inputs=["x"],
    x=_tile_rule,
    linear="together",
    view=None,
    composite=_tile_composite,
    batch=_tile_batch,
)
def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat a whole array along its axes, like tiles on a floor.

    The cotangent is summed over the copies. Raises `ValueError` if a repetition is negative. The
    shorter of shape and repetitions is filled up with ones in front. Array API standard.

    Examples
    --------
    >>> wg.tile(wg.asarray([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = as_shape(repetitions)
    if min(times, default=0) < 0:
        raise ValueError(f"repetitions cannot be negative: {times}")
    return tile.run(x, repetitions=times)
