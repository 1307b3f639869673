"""Checks of matrices, and steps of the rules: shared by the files of this package."""

import math
from functools import reduce
from typing import Any

from wengert.backends import dtype_of
from wengert.ops.axes import shape_of
from wengert.ops.data_type import astype, result_type
from wengert.ops.linear_algebra import adjoint as adjoint

# -- arguments -----------------------------------------------------------------------------------


def inexact(name: str, x: Any) -> tuple[int, ...]:
    """The shape of a floating or complex array; an error for other dtypes."""
    shape = shape_of(x)
    dtype = dtype_of(x.dtype)
    if not dtype.inexact:
        raise TypeError(
            f"{name} takes floating and complex arrays, not {dtype.name}; convert it with wg.astype"
        )
    return shape


def matrices(name: str, x: Any, *, square: bool = False) -> tuple[int, ...]:
    """The shape of a floating stack of matrices, square ones where that is asked for."""
    shape = inexact(name, x)
    if len(shape) < 2:
        raise ValueError(f"{name} takes a matrix or a stack of them, not shape {tuple(shape)}")
    if square and shape[-1] != shape[-2]:
        raise ValueError(f"{name} takes square matrices, not shape {tuple(shape)}")
    return shape


def promote(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two arrays in their common dtype."""
    if x1.dtype == x2.dtype:
        return x1, x2
    dtype = result_type(x1, x2)
    return astype(x1, dtype, copy=False), astype(x2, dtype, copy=False)


# -- rules ---------------------------------------------------------------------------------------


def imaginary(xp: Any, z: Any) -> Any:
    """The imaginary part, times i."""
    return (z - xp.conj(z)) * 0.5


def product(xp: Any, *factors: Any) -> Any:
    """The matrix product of several factors, from the left."""
    return reduce(xp.matmul, factors)


def columns(xp: Any, x: Any, scale: Any) -> Any:
    """Each column times a number: a product with a diagonal matrix from the right."""
    return x * xp.expand_dims(scale, axis=len(scale.shape) - 1)


def eye_like(xp: Any, x: Any) -> Any:
    """A mask of the diagonal of a square matrix."""
    return xp.eye(x.shape[-1], dtype=xp.bool, device=xp.device(x))


def off_diagonal(xp: Any, x: Any) -> Any:
    """A square matrix without its diagonal."""
    return xp.where(eye_like(xp, x), 0, x)


def diagonal_matrix(xp: Any, d: Any) -> Any:
    """A matrix with the given diagonal."""
    return xp.where(eye_like(xp, d), xp.expand_dims(d, axis=len(d.shape)), 0)


def skew(xp: Any, x: Any) -> Any:
    """A matrix less its conjugate transpose."""
    return x - adjoint(xp, x)


#: How many times eps of the largest value are rounding errors, whatever the size: LAPACK's are 13.
EQUAL = 16


def turns(xp: Any, values: Any, *moved: Any, used: Any = None, square: bool = True) -> Any:
    """Generate each of ``moved`` over the gaps of values, the column's less the row's; 0 for none.

    Values that differ by rounding errors are equal: the quotient is infinite or nan there, unless
    the numerator, or ``used``, is 0. (By rounding errors a difference of cotangents may be 0.)
    """
    column, row = (xp.expand_dims(values, axis=len(values.shape) - k) for k in (1, 0))
    eye = xp.eye(values.shape[-1], dtype=values.dtype, device=xp.device(values))
    largest = xp.max(xp.abs(column), axis=-1, keepdims=True)
    error = EQUAL * float(xp.finfo(largest.dtype).eps)
    # Of one 0, a square matrix has a derivative; the vector of (0, 0) has none.
    gaps = column - row + eye * (1 if square else largest)
    near = (xp.abs(gaps) < largest * error) & (eye == 0)
    beside = 1 - eye
    for x in moved:
        equal = near & ((x if used is None else used) != 0)
        yield beside * (x / xp.where(equal, 0, gaps))


def spread_nan(xp: Any, g: Any, values: Any) -> Any:
    """Cotangents or tangents, nan where values are: those of an infinite matrix, by LAPACK."""
    return xp.where(xp.isnan(values), math.nan, g)


def join(xp: Any, g_values: Any, turned: Any, values: Any, used: Any, square: bool = True) -> Any:
    """The cotangents of values on the diagonal, those of vectors over the gaps beside it."""
    g_values = None if g_values is None else spread_nan(xp, g_values, values)
    if turned is None:
        return diagonal_matrix(xp, g_values)
    (inner,) = turns(xp, values, turned, used=used, square=square)
    return inner if g_values is None else inner + diagonal_matrix(xp, g_values)
