"""Index keys: what stands between the brackets of ``x[...]``, with the arrays taken out.

A key is a static tuple of integers, slices, None and Ellipsis. Where an index array stood it has
`SLOT`, and the arrays follow as operands, in order.
"""

from typing import Any, Final

Key = tuple[Any, ...]

#: Stands in a key for an index array. A string, so that a key prints as it is written.
SLOT: Final = "array"


def fill(key: Key, indices: tuple[Any, ...]) -> Key:
    """Put the index arrays back into their slots."""
    if not indices:
        return key
    arrays = iter(indices)
    return tuple([next(arrays) if type(part) is str else part for part in key])


def cut(x: Any, *, key: Key) -> Any:
    """``x[key]`` of a key that the standard has: slices inside the bounds, and integers."""
    return x[key]


def as_view(x: Any, *, key: Key) -> Any:
    """``x[key]`` of a static key on NumPy, of one element too a view, as it is on PyTorch."""
    return x[key if any(part is Ellipsis for part in key) else (*key, ...)]


def widths(key: Key, is_mask: Any) -> list[int]:
    """How many axes each part of a filled key takes; -1 for an Ellipsis.

    ``is_mask`` tells of an array whether it is boolean: a mask takes as many axes as it has.
    """
    return [
        -1
        if part is Ellipsis
        else 0
        if part is None
        else len(part.shape)
        if hasattr(part, "shape") and is_mask(part)
        else 1
        for part in key
    ]


def split_key(key: Key, ndim: int, is_mask: Any) -> tuple[Key, int | None]:
    """Replace an Ellipsis for no axes between index arrays by None, as other libraries need it.

    Beside the key it gives how many axes the result has after the one that None has made, if any.
    """
    taken = widths(key, is_mask)
    if -1 not in taken or sum(n for n in taken if n > 0) != ndim:
        return key, None
    at = taken.index(-1)
    arrays = [hasattr(part, "shape") for part in key]
    advanced = [array or type(part) is int for array, part in zip(arrays, key, strict=True)]
    if not any(arrays) or not any(advanced[:at]) or not any(advanced[at:]):
        return key, None
    return (*key[:at], None, *key[at + 1 :]), advanced[at + 1 :].count(False)


def split_value(value: Any, after: int | None, reshape: Any) -> Any:
    """What is assigned to a key from `split_key`, with the axis that None has made if it has it."""
    if after is None or len(value.shape) <= after:
        return value
    at = len(value.shape) - after
    return reshape(value, (*value.shape[:at], 1, *value.shape[at:]))


def indexed_axes(key: Key, ndim: int, is_mask: Any) -> int:
    """How many leading axes a filled key indexes: the axes after them are taken whole."""
    taken = widths(key, is_mask)
    if -1 in taken[:-1]:
        return ndim
    return sum(n for n in taken if n > 0)


def check_integers(key: Key, shape: tuple[int, ...], is_mask: Any) -> None:
    """Raise IndexError if an integer in a filled key is out of bounds."""
    if int not in map(type, key):
        return
    taken = widths(key, is_mask)
    skipped = len(shape) - sum(n for n in taken if n > 0)
    axis = 0
    for part, n in zip(key, taken, strict=True):
        if type(part) is int and axis < len(shape) and not -shape[axis] <= part < shape[axis]:
            raise IndexError(
                f"index {part} is out of bounds for axis {axis} with size {shape[axis]}"
            )
        axis += skipped if n < 0 else n


def forward_slices(key: Key, shape: tuple[int, ...], is_mask: Any) -> tuple[Key, tuple[int, ...]]:
    """Replace slices that go backwards: the key with positive steps, and axes to flip first."""
    if all(type(part) is not slice or part.step is None or part.step > 0 for part in key):
        return key, ()
    taken = widths(key, is_mask)
    skipped = len(shape) - sum(n for n in taken if n > 0)
    parts: list[Any] = []
    flipped: list[int] = []
    axis = 0
    for part, n in zip(key, taken, strict=True):
        if type(part) is slice and part.step is not None and part.step < 0:
            length = shape[axis]
            steps = range(*part.indices(length))
            first = length - 1 - steps.start if steps else 0
            part = slice(first, first + len(steps) * -steps.step, -steps.step)
            flipped.append(axis)
        parts.append(part)
        axis += skipped if n < 0 else n
    return tuple(parts), tuple(flipped)
