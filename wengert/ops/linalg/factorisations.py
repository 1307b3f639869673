"""Cholesky's factorisation, and that into a unitary and a triangular matrix."""

from typing import Any, Literal, NamedTuple

from wengert.interpreters.batching import as_it_is
from wengert.ops.define import operation
from wengert.ops.elementwise import conj
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.linalg.common import (
    adjoint,
    imaginary,
    matrices,
    off_diagonal,
    skew,
)
from wengert.ops.linear_algebra import matmul, matrix_transpose
from wengert.ops.manipulation import concat
from wengert.tape.tensor import Tensor, wrap

__all__ = ["QRResult", "cholesky", "qr"]


def _hermitian(xp: Any, x: Any) -> Any:
    return (x + adjoint(xp, x)) * 0.5


def _half_lower(xp: Any, x: Any) -> Any:
    """The lower triangle with half the diagonal: the triangular L of x = L + L^H."""
    return (xp.tril(x) + xp.tril(x, k=-1)) * 0.5


def _reduce(xp: Any, triangle: Any) -> tuple[Any, Any]:
    """A triangle by a power of two, and that, so that tangents of tangents stay in range."""
    if (not xp.records and xp.backend) or 0 in triangle.shape:  # nothing differentiates this
        return triangle, None
    largest = xp.max(xp.abs(triangle), axis=(-2, -1), keepdims=True)
    unit = xp.pow(2.0, xp.round(xp.log2(xp.where(largest > 0, largest, 1))))
    return triangle / unit, unit


# -- Cholesky ------------------------------------------------------------------------------------


def _cholesky_rule(xp: Any, g: Any, out: Any) -> Any:
    upper = adjoint(xp, out)
    inner = _half_lower(xp, xp.matmul(upper, g))
    left = xp.linalg.solve_triangular(upper, inner, upper=True)
    right = xp.linalg.solve_triangular(upper, adjoint(xp, left), upper=True)
    return _hermitian(xp, adjoint(xp, right))


def _cholesky_tangent(xp: Any, t: Any, out: Any) -> Any:
    out, unit = _reduce(xp, out)
    left = xp.linalg.solve_triangular(out, _hermitian(xp, t), upper=False)
    inner = adjoint(xp, xp.linalg.solve_triangular(out, adjoint(xp, left), upper=False))
    found = xp.matmul(out, _half_lower(xp, inner))
    return found if unit is None else found / unit


@operation(
    "linalg.cholesky",
    x=_cholesky_rule,
    dtypes="floating",
    jvps={"x": _cholesky_tangent},
    batch=as_it_is,
)
def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    r"""Triangular factor of a positive definite matrix, :math:`X = L L^H = U^H U`.

    It is not checked that the matrices are Hermitian; the factor's triangle is looked at. One that
    is not positive definite is an error of the array library. The cotangent is the Hermitian part
    of :math:`L^{-H} \Phi(L^H \bar L) L^{-1}`, where :math:`\Phi` takes the lower triangle with half
    the diagonal. The result is of the shape and dtype of ``x``, with a positive diagonal. Raises
    `ValueError` if the matrices are not square. ``upper`` reads the upper triangle, and returns
    :math:`U`. I. Murray, arXiv:1602.07527. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[4.0, 2.0], [2.0, 5.0]])
    >>> factor = wg.linalg.cholesky(x)
    >>> factor
    tensor([[2., 0.],
            [1., 2.]])
    >>> factor @ factor.mT
    tensor([[4., 2.],
            [2., 5.]])
    """
    matrices("cholesky", x, square=True)
    if not upper:
        return cholesky.run(x)
    return conj(matrix_transpose(cholesky.run(conj(matrix_transpose(x)))))


# -- QR ------------------------------------------------------------------------------------------


class QRResult(NamedTuple):
    """Result of `qr`.

    Examples
    --------
    >>> wg.linalg.qr(wg.ones((3, 2))).R.shape
    (2, 2)
    """

    Q: Tensor
    R: Tensor


