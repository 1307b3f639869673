"""Statistical functions: the standard's chapter of that name, with their derivatives."""

import builtins
import math
from functools import partial
from typing import Any, cast

from wengert.backends import DType, add_composite, dtype_of
from wengert.interpreters.batching import over_axes
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import all_axes, as_axes, operand, raw_dtype, shape_of
from wengert.ops.cumulative import cumulative_prod, cumulative_sum, preceding_products
from wengert.ops.define import operation
from wengert.ops.euclidean import length
from wengert.ops.shares import by_float32, divide, total, wide
from wengert.tape.promotion import SCALARS
from wengert.tape.tensor import Tensor

__all__ = ["cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var"]

Shape = tuple[int, ...]
Axes = tuple[int, ...] | None


# -- steps of the rules ------------------------------------------------------------------------


def _keep_axes(xp: Any, g: Any, x_shape: Shape, axis: Axes, keepdims: bool) -> Any:
    """A reduction's result or cotangent, in a shape that broadcasts against the input."""
    if keepdims or axis is None:
        return g
    return xp.reshape(g, tuple([1 if i in axis else n for i, n in enumerate(x_shape)]))


def _spread(xp: Any, g: Any, x_shape: Shape, axis: Axes, keepdims: bool) -> Any:
    """A reduction's cotangent, repeated over what was reduced."""
    return xp.broadcast_to(_keep_axes(xp, g, x_shape, axis, keepdims), x_shape)


def _count(x_shape: Shape, axis: Axes) -> int:
    """The number of elements that one element of the result is made from."""
    return math.prod(x_shape if axis is None else [x_shape[i] for i in axis])


# -- sums and means ------------------------------------------------------------------------------


def _mean_rule(xp: Any, g: Any, x_shape: Shape, axis: Axes, keepdims: bool) -> Any:
    n = _count(x_shape, axis) or 1
    g = wide(xp, g) if xp.records else g  # its derivative sums, and then divides
    return _spread(xp, divide(xp, g, n), x_shape, axis, keepdims)


