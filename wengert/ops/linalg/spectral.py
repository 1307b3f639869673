"""Eigenvalues and eigenvectors, of Hermitian matrices and of any."""

from typing import Any, NamedTuple

from wengert.interpreters.batching import as_it_is
from wengert.ops.define import operation
from wengert.ops.linalg.common import (
    adjoint,
    columns,
    join,
    matrices,
    product,
    skew,
    spread_nan,
    turns,
)
from wengert.tape.tensor import Tensor

__all__ = ["EigResult", "EighResult", "eig", "eigh", "eigvals", "eigvalsh"]


class EighResult(NamedTuple):
    """Result of `eigh`.

    Examples
    --------
    >>> wg.linalg.eigh(wg.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2., 3.])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """Result of `eig`.

    Examples
    --------
    >>> wg.linalg.eig(wg.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


# -- Hermitian matrices --------------------------------------------------------------------------


def _eigh_rule(xp: Any, g: Any, out: Any) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    v_h, turned, used = adjoint(xp, vectors), None, None
    if g_vectors is not None:
        used = xp.matmul(v_h, g_vectors)
        turned = skew(xp, used) * 0.5
    return product(xp, vectors, join(xp, g_values, turned, values, used), v_h)


def _eigh_tangent(xp: Any, t: Any, out: Any) -> Any:
    values, vectors = out
    t = (t + adjoint(xp, t)) * 0.5
    inner = product(xp, adjoint(xp, vectors), t, vectors)
    (turn,) = turns(xp, values, inner)
    along = spread_nan(xp, xp.real(xp.linalg.diagonal(inner)), values)
    return along, xp.matmul(vectors, turn)


@operation(
    "linalg.eigh",
    x=_eigh_rule,
    dtypes="floating",
    jvps={"x": _eigh_tangent},
    several=True,
    batch=as_it_is,
)
def eigh(x: Any, /) -> EighResult:
    r"""Eigenvalues and eigenvectors of Hermitian matrices, :math:`X = V \Lambda V^H`.

    It is not checked that the matrices are Hermitian; the lower triangle is looked at. Eigenvectors
    are unique only up to a sign (phase), and up to a rotation where eigenvalues are equal.
    Derivatives make sense for functions of them that do not depend on that choice. Where only the
    eigenvalues are used, they are finite whatever the eigenvalues are. The cotangent is :math:`V
    (\operatorname{diag}(\bar\lambda) + \operatorname{skew}(V^H \bar V) / 2 E) V^H` with
    :math:`E_{ij} = \lambda_j - \lambda_i` and :math:`\operatorname{skew}(A) = A - A^H`. Raises
    `ValueError` if the matrices are not square. The eigenvalues (..., M) are real and ascending,
    the eigenvectors (..., M, M) columns of norm 1. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[2.0, 1.0], [1.0, 2.0]])
    >>> values, vectors = wg.linalg.eigh(x)
    >>> wg.round(values)
    tensor([1., 3.])
    >>> wg.grad(lambda x: wg.linalg.eigh(x).eigenvalues[1])(x)  # v v^H of its eigenvector
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    matrices("eigh", x, square=True)
    return EighResult(*eigh.run(x))


def _eigvalsh_rule(xp: Any, g: Any, x: Any) -> Any:
    values, vectors = xp.linalg.eigh(x)
    return xp.matmul(columns(xp, vectors, spread_nan(xp, g, values)), adjoint(xp, vectors))


def _eigvalsh_tangent(xp: Any, t: Any, x: Any) -> Any:
    values, vectors = xp.linalg.eigh(x)
    t = (t + adjoint(xp, t)) * 0.5
    along = xp.real(xp.linalg.diagonal(product(xp, adjoint(xp, vectors), t, vectors)))
    return spread_nan(xp, along, values)


@operation(
    "linalg.eigvalsh",
    x=_eigvalsh_rule,
    dtypes="floating",
    jvps={"x": _eigvalsh_tangent},
    batch=as_it_is,
)
def eigvalsh(x: Any, /) -> Tensor:
    r"""Eigenvalues of Hermitian matrices.

    It is not checked that the matrices are Hermitian; the lower triangle is looked at. The
    cotangent is :math:`V \operatorname{diag}(\bar\lambda) V^H`. The result is of shape (..., M),
    real, ascending. Raises `ValueError` if the matrices are not square. Array API standard.

    Examples
    --------
    >>> wg.linalg.eigvalsh(wg.asarray([[3.0, 0.0], [0.0, 2.0]]))
    tensor([2., 3.])
    """
    matrices("eigvalsh", x, square=True)
    return eigvalsh.run(x)


# -- any matrices --------------------------------------------------------------------------------


def _eig_rule(xp: Any, g: Any, out: Any) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    v_h, turned = adjoint(xp, vectors), None
    if g_vectors is not None:
        turned = xp.matmul(v_h, g_vectors)
        # The vectors' norms stay 1.
        along = xp.real(xp.linalg.diagonal(turned))
        turned = turned - columns(xp, xp.matmul(v_h, vectors), along)
    inner = join(xp, g_values, turned, xp.conj(values), turned)
    return xp.linalg.solve(v_h, xp.matmul(inner, v_h))


def _eig_tangent(xp: Any, t: Any, out: Any) -> Any:
    values, vectors = out
    inner = xp.linalg.solve(vectors, xp.matmul(xp.astype(t, vectors.dtype), vectors))
    (turn,) = turns(xp, values, inner)
    t_vectors = xp.matmul(vectors, turn)
    along = xp.linalg.diagonal(xp.matmul(adjoint(xp, vectors), t_vectors))
    t_vectors = t_vectors - columns(xp, vectors, xp.real(along))
    return xp.linalg.diagonal(inner), t_vectors


@operation(
    "linalg.eig",
    x=_eig_rule,
    dtypes="floating",
    jvps={"x": _eig_tangent},
    several=True,
    batch=as_it_is,
)
def eig(x: Any, /) -> EigResult:
    r"""Eigenvalues and eigenvectors of square matrices, :math:`X V = V \Lambda`.

    Eigenvectors are unique only up to a phase. Derivatives make sense for functions of them that do
    not depend on that choice, and where the matrix has as many eigenvectors as rows. The cotangent
    is :math:`V^{-H} (\operatorname{diag}(\bar\lambda)` :math:`+ (V^H \bar V - V^H V D) / \bar E)
    V^H`, without the fraction's diagonal, with :math:`E_{ij} = \lambda_j - \lambda_i` and D the
    real diagonal of :math:`V^H \bar V`; for a real ``x`` its real part. Raises `ValueError` if the
    matrices are not square. The eigenvalues (..., M) come in any order, the eigenvectors (..., M,
    M) are columns of norm 1; both are complex. C. Boeddeker et al., arXiv:1701.00392.
    Array API standard.

    Examples
    --------
    >>> values, vectors = wg.linalg.eig(wg.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    >>> wg.sort(wg.round(wg.imag(values)))  # a quarter turn has the eigenvalues i and -i
    tensor([-1.,  1.])
    """
    matrices("eig", x, square=True)
    return EigResult(*eig.run(x))


def eigvals(x: Any, /) -> Tensor:
    r"""Eigenvalues of square matrices.

    The eigenvectors are computed too: without them, libraries may find the values in another order,
    and no cotangent could be told its vector. The cotangent is
    :math:`V^{-H} \operatorname{diag}(\bar\lambda) V^H`. The result is of shape (..., M), complex,
    in the order of `eig`. Raises `ValueError` if the matrices are not square. Array API standard.

    Examples
    --------
    >>> wg.sort(wg.real(wg.linalg.eigvals(wg.asarray([[2.0, 1.0], [0.0, 3.0]]))))
    tensor([2., 3.])
    """
    matrices("eigvals", x, square=True)
    return eig(x).eigenvalues
