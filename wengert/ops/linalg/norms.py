"""Norms of vectors and matrices, and the rank."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from wengert.backends import dtype_of
from wengert.interpreters.batching import over_axes
from wengert.ops import elementwise, statistical
from wengert.ops.axes import as_axes, keep_axes, number, raw_array
from wengert.ops.data_type import astype
from wengert.ops.define import operation
from wengert.ops.domain import NOT_ZERO, POSITIVE
from wengert.ops.elementwise import greater, multiply, sign
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.euclidean import length, without_slope
from wengert.ops.limits import finfo
from wengert.ops.linalg.common import inexact, matrices
from wengert.ops.linalg.singular_values import svdvals
from wengert.ops.manipulation import expand_dims
from wengert.ops.searching import count_nonzero
from wengert.ops.shares import by_float32
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked

__all__ = ["matrix_norm", "matrix_rank", "vector_norm"]


# -- of vectors ----------------------------------------------------------------------------------


def _norm_rule(xp: Any, g: Any, x: Any, out: Any, axis: tuple[int, ...]) -> Any:
    shape = keep_axes(x.shape, axis)
    return xp.direction(xp.reshape(g, shape), x, xp.reshape(out, shape))


def _norm_tangent(xp: Any, t: Any, x: Any, out: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    along = xp.direction(xp.conj(t), x, xp.reshape(out, keep_axes(x.shape, axis)))
    return xp.sum(xp.real(along), axis=axis, keepdims=keepdims)


def _quotient_power(xp: Any, x: Any, unit: Any, *, ord: float) -> Any:
    ratio = x / unit
    # The power may be in range where the quotient is not: then it is the square of the root's.
    tiny = float(xp.finfo(ratio.dtype).smallest_normal)
    lost = (ratio < tiny) | xp.isinf(ratio)
    root = xp.sqrt(x) / xp.sqrt(unit)
    powers = xp.pow_scalar(xp.where(lost, root, ratio), exponent=ord)
    return xp.where(lost, xp.square(powers), powers)


# (x / unit)**ord of numbers that are not negative
Primitive(
    "quotient_power",
    ("x", "unit"),
    {
        "x": lambda xp, g, x, unit, ord: g * (xp.quotient_power(x, unit, ord=ord - 1) * ord / unit),
        "unit": lambda xp, g, unit, ord, out: g * (out * -ord / unit),
    },
    elementwise=True,
    dtypes="real floating",
    domain={"x": POSITIVE, "unit": POSITIVE},
    composite=_quotient_power,
)


def _leading(xp: Any, size: Any, ord: float, axis: tuple[int, ...]) -> Any:
    """The largest term of the sum of powers: of the largest element, or of the least."""
    return (xp.max if ord > 0 else xp.min)(size, axis=axis, keepdims=True)


def _power_norm(xp: Any, x: Any, *, ord: float, axis: tuple[int, ...], keepdims: bool) -> Any:
    size = xp.abs(x)
    unit = None if 0 in x.shape else _leading(xp, size, ord, axis)
    if unit is not None:
        unit = xp.where((unit > 0) & xp.isfinite(unit), unit, 1)
    by = xp.ones_like(size) if unit is None else unit
    if ord < 0:
        zero = size == 0
        terms = xp.quotient_power(xp.where(zero, by, size), by, ord=ord)
        terms = xp.where(zero, math.inf, terms)
    else:
        terms = xp.quotient_power(size, by, ord=ord)
    norm = xp.pow_scalar(xp.sum(terms, axis=axis, keepdims=True), exponent=1 / ord)
    norm = norm if unit is None else norm * unit
    return norm if keepdims else xp.squeeze(norm, axis=axis)


def _weights(xp: Any, size: Any, norm: Any, ord: float, axis: tuple[int, ...], sharp: Any) -> Any:
    """``(size / norm)**(p - 1)``, and 1 where it is sharp."""
    unit = _leading(xp, size, ord, axis)
    unit = xp.where(unit > 0, unit, norm)
    # A single leading element's own share depends on the others alone, by the sum of their
    # powers. The difference of its power and 1 would lose that.
    first = size == unit
    fixed = xp.count_nonzero(first, axis=axis, keepdims=True) == 1
    fixed = sharp | (first & fixed)
    size = xp.where(fixed, unit, size)
    terms = xp.quotient_power(size, unit, ord=ord)
    terms = xp.where(sharp, 0, xp.where(fixed, 1, terms))
    total = xp.sum(terms, axis=axis, keepdims=True)
    total = xp.where(total == 0, 1, total)
    weights = xp.where(fixed, 1, xp.quotient_power(size, unit, ord=ord - 1))
    return weights * xp.pow_scalar(total, exponent=(1 - ord) / ord)


def _power_slope(xp: Any, g: Any, x: Any, out: Any, ord: float, axis: tuple[int, ...]) -> Any:
    """``g (|x| / norm)**(p - 1)`` in the direction of x, which is in range where the norm is."""
    shape = keep_axes(x.shape, axis)
    g, norm, size = xp.reshape(g, shape), xp.reshape(out, shape), xp.abs(x)
    at, nothing = size == 0, norm == 0
    # There the weight has no slope, and below an order of 1 would not be finite.
    sharp = at if ord < 2 else at & nothing
    norm = xp.where(nothing, 1, norm)
    if 0 in x.shape:
        return g * x
    scale = g * _weights(xp, size, norm, ord, axis, sharp)
    if ord < 0:  # of a norm of 0 others are no part
        scale = xp.where(nothing & ~at, 0, scale)
    found = xp.direction(scale, x, size) if is_complex(x) else scale * xp.sign(x)
    return without_slope(xp, found, lambda: (sharp, x))


def _power_tangent(
    xp: Any, t: Any, x: Any, out: Any, ord: float, axis: tuple[int, ...], keepdims: bool
) -> Any:
    one = xp.ones_like(out)
    along = xp.conj(t) * _power_slope(xp, one, x, out, ord, axis)
    return xp.sum(xp.real(along), axis=axis, keepdims=keepdims)


#: Norms of orders that are finite and not 0.
_of_finite_order = Primitive(
    "power_norm",
    ("x",),
    {"x": _power_slope},
    dtypes="floating",
    jvps={"x": _power_tangent},
    domain=NOT_ZERO,
    composite=_power_norm,
    batch=over_axes(),
).bind


#: The Euclidean norm: the others are composed.
@operation(
    "linalg.vector_norm",
    x=_norm_rule,
    dtypes="floating",
    jvps={"x": _norm_tangent},
    composite=lambda xp, x, /, *, axis, keepdims=False: length(xp, x, axis=axis, keepdims=keepdims),
    batch=over_axes(keepdims=False),
)
def vector_norm(
    x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    r"""Norm of vectors, :math:`(\sum_i |x_i|^p)^{1/p}`.

    The cotangent of the 2-norm is :math:`\bar y\, x / \|x\|`. Gradients are 0 at 0; for ``inf`` and
    ``-inf`` equal elements share them. The result is of the shape of ``x`` without the reduced
    axes, and the real dtype of its precision. Raises `ValueError` if an axis is out of bounds or
    comes twice. The order p is any number: ``inf`` gives the largest absolute value, ``-inf`` the
    smallest, 0 the number of elements that are not 0. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([3.0, -4.0])
    >>> wg.linalg.vector_norm(x)
    tensor(5.)
    >>> wg.linalg.vector_norm(x, ord=1)
    tensor(7.)
    >>> wg.grad(wg.linalg.vector_norm)(x)
    tensor([ 0.6000, -0.8000])
    """
    shape = inexact("vector_norm", x)
    if dtype_of(x.dtype).narrow:  # its squares overflow and vanish
        return by_float32(vector_norm, x, axis=axis, keepdims=keepdims, ord=ord)  # type: ignore[no-any-return]
    axes = tuple(range(len(shape))) if axis is None else as_axes(axis, len(shape))
    if not isinstance(ord, int | float):
        ord = number(ord, "vector_norm", "ord")
        if isinstance(ord, complex):
            raise TypeError(f"vector_norm takes a real number as ord, not {ord!r}")
        ord = float(ord)
    if ord == 2 and axes:
        return vector_norm.run(x, axis=axes, keepdims=keepdims)
    size = elementwise.abs(x)
    if ord == math.inf:
        return statistical.max(size, axis=axes, keepdims=keepdims)
    if ord == -math.inf:
        return statistical.min(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return statistical.sum(sign(size), axis=axes, keepdims=keepdims)
    if ord == 1 or not axes:
        return statistical.sum(size, axis=axes, keepdims=keepdims)
    return _of_finite_order(x, ord=ord, axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]


# -- of matrices ---------------------------------------------------------------------------------


def matrix_norm(
    x: Any, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Tensor:
    """Norm of a matrix, or of each matrix of a stack.

    Where several sums or singular values are the largest or smallest, they share the cotangent. The
    result is of the batch's shape, real. Raises `ValueError` if ``x`` has fewer than two axes, or
    there is no such norm. Array API standard.

    Parameters
    ----------
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        ``"fro"`` (or None): Frobenius; ``"nuc"``: the sum of the singular values; 2 and -2: the
        largest and the smallest of them; 1 and -1: the largest and the smallest sum of a column's
        absolute values; inf and -inf: of a row's.

    Examples
    --------
    >>> x = wg.asarray([[1.0, 2.0], [2.0, 4.0]])
    >>> wg.linalg.matrix_norm(x)  # the root of the sum of squares
    tensor(5.)
    >>> wg.round(wg.linalg.matrix_norm(x, ord="nuc"))  # the sum of singular values
    tensor(5.)
    """
    ndim = len(matrices("matrix_norm", x))
    ord = number(ord, "matrix_norm", "ord") if hasattr(ord, "dtype") else ord
    if ord is None or ord == "fro":
        return vector_norm(x, axis=(ndim - 2, ndim - 1), keepdims=keepdims)
    found: Tensor
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        name = {"nuc": "sum", 2: "max", -2: "min"}[ord]
        found = getattr(statistical, name)(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        column = ord in (1, -1)
        sums = statistical.sum(elementwise.abs(x), axis=ndim - 2 if column else ndim - 1)
        found = (statistical.max if ord > 0 else statistical.min)(sums, axis=-1)
    else:
        raise ValueError(
            f"matrix_norm has the orders 'fro', 'nuc', 1, -1, 2, -2, inf and -inf, not {ord!r}"
        )
    return expand_dims(expand_dims(found, axis=-1), axis=-1) if keepdims else found


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Number of singular values of each matrix that are not negligible.

    The result is of the batch's shape and an integer dtype. Raises `ValueError` if ``x`` has fewer
    than two axes. Singular values below ``rtol`` times the largest count as 0: ``max(M, N)`` times
    the dtype's ``eps`` by default; an array has one for each matrix. Array API standard.

    Examples
    --------
    >>> wg.linalg.matrix_rank(wg.asarray([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    m, n = matrices("matrix_rank", x)[-2:]
    values = svdvals(untracked(raw_array(x)))
    if not m or not n:
        return count_nonzero(values, axis=-1)
    if rtol is None:
        rtol = max(m, n) * finfo(x.dtype).eps
    elif not isinstance(rtol, int | float):
        rtol = expand_dims(astype(untracked(raw_array(rtol)), values.dtype), axis=-1)
    return count_nonzero(
        greater(values, multiply(statistical.max(values, axis=-1, keepdims=True), rtol)), axis=-1
    )
