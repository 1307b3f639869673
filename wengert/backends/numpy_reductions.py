"""NumPy's reductions over first axes and over a short last one, which its own loops are slow at.

NumPy starts a loop for each row: ten nanoseconds for a sum, thirty for a maximum, however short
the row is. BLAS sums a matrix by its product with ones, and a maximum runs along the columns of a
copy. Which reductions go these ways depends on shapes, dtypes and the order in memory alone, and
compiled programs are for these: so they take the same way.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wengert.backends.numpy_networks import ones

__all__ = ["extreme_over", "sum_over"]

_add = np.add.reduce

#: The longest rows: NumPy adds up to so many numbers without halving the row, as BLAS does, so
#: that the bound on rounding is the same.
LONGEST = 128
#: The longest rows, and the fewest elements, of whose transposed copy a maximum is faster.
SHORT, FEW = 32, 512


class Rows(NamedTuple):
    """How a reduction is done by rows.

    Attributes
    ----------
    first : bool
        Whether the first axes are reduced; otherwise the last one is.
    matrix : tuple of int or None
        The shape of the matrix; None where the array is one.
    length : int
        How many numbers each result is made from.
    shape : tuple of int or None
        The shape of the result; None where the matrix gives it.
    """

    first: bool
    matrix: tuple[int, int] | None
    length: int
    shape: tuple[int, ...] | None


@lru_cache(maxsize=1024)
def rows(shape: tuple[int, ...], axis: Any, keepdims: bool) -> Rows | None:
    """How to reduce by rows; None where NumPy's own reduction is to be taken."""
    ndim = len(shape)
    axes = (axis,) if isinstance(axis, int) else axis
    axes = tuple(sorted(i + ndim if i < 0 else i for i in axes))
    number = len(axes)
    if not 0 < number < ndim or 0 in shape:
        return None
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    result = kept if keepdims else tuple(n for i, n in enumerate(shape) if i not in axes)
    if axes == tuple(range(number)):
        length = math.prod(shape[:number])
        matrix = length, math.prod(shape[number:])
        if matrix[1] == 1:  # one long sum, which NumPy halves again and again
            return None
        given = matrix[1:]
    elif axes == (ndim - 1,) and shape[-1] <= LONGEST:
        length = shape[-1]
        matrix = math.prod(shape[:-1]), length
        given = matrix[:1]
    else:
        return None
    return Rows(
        axes[0] == 0,
        None if matrix == shape else matrix,
        length,
        None if result == given else result,
    )


def sum_over(x: Any, axis: Any, *, keepdims: bool) -> Any:
    """The sum of an array in single or double precision over axes."""
    how = rows(x.shape, axis, keepdims)
    if how is None or not x.flags.c_contiguous:
        return _add(x, axis=axis, keepdims=keepdims)
    first, matrix, length, shape = how
    if matrix is not None:
        x = x.reshape(matrix)
    one = ones(length, x.dtype)
    out = one.dot(x) if first else x.dot(one)
    return out if shape is None else out.reshape(shape)


def extreme_over(reduce: Any, x: Any, axis: Any, *, keepdims: bool) -> Any:
    """The largest or smallest numbers over axes, by the ufunc's reduction."""
    how = rows(x.shape, axis, keepdims) if x.size >= FEW and axis is not None else None
    if how is None or how.first or how.length > SHORT or not x.flags.c_contiguous:
        return reduce(x, axis=axis, keepdims=keepdims)
    _, matrix, _, shape = how
    if matrix is not None:
        x = x.reshape(matrix)
    out = reduce(x.mT.copy(), axis=0)
    return out if shape is None else out.reshape(shape)
