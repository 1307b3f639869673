"""``scipy.linalg``: solvers, factors and functions of matrices.

>>> from wengert.scipy import linalg
>>> a = wg.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=wg.float64, requires_grad=True)
>>> linalg.cho_solve(linalg.cho_factor(a), [1.0, 2.0]).sum().backward()
>>> a.grad.round(decimals=4)
tensor([[-0.0165, -0.0992],
        [-0.0496, -0.2975]], dtype=wengert.float64)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.ops.define import operation
from wengert.protocols.linalg import TABLE as _NUMPYS
from wengert.scipy.naming import inexact, like_first, namespace, scipy_module, values_of
from wengert.tape.tensor import Tensor

_scipy = scipy_module("linalg")
_OPTIONS = {"overwrite_a", "overwrite_b", "overwrite_ab", "check_finite", "lapack_driver", "turbo"}


def _checked(keywords: dict[str, Any], **defaults: Any) -> None:
    """Raise for options that change a result and have no counterpart."""
    for name, value in keywords.items():
        if name not in _OPTIONS and value != defaults.get(name, object()):
            raise TypeError(f"{name}={value!r} has no counterpart with a derivative")


def _adjoint(x: Tensor) -> Tensor:
    return wg.conj(wg.matrix_transpose(x))


# -- systems ---------------------------------------------------------------------------------------


def _columns(b: Tensor) -> tuple[Tensor, bool]:
    return (b[:, None], True) if b.ndim == 1 else (b, False)


def solve(
    a: Any, b: Any, lower: bool = False, *, assume_a: Any = None, transposed: bool = False,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Solve a linear system; of a matrix that is said to be symmetric one triangle is read."""
    _checked(options)
    x, y = inexact(a, b)
    words = {"sym": False, "pos": True, "symmetric": False, "positive definite": True, "her": True}
    if assume_a in (*words, "hermitian"):
        half = wg.tril(x, k=-1) if lower else wg.matrix_transpose(wg.triu(x, k=1))
        other = wg.matrix_transpose(half)
        other = other if words.get(assume_a) is False else wg.conj(other)
        half = half if lower or words.get(assume_a) is False else wg.conj(half)
        x = half + other + wg.linalg.diagonal(x)[..., None] * wg.eye(x.shape[-1], dtype=x.dtype)
    elif assume_a in ("diagonal", "tridiagonal", "banded"):
        pass  # SciPy reads no more than is there
    elif assume_a in ("upper triangular", "lower triangular"):
        x = wg.triu(x) if assume_a[0] == "u" else wg.tril(x)
    elif assume_a not in (None, "gen", "general"):
        raise ValueError(f"assume_a={assume_a!r} is not one of SciPy's words")
    return wg.linalg.solve(wg.matrix_transpose(x) if transposed else x, y)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Tensor:
    """Solve a system with a triangle of a matrix."""
    _checked(options)
    x, (y, vector) = inexact(a, b)[0], _columns(inexact(a, b)[1])
    if trans not in (0, "N"):
        x = wg.matrix_transpose(x) if trans in (1, "T") else _adjoint(x)
        lower = not lower
    found = wg.linalg.solve_triangular(x, y, upper=not lower, unitriangular=unit_diagonal)
    return found[:, 0] if vector else found


def cholesky(a: Any, lower: bool = False, **options: Any) -> Tensor:
    """Cholesky's factor, the upper one by default."""
    _checked(options)
    (x,) = inexact(a)
    if lower:
        return wg.linalg.cholesky(x)
    return _adjoint(wg.linalg.cholesky(_adjoint(x)))


def cho_factor(a: Any, lower: bool = False, **options: Any) -> tuple[Tensor, bool]:
    """Cholesky's factor for `cho_solve`; the other triangle is zero."""
    return cholesky(a, lower, **options), lower


def cho_solve(c_and_lower: Any, b: Any, **options: Any) -> Tensor:
    """Solve a system with Cholesky's factor."""
    _checked(options)
    c, lower = c_and_lower
    first = solve_triangular(c, b, 0 if lower else 2, lower)
    return solve_triangular(c, first, 2 if lower else 0, lower)


@operation(
    "scipy_lu",
    a=lambda xp, g, out: _lu_rule(xp, g, out),
    jvps={"a": lambda xp, t, out: _lu_tangent(xp, t, out)},
    composite=lambda xp, a: xp.backend.from_numpy(_packed(xp.backend.to_numpy(a)), xp.device(a)),
)
def _lu_packed(a: Any, /) -> Tensor:
    """``L`` below the diagonal and ``U`` on and above it, of a matrix in pivots' order."""
    return _lu_packed.run(a)


