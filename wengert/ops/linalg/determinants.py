"""Determinants, with derivatives of any order also at singular matrices."""

import math
from typing import Any, NamedTuple

from wengert.backends import add_composite, namespaces
from wengert.interpreters.batching import as_it_is
from wengert.interpreters.namespaces import differentiable
from wengert.ops.define import operation
from wengert.ops.linalg.common import adjoint, columns, complex_dtype, imaginary, matrices, product
from wengert.tape.tensor import Tensor, untracked, wrapped

__all__ = ["SlogdetResult", "det", "slogdet"]

#: How many singular values may be 0 for derivatives that are right to any order.
BORDER = 2

# The derivative of det(A) is its matrix of cofactors, det(A) A^-H, which is there and smooth where
# the inverse is not. So A is bordered by R columns and rows, B = [[A, U], [V, 0]], which span what
# a singular A lacks: B is invertible. With B^-1 = [[X, Y], [Z, H]] Jacobi's identity of
# complementary minors says det(A) = det(B) det(H), and differentiating that, the cofactors are
# those of det(B) (det(H) X - Y adj(H) Z), transposed. It holds for any border, so the border is a
# constant, and every derivative is one of det and inv at an invertible matrix.


def _bordering(xp: Any, x: Any) -> tuple[Any, ...]:
    """Borders of matrices, 2 x 2 at least: columns, rows, corner, and a shift of the matrices.

    The border is along the last singular vectors. If more singular values than that are 0, the
    shift moves the others away from it by a rounding error. They are those of the matrices over a
    power of two, which is the last: 1, or where the determinant may leave the range and the
    cofactors do not, about a singular value.
    """
    n = x.shape[-1]
    inner = n - BORDER
    # Some libraries raise an error at nan; here the inverse is to spread it.
    u, s, vh = xp.linalg.svd(xp.where(xp.isfinite(x), x, 0), full_matrices=False)
    top = s[..., :1]
    top = xp.where(top > 0, top, xp.ones_like(top))
    low = top * (n * float(xp.finfo(s.dtype).eps))
    # The border's entries have the scale that neither spoils the condition nor lets the
    # determinant of the whole overflow.
    scale = xp.maximum(s[..., inner - 1 : inner], low) if inner else top
    room = math.log2(xp.finfo(s.dtype).max)
    # Of subnormal numbers the reciprocal, by which complex numbers are divided, would overflow.
    exponent = xp.maximum(xp.log2(scale), 2 - room)
    unit = xp.where(xp.abs(exponent) < room / 16, 1.0, xp.pow(2.0, xp.round(exponent)))
    scale = xp.expand_dims(xp.sqrt(xp.divide(scale, unit)), axis=-1)
    kept = s[..., :inner]
    shift = xp.where(kept > low, xp.zeros_like(kept), xp.broadcast_to(low / unit, kept.shape))
    return (
        u[..., :, inner:] * scale,
        vh[..., inner:, :] * scale,
        xp.zeros((*x.shape[:-2], BORDER, BORDER), dtype=x.dtype, device=xp.device(x)),
        xp.matmul(columns(xp, u[..., :, :inner], shift), vh[..., :inner, :]),
        xp.expand_dims(unit, axis=-1),
    )


def _constant_bordering(x: Any) -> tuple[Tensor, ...]:
    """The same of a Tensor, and off the tape: the result does not depend on the border."""
    array = wrapped(x).detach()._array
    xp = namespaces[type(array)]
    made = _bordering(xp, array) if xp.backend is None else xp.bordering(array)
    return tuple(map(untracked, made))


add_composite("bordering", _bordering)
vars(differentiable)["bordering"] = _constant_bordering


def _cofactors(xp: Any, x: Any) -> Any:
    """The transposed cofactors: by them a tangent is multiplied and summed."""
    n = x.shape[-1]
    right, below, corner, shift, unit = xp.bordering(x)
    upper = xp.concat([x / unit + shift, right], axis=-1)
    bordered = xp.concat([upper, xp.concat([below, corner], axis=-1)], axis=-2)
    inverse = xp.linalg.inv(bordered)
    h = inverse[..., n:, n:]
    h00, h11 = h[..., 0, 0], h[..., 1, 1]
    minor = h00 * h11 - h[..., 0, 1] * h[..., 1, 0]
    # Of a 2 x 2 matrix the adjugate is its trace less itself.
    eye = xp.eye(BORDER, dtype=x.dtype, device=xp.device(x))
    adjugate = _as_matrix(xp, h00 + h11) * eye - h
    both = _as_matrix(xp, minor) * inverse[..., :n, :n] - product(
        xp, inverse[..., :n, n:], adjugate, inverse[..., n:, :n]
    )
    found = _as_matrix(xp, xp.linalg.det(bordered)) * both
    return found * xp.pow(unit, n - 1)


