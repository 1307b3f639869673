"""Determinants, with derivatives of any order also at singular matrices."""

import math
from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

from wengert.backends import add_composite
from wengert.interpreters.batching import as_it_is, elementwise
from wengert.interpreters.namespaces import differentiable
from wengert.ops.define import operation
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.euclidean import nan_where, without_slope
from wengert.ops.linalg.common import (
    adjoint,
    diagonal_matrix,
    imaginary,
    matrices,
    product,
    spread_nan,
)
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["SlogdetResult", "det", "slogdet"]


def _as_matrix(xp: Any, x: Any) -> Any:
    """Numbers as 1 x 1 matrices."""
    return xp.expand_dims(xp.expand_dims(x, axis=len(x.shape)), axis=len(x.shape))


# The k-th derivative of det(A) is linear in each of its k directions and symmetric, and depends on
# the others and A alone. Without the last direction it is a matrix: the cofactors of A, and their
# derivatives along k - 1 directions. So one primitive is its own derivative. With A = U S V^H and
# the directions T turned into U^H T V, it is a sum over sets of k indices: the product of all other
# singular values times a determinant of rows of the directions. Nothing is divided, so that
# any rank will do. The rest is scales: A, the directions and the products are powers of two times
# what is near 1, and the exponents are added.


def _near_one(xp: Any, x: Any) -> tuple[Any, Any]:
    """Matrices without a power of two, and its exponent: that of the largest element."""
    size = xp.max(xp.abs(x), axis=(-2, -1), keepdims=True)
    least = 2 * float(xp.finfo(size.dtype).smallest_normal)
    exponent = xp.floor(xp.log2(xp.maximum(size, least))) - 1
    return x * xp.pow(2.0, -exponent), exponent


def _on_axes(xp: Any, x: Any, axes: Sequence[int], count: int) -> Any:
    """The last axes of an array as certain ones of ``count`` axes."""
    lead = x.shape[: len(x.shape) - len(axes)]
    return xp.reshape(x, (*lead, *(x.shape[-1] if i in axes else 1 for i in range(count))))


def _other_products(xp: Any, s: Any, count: int) -> tuple[Any, Any]:
    """Products of all values but ``count`` at each place, over a power of two; its exponent."""
    zero = s == 0
    logarithm = xp.log2(xp.where(zero, 1, s))
    zeros = xp.astype(zero, s.dtype)
    at = xp.arange(s.shape[-1], device=xp.device(s))
    each = range(count)
    exponent, left = (
        sum(
            (-_on_axes(xp, v, [i], count) for i in each),
            _on_axes(xp, xp.sum(v, axis=-1), [], count),
        )
        for v in (logarithm, zeros)
    )
    there = left == 0
    for i, j in combinations(each, 2):
        there = there & (_on_axes(xp, at, [i], count) != _on_axes(xp, at, [j], count))
    exponent = xp.where(there, exponent, -math.inf)
    top = xp.floor(xp.max(exponent, axis=tuple(range(-count, 0)), keepdims=True))
    top = xp.where(xp.isfinite(top), top, 0)
    return xp.pow(2.0, exponent - top), top


def _cofactors(xp: Any, x: Any, *along: Any) -> Any:
    n, count = x.shape[-1], len(along) + 1
    if count > n:  # the determinant is of degree n
        return sum(map(xp.zeros_like, along), xp.zeros_like(x))
    finite = xp.isfinite(x)  # some libraries raise at nan
    near, exponent = _near_one(xp, xp.where(finite, x, 0))
    u, s, vh = xp.linalg.svd(near, full_matrices=False)
    weight, top = _other_products(xp, s, count)
    weight = xp.astype(weight, x.dtype)
    exponent = exponent * (n - count) + xp.reshape(top, (*s.shape[:-1], 1, 1))
    turned = []
    for t in along:
        near, more = _near_one(xp, t)
        exponent = exponent + more
        turned.append(product(xp, adjoint(xp, u), near, adjoint(xp, vh)))
    last, found = count - 1, 0
    for places in permutations(range(count)):
        term = weight * (-1) ** sum(i > j for i, j in combinations(places, 2))
        for i, t in enumerate(turned):
            j = places[i]
            if i == j:
                term = term * _on_axes(xp, xp.linalg.diagonal(t), [i], count)
            else:
                t = t if i < j else xp.matrix_transpose(t)
                term = term * _on_axes(xp, t, [i, j], count)
        over = tuple([i - count for i in range(count) if i not in (last, places[last])])
        term = xp.sum(term, axis=over) if over else term
        moved = places[last] != last
        found = found + (xp.matrix_transpose(term) if moved else diagonal_matrix(xp, term))
    found = product(xp, xp.conj(u), found, xp.conj(vh))
    found = found * _as_matrix(xp, xp.linalg.det(xp.matmul(u, vh)))
    half = xp.floor(exponent * 0.5)  # since the whole power may be out of range
    found = found * xp.pow(2.0, half) * xp.pow(2.0, exponent - half)
    return nan_where(xp, ~xp.all(finite, axis=(-2, -1), keepdims=True), found)