def _packed(a: Any) -> Any:
    found = np.array(a)
    for k in range(min(found.shape)):
        found[k + 1 :, k] /= found[k, k]
        found[k + 1 :, k + 1 :] -= np.outer(found[k + 1 :, k], found[k, k + 1 :])
    return found


def _lu_rule(xp: Any, g: Any, out: Any) -> Any:
    # Giles, Collected matrix derivative results, 2008, in the form for LU.
    lower, upper = _unit_lower(xp, out), xp.triu(out)
    left, right = (xp.conj(xp.matrix_transpose(x)) for x in (lower, upper))
    inner = xp.tril(xp.matmul(left, xp.tril(g, k=-1)), k=-1)
    inner = inner + xp.triu(xp.matmul(xp.triu(g), right))
    half = xp.linalg.solve(left, inner)
    return xp.conj(xp.matrix_transpose(xp.linalg.solve(upper, xp.conj(xp.matrix_transpose(half)))))


def _lu_tangent(xp: Any, t: Any, out: Any) -> Any:
    lower, upper = _unit_lower(xp, out), xp.triu(out)
    half = xp.linalg.solve(lower, t)
    turned = xp.linalg.solve(xp.matrix_transpose(upper), xp.matrix_transpose(half))
    inner = xp.matrix_transpose(turned)
    return xp.matmul(lower, xp.tril(inner, k=-1)) + xp.matmul(xp.triu(inner), upper)


def _unit_lower(xp: Any, packed: Any) -> Any:
    # A diagonal of ones, made of what has the right device and dtype.
    ones = xp.tril(xp.ones_like(packed)) - xp.tril(xp.ones_like(packed), k=-1)
    return xp.tril(packed, k=-1) + ones


def lu_factor(a: Any, **options: Any) -> tuple[Tensor, Any]:
    """LU factors for `lu_solve`, with SciPy's pivots."""
    _checked(options)
    (x,) = inexact(a)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"lu_factor of Tensors takes one square matrix, and not {tuple(x.shape)}")
    _, pivots = _scipy.lu_factor(values_of(x, "scipy.linalg.lu_factor"))
    return _lu_packed(x[_order(pivots)]), pivots


def _order(pivots: Any) -> Any:
    order = np.arange(len(pivots))
    for i, other in enumerate(pivots):
        order[[i, other]] = order[[other, i]]
    return order


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, **options: Any) -> Tensor:
    """Solve a system with LU factors."""
    _checked(options)
    packed, pivots = lu_and_piv
    x, y = inexact(packed, b)
    order = _order(values_of(pivots, "scipy.linalg.lu_solve"))
    if trans == 0:
        first = solve_triangular(x, y[order], lower=True, unit_diagonal=True)
        return solve_triangular(x, first)
    first = solve_triangular(x, y, trans)
    return solve_triangular(x, first, trans, lower=True, unit_diagonal=True)[np.argsort(order)]


def lu(a: Any, permute_l: bool = False, **options: Any) -> Any:
    """``P``, ``L`` and ``U``."""
    packed, pivots = lu_factor(a, **options)
    order = _order(pivots)
    lower, upper = _unit_lower(wg, packed), wg.triu(packed)
    place = like_first([packed], np.eye(len(order))[:, order])
    return (place @ lower, upper) if permute_l else (place, lower, upper)


@operation(
    "scipy_banded",
    inputs=("ab", "b"),
    ab=lambda xp, g, ab, out, l, u: _bands_rule(xp, g, ab, out, l, u),
    b=lambda xp, g, ab, l, u: _turned_solve(xp, g, ab, l, u),
    jvps={
        "ab": lambda xp, t, ab, out, l, u: -xp.scipy_banded(ab, _bands(xp, t, out, u), l=l, u=u),
        "b": lambda xp, t, ab, l, u: xp.scipy_banded(ab, t, l=l, u=u),
    },
    composite=lambda xp, ab, b, l, u: xp.backend.from_numpy(
        _scipy.solve_banded((l, u), xp.backend.to_numpy(ab), xp.backend.to_numpy(b)), xp.device(b)
    ),
)
def _banded(ab: Any, b: Any, /, *, l: int, u: int) -> Tensor:
    return _banded.run(ab, b, l=l, u=u)


