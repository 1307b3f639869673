"""``scipy.linalg``: solvers, factors and functions of matrices.

>>> from wengert.scipy import linalg
>>> a = wg.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=wg.float64, requires_grad=True)
>>> linalg.cho_solve(linalg.cho_factor(a), [1.0, 2.0]).sum().backward()
>>> a.grad
tensor([[-0.0165, -0.0702],
        [-0.0702, -0.1736]], dtype=wengert.float64)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.ops.define import operation
from wengert.protocols.linalg import TABLE as _NUMPYS
from wengert.scipy.naming import inexact, namespace, scipy_module, values_of
from wengert.tape.tensor import Tensor

_scipy = scipy_module("linalg")
_HARMLESS = ("overwrite_a", "overwrite_b", "overwrite_ab", "check_finite", "lapack_driver", "turbo")


def _drop(options: dict[str, Any]) -> None:
    """Raise for options that change a result and have no counterpart."""
    for name, value in options.items():
        if name not in _HARMLESS and value is not None and value is not False:
            raise TypeError(f"{name}={value!r} has no counterpart with a derivative")


def _adjoint(x: Any, xp: Any = wg) -> Any:
    return xp.conj(xp.matrix_transpose(x))


# -- systems ---------------------------------------------------------------------------------------


def solve(
    a: Any, b: Any, lower: bool = False, *, assume_a: Any = None, transposed: bool = False,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Solve a linear system; of a matrix that is said to be symmetric one triangle is read."""
    _drop(options)
    x, y = inexact(a, b)
    turn: dict[Any, Any] = {"sym": wg.matrix_transpose, "symmetric": wg.matrix_transpose}
    turn |= dict.fromkeys(("pos", "positive definite", "her", "hermitian"), _adjoint)
    if assume_a in turn:
        half = wg.tril(x, k=-1) if lower else wg.triu(x, k=1)
        x = half + turn[assume_a](half) + wg.tril(wg.triu(x))
    elif assume_a in ("upper triangular", "lower triangular"):
        x = wg.triu(x) if assume_a[0] == "u" else wg.tril(x)
    elif assume_a not in (None, "gen", "general"):
        raise NotImplementedError(f"scipy.linalg.solve: assume_a={assume_a!r} of Tensors")
    return wg.linalg.solve(wg.matrix_transpose(x) if transposed else x, y)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Tensor:
    """Solve a system with a triangle of a matrix."""
    _drop(options)
    x, y = inexact(a, b)
    if trans not in (0, "N"):
        x, lower = wg.matrix_transpose(x) if trans in (1, "T") else _adjoint(x), not lower
    columns = y[:, None] if y.ndim == 1 else y
    found = wg.linalg.solve_triangular(x, columns, upper=not lower, unitriangular=unit_diagonal)
    return found[:, 0] if y.ndim == 1 else found


def cholesky(a: Any, lower: bool = False, **options: Any) -> Tensor:
    """Cholesky's factor, the upper one by default."""
    _drop(options)
    (x,) = inexact(a)
    return wg.linalg.cholesky(x) if lower else _adjoint(wg.linalg.cholesky(_adjoint(x)))


def cho_factor(a: Any, lower: bool = False, **options: Any) -> tuple[Tensor, bool]:
    """Cholesky's factor for `cho_solve`; the other triangle is zero."""
    return cholesky(a, lower, **options), lower


def cho_solve(c_and_lower: Any, b: Any, **options: Any) -> Tensor:
    """Solve a system with Cholesky's factor."""
    _drop(options)
    c, lower = c_and_lower
    first, last = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower), last, lower)


