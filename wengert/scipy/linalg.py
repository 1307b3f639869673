"""``scipy.linalg``: solvers, factors and functions of matrices.

>>> from wengert.scipy import linalg
>>> a = wg.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=wg.float64, requires_grad=True)
>>> linalg.cho_solve(linalg.cho_factor(a), [1.0, 2.0]).sum().backward()
>>> a.grad
tensor([[-0.0165, -0.1405],
        [ 0.0000, -0.1736]], dtype=wengert.float64)
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg as _scipy

import wengert as wg
from wengert.protocols.linalg import TABLE as _NUMPYS
from wengert.scipy.naming import host, inexact, publish, values_of
from wengert.tape.tensor import Tensor

_HARMLESS = ("overwrite_a", "overwrite_b", "overwrite_ab", "check_finite", "lapack_driver", "turbo")


def _operands(options: dict[str, Any], *arrays: Any, most: float = np.inf) -> tuple[Tensor, ...]:
    """Arrays as operands; raise for options without a counterpart, and for batches."""
    for name, value in options.items():
        if name not in _HARMLESS and value is not None and value is not False:
            raise TypeError(f"{name}={value!r} has no counterpart with a derivative")
    found = inexact(*arrays)
    if any(x.ndim > most for x in found):
        raise NotImplementedError("of Tensors no batches here: use wengert.linalg, or a loop")
    return found


def _adjoint(x: Any, xp: Any = wg) -> Any:
    return xp.conj(xp.matrix_transpose(x))


def mirror(x: Any, lower: bool, turn: Any = _adjoint) -> Any:
    """The Hermitian matrix of one triangle; the other one has no derivative."""
    half = wg.tril(x, k=-1) if lower else wg.triu(x, k=1)
    return half + turn(half) + wg.tril(wg.triu(x))


def solve(a: Any, b: Any, lower: bool = False, *, assume_a: Any = None, **options: Any) -> Tensor:
    """Solve a linear system; of a matrix that is said to be symmetric one triangle is read."""
    x, y = _operands(options, a, b)
    kind = (assume_a or "gen")[:3]
    if kind in ("her", "pos", "sym"):
        x = mirror(x, lower, wg.matrix_transpose if kind == "sym" else _adjoint)
    elif kind in ("low", "upp"):
        x = wg.triu(x) if kind == "upp" else wg.tril(x)
    elif kind != "gen":
        raise NotImplementedError(f"scipy.linalg.solve: assume_a={assume_a!r} of Tensors")
    return wg.linalg.solve(x, y)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Tensor:
    """Solve a system with a triangle of a matrix."""
    x, y = _operands(options, a, b)
    if trans not in (0, "N"):
        x, lower = wg.matrix_transpose(x) if trans in (1, "T") else _adjoint(x), not lower
    columns = y[:, None] if y.ndim == 1 else y
    found = wg.linalg.solve_triangular(x, columns, upper=not lower, unitriangular=unit_diagonal)
    return found[..., 0] if y.ndim == 1 else found


def cholesky(a: Any, lower: bool = False, **options: Any) -> Tensor:
    """Cholesky's factor, the upper one by default."""
    (x,) = _operands(options, a)
    found = wg.linalg.cholesky(mirror(x, lower))
    return found if lower else _adjoint(found)


def cho_solve(c_and_lower: Any, b: Any, **options: Any) -> Tensor:
    """Solve a system with Cholesky's factor."""
    c, lower = c_and_lower
    first, last = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower, **options), last, lower)


