"""Norms of vectors and matrices, and the rank."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from wengert.backends import dtype_of
from wengert.interpreters.batching import over_axes
from wengert.interpreters.namespaces import differentiable
from wengert.ops import elementwise, statistical
from wengert.ops.axes import as_axes, kept, number, operand, raw_array
from wengert.ops.data_type import astype
from wengert.ops.elementwise import (
    add,
    equal,
    greater,
    isfinite,
    isnan,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    not_equal,
    sign,
)
from wengert.ops.euclidean import length
from wengert.ops.limits import finfo
from wengert.ops.linalg.common import inexact, matrices
from wengert.ops.linalg.singular_values import svdvals
from wengert.ops.manipulation import expand_dims, squeeze
from wengert.ops.searching import count_nonzero, where
from wengert.ops.shares import by_float32
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked, wrapped

__all__ = ["matrix_norm", "matrix_rank", "vector_norm"]


# -- of vectors ----------------------------------------------------------------------------------


def _norm_rule(xp: Any, g: Any, x: Any, out: Any, axis: tuple[int, ...]) -> Any:
    shape = kept(x.shape, axis)
    return xp.direction(xp.reshape(g, shape), x, xp.reshape(out, shape))


def _norm_tangent(xp: Any, t: Any, x: Any, out: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    along = xp.direction(xp.conj(t), x, xp.reshape(out, kept(x.shape, axis)))
    return xp.sum(xp.real(along), axis=axis, keepdims=keepdims)


#: The Euclidean norm: the others are composed.
_norm = Primitive(
    "linalg.vector_norm",
    ["x"],
    {"x": _norm_rule},
    kind="irregular",
    dtypes="floating",
    jvps={"x": _norm_tangent},
    forward=length,
    batch=over_axes(keepdims=False),
).bind


def vector_norm(
    x: Any,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    r"""Norm of vectors, :math:`(\sum_i |x_i|^p)^{1/p}`.

    The cotangent of the 2-norm is :math:`\bar y\, x / \|x\|`. Gradients are 0 at 0; for ``inf`` and
    ``-inf`` equal elements share them. The result is of the shape of ``x`` without the reduced
    axes, and the real dtype of its precision. Raises `ValueError` if an axis is out of bounds or
    comes twice. Array API standard.

    Parameters
    ----------
    ord : int, float or Tensor
        The order p: any number. ``inf`` is the largest absolute value, ``-inf`` the smallest, 0 the
        number of elements that are not 0. The norm is differentiable in a Tensor of no axes; where
        that is infinite or 0 the derivative is 0.

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
        x = wrapped(x)
        ord = operand(ord, differentiable.real(x), "vector_norm", "ord")
        if isinstance(ord, Tensor):
            return _of_order(x, ord, axes, keepdims)
        if isinstance(ord, complex):
            raise TypeError(f"vector_norm takes a real number as ord, not {ord!r}")
    if ord == 2 and axes:
        return _norm(x, axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]
    size = elementwise.abs(x)
    if ord == math.inf:
        return statistical.max(size, axis=axes, keepdims=keepdims)
    if ord == -math.inf:
        return statistical.min(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return statistical.sum(sign(size), axis=axes, keepdims=keepdims)
    if ord == 1 or not axes:
        return statistical.sum(size, axis=axes, keepdims=keepdims)
    return _power_norm(x, ord, axes, keepdims)


def _power_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Norms by their formula, of orders that are finite and not 0."""
    size = elementwise.abs(x)
    sharp = equal(size, 0)
    # Powers and roots have no finite derivative at 0 (or at an infinite sum): a double `where` puts
    # constants there.
    unit = _unit(size.detach(), ord, axes) if size.size else None
    if unit is not None:
        size = elementwise.divide(size, unit)
    zero = equal(size, 0)
    if isinstance(ord, Tensor):
        of_zero: Any = where(greater(ord, 0), 0.0, where(less_equal(ord, 0), math.inf, math.nan))
    else:
        of_zero = 0.0 if ord > 0 else math.inf
    terms = where(zero, of_zero, elementwise.pow(where(zero, 1, size), ord))
    total = statistical.sum(terms, axis=axes, keepdims=keepdims)
    regular = logical_and(greater(total, 0), isfinite(total))
    constant = ord.detach() if isinstance(ord, Tensor) else ord
    at_limit = elementwise.pow(total.detach(), 1 / constant)
    norm = where(regular, elementwise.pow(where(regular, total, 1), 1 / ord), at_limit)
    if unit is None:
        return norm
    norm = multiply(norm, unit if keepdims else squeeze(unit, axis=axes))
    # Constants have a second derivative, of 0. Here there is none, as there is none of the 2-norm.
    if isinstance(ord, Tensor) or ord > 2:
        nothing = equal(norm if keepdims else expand_dims(norm, axis=axes), 0)
        if isinstance(ord, Tensor):
            nothing = logical_or(nothing, less_equal(ord, 2))
        sharp = logical_and(sharp, nothing)
    at_zero = _norm(expand_dims(where(sharp, x, 0), axis=-1), axis=(size.ndim,), keepdims=False)
    return add(norm, statistical.sum(at_zero, axis=axes, keepdims=keepdims))


def _unit(size: Tensor, ord: Any, axes: tuple[int, ...]) -> Tensor:
    """A constant by which powers neither overflow nor vanish: the size of the leading element."""
    largest, least = (f(size, axis=axes, keepdims=True) for f in (statistical.max, statistical.min))
    if isinstance(ord, Tensor):
        leading = where(greater(ord, 0), largest, least)
    else:
        leading = largest if ord > 0 else least
    return where(logical_and(greater(leading, 0), isfinite(leading)), leading, 1)


def _of_order(x: Tensor, ord: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Norms of an order that is a Tensor, in which they are differentiable where it is finite."""
    if ord.ndim:
        raise TypeError(
            "vector_norm takes one number as ord, and was given a Tensor of shape "
            f"{tuple(ord.shape)}"
        )
    limits = {
        order: vector_norm(x, axis=axes, keepdims=keepdims, ord=order)
        for order in (0, math.inf, -math.inf)
    }
    usual = logical_and(isfinite(ord), not_equal(ord, 0))
    norm = _power_norm(x, where(usual, ord, 1), axes, keepdims)
    for order, limit in limits.items():
        norm = where(equal(ord, order), limit, norm)
    return where(isnan(ord), math.nan, norm)


# -- of matrices ---------------------------------------------------------------------------------


def matrix_norm(
    x: Any,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
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
    than two axes. Array API standard.

    Parameters
    ----------
    rtol : float or array, optional
        Singular values up to ``rtol`` times the largest count as 0; an array gives one for each
        matrix. By default ``max(M, N)`` times the dtype's ``eps``.

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