def lu_factor(a: Any, **options: Any) -> tuple[Tensor, Any]:
    """LU factors for `lu_solve`, with SciPy's pivots."""
    _drop(options)
    (rest,) = inexact(a)
    _, pivots = _scipy.lu_factor(values_of(rest, "scipy.linalg.lu_factor"))
    rest, n = rest[_order(pivots)], len(pivots)
    lower, upper = [], []
    for k in range(n):  # what is left is eliminated from the right and from below
        upper.append(wg.concat([rest[0, :0], wg.zeros(k, dtype=rest.dtype), rest[0, :]]))
        column = rest[1:, 0] / rest[0, 0]
        lower.append(wg.concat([wg.zeros(k + 1, dtype=rest.dtype), column]))
        rest = rest[1:, 1:] - column[:, None] * rest[0, 1:]
    return wg.stack(lower, axis=1) + wg.stack(upper), pivots


def _order(pivots: Any) -> Any:
    order = np.arange(len(pivots))
    for i, other in enumerate(pivots):
        order[[i, other]] = order[[other, i]]
    return order


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, **options: Any) -> Tensor:
    """Solve a system with LU factors."""
    _drop(options)
    x, y = inexact(lu_and_piv[0], b)
    order = _order(values_of(lu_and_piv[1], "scipy.linalg.lu_solve"))
    if trans == 0:
        return solve_triangular(x, solve_triangular(x, y[order], 0, True, True))
    return solve_triangular(x, solve_triangular(x, y, trans), trans, True, True)[np.argsort(order)]


def _shifted(xp: Any, x: Any, by: int) -> Any:
    """Columns moved down, or up, with zeros after them."""
    n, zero = x.shape[0], 0 * x[: abs(by), ...]
    if by == 0:
        return x
    return xp.concat([zero, x[: n - by, ...]] if by > 0 else [x[-by:, ...], zero], axis=0)


def _turned(xp: Any, g: Any, ab: Any, l: int, u: int) -> Any:
    """The solution with the adjoint matrix, whose bands are moved along."""
    bands = [_shifted(xp, ab[l + u - i, :], l - i) for i in range(l + u + 1)]
    return xp.scipy_banded(xp.conj(xp.stack(bands, axis=0)), g, l=u, u=l)


def _product(xp: Any, ab: Any, x: Any, u: int) -> Any:
    return sum(_shifted(xp, ab[i, :][:, None] * x, i - u) for i in range(ab.shape[0]))


def _band_cotangent(xp: Any, g: Any, ab: Any, out: Any, l: int, u: int) -> Any:
    weight, x = _turned(xp, g, ab, l, u), xp.conj(out)
    rows = [xp.sum(-_shifted(xp, weight, u - i) * x, axis=1) for i in range(l + u + 1)]
    return xp.stack(rows, axis=0)


@operation(
    "scipy_banded",
    ab=_band_cotangent,
    b=_turned,
    jvps={
        "ab": lambda xp, t, ab, out, l, u: -xp.scipy_banded(ab, _product(xp, t, out, u), l=l, u=u),
        "b": lambda xp, t, ab, l, u: xp.scipy_banded(ab, t, l=l, u=u),
    },
    composite=lambda xp, ab, b, l, u: xp.backend.from_numpy(
        _scipy.solve_banded((l, u), *map(xp.backend.to_numpy, (ab, b))), xp.device(b)
    ),
)
def _banded(ab: Any, b: Any, /, *, l: int, u: int) -> Tensor:
    """Solutions, in columns, with the matrix of bands ``ab[i, j]`` at row ``i + j - u``."""
    return _banded.run(ab, b, l=l, u=u)


def solve_banded(l_and_u: Any, ab: Any, b: Any, **options: Any) -> Tensor:
    """Solve a system with a band matrix."""
    _drop(options)
    bands, y = inexact(ab, b)
    l, u = map(int, l_and_u)
    dtype = wg.result_type(bands, y)
    columns = wg.astype(wg.reshape(y, (y.shape[0], -1)), dtype)
    return wg.reshape(_banded(wg.astype(bands, dtype), columns, l=l, u=u), y.shape)


# -- functions of matrices, and the rest -----------------------------------------------------------