def _as_matrix(xp: Any, x: Any) -> Any:
    """Numbers as 1 x 1 matrices."""
    return xp.expand_dims(xp.expand_dims(x, axis=len(x.shape)), axis=len(x.shape))


def _det_rule(xp: Any, g: Any, x: Any) -> Any:
    g = _as_matrix(xp, g)
    if x.shape[-1] < 2:
        return g * xp.ones_like(x)
    return g * adjoint(xp, _cofactors(xp, x))


def _det_forward(xp: Any, t: Any, x: Any) -> Any:
    if x.shape[-1] < 2:
        return xp.sum(t, axis=(-2, -1))
    return xp.sum(t * xp.matrix_transpose(_cofactors(xp, x)), axis=(-2, -1))


@operation("linalg.det", x=_det_rule, dtypes="floating", jvps={"x": _det_forward}, batch=as_it_is)
def det(x: Any, /) -> Tensor:
    r"""Determinant of a matrix, or of each matrix of a stack.

    The cotangent is :math:`\bar y` times the conjugate cofactors,
    :math:`\overline{\det X}\, X^{-H}` where ``x`` is invertible. It is right at singular matrices
    as well, to any order where at most two singular values are 0. Raises `ValueError` if the
    matrices are not square. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[4.0, 2.0], [1.0, 3.0]])
    >>> wg.round(wg.linalg.det(x))
    tensor(10.)
    >>> wg.round(wg.grad(wg.linalg.det)(x))  # the cofactors
    tensor([[ 3., -1.],
            [-2.,  4.]])
    """
    matrices("det", x, square=True)
    return det.run(x)


# -- sign and logarithm --------------------------------------------------------------------------


class SlogdetResult(NamedTuple):
    """Result of `slogdet`.

    Examples
    --------
    >>> wg.linalg.slogdet(wg.asarray([[1.0, 2.0], [3.0, 4.0]])).sign
    tensor(-1.)
    """

    sign: Tensor
    logabsdet: Tensor


def _inverse(xp: Any, x: Any, sign: Any) -> Any:
    """Inverses, and infinities where there is none, which libraries refuse with the whole stack."""
    singular = _as_matrix(xp, sign == 0)
    eye = xp.eye(x.shape[-1], dtype=x.dtype, device=xp.device(x))
    return xp.where(singular, math.inf, xp.linalg.inv(xp.where(singular, eye, x)))


def _tracked_inverse(x: Any, sign: Any) -> Any:
    """The same of Tensors, of which one may be an array, or a scalar of NumPy's."""
    return _inverse(differentiable, *map(differentiable.asarray, (x, sign)))


add_composite("inverse_or_infinite", _inverse)
vars(differentiable)["inverse_or_infinite"] = _tracked_inverse


def _slogdet_rule(xp: Any, g: Any, x: Any, out: Any) -> Any:
    g_sign, g_log = g
    inverse = adjoint(xp, xp.inverse_or_infinite(x, out[0]))
    both = g_log
    if complex_dtype(xp, x) and g_sign is not None:
        # The sign turns by the imaginary part of tr(X^-1 dX); the logarithm takes the real one.
        turn = imaginary(xp, g_sign * xp.conj(out[0]))
        both = turn if g_log is None else g_log + turn
    if both is None:
        return xp.zeros_like(x)
    return _as_matrix(xp, both) * inverse


def _slogdet_forward(xp: Any, t: Any, x: Any, out: Any) -> Any:
    inverse = xp.inverse_or_infinite(x, out[0])
    moved = xp.sum(xp.matrix_transpose(inverse) * t, axis=(-2, -1))
    if not complex_dtype(xp, x):
        return xp.zeros_like(moved), moved
    return imaginary(xp, moved) * out[0], xp.real(moved)


@operation(
    "linalg.slogdet",
    x=_slogdet_rule,
    dtypes="floating",
    jvps={"x": _slogdet_forward},
    several=True,
    batch=as_it_is,
    flat=True,
)
def slogdet(x: Any, /) -> SlogdetResult:
    r"""Sign and logarithm of the absolute value of determinants.

    The cotangent :math:`\bar l` of the logarithm gives :math:`\bar X = \bar l X^{-H}`, and that of
    the sign of a complex ``x`` :math:`-i \operatorname{Im}(\bar s^* s) X^{-H}`. There is no
    derivative at singular matrices: it is infinite or nan. Raises `ValueError` if the matrices are
    not square. The results are :math:`\det X / |\det X|`, or 0, and :math:`\ln |\det X|`, or -inf,
    which is real. Array API standard.

    Examples
    --------
    >>> sign, logabsdet = wg.linalg.slogdet(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> sign, logabsdet  # of the determinant -2
    (tensor(-1.), tensor(0.6931))
    """
    matrices("slogdet", x, square=True)
    return SlogdetResult(*slogdet.run(x))
