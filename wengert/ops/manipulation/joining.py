"""Joining: functions that make one array of several, or several of one."""

from typing import Any

from wengert.backends.keys import as_view
from wengert.interpreters.batching import along, shift_axes
from wengert.ops.axes import as_axis, at_axis, fill_zeros, shape_of
from wengert.ops.define import operation
from wengert.ops.manipulation.arranging import reshape
from wengert.tape.tensor import Tensor
from wengert.tape.views import show

__all__ = ["concat", "stack", "unstack"]


# The standard's functions take a sequence where a primitive takes operands: so the primitives
# have names of their own.


def _concat_rule(
    xp: Any, g: Any, index: int, arrays_shape: tuple[tuple[int, ...], ...], axis: int
) -> Any:
    start = 0
    for shape in arrays_shape[:index]:  # a generator takes as long as the rest
        start += shape[axis]
    cut = slice(start, start + arrays_shape[index][axis])
    return xp.getitem(g, key=at_axis(axis, cut, ...))


def _batch_rule(more: int) -> Any:
    """The batch rule of a function whose result has so many axes more than the arrays."""

    def rule(call: Any, *arrays: Any, axis: int = 0) -> Any:
        spread = [call.broadcast(i) for i in range(len(arrays))]
        return call.run(*spread, axis=shift_axes(axis, call.rank(0) + more))

    return rule


@operation(
    "concat_arrays",
    inputs=["*arrays"],
    arrays=_concat_rule,
    linear="together",
    composite=lambda xp, *arrays, axis: xp.concat(arrays, axis=axis),
    dtypes={"arrays": "any"},
    batch=_batch_rule(0),
)
def concat(arrays: tuple[Any, ...] | list[Any], /, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis that they have.

    Each array's cotangent is its piece. Raises `ValueError` if there are no arrays, the shapes do
    not fit, or the axis is out of bounds. The axis None flattens the arrays first.
    Array API standard.

    Examples
    --------
    >>> wg.concat([wg.ones((2, 3)), wg.zeros((1, 3))], axis=0).shape
    (3, 3)
    """
    given = _sequence(arrays, "concat")
    if axis is None:
        given = [reshape(x, (-1,)) for x in given]
        axis = 0
    at = as_axis(axis, len(shape_of(given[0])), "concat")
    try:
        return concat.run(*given, axis=at)
    except (ValueError, TypeError, RuntimeError) as error:
        _explain("concat", given, at, error)
        raise


@operation(
    "stack_arrays",
    inputs=["*arrays"],
    arrays=lambda xp, g, index, axis: xp.getitem(g, key=at_axis(axis, index, ...)),
    linear="together",
    composite=lambda xp, *arrays, axis: xp.stack(arrays, axis=axis),
    dtypes={"arrays": "any"},
    batch=_batch_rule(1),
)
def stack(arrays: tuple[Any, ...] | list[Any], /, axis: int = 0) -> Tensor:
    """Join arrays along a new axis.

    Each array's cotangent is its piece. Raises `ValueError` if there are no arrays, their shapes
    differ, or the axis is out of bounds. Array API standard.

    Examples
    --------
    >>> wg.stack([wg.asarray([1, 2]), wg.asarray([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    given = _sequence(arrays, "stack")
    at = as_axis(axis, len(shape_of(given[0])) + 1, "stack")
    try:
        return stack.run(*given, axis=at)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        _explain("stack", given, None, error)
        raise


def _explain(function: str, arrays: list[Any], axis: int | None, error: Exception) -> None:
    """Raise a clearer error where a kernel failed because the shapes differ."""
    shapes = [tuple(shape_of(x)) for x in arrays]
    first = shapes[0]
    for shape in shapes:
        same = len(shape) == len(first) and all(
            i == axis or n == m for i, (n, m) in enumerate(zip(shape, first, strict=True))
        )
        if not same:
            but = "" if axis is None else f" but along axis {axis}"
            raise ValueError(
                f"{function} needs shapes that are equal{but}, and was given {first} and {shape}"
            ) from error


def _sequence(arrays: Any, function: str) -> list[Any]:
    given = list(arrays)
    if not given:
        raise ValueError(f"{function} needs at least one array")
    return given


@operation(
    x=lambda xp, g, axis: xp.stack(fill_zeros(xp, g), axis=axis),
    linear="together",
    several=True,
    view=True,
    batch=along(),
)
def unstack(x: Any, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Split an array along an axis into its slices, without that axis.

    The cotangent is that of the slices, stacked. There is a slice for each index. Raises
    `ValueError` if the axis is out of bounds, as it is for a 0-d array. Array API standard.

    Examples
    --------
    >>> first, second = wg.unstack(wg.asarray([[1, 2], [3, 4]]))
    >>> second
    tensor([3, 4])
    """
    at = as_axis(axis, len(shape_of(x)), "unstack")
    parts: tuple[Tensor, ...] = unstack.run(x, axis=at)
    if isinstance(x, Tensor):
        for i, part in enumerate(parts):
            show(part, x, as_view, {"key": at_axis(at, i)})
    return parts