def lu_factor(a: Any, **options: Any) -> tuple[Tensor, Any]:
    """LU factors for `lu_solve`, with SciPy's pivots."""
    (rest,) = _operands(options, a, most=2)
    if rest.ndim != 2 or rest.shape[0] != rest.shape[1]:
        raise NotImplementedError(f"lu_factor of Tensors takes square matrices, not {rest.shape}")
    _, pivots = _scipy.lu_factor(values_of(rest, "scipy.linalg.lu_factor"))
    rest, lower, upper = rest[_order(pivots)], [], []
    for k in range(len(pivots)):  # what is left is eliminated from the right and from below
        zeros = wg.zeros(k + 1, dtype=rest.dtype)
        upper.append(wg.concat([zeros[:k], rest[0, :]]))
        column = rest[1:, 0] / rest[0, 0]
        lower.append(wg.concat([zeros, column]))
        rest = rest[1:, 1:] - column[:, None] * rest[0, 1:]
    return wg.stack(lower, axis=1) + wg.stack(upper), pivots


def _order(pivots: Any) -> Any:
    """The order of rows that exchanges lead to."""
    order = np.arange(len(pivots))
    for i, other in enumerate(pivots):
        order[[i, other]] = order[[other, i]]
    return order


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, **options: Any) -> Tensor:
    """Solve a system with LU factors."""
    x, y = _operands(options, lu_and_piv[0], b, most=2)
    order = _order(values_of(lu_and_piv[1], "scipy.linalg.lu_solve"))
    if trans == 0:
        return solve_triangular(x, solve_triangular(x, y[order], 0, True, True))
    return solve_triangular(x, solve_triangular(x, y, trans), trans, True, True)[np.argsort(order)]


def _shift(xp: Any, x: Any, by: int) -> Any:
    """Columns moved down, or up, with zeros after them."""
    n, zero = x.shape[0], 0 * x[: abs(by), ...]
    return xp.concat([zero, x[: n - by, ...]] if by > 0 else [x[-by:, ...], zero], axis=0)


def _solve_adjoint(xp: Any, g: Any, ab: Any, l: int, u: int) -> Any:
    """The solution with the adjoint matrix, whose bands are moved along."""
    bands = [_shift(xp, ab[l + u - i, :], l - i) for i in range(l + u + 1)]
    return xp.scipy_banded(xp.conj(xp.stack(bands, axis=0)), g, l=u, u=l)


def _band_cotangent(xp: Any, g: Any, ab: Any, out: Any, l: int, u: int) -> Any:
    weight, x = _solve_adjoint(xp, g, ab, l, u), xp.conj(out)
    rows = [xp.sum(-_shift(xp, weight, u - i) * x, axis=1) for i in range(l + u + 1)]
    return xp.stack(rows, axis=0)


def _band_tangent(xp: Any, t: Any, ab: Any, out: Any, l: int, u: int) -> Any:
    moved = [_shift(xp, t[i, :][:, None] * out, i - u) for i in range(l + u + 1)]
    return -xp.scipy_banded(ab, sum(moved[1:], moved[0]), l=l, u=u)


#: Solutions, in columns, with the matrix of bands ``ab[i, j]`` at row ``i + j - u``.
_banded = host(
    "scipy_banded",
    "ab b",
    lambda ab, b, l, u: _scipy.solve_banded((l, u), ab, b),
    {"ab": _band_cotangent, "b": _solve_adjoint},
    jvps={"ab": _band_tangent, "b": lambda xp, t, ab, l, u: xp.scipy_banded(ab, t, l=l, u=u)},
)


def solve_banded(l_and_u: Any, ab: Any, b: Any, **options: Any) -> Tensor:
    """Solve a system with a band matrix."""
    bands, y = _operands(options, ab, b, most=2)
    l, u = map(int, l_and_u)
    dtype = wg.result_type(bands, y)
    columns = wg.astype(wg.reshape(y, (y.shape[0], -1)), dtype)
    return wg.reshape(_banded(wg.astype(bands, dtype), columns, l=l, u=u), y.shape)