def _others(along: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return along[:index] + along[index + 1 :]


Primitive(
    "cofactors",
    ("x", "*along"),
    {
        "x": lambda xp, g, x, along: xp.conj(xp.cofactors(x, xp.conj(g), *along)),
        "along": lambda xp, g, x, along, index: xp.conj(
            xp.cofactors(x, xp.conj(g), *_others(along, index))
        ),
    },
    composite=_cofactors,
    jvps={
        "x": lambda xp, t, x, along: xp.cofactors(x, t, *along),
        "along": lambda xp, t, x, along, index: xp.cofactors(x, t, *_others(along, index)),
    },
    batch=elementwise,
)


@operation(
    "linalg.det",
    x=lambda xp, g, x: _as_matrix(xp, g) * xp.conj(xp.cofactors(x)),
    dtypes="floating",
    jvps={"x": lambda xp, t, x: xp.sum(t * xp.cofactors(x), axis=(-2, -1))},
    batch=as_it_is,
)
def det(x: Any, /) -> Tensor:
    r"""Determinant of a matrix, or of each matrix of a stack.

    The cotangent is :math:`\bar y` times the conjugate cofactors,
    :math:`\overline{\det X}\, X^{-H}` where ``x`` is invertible. It is right at singular matrices
    as well, and so are derivatives of any order. Raises `ValueError` if the matrices are not
    square. Array API standard.

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
    found = xp.where(singular, math.inf, xp.linalg.inv(xp.where(singular, eye, x)))
    # Each element of an inverse depends on all.
    whole: Any = lambda: xp.sum(xp.sharp(x), axis=(-2, -1), keepdims=True) + xp.zeros_like(x)
    return without_slope(xp, found, lambda: (singular, whole()))


add_composite("inverse_or_infinite", _inverse)
# Of Tensors one may be an array, or a scalar of NumPy's.
vars(differentiable)["inverse_or_infinite"] = lambda x, sign: _inverse(
    differentiable, *map(differentiable.asarray, (x, sign))
)


def _slogdet_rule(xp: Any, g: Any, x: Any, out: Any) -> Any:
    g_sign, g_log = g
    inverse = adjoint(xp, xp.inverse_or_infinite(x, out[0]))
    both = g_log
    if is_complex(x) and g_sign is not None:
        # The sign turns by the imaginary part of tr(X^-1 dX); the logarithm takes the real one.
        turn = imaginary(xp, g_sign * xp.conj(out[0]))
        both = turn if g_log is None else g_log + turn
    if both is None:
        return xp.zeros_like(x)
    return _as_matrix(xp, spread_nan(xp, both, out[1])) * inverse


def _slogdet_tangent(xp: Any, t: Any, x: Any, out: Any) -> Any:
    inverse = xp.inverse_or_infinite(x, out[0])
    moved = spread_nan(xp, xp.sum(xp.matrix_transpose(inverse) * t, axis=(-2, -1)), out[1])
    if not is_complex(x):
        return xp.zeros_like(moved), moved
    return imaginary(xp, moved) * out[0], xp.real(moved)


@operation(
    "linalg.slogdet",
    x=_slogdet_rule,
    dtypes="floating",
    jvps={"x": _slogdet_tangent},
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
