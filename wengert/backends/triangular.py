"""Triangular systems: by the libraries' own functions, or by halves."""

import importlib
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.backends.special import scipy

__all__ = [
    "cupy_triangular",
    "jax_triangular",
    "numpy_triangular",
    "scipy_triangular",
    "solve_in_blocks",
]


def solve_in_blocks(xp: Any, x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by halves: one system, a product, and the other.

    This is substitution to the last row: a general solver exchanges rows, and loses all digits of
    triangles whose rows are of different sizes.
    """
    n = x1.shape[-1]
    if n == 0:
        return xp.matmul(x1, x2)  # which has the broadcast shape, and no elements
    if n == 1:
        return xp.divide(x2, xp.ones_like(x1) if unitriangular else x1)
    half = n // 2
    first, last = x1[..., :half, :half], x1[..., half:, half:]
    above, below = x2[..., :half, :], x2[..., half:, :]
    if upper:
        below = solve_in_blocks(xp, last, below, upper=upper, unitriangular=unitriangular)
        above = xp.subtract(above, xp.matmul(x1[..., :half, half:], below))
        above = solve_in_blocks(xp, first, above, upper=upper, unitriangular=unitriangular)
    else:
        above = solve_in_blocks(xp, first, above, upper=upper, unitriangular=unitriangular)
        below = xp.subtract(below, xp.matmul(x1[..., half:, :half], above))
        below = solve_in_blocks(xp, last, below, upper=upper, unitriangular=unitriangular)
    return xp.concat([above, below], axis=-2)


@lru_cache
def _trsm(char: str) -> Any:
    """BLAS's function for a dtype."""
    (function,) = scipy("linalg").get_blas_funcs(("trsm",), dtype=char)
    return function


def scipy_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by BLAS, from the right: what NumPy has in C's order is transposed for Fortran."""
    if x1.ndim != 2 or x2.ndim != 2 or x1.dtype.char not in "fdFD" or x1.dtype != x2.dtype:
        return numpy_triangular(x1, x2, upper=upper, unitriangular=unitriangular)
    _check(x1, unitriangular)
    turned = not x1.flags.f_contiguous
    out = _trsm(x1.dtype.char)(
        1.0,
        x1.T if turned else x1,
        x2.T,
        side=1,
        lower=upper if turned else not upper,
        trans_a=0 if turned else 1,
        diag=int(unitriangular),
    )
    return out.T


def _check(x: Any, unitriangular: bool) -> None:
    """Raise for a zero on the diagonal, as NumPy's solver does."""
    if unitriangular:
        return
    diagonal = x.diagonal(0, -2, -1)
    if np.count_nonzero(diagonal) < diagonal.size:
        raise np.linalg.LinAlgError("Singular matrix")


def numpy_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by halves."""
    _check(x1, unitriangular)
    return solve_in_blocks(np, x1, x2, upper=upper, unitriangular=unitriangular)


def cupy_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by cuBLAS, which takes one system at a time."""
    if x1.ndim != 2 or x2.ndim != 2:
        xp = importlib.import_module("array_api_compat.cupy")
        return solve_in_blocks(xp, x1, x2, upper=upper, unitriangular=unitriangular)
    solver = importlib.import_module("cupyx.scipy.linalg").solve_triangular
    return solver(x1, x2, lower=not upper, unit_diagonal=unitriangular)


def jax_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by XLA, whose stacks do not broadcast."""
    jax = importlib.import_module("jax")
    stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1, x2 = (jax.numpy.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (x1, x2))
    return jax.scipy.linalg.solve_triangular(x1, x2, lower=not upper, unit_diagonal=unitriangular)