def _shifted(xp: Any, row: Any, by: int) -> Any:
    """A row moved to the right, or to the left, with zeros after it."""
    n = row.shape[-1]
    if by == 0:
        return row
    zero = 0 * row[..., : abs(by)]
    parts = [zero, row[..., : n - by]] if by > 0 else [row[..., -by:], zero]
    return xp.concat(parts, axis=-1)


def _turned_solve(xp: Any, g: Any, ab: Any, l: int, u: int) -> Any:
    """The solution with the adjoint matrix, whose bands are moved along."""
    bands = [_shifted(xp, ab[l + u - i, :], l - i) for i in range(l + u + 1)]
    return xp.scipy_banded(xp.conj(xp.stack(bands, axis=0)), g, l=u, u=l)


def _bands(xp: Any, ab: Any, x: Any, u: int) -> Any:
    """The band matrix times a vector, or each column of a matrix."""
    rows = xp.matrix_transpose(x) if len(x.shape) > 1 else x
    total = 0 * rows
    for i in range(ab.shape[0]):
        total = total + _shifted(xp, ab[i, :] * rows, i - u)
    return xp.matrix_transpose(total) if len(x.shape) > 1 else total


def _bands_rule(xp: Any, g: Any, ab: Any, out: Any, l: int, u: int) -> Any:
    weight = _turned_solve(xp, g, ab, l, u)
    bands = []
    for i in range(l + u + 1):  # ab[i, j] is the matrix's [j + i - u, j]
        rows = xp.matrix_transpose(weight) if len(weight.shape) > 1 else weight
        found = _shifted(xp, rows, u - i)
        x = xp.matrix_transpose(out) if len(out.shape) > 1 else out
        product = -found * xp.conj(x)
        bands.append(xp.sum(product, axis=0) if len(out.shape) > 1 else product)
    return xp.stack(bands, axis=0)


def solve_banded(l_and_u: Any, ab: Any, b: Any, **options: Any) -> Tensor:
    """Solve a system with a band matrix."""
    _checked(options)
    l, u = map(int, l_and_u)
    bands, y = inexact(ab, b)
    dtype = wg.result_type(bands, y)
    return _banded(wg.astype(bands, dtype), wg.astype(y, dtype), l=l, u=u)


# -- functions of matrices -------------------------------------------------------------------------


def _of_matrix(name: str) -> Callable[..., Tensor]:
    """An analytic function of a matrix, whose derivative is a corner of that of a larger one."""
    theirs = getattr(_scipy, name)
    primitive = f"scipy_{name}"

    def along(xp: Any, t: Any, a: Any) -> Any:
        n = a.shape[-1]
        whole = xp.concat([xp.concat([a, t], axis=-1), xp.concat([0 * a, a], axis=-1)], axis=-2)
        return getattr(xp, primitive)(whole)[..., :n, n:]

    def rule(xp: Any, g: Any, a: Any) -> Any:
        return along(xp, g, xp.conj(xp.matrix_transpose(a)))

    def composite(xp: Any, a: Any) -> Any:
        values = xp.backend.to_numpy(a)
        found = np.asarray(theirs(values))
        if np.iscomplexobj(found) and not np.iscomplexobj(values):
            found = _real(found, name)
        return xp.backend.from_numpy(found.astype(values.dtype), xp.device(a))

    def function(A: Any, /) -> Tensor:
        (x,) = inexact(A)
        return run(x)

    run = operation(primitive, inputs=("a",), a=rule, jvps={"a": along}, composite=composite)(
        lambda a, /: None  # type: ignore[arg-type, return-value]
    ).run
    function.__name__ = function.__qualname__ = name
    return function


def _real(found: Any, name: str) -> Any:
    if np.abs(found.imag).max(initial=0) > 1e3 * np.finfo(float).eps * np.abs(found).max(initial=1):
        raise ValueError(
            f"scipy.linalg.{name} of this real matrix is complex: give it as complex numbers"
        )
    return found.real


# -- the rest --------------------------------------------------------------------------------------