def _of_matrix(name: str) -> Callable[..., Tensor]:
    """An analytic function of a matrix, whose derivative is a corner of that of a larger one."""

    def along(xp: Any, t: Any, a: Any) -> Any:
        n = a.shape[-1]
        whole = xp.concat([xp.concat([a, t], axis=-1), xp.concat([0 * a, a], axis=-1)], axis=-2)
        return getattr(xp, f"scipy_{name}")(whole)[..., :n, n:]

    def composite(xp: Any, a: Any) -> Any:
        values = xp.backend.to_numpy(a)
        found = np.asarray(getattr(_scipy, name)(values))
        if np.iscomplexobj(found) and not np.iscomplexobj(values):
            if np.abs(found.imag).max() > 1e-12 * np.abs(found).max():
                raise ValueError(f"{name} of this real matrix is complex: give complex numbers")
            found = found.real
        return xp.backend.from_numpy(found.astype(values.dtype), xp.device(a))

    @operation(
        f"scipy_{name}",
        a=lambda xp, g, a: along(xp, g, _adjoint(a, xp)),
        jvps={"a": along},
        composite=composite,
    )
    def function(a: Any, /) -> Any:
        """A function of one matrix."""

    return lambda A: function.run(*inexact(A))


def block_diag(*arrs: Any) -> Tensor:
    """A matrix with others along its diagonal."""
    parts = [wg.reshape(x, (1, -1)) if x.ndim < 2 else x for x in inexact(*arrs)]
    width, rows, at = sum(x.shape[1] for x in parts), [], 0
    for x in parts:
        before, after = (
            wg.zeros((x.shape[0], n), dtype=x.dtype) for n in (at, width - at - x.shape[1])
        )
        rows.append(wg.concat([before, x, after], axis=1))
        at += x.shape[1]
    return wg.concat(rows, axis=0)


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, **options: Any
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, also of a pair of matrices."""
    _drop(options)
    x, *other = (z if lower else _adjoint(z) for z in inexact(a, *([] if b is None else [b])))
    if other:
        chol = wg.linalg.cholesky(other[0])
        x = wg.tril(x) + _adjoint(wg.tril(x, k=-1))
        half = wg.linalg.solve_triangular(chol, x, upper=False)
        x = wg.linalg.solve_triangular(chol, _adjoint(half), upper=False)
    if eigvals_only:
        return wg.linalg.eigvalsh(x)
    values, vectors = wg.linalg.eigh(x)
    if other:
        vectors = wg.linalg.solve_triangular(_adjoint(chol), vectors, upper=True)
    return values, vectors


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **options: Any) -> Any:
    """Singular values and vectors."""
    _drop(options)
    return _NUMPYS["svd"](*inexact(a), full_matrices, compute_uv)


def qr(a: Any, mode: str = "full", **options: Any) -> Any:
    """``Q`` and ``R``."""
    _drop(options)
    if mode == "raw":
        raise NotImplementedError("scipy.linalg.qr: mode='raw' of Tensors")
    found = wg.linalg.qr(*inexact(a), mode="reduced" if mode == "economic" else "complete")
    return (found.R,) if mode == "r" else tuple(found)


def _plainly(name: str) -> Callable[..., Any]:
    """NumPy's function of the name, with SciPy's harmless options."""

    def call(a: Any, *more: Any, **options: Any) -> Any:
        own = {key: options.pop(key) for key in [*options] if key in ("ord", "axis", "keepdims")}
        _drop(options)
        return _NUMPYS[name](*inexact(a), *more, **own)

    return call


_TABLE: dict[str, Callable[..., Any]] = {
    **{name: _of_matrix(name) for name in ("expm", "sqrtm", "logm", "sinm", "cosm")},
    **{name: _plainly(name) for name in ("det", "eigvals", "inv", "norm", "pinv", "svdvals")},
    **{one.__name__: one for one in (block_diag, cho_factor, cho_solve, cholesky, eigh)},
    **{one.__name__: one for one in (lu_factor, lu_solve, qr, solve, solve_banded)},
    **{one.__name__: one for one in (solve_triangular, svd)},
    "eigvalsh": lambda a, b=None, lower=True, **options: eigh(a, b, lower, True, **options),
}
globals().update(namespace("linalg", _TABLE))
