"""Linear systems whose factorisation serves the next ones of the same matrix, or its transpose.

A derivative of a solution is made of further solutions, and NumPy factorises for each of them.
SciPy's functions take the factors.
"""

import importlib
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

__all__ = ["solve"]

#: Rows from which factorising takes longer than to look whether it has been done.
FEWEST = 32
#: Elements of the largest matrix that is kept twice, as a copy and as its factors.
LARGEST = 1 << 22


class _Factors(NamedTuple):
    """What was factorised last: its owner, a copy, since others may write into it, and the factors.

    The owner is the array that has the memory, and is not kept alive.
    """

    owner: Any
    matrix: Any
    lu: Any
    pivots: Any


@lru_cache
def _last() -> list[_Factors]:
    """A list of what was factorised last, or of nothing."""
    return []


def _forget(gone: Any) -> None:
    last = _last()
    last[:] = [held for held in last if held.owner is not gone]


@lru_cache
def _functions(char: str) -> Any:
    """LAPACK's factorisation, and its solution, in double precision; None without SciPy.

    ``np.linalg.solve`` computes in double precision, whatever the dtype.
    """
    try:
        scipy = importlib.import_module("scipy.linalg")
    except (Exception, SystemExit):  # broken, or not there
        return None
    return scipy.get_lapack_funcs(("getrf", "getrs"), dtype="d" if char in "fd" else "D")


def _factors(x: Any) -> tuple[Any, Any]:
    """The factors of a matrix in Fortran's order."""
    owner = x if x.base is None else x.base
    last = _last()
    for held in last[:]:
        same = held.owner() is owner and held.matrix.dtype == x.dtype
        if same and np.array_equal(held.matrix, x):
            return held.lu, held.pivots
    lu, pivots, wrong = _functions(x.dtype.char)[0](x)
    if wrong > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    if isinstance(owner, np.ndarray):  # of another library's memory nothing tells the end
        last[:] = [_Factors(ref(owner, _forget), x.copy(order="F"), lu, pivots)]
    return lu, pivots


def solve(x1: Any, x2: Any, /) -> Any:
    """``np.linalg.solve``, of one matrix by factors that are kept as long as it lives."""
    if (
        x1.ndim != 2
        or x2.ndim > 2
        or len(x1) < FEWEST
        or x1.size > LARGEST
        or not x2.size
        or x1.dtype.char not in "fdFD"
        or x1.dtype != x2.dtype
        or not (x1.flags.c_contiguous or x1.flags.f_contiguous)
        or not _functions(x1.dtype.char)
    ):
        return np.linalg.solve(x1, x2)
    # What NumPy has in C's order is the transpose in Fortran's: so a matrix and its transposed view
    # are one to LAPACK.
    turned = x1.flags.c_contiguous
    factors = _factors(x1.T if turned else x1)
    found, _ = _functions(x1.dtype.char)[1](*factors, x2, trans=int(turned))
    return np.ascontiguousarray(found, x1.dtype)
