"""NumPy's reductions over some axes, at which its own loops are slow.

NumPy starts a loop for each row: ten nanoseconds for a sum, thirty for a maximum, however short
the row is. BLAS sums a matrix by its product with ones, and a maximum runs along the columns of a
copy. Which reductions go these ways depends on shapes and dtypes alone, never on the order in
memory: so compiled programs take the same, whatever they are given.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wengert.backends.numpy_networks import ones

__all__ = ["extreme_over", "sum_over"]

_add: Any = np.add.reduce

#: The longest rows: NumPy adds up to so many numbers without halving the row, as BLAS does, so
#: that the bound on rounding is the same.
LONGEST = 128
#: The longest rows, and the fewest elements, of whose transposed copy a maximum is faster.
SHORT, FEW = 32, 512


class Rows(NamedTuple):
    """An array as a stack of matrices whose columns are reduced, or as a matrix with short rows.

    Attributes
    ----------
    over : {"columns", "stack", "rows"}
        What is reduced: the columns of a matrix, those of each matrix of a stack, or rows.
    parts : tuple of int or None
        The shape of the matrix or stack; None where the array has it.
    length : int
        How many numbers each result is made from.
    shape : tuple of int or None
        The shape of the result; None where the reduction gives it.
    """

    over: str
    parts: tuple[int, ...] | None
    length: int
    shape: tuple[int, ...] | None


@lru_cache(maxsize=1024)
def rows(shape: tuple[int, ...], axis: Any, keepdims: bool) -> Rows | None:
    """How to reduce in one of these ways; None where NumPy's own reduction is to be taken."""
    ndim = len(shape)
    given = (axis,) if isinstance(axis, int) else axis
    axes = sorted(i + ndim if i < 0 else i for i in given)
    number = len(axes)
    if not 0 < number < ndim or 0 in shape or axes != list(range(axes[0], axes[0] + number)):
        return None
    start, stop = axes[0], axes[0] + number
    if start < 0 or stop > ndim:  # an error, which NumPy raises
        return None
    before, length, after = (
        math.prod(shape[part]) for part in (slice(start), slice(start, stop), slice(stop, None))
    )
    parts: tuple[int, ...]
    made: tuple[int, ...]
    if after == 1:  # NumPy halves long sums again and again, which keeps their digits
        if length > LONGEST:
            return None
        over, parts, made = "rows", (before, length), (before,)
    elif before == 1:
        over, parts, made = "columns", (length, after), (after,)
    else:
        over, parts, made = "stack", (before, length, after), (before, after)
    kept = tuple(1 if start <= i < stop else n for i, n in enumerate(shape))
    result = kept if keepdims else shape[:start] + shape[stop:]
    return Rows(over, None if parts == shape else parts, length, None if result == made else result)


def sum_over(x: Any, axis: Any, *, keepdims: bool) -> Any:
    """The sum of an array in single or double precision over axes."""
    how = rows(x.shape, axis, keepdims)
    if how is None:
        return _add(x, axis=axis, keepdims=keepdims)
    over, parts, length, shape = how
    if parts is not None:
        x = x.reshape(parts)
    one = ones(length, x.dtype)
    out = x.dot(one) if over == "rows" else _below(one, x)
    return out if shape is None else out.reshape(shape)


def _below(one: Any, x: Any) -> Any:
    """The sums below each column, also of each matrix of a stack."""
    return one.dot(x) if x.ndim == 2 else np.matmul(one, x)


def extreme_over(reduce: Any, x: Any, axis: Any, *, keepdims: bool) -> Any:
    """The largest or smallest numbers over axes, by the ufunc's reduction."""
    how = rows(x.shape, axis, keepdims) if x.size >= FEW and axis is not None else None
    if how is None or how.over != "rows" or how.length > SHORT:
        return reduce(x, axis=axis, keepdims=keepdims)
    _, parts, _, shape = how
    if parts is not None:
        x = x.reshape(parts)
    out = reduce(x.mT.copy(), axis=0)
    return out if shape is None else out.reshape(shape)
