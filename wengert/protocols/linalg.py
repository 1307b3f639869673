"""NumPy's linear algebra on Tensors."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from wengert.ops import linalg
from wengert.ops.axes import as_axes, number
from wengert.ops.conversion import beside
from wengert.ops.grids import tril
from wengert.ops.linear_algebra import matmul
from wengert.ops.manipulation import moveaxis
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError
from wengert.protocols.fitting import lstsq, values
from wengert.protocols.translation import common, floats, of_two
from wengert.tape.tensor import Tensor

__all__ = ["TABLE"]


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """``np.linalg.norm``: of a vector along one axis, of a matrix along two."""
    (t,) = floats(x)
    if axis is None:
        if ord is None:
            return linalg.vector_norm(t, keepdims=keepdims)
        if t.ndim not in (1, 2):
            raise ValueError(f"an array of {t.ndim} axes has no norm of order {ord!r}: give axis=")
        axis = tuple(range(t.ndim))
    axes = as_axes(axis, t.ndim)
    if len(axes) == 1:
        return linalg.vector_norm(t, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"axis={axis!r}: a norm is along one axis or two")
    if ord is None:
        return linalg.vector_norm(t, axis=axes, keepdims=keepdims)
    result = linalg.matrix_norm(moveaxis(t, axes, (-2, -1)), keepdims=keepdims, ord=ord)
    return moveaxis(result, (-2, -1), axes) if keepdims else result


def _cond(x: Any, p: Any = None) -> Tensor:
    """``np.linalg.cond``."""
    (t,) = floats(x)
    p = number(p, "np.linalg.cond", "p") if hasattr(p, "dtype") else p
    if p in (None, 2, -2):
        sizes = linalg.svdvals(t)
        largest, smallest = sizes[..., 0], sizes[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    return linalg.matrix_norm(t, ord=p) * linalg.matrix_norm(linalg.inv(t), ord=p)


def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    _only_general(hermitian)
    (t,) = floats(a)
    return linalg.svd(t, full_matrices=full_matrices) if compute_uv else linalg.svdvals(t)


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Tensor:
    _only_general(hermitian)
    (t,) = floats(a)
    given = rcond if rtol is np._NoValue else rtol
    # NumPy's own default is a fixed number, unless rtol=None asks for the standard's.
    return linalg.pinv(t, rtol=1e-15 if given is None and rtol is np._NoValue else given)


def _matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    _only_general(hermitian)
    if tol is not None:
        raise UnsupportedError(f"tol={tol!r} is not supported for Tensors; give rtol")
    return linalg.matrix_rank(*floats(A), rtol=rtol)


def _only_general(hermitian: bool) -> None:
    if hermitian:
        raise UnsupportedError("hermitian=True is not supported for Tensors; call eigh")


def _mirror(a: Any, UPLO: str) -> Any:
    """The Hermitian matrix of one triangle; the other has no derivative, as differences say."""
    (t,) = floats(a)
    if UPLO.upper() == "U":
        t = linalg.matrix_transpose(t).conj()
    elif UPLO.upper() != "L":
        raise ValueError(f"UPLO is 'L' or 'U', and not {UPLO!r}")
    return tril(t) + linalg.matrix_transpose(tril(t, k=-1)).conj()


def _qr(a: Any, mode: Any = "reduced") -> Any:
    if mode == "r":
        return linalg.qr(*floats(a), mode="reduced").R
    if mode not in ("reduced", "complete"):
        raise UnsupportedError(f"mode={mode!r} is not supported for Tensors")
    return linalg.qr(*floats(a), mode=mode)


def _one(function: Callable[..., Any], given: Any = operands) -> Callable[..., Any]:
    return lambda a, *args, **keywords: function(*given(a), *args, **keywords)


def _matrix_power(a: Any, n: int) -> Tensor:
    (t,) = operands(a) if n >= 0 else floats(a)
    found = None if t.dtype.inexact else np.linalg.matrix_power(values(t), n)
    power = linalg.matrix_power(t, n) if found is None else beside(t, found)
    return t if n == 1 else power


_FLOATS = ("cholesky", "det", "eig", "eigvals", "inv", "matrix_norm", "slogdet", "svdvals")
_ONE = ("diagonal", "matrix_transpose", "trace")
_TWO = ("cross", "matmul", "outer", "tensordot", "vecdot")

TABLE: dict[str, Callable[..., Any]] = {
    **{name: _one(getattr(linalg, name), floats) for name in _FLOATS},
    **{name: _one(getattr(linalg, name)) for name in _ONE},
    **{name: of_two(getattr(linalg, name)) for name in _TWO},
    "cholesky": lambda a, *, upper=False: linalg.cholesky(_mirror(a, "LU"[upper]), upper=upper),
    "cond": _cond,
    "eigh": lambda a, UPLO="L": linalg.eigh(_mirror(a, UPLO)),
    "eigvalsh": lambda a, UPLO="L": linalg.eigvalsh(_mirror(a, UPLO)),
    "lstsq": lstsq,
    "matrix_power": _matrix_power,
    "matrix_rank": _matrix_rank,
    "multi_dot": lambda arrays: reduce(matmul, common(operands(*arrays))),
    "norm": _norm,
    "pinv": _pinv,
    "qr": _qr,
    "solve": lambda a, b: linalg.solve(*floats(a, b)),
    "svd": _svd,
    "vector_norm": _one(linalg.vector_norm, floats),
}