def block_diag(*arrs: Any) -> Tensor:
    """A matrix with others along its diagonal."""
    parts = [wg.reshape(x, (1, -1)) if x.ndim < 2 else x for x in inexact(*arrs)]
    width = sum(x.shape[1] for x in parts)
    rows, at = [], 0
    for x in parts:
        after = width - at - x.shape[1]
        edges = [wg.zeros((x.shape[0], n), dtype=x.dtype) for n in (at, after)]
        rows.append(wg.concat([edges[0], x, edges[1]], axis=1))
        at += x.shape[1]
    return wg.concat(rows, axis=0)


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, **options: Any
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, also of a pair of matrices."""
    _checked(options, type=1, driver=None, subset_by_index=None, subset_by_value=None)
    (x,) = inexact(a)
    x = x if lower else _adjoint(x)
    if b is None:
        return wg.linalg.eigvalsh(x) if eigvals_only else tuple(wg.linalg.eigh(x))
    chol = wg.linalg.cholesky(inexact(b)[0] if lower else _adjoint(inexact(b)[0]))
    x = wg.tril(x) + _adjoint(wg.tril(x, k=-1))
    half = wg.linalg.solve_triangular(chol, x, upper=False)
    whole = _adjoint(wg.linalg.solve_triangular(chol, _adjoint(half), upper=False))
    if eigvals_only:
        return wg.linalg.eigvalsh(whole)
    values, vectors = wg.linalg.eigh(whole)
    return values, wg.linalg.solve_triangular(_adjoint(chol), vectors, upper=True)


def eigvalsh(a: Any, b: Any = None, lower: bool = True, **options: Any) -> Tensor:
    """Eigenvalues of a Hermitian matrix."""
    return eigh(a, b, lower, True, **options)  # type: ignore[no-any-return]


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **options: Any) -> Any:
    """Singular values and vectors."""
    _checked(options)
    found = _NUMPYS["svd"](inexact(a)[0], full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def qr(a: Any, mode: str = "full", pivoting: bool = False, **options: Any) -> Any:
    """``Q`` and ``R``."""
    _checked(options | {"pivoting": pivoting}, lwork=None, pivoting=False)
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"mode={mode!r} of Tensors is 'full', 'r' or 'economic'")
    kind = "reduced" if mode == "economic" else "complete"
    q, r = wg.linalg.qr(*inexact(a), mode=kind)
    return (r,) if mode == "r" else (q, r)


def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, **options: Any
) -> Tensor:
    """A norm of a vector or a matrix."""
    _checked(options)
    return _NUMPYS["norm"](inexact(a)[0], ord, axis, keepdims)  # type: ignore[no-any-return]


def toeplitz(c: Any, r: Any = None) -> Tensor:
    """A matrix that is constant along its diagonals."""
    (column,) = inexact(c)
    row = wg.conj(column) if r is None else inexact(r)[0]
    column, row = wg.reshape(column, (-1,)), wg.reshape(row, (-1,))
    n, m = column.shape[0], row.shape[0]
    places = np.arange(n)[:, None] - np.arange(m)[None, :] + m - 1
    return wg.concat([wg.flip(row[1:]), column], axis=0)[places]  # type: ignore[no-any-return]


def _plainly(name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one matrix without options that matter."""

    def call(a: Any, **options: Any) -> Any:
        _checked(options)
        return ours(*inexact(a))

    call.__name__ = call.__qualname__ = name
    return call


_ONE = {
    "det": wg.linalg.det,
    "eigvals": wg.linalg.eigvals,
    "inv": wg.linalg.inv,
    "pinv": wg.linalg.pinv,
    "pinvh": wg.linalg.pinv,
    "svdvals": wg.linalg.svdvals,
}


def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, **options: Any) -> Any:
    """Eigenvalues and eigenvectors, these of norm 1."""
    _checked(options | {"b": b, "left": left, "right": right}, b=None, left=False, right=True)
    return tuple(wg.linalg.eig(*inexact(a)))


def lstsq(a: Any, b: Any, cond: Any = None, **options: Any) -> Any:
    """Least squares."""
    _checked(options)
    x, squares, rank, values = _NUMPYS["lstsq"](*inexact(a, b), rcond=cond)
    return x, squares, rank, values


_FUNCTIONS = ("expm", "sqrtm", "logm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")
_TABLE: dict[str, Callable[..., Any]] = {
    **{name: _of_matrix(name) for name in _FUNCTIONS},
    **{name: _plainly(name, ours) for name, ours in _ONE.items()},
    **{
        one.__name__: one
        for one in (
            block_diag,
            cho_factor,
            cho_solve,
            cholesky,
            eig,
            eigh,
            eigvalsh,
            lstsq,
            lu,
            lu_factor,
            lu_solve,
            norm,
            qr,
            solve,
            solve_banded,
            solve_triangular,
            svd,
            toeplitz,
        )  # fmt: skip
    },
}

globals().update(namespace("linalg", _TABLE))
