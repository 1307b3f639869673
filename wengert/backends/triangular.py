"""Triangular systems: by the libraries' own functions, or in blocks."""

import importlib
import importlib.util
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel

__all__ = ["blocked", "cupy_triangular", "jax_triangular", "numpy_triangular", "torch_triangular"]

#: Rows up to which a general solver is as fast.
BLOCK = 32


def blocked(xp: Any, x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by halves: one system, a product, and the other; small ones by the general solver."""
    n = x1.shape[-1]
    if n <= BLOCK:
        triangle = xp.triu(x1) if upper else xp.tril(x1)
        if unitriangular:
            strict = xp.triu(x1, k=1) if upper else xp.tril(x1, k=-1)
            triangle = xp.add(strict, xp.tril(xp.triu(xp.ones_like(x1))))
        return xp.linalg.solve(triangle, x2)
    half = n // 2
    first, last = x1[..., :half, :half], x1[..., half:, half:]
    above, below = x2[..., :half, :], x2[..., half:, :]
    if upper:
        below = blocked(xp, last, below, upper=upper, unitriangular=unitriangular)
        above = xp.subtract(above, xp.matmul(x1[..., :half, half:], below))
        above = blocked(xp, first, above, upper=upper, unitriangular=unitriangular)
    else:
        above = blocked(xp, first, above, upper=upper, unitriangular=unitriangular)
        below = xp.subtract(below, xp.matmul(x1[..., half:, :half], above))
        below = blocked(xp, last, below, upper=upper, unitriangular=unitriangular)
    return xp.concat([above, below], axis=-2)


def scipy_blas(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by BLAS, from the right: what NumPy has in C's order is transposed for Fortran."""
    if x1.ndim != 2 or x2.ndim != 2 or x1.dtype.char not in "fdFD" or x1.dtype != x2.dtype:
        return numpy_blocked(x1, x2, upper=upper, unitriangular=unitriangular)
    if not unitriangular and not x1.diagonal().all():
        raise np.linalg.LinAlgError("Singular matrix")
    (trsm,) = importlib.import_module("scipy.linalg").get_blas_funcs(("trsm",), (x1, x2))
    turned = not x1.flags.f_contiguous
    out = trsm(
        1.0,
        x1.T if turned else x1,
        x2.T,
        side=1,
        lower=upper if turned else not upper,
        trans_a=0 if turned else 1,
        diag=int(unitriangular),
    )
    return out.T


def numpy_blocked(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve in blocks."""
    return blocked(np, x1, x2, upper=upper, unitriangular=unitriangular)


def numpy_triangular() -> Kernel:
    """NumPy has no such function; SciPy has."""
    return scipy_blas if importlib.util.find_spec("scipy") else numpy_blocked


def cupy_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by cuBLAS, which takes one system at a time."""
    if x1.ndim != 2 or x2.ndim != 2:
        cupy = importlib.import_module("cupy")
        return blocked(cupy, x1, x2, upper=upper, unitriangular=unitriangular)
    solver = importlib.import_module("cupyx.scipy.linalg").solve_triangular
    return solver(x1, x2, lower=not upper, unit_diagonal=unitriangular)


def jax_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by XLA, whose stacks do not broadcast."""
    jax = importlib.import_module("jax")
    stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1, x2 = (jax.numpy.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (x1, x2))
    return jax.scipy.linalg.solve_triangular(x1, x2, lower=not upper, unit_diagonal=unitriangular)


def torch_triangular(x1: Any, x2: Any, *, upper: bool, unitriangular: bool = False) -> Any:
    """Solve by PyTorch's own function."""
    torch = importlib.import_module("torch")
    return torch.linalg.solve_triangular(x1, x2, upper=upper, unitriangular=unitriangular)