COMPLETE = (
    "the derivative of qr with mode='complete' of a matrix with more rows ({}) than columns ({}) "
    "is not defined, as the last columns of Q are any basis; use mode='reduced'"
)


def _qr_rule(xp: Any, g: Any, x_shape: tuple[int, ...], out: Any, mode: str) -> Any:
    m, n = x_shape[-2:]
    if m > n and mode == "complete":
        raise NotImplementedError(COMPLETE.format(m, n))
    (g_q, g_r), (q, r) = g, out
    inner = None if g_r is None else xp.matmul(g_r, adjoint(xp, r))
    if g_q is not None:
        turned = xp.matmul(adjoint(xp, q), g_q)
        inner = -turned if inner is None else inner - turned
    # The Hermitian matrix that has this upper triangle, with a real diagonal.
    half = adjoint(xp, _half_lower(xp, adjoint(xp, xp.triu(inner))))
    both = xp.matmul(q, half + adjoint(xp, half))
    if g_q is not None:
        both = g_q + both
    return adjoint(xp, xp.linalg.solve_triangular(r, adjoint(xp, both), upper=True))


def _qr_tangent(xp: Any, t: Any, x_shape: tuple[int, ...], out: Any, mode: str) -> Any:
    m, n = x_shape[-2:]
    if m > n and mode == "complete":
        raise NotImplementedError(COMPLETE.format(m, n))
    q, r = out
    r, unit = _reduce(xp, r)
    q_h = adjoint(xp, q)
    scaled = xp.linalg.solve_triangular(adjoint(xp, r), adjoint(xp, t), upper=False)
    scaled = adjoint(xp, scaled)
    inner = xp.matmul(q_h, scaled)
    # Q turns by the skew matrix that leaves R triangular and its diagonal real.
    turn = skew(xp, xp.tril(inner, k=-1))
    if is_complex(q):
        turn = turn + imaginary(xp, inner - off_diagonal(xp, inner))
    t_q = scaled + xp.matmul(q, turn - inner)
    t_q = t_q if unit is None else t_q / unit
    return t_q, xp.matmul(inner - turn, r)


@operation(
    "linalg.qr",
    x=_qr_rule,
    dtypes="floating",
    jvps={"x": _qr_tangent},
    several=True,
    batch=as_it_is,
)
def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    r"""Factors of a matrix, :math:`X = Q R`, the one unitary and the other upper triangular.

    To be differentiated, the first :math:`K = \min(M, N)` columns have to be of full rank. The
    cotangent for :math:`M \ge N` is :math:`(\bar Q + Q \operatorname{herm}(\bar R R^H - Q^H \bar
    Q)) R^{-H}`, where herm continues the upper triangle to a Hermitian matrix. For :math:`M < N` it
    follows from :math:`Q R_1 = X_1` and :math:`R_2 = Q^H X_2`, where :math:`X_1` has the first M
    columns. Raises `ValueError` if ``x`` has fewer than two axes, or there is no such mode;
    `NotImplementedError` in the backward pass, of ``mode="complete"`` with more rows than columns.
    The signs (phases) of the columns of Q are the library's. Q has K columns, and M if ``mode`` is
    "complete". S. F. Walter and L. Lehmann, arXiv:1001.1654. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[3.0, 1.0], [4.0, 2.0]])
    >>> q, r = wg.linalg.qr(x)
    >>> wg.round(q @ r)
    tensor([[3., 1.],
            [4., 2.]])
    """
    m, n = matrices("qr", x)[-2:]
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr has the modes 'reduced' and 'complete', not {mode!r}")
    if m >= n:
        return QRResult(*qr.run(x, mode=mode))
    tensor = wrap(x)
    q, first = qr.run(tensor[..., :m], mode="reduced")
    rest = matmul(conj(matrix_transpose(q)), tensor[..., m:])
    return QRResult(q, concat([first, rest], axis=-1))