def _matrix_function(name: str) -> Callable[..., Tensor]:
    """An analytic function of a matrix, whose derivative is a corner of that of a larger one."""

    def along(xp: Any, t: Any, a: Any) -> Any:
        n, sizes = a.shape[-1], [xp.max(xp.abs(x), axis=(-2, -1), keepdims=True) for x in (t, a)]
        # A large tangent would cost digits of the matrix: it gets the size of this.
        large, small = [xp.log(xp.where(size > 0, size, 1)) for size in sizes]
        unit = xp.exp(xp.floor(large - small))
        over, under = xp.concat([a, t / unit], axis=-1), xp.concat([0 * a, a], axis=-1)
        whole = xp.concat([over, under], axis=-2)
        return getattr(xp, f"scipy_{name}")(whole, strict=True)[..., :n, n:] * unit

    def values(a: Any, strict: bool = False) -> Any:
        with warnings.catch_warnings():
            if strict:  # roots and logarithms of singular matrices have no derivative
                warnings.simplefilter("error", UserWarning)
                warnings.simplefilter("error", _scipy.LinAlgWarning)
            found = np.asarray(getattr(_scipy, name)(a))
        if np.iscomplexobj(found) and not np.iscomplexobj(a):
            if np.abs(found.imag).max() > 1e-12 * np.abs(found).max():
                raise ValueError(f"{name} of this real matrix is complex: give complex numbers")
            found = found.real
        return found.astype(a.dtype)

    rules = {"a": lambda xp, g, a: _adjoint(along(xp, _adjoint(g, xp), a), xp)}
    function = host(f"scipy_{name}", "a", values, rules, jvps={"a": along})

    def call(A: Any) -> Tensor:
        (x,) = inexact(A)
        try:
            return function(x)  # type: ignore[no-any-return]
        except ValueError:  # as of square roots of negative numbers
            return function(wg.astype(x, wg.result_type(x, wg.complex64)))  # type: ignore[no-any-return]

    return call


def block_diag(*arrs: Any) -> Tensor:
    """A matrix with others along its diagonal."""
    parts = [wg.reshape(x, (1, -1)) if x.ndim < 2 else x for x in _operands({}, *arrs, most=2)]
    ends = np.cumsum([x.shape[1] for x in parts]).tolist()
    rows = [
        wg.pad(x, ((0, 0), (end - x.shape[1], ends[-1] - end)))
        for x, end in zip(parts, ends, strict=True)
    ]
    return wg.concat(rows, axis=0)


def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **options: Any
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, of which one triangle is read."""
    x = mirror(_operands({"b": b, **options}, a)[0], lower)
    return wg.linalg.eigvalsh(x) if eigvals_only else tuple(wg.linalg.eigh(x))


def qr(a: Any, *, mode: str = "full", **options: Any) -> Any:
    """``Q`` and ``R``; ``mode="raw"`` is not for Tensors."""
    kinds: dict[str, Any] = {"economic": "reduced", "full": "complete", "r": "complete"}
    found = wg.linalg.qr(*_operands(options, a), mode=kinds[mode])
    return (found.R,) if mode == "r" else tuple(found)


def _numpy_function(name: str) -> Callable[..., Any]:
    """NumPy's function of the name, with SciPy's harmless options."""
    words = ("ord", "axis", "keepdims", "full_matrices", "compute_uv")

    def call(a: Any, **options: Any) -> Any:
        own = {key: options.pop(key) for key in words if key in options}
        return _NUMPYS[name](*_operands(options, a), **own)

    return call


_OWN: dict[str, Any] = {
    "cho_factor": lambda a, lower=False, **options: (cholesky(a, lower, **options), lower),
    "eigvalsh": lambda a, b=None, **options: eigh(a, b, eigvals_only=True, **options),
    "pinv": lambda a, rtol=None, **options: wg.linalg.pinv(*_operands(options, a), rtol=rtol),
}
_OWN |= {name: _matrix_function(name) for name in ("cosm", "expm", "logm", "sinm", "sqrtm")}
_SAME = ("det", "eigvals", "inv", "norm", "svd", "svdvals")
publish(globals(), _OWN | {name: _numpy_function(name) for name in _SAME})