@operation(
    x=_spread, linear="together", batch=over_axes(dtype=None, keepdims=False), dtypes="numeric"
)
def sum(
    x: Any,
    /,
    axis: int | tuple[int, ...] | None = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
) -> Tensor:
    r"""Sum of elements, :math:`\sum_i x_i`; 0 for none.

    Each element's cotangent is that of the sum it is part of. Smaller integers become the default
    integer. Raises `ValueError` if an axis is out of bounds or comes twice. Array API standard.

    Examples
    --------
    >>> wg.sum(wg.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    >>> wg.grad(wg.sum)(wg.ones(3))
    tensor([1., 1., 1.])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "sum")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return sum.run(x, axis=axes, dtype=dtype, keepdims=keepdims)


@operation(x=_mean_rule, linear="together", batch=over_axes(keepdims=False), dtypes="floating")
def mean(x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    r"""Arithmetic mean, :math:`\frac 1 n \sum_i x_i`; NaN for no elements.

    Each element's cotangent is the mean's, divided by ``n``. Raises `ValueError` if an axis is out
    of bounds or comes twice. Array API standard.

    Examples
    --------
    >>> wg.mean(wg.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    tensor([1.5000, 3.5000])
    >>> wg.grad(wg.mean)(wg.ones(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "mean")
    _inexact(x, "mean")
    return mean.run(x, axis=axes, keepdims=keepdims)


def _inexact(x: Any, function: str) -> DType:
    shape_of(x)
    held = dtype_of(x._array.dtype if isinstance(x, Tensor) else x.dtype)
    if not held.inexact:
        raise TypeError(
            f"{function} takes floating or complex arrays, not {held.name}; convert with "
            "wg.astype(x, wg.float32) first"
        )
    return held


# -- spread --------------------------------------------------------------------------------------


def _deviation(xp: Any, x: Any, axis: Axes) -> Any:
    return x - xp.mean(x, axis=axis, keepdims=True)


def _scale(x_shape: Shape, axis: Axes, correction: float) -> float:
    """One over the degrees of freedom; infinite where there are none, as in PyTorch."""
    n = _count(x_shape, axis)
    # Of no elements the mean is nan, whatever it is multiplied by.
    freedom = builtins.max(n - correction, 0) if n else n - correction
    return 1 / freedom if freedom else math.inf


def _var_rule(
    xp: Any, g: Any, x: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> Any:
    scaled = _deviation(xp, x, axis) * (2 * _scale(x_shape, axis, correction))
    return _keep_axes(xp, g, x_shape, axis, keepdims) * scaled


def _deviations(xp: Any, x: Any, norm: Any, *, axis: Axes) -> tuple[Any, Any]:
    """Deviations from the mean, and their norm, which is 0 where all of them are."""
    centred = _deviation(xp, x, axis)
    # Subtracted twice, since a mean is rounded.
    rest = xp.mean(centred, axis=axis, keepdims=True)
    if math.isnan(_count(x.shape, axis)):  # dask, where no first element is known
        some = xp.any(centred != rest, axis=axis, keepdims=True) | xp.isnan(norm)
    else:
        axes = all_axes(axis, len(x.shape))
        first = tuple([slice(0, 1) if i in axes else slice(None) for i in range(len(x.shape))])
        some = xp.any(x != xp.getitem(x, key=first), axis=axis, keepdims=True) | xp.isnan(norm)
        rest = xp.where(some, rest, xp.getitem(centred, key=first))
    return centred - rest, xp.where(some, norm, 0)


add_composite("deviations", _deviations)
vars(differentiable)["deviations"] = partial(_deviations, differentiable)


def _spread_out(
    xp: Any, x: Any, out: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> tuple[Any, Any]:
    """Deviations from the mean, and the divisor that makes them the slope."""
    norm = _keep_axes(xp, out, x_shape, axis, keepdims) / _scale(x_shape, axis, correction)
    return xp.deviations(x, norm, axis=axis)  # type: ignore[no-any-return]


def _std_rule(
    xp: Any, g: Any, x: Any, out: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> Any:
    centred, norm = _spread_out(xp, x, out, x_shape, axis, correction, keepdims)
    found = xp.direction(_keep_axes(xp, g, x_shape, axis, keepdims), centred, norm)
    if not xp.records and xp.backend:  # nothing differentiates this
        return found
    # Only what moves equal elements apart meets the missing derivative.
    flat = _deviation(xp, _deviation(xp, found, axis), axis)
    return xp.where(norm == 0, flat, found)


def _var_tangent(
    xp: Any, t: Any, x: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> Any:
    products = t * xp.conj(_deviation(xp, x, axis))
    scale = 2 * _scale(x_shape, axis, correction)
    return xp.sum(products, axis=axis, keepdims=keepdims) * scale


def _std_tangent(
    xp: Any, t: Any, x: Any, out: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> Any:
    spread = _spread_out(xp, x, out, x_shape, axis, correction, keepdims)
    return xp.sum(xp.direction(xp.conj(t), *spread), axis=axis, keepdims=keepdims)


def _std_composite(
    xp: Any, x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Any:
    axes = all_axes(axis, len(x.shape))
    norm = length(xp, _deviation(xp, x, axis), axis=axes, keepdims=keepdims)
    if math.isnan(_count(x.shape, axis)):  # dask counts when it computes
        n = xp.sum(xp.ones_like(xp.abs(x)), axis=axes, keepdims=keepdims)
        freedom = n - correction
        return norm / xp.sqrt(xp.where(freedom < 0, 0, freedom))
    return norm * _scale(x.shape, axis, correction) ** 0.5


def _correct(function: Any, x: Any, axis: Axes, correction: Any, keepdims: bool) -> Tensor:
    """A spread of half precision, or with a correction that may be a Tensor, differentiated."""
    name = function.__name__
    if dtype_of(x.dtype).narrow:  # its squares overflow and vanish
        return by_float32(function, x, axis, correction=correction, keepdims=keepdims)  # type: ignore[no-any-return]
    plain: Tensor = function.run(x, axis=axis, correction=0.0, keepdims=keepdims)
    correction = operand(correction, plain, name, "correction")
    if isinstance(correction, Tensor):
        ratio = _freedom_ratio(name, _count(x.shape, axis), correction)
        return cast(Tensor, differentiable.astype(plain * ratio, plain.dtype, copy=False))
    return function.run(x, axis=axis, correction=correction, keepdims=keepdims)  # type: ignore[no-any-return]


def _freedom_ratio(function: str, n: int, correction: Tensor) -> Tensor:
    """The factor of a spread without correction; infinite without degrees of freedom."""
    if correction.ndim:
        raise TypeError(
            f"{function} takes one number as correction, and was given a Tensor of shape "
            f"{tuple(correction.shape)}"
        )
    xp = differentiable
    freedom = n - wide(xp, correction)
    some = freedom > 0
    ratio = xp.divide(n, xp.where(some, freedom, 1))
    ratio = xp.sqrt(ratio) if function == "std" else ratio
    return cast(Tensor, xp.where(some, ratio, math.inf))


@operation(
    x=_var_rule,
    jvps={"x": _var_tangent},
    batch=over_axes(correction=0.0, keepdims=False),
    dtypes="floating",
)
def var(
    x: Any,
    /,
    axis: int | tuple[int, ...] | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    r"""Variance, :math:`\frac 1 {n - c} \sum_i |x_i - \bar x|^2`.

    Derivative :math:`\frac 2 {n - c} (x_i - \bar x)`. Some libraries have no variance of complex
    numbers. The result is of the shape of ``x`` without the reduced axes, and the real dtype of its
    precision. Raises `ValueError` if an axis is out of bounds or comes twice. The correction
    :math:`c` is 1 for an unbiased estimate from a sample; it may be a Tensor without axes, and is
    then differentiated. Array API standard.

    Examples
    --------
    >>> wg.var(wg.asarray([1.0, 2.0, 3.0]))
    tensor(0.6667)
    >>> wg.grad(wg.var)(wg.asarray([1.0, 2.0, 3.0]))
    tensor([-0.6667,  0.0000,  0.6667])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "var")
    if _inexact(x, "var").narrow or type(correction) not in SCALARS:
        return _correct(var, x, axes, correction, keepdims)
    return var.run(x, axis=axes, correction=correction, keepdims=keepdims)


@operation(
    x=_std_rule,
    jvps={"x": _std_tangent},
    composite=_std_composite,
    batch=over_axes(correction=0.0, keepdims=False),
    dtypes="floating",
)
def std(
    x: Any,
    /,
    axis: int | tuple[int, ...] | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    r"""Standard deviation, the square root of the variance.

    Derivative :math:`\frac {x_i - \bar x} {(n - c) s}` with the deviation :math:`s`, taken as 0
    where :math:`s = 0`, as PyTorch does. The result is of the shape of ``x`` without the reduced
    axes, and the real dtype of its precision. Raises `ValueError` if an axis is out of bounds or
    comes twice. The correction is that of `var`. Array API standard.

    Examples
    --------
    >>> wg.std(wg.asarray([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    >>> wg.grad(wg.std)(wg.asarray([2.0, 2.0]))  # 0 where the deviation is 0
    tensor([0., 0.])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "std")
    if _inexact(x, "std").narrow or type(correction) not in SCALARS:
        return _correct(std, x, axes, correction, keepdims)
    return std.run(x, axis=axes, correction=correction, keepdims=keepdims)


# -- extremes ------------------------------------------------------------------------------------


def _extreme(beaten: str) -> dict[str, Any]:
    """Share the cotangent evenly among the elements that no other one beats: the row's facts."""

    def choice(xp: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
        # NaN beats all without being equal to them: all get its derivative, which is NaN.
        return ~getattr(xp, beaten)(x, _keep_axes(xp, out, x.shape, axis, keepdims))

    def share(xp: Any, whole: Any, out: Any, which: Any, axis: Axes, keepdims: bool) -> Any:
        number = xp.count_nonzero(which, axis=axis, keepdims=keepdims)
        return xp.where(xp.isnan(out), math.nan, divide(xp, whole, number, out.dtype))

    def rule(xp: Any, g: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
        g, out = (wide(xp, g), wide(xp, out)) if xp.records else (g, out)  # as for the mean
        which = choice(xp, x, out, axis, keepdims)
        each = share(xp, g, out, which, axis, keepdims)
        return xp.where(which, _keep_axes(xp, each, x.shape, axis, keepdims), 0)

    def tangent(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
        which = choice(xp, x, out, axis, keepdims)
        whole = total(xp, xp.where(which, t, 0), axis, keepdims)
        return share(xp, whole, out, which, axis, keepdims)

    return {
        "x": rule,
        "dtypes": "real numeric",
        "jvps": {"x": tangent},
        "batch": over_axes(keepdims=False),
    }


@operation(**_extreme("less"))
def max(x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    """Largest element; NaN if one is NaN.

    The cotangent goes to the largest element, and in equal shares to all of them where several are
    equal, as PyTorch's ``amax`` does. Raises `ValueError` if there is no element, an axis is out of
    bounds or comes twice. Array API standard.

    Examples
    --------
    >>> wg.max(wg.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    tensor([3., 4.])
    >>> wg.grad(wg.max)(wg.asarray([1.0, 2.0, 2.0]))  # a tie shares
    tensor([0.0000, 0.5000, 0.5000])
    """
    axes = _extreme_axes(x, axis, "max")
    return max.run(x, axis=axes, keepdims=keepdims)


@operation(**_extreme("greater"))
def min(x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    """Smallest element; NaN if one is NaN.

    The cotangent goes to the smallest element, and in equal shares to all of them where several are
    equal, as PyTorch's ``amin`` does. Raises `ValueError` if there is no element, an axis is out of
    bounds or comes twice. Array API standard.

    Examples
    --------
    >>> wg.min(wg.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    tensor([1., 2.])
    """
    axes = _extreme_axes(x, axis, "min")
    return min.run(x, axis=axes, keepdims=keepdims)


def _extreme_axes(x: Any, axis: Any, function: str) -> Axes:
    shape = shape_of(x)
    axes = None if axis is None else as_axes(axis, len(shape), function)
    if 0 in shape and not _count(shape, axes):
        raise ValueError(f"{function} of no elements: the array has shape {tuple(shape)}")
    return axes


# -- products ------------------------------------------------------------------------------------

# No rule here divides by an element, so all are right at zeros, and so are their derivatives.


def _others(xp: Any, x: Any, axis: Axes) -> Any:
    """Products of all other elements of each reduction."""
    x_shape = x.shape
    ndim = len(x_shape)
    reduced = all_axes(axis, ndim)
    order = tuple([i for i in range(ndim) if i not in reduced]) + reduced
    # One last axis holds all the factors of a product.
    shape = tuple([x_shape[i] for i in order])
    rest = ndim - len(reduced)
    factors = xp.reshape(xp.permute_dims(x, order), (*shape[:rest], math.prod(shape[rest:])))
    after = xp.flip(preceding_products(xp, xp.flip(factors, axis=(rest,)), rest), axis=(rest,))
    others = xp.reshape(preceding_products(xp, factors, rest) * after, shape)
    return xp.permute_dims(others, tuple([order.index(i) for i in range(ndim)]))


def _prod_rule(xp: Any, g: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    others = _others(xp, xp.conj(xp.astype(x, g.dtype)), axis)
    return _keep_axes(xp, g, x.shape, axis, keepdims) * others


def _prod_tangent(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    moved = t * _others(xp, xp.astype(x, out.dtype), axis)
    return xp.sum(moved, axis=axis, keepdims=keepdims)


@operation(
    x=_prod_rule,
    jvps={"x": _prod_tangent},
    batch=over_axes(dtype=None, keepdims=False),
    dtypes="numeric",
)
def prod(
    x: Any,
    /,
    axis: int | tuple[int, ...] | None = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
) -> Tensor:
    r"""Product of elements, :math:`\prod_i x_i`; 1 for none.

    The derivative with respect to an element is the product of the others: it is right at zeros,
    however many there are. Smaller integers become the default integer. Raises `ValueError` if an
    axis is out of bounds or comes twice. Array API standard.

    Examples
    --------
    >>> wg.prod(wg.asarray([2.0, 3.0, 4.0]))
    tensor(24.)
    >>> wg.grad(wg.prod)(wg.asarray([0.0, 3.0, 4.0]))  # the product of the others
    tensor([12.,  0.,  0.])
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "prod")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return prod.run(x, axis=axes, dtype=dtype, keepdims=keepdims)
