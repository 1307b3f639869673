"""Statistical functions: the standard's chapter of that name, with their derivatives."""

import math
from typing import Any

from wengert.backends import dtype_of
from wengert.ops.axes import all_axes, as_axes, as_axis, raw_dtype, shape_of
from wengert.ops.single import single
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = [
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Shape = tuple[int, ...]
Axes = tuple[int, ...] | None


# -- what the rules share ------------------------------------------------------------------------


def _kept(xp: Any, g: Any, x_shape: Shape, axis: Axes, keepdims: bool) -> Any:
    """A reduction's result or cotangent, in a shape that broadcasts against the input."""
    if keepdims or axis is None:
        return g
    return xp.reshape(g, tuple([1 if i in axis else n for i, n in enumerate(x_shape)]))


def _spread(xp: Any, g: Any, x_shape: Shape, axis: Axes, keepdims: bool) -> Any:
    """A reduction's cotangent, repeated over what was reduced."""
    return xp.broadcast_to(_kept(xp, g, x_shape, axis, keepdims), x_shape)


def _count(x_shape: Shape, axis: Axes) -> int:
    """How many elements one element of the result is made from."""
    return math.prod(x_shape if axis is None else [x_shape[i] for i in axis])


# -- sums and means ------------------------------------------------------------------------------

_sum = single(Primitive("sum", ["x"], {"x": _spread}, kind="linear"))


def _mean_rule(xp: Any, g: Any, x_shape: Shape, axis: Axes, keepdims: bool) -> Any:
    n = _count(x_shape, axis) or 1
    return _spread(xp, xp.divide(g, n), x_shape, axis, keepdims)


_mean = single(Primitive("mean", ["x"], {"x": _mean_rule}, kind="linear"))


def sum(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
) -> Tensor:
    r"""Sum of elements, :math:`\sum_i x_i`; 0 for none.

    Parameters
    ----------
    x : array
        Of any shape and a numeric dtype.
    axis : int or tuple of int, optional
        Over which axes; all by default.
    dtype : dtype, optional
        Of the sum. By default that of ``x``, and the default integer for smaller integers.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The sums. Each element's cotangent is that of the sum it is part of.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "sum")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return _sum(x, axis=axes, dtype=dtype, keepdims=keepdims)  # type: ignore[no-any-return]


def mean(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    r"""Arithmetic mean, :math:`\frac 1 n \sum_i x_i`; NaN for no elements.

    Parameters
    ----------
    x : array
        Of any shape and a floating dtype.
    axis : int or tuple of int, optional
        Over which axes; all by default.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The means, of the dtype of ``x``. Each element's cotangent is the mean's, divided by ``n``.

    Raises
    ------
    TypeError
        If ``x`` is neither floating nor complex.
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "mean")
    _check_inexact(x, "mean")
    return _mean(x, axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]


def _check_inexact(x: Any, function: str) -> None:
    shape_of(x)
    if not dtype_of(x.dtype).inexact:
        raise TypeError(
            f"{function} takes floating or complex arrays, not {dtype_of(x.dtype).name}; convert "
            "with wg.astype(x, wg.float32) first"
        )


# -- spread --------------------------------------------------------------------------------------


def _deviation(xp: Any, x: Any, axis: Axes) -> Any:
    return xp.subtract(x, xp.mean(x, axis=axis, keepdims=True))


def _scale(x_shape: Shape, axis: Axes, correction: float) -> float:
    """One over the degrees of freedom; infinite where there are none, as in PyTorch."""
    freedom = _count(x_shape, axis) - correction
    return 1 / freedom if freedom > 0 else math.inf


def _var_rule(
    xp: Any, g: Any, x: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> Any:
    scaled = xp.multiply(_deviation(xp, x, axis), 2 * _scale(x_shape, axis, correction))
    return xp.multiply(_kept(xp, g, x_shape, axis, keepdims), scaled)


def _std_rule(
    xp: Any,
    g: Any,
    x: Any,
    out: Any,
    x_shape: Shape,
    axis: Axes,
    correction: float,
    keepdims: bool,
) -> Any:
    flat = xp.equal(out, 0)
    ratio = xp.where(flat, 0, xp.divide(g, xp.where(flat, 1, out)))
    scaled = xp.multiply(_deviation(xp, x, axis), _scale(x_shape, axis, correction))
    return xp.multiply(_kept(xp, ratio, x_shape, axis, keepdims), scaled)


def _var_tangent(
    xp: Any, t: Any, x: Any, x_shape: Shape, axis: Axes, correction: float, keepdims: bool
) -> Any:
    products = xp.multiply(t, xp.conj(_deviation(xp, x, axis)))
    scale = 2 * _scale(x_shape, axis, correction)
    return xp.multiply(xp.sum(products, axis=axis, keepdims=keepdims), scale)


def _std_tangent(
    xp: Any,
    t: Any,
    x: Any,
    out: Any,
    x_shape: Shape,
    axis: Axes,
    correction: float,
    keepdims: bool,
) -> Any:
    flat = xp.equal(out, 0)
    spread = _var_tangent(xp, t, x, x_shape, axis, correction, keepdims)
    return xp.where(flat, 0, xp.divide(spread, xp.multiply(xp.where(flat, 1, out), 2)))


_var = single(Primitive("var", ["x"], {"x": _var_rule}, kind="reduction", jvps={"x": _var_tangent}))
_std = single(Primitive("std", ["x"], {"x": _std_rule}, kind="reduction", jvps={"x": _std_tangent}))


def var(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    r"""Variance, :math:`\frac 1 {n - c} \sum_i |x_i - \bar x|^2`.

    Parameters
    ----------
    x : array
        Of any shape and a floating dtype. (Where the library has it, a complex one: the variance
        is real.)
    axis : int or tuple of int, optional
        Over which axes; all by default.
    correction : int or float
        The correction :math:`c` of the degrees of freedom: 0 for the population's variance, 1 for
        an unbiased estimate from a sample.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The variances, with the derivative :math:`\frac 2 {n - c} (x_i - \bar x)`.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "var")
    _check_inexact(x, "var")
    return _var(x, axis=axes, correction=correction, keepdims=keepdims)  # type: ignore[no-any-return]


def std(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    r"""Standard deviation, the square root of the variance.

    Parameters
    ----------
    x : array
        Of any shape and a floating dtype, as in `var`.
    axis : int or tuple of int, optional
        Over which axes; all by default.
    correction : int or float
        Of the degrees of freedom, as in `var`.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The deviations :math:`s`, with the derivative :math:`\frac {x_i - \bar x} {(n - c) s}`,
        taken as 0 where :math:`s = 0`, as PyTorch does.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "std")
    _check_inexact(x, "std")
    return _std(x, axis=axes, correction=correction, keepdims=keepdims)  # type: ignore[no-any-return]


# -- extremes ------------------------------------------------------------------------------------


def _extreme(name: str, beaten: str, label: str) -> Primitive:
    """Share the cotangent evenly among the elements that no other one beats."""

    def chosen(xp: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
        # NaN beats all without being equal to them: all get its derivative, which is NaN.
        return xp.logical_not(getattr(xp, beaten)(x, _kept(xp, out, x.shape, axis, keepdims)))

    def share(xp: Any, total: Any, out: Any, which: Any, axis: Axes, keepdims: bool) -> Any:
        number = xp.astype(xp.count_nonzero(which, axis=axis, keepdims=keepdims), total.dtype)
        return xp.where(xp.isnan(out), math.nan, xp.divide(total, number))

    def rule(xp: Any, g: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
        which = chosen(xp, x, out, axis, keepdims)
        each = share(xp, g, out, which, axis, keepdims)
        return xp.where(which, _kept(xp, each, x.shape, axis, keepdims), 0)

    def tangent(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
        which = chosen(xp, x, out, axis, keepdims)
        total = xp.sum(xp.where(which, t, 0), axis=axis, keepdims=keepdims)
        return share(xp, total, out, which, axis, keepdims)

    return Primitive(name, ["x"], {"x": rule}, kind="reduction", jvps={"x": tangent}, label=label)


_max = single(_extreme("max", "less", "Amax"))
_min = single(_extreme("min", "greater", "Amin"))


def max(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """Largest element; NaN if one is NaN.

    Parameters
    ----------
    x : array
        Of any shape and a real dtype.
    axis : int or tuple of int, optional
        Over which axes; all by default.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The maxima, of the dtype of ``x``. The cotangent goes to the largest element, and in equal
        shares to all of them where several are equal, as PyTorch's ``amax`` does.

    Raises
    ------
    ValueError
        If there is no element, an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = _extreme_axes(x, axis, "max")
    return _max(x, axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]


def min(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """Smallest element; NaN if one is NaN.

    Parameters
    ----------
    x : array
        Of any shape and a real dtype.
    axis : int or tuple of int, optional
        Over which axes; all by default.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The minima, of the dtype of ``x``. The cotangent goes to the smallest element, and in equal
        shares to all of them where several are equal, as PyTorch's ``amin`` does.

    Raises
    ------
    ValueError
        If there is no element, an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = _extreme_axes(x, axis, "min")
    return _min(x, axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]


def _extreme_axes(x: Any, axis: Any, function: str) -> Axes:
    shape = shape_of(x)
    axes = None if axis is None else as_axes(axis, len(shape), function)
    if 0 in shape and not _count(shape, axes):
        raise ValueError(f"{function} of no elements: the array has shape {tuple(shape)}")
    return axes


# -- products ------------------------------------------------------------------------------------

# No rule here divides by an element, so all are right at zeros, and so are their derivatives.


def _before(xp: Any, x: Any, axis: int) -> Any:
    """For each element the product of those before it along an axis."""
    products = xp.cumulative_prod(x, axis=axis, include_initial=True)
    return xp.getitem(products, key=(slice(None),) * axis + (slice(0, x.shape[axis]), ...))


def _others(xp: Any, x: Any, axis: Axes) -> Any:
    """For each element the product of the others that are reduced with it."""
    x_shape = x.shape
    ndim = len(x_shape)
    reduced = all_axes(axis, ndim)
    order = tuple([i for i in range(ndim) if i not in reduced]) + reduced
    # One last axis holds all the factors of a product.
    shape = tuple([x_shape[i] for i in order])
    rest = ndim - len(reduced)
    factors = xp.reshape(xp.permute_dims(x, order), (*shape[:rest], math.prod(shape[rest:])))
    after = xp.flip(_before(xp, xp.flip(factors, axis=(rest,)), rest), axis=(rest,))
    others = xp.reshape(xp.multiply(_before(xp, factors, rest), after), shape)
    return xp.permute_dims(others, tuple([order.index(i) for i in range(ndim)]))


def _prod_rule(xp: Any, g: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    others = _others(xp, xp.conj(xp.astype(x, g.dtype)), axis)
    return xp.multiply(_kept(xp, g, x.shape, axis, keepdims), others)


def _prod_tangent(xp: Any, t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    moved = xp.multiply(t, _others(xp, xp.astype(x, out.dtype), axis))
    return xp.sum(moved, axis=axis, keepdims=keepdims)


_prod = single(
    Primitive("prod", ["x"], {"x": _prod_rule}, kind="reduction", jvps={"x": _prod_tangent})
)


def prod(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
) -> Tensor:
    r"""Product of elements, :math:`\prod_i x_i`; 1 for none.

    Parameters
    ----------
    x : array
        Of any shape and a numeric dtype.
    axis : int or tuple of int, optional
        Over which axes; all by default.
    dtype : dtype, optional
        Of the product. By default that of ``x``, and the default integer for smaller integers.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The products. The derivative with respect to an element is the product of the others: it
        is right at zeros, however many there are.

    Raises
    ------
    ValueError
        If an axis is out of bounds (also an IndexError) or comes twice.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    axes = None if axis is None else as_axes(axis, len(shape_of(x)), "prod")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return _prod(x, axis=axes, dtype=dtype, keepdims=keepdims)  # type: ignore[no-any-return]


# -- running sums and products -------------------------------------------------------------------


def _after_zero(xp: Any, x: Any, axis: int) -> Any:
    """``x`` with a zero in front."""
    shape = tuple([1 if i == axis else n for i, n in enumerate(x.shape)])
    return xp.concat([xp.zeros(shape, dtype=x.dtype, device=xp.device(x)), x], axis=axis)


def _drop_initial(xp: Any, g: Any, axis: int, include_initial: bool) -> Any:
    if not include_initial:
        return g
    return xp.getitem(g, key=(slice(None),) * axis + (slice(1, None), ...))


def _cumulative_sum_rule(xp: Any, g: Any, axis: int, include_initial: bool) -> Any:
    g = xp.flip(_drop_initial(xp, g, axis, include_initial), axis=(axis,))
    return xp.flip(xp.cumulative_sum(g, axis=axis), axis=(axis,))


_cumulative_sum = single(
    Primitive("cumulative_sum", ["x"], {"x": _cumulative_sum_rule}, kind="linear", label="Cumsum")
)


def _cumulative_prod_rule(xp: Any, g: Any, x: Any, axis: int, include_initial: bool) -> Any:
    # s[i], the sum over k >= i of g[k] x[i+1] ... x[k], is g[i] + x[i+1] s[i+1].
    g = xp.flip(_drop_initial(xp, g, axis, include_initial), axis=(axis,))
    x = xp.conj(xp.astype(x, g.dtype))
    following = xp.roll(xp.flip(x, axis=(axis,)), 1, axis=axis)
    s = xp.flip(xp.linear_recurrence(following, g, axis=axis), axis=(axis,))
    return xp.multiply(_before(xp, x, axis), s)


def _cumulative_prod_tangent(
    xp: Any, t: Any, x: Any, out: Any, axis: int, include_initial: bool
) -> Any:
    # t_y[k] = x[k] t_y[k-1] + t[k] x[0] ... x[k-1]
    x = xp.astype(x, out.dtype)
    moved = xp.linear_recurrence(x, xp.multiply(t, _before(xp, x, axis)), axis=axis)
    return _after_zero(xp, moved, axis) if include_initial else moved


_cumulative_prod = single(
    Primitive(
        "cumulative_prod",
        ["x"],
        {"x": _cumulative_prod_rule},
        kind="irregular",
        jvps={"x": _cumulative_prod_tangent},
        label="Cumprod",
    )
)


def _linear_recurrence(xp: Any, a: Any, b: Any, *, axis: int) -> Any:
    """Solve y[i] = a[i] y[i-1] + b[i] from y[-1] = 0, in as many steps as the length has bits.

    After each step b[i] is y[i] as if the last 2, 4, 8, ... terms were all, and a[i] the product
    of as many factors (Hillis and Steele, Data parallel algorithms, 1986).
    """
    length = b.shape[axis]
    before = (slice(None),) * axis
    width = 1
    while width < length:
        head = (*before, slice(0, width), ...)
        tail = (*before, slice(width, length), ...)
        early = (*before, slice(0, length - width), ...)
        b = xp.concat([b[head], xp.add(b[tail], xp.multiply(a[tail], b[early]))], axis=axis)
        a = xp.concat([a[head], xp.multiply(a[tail], a[early])], axis=axis)
        width *= 2
    return b


def _recurrence_cotangent(xp: Any, g: Any, a: Any, axis: int) -> Any:
    """z[i] = g[i] + conj(a[i+1]) z[i+1]: the recurrence itself, from the other end."""
    following = xp.roll(xp.flip(xp.conj(a), axis=(axis,)), 1, axis=axis)
    z = xp.linear_recurrence(following, xp.flip(g, axis=(axis,)), axis=axis)
    return xp.flip(z, axis=(axis,))


def _recurrence_factor_rule(xp: Any, g: Any, a: Any, out: Any, axis: int) -> Any:
    return xp.multiply(_recurrence_cotangent(xp, g, a, axis), xp.conj(_delayed(xp, out, axis)))


def _delayed(xp: Any, x: Any, axis: int) -> Any:
    """``x`` one place later: its last element is gone, and its first a zero."""
    if not x.shape[axis]:
        return x
    return _after_zero(xp, xp.getitem(x, key=(slice(None),) * axis + (slice(0, -1), ...)), axis)


Primitive(
    "linear_recurrence",
    ["a", "b"],
    {"a": _recurrence_factor_rule, "b": _recurrence_cotangent},
    kind="irregular",
    jvps={
        "a": lambda xp, t, a, out, axis: xp.linear_recurrence(
            a, xp.multiply(t, _delayed(xp, out, axis)), axis=axis
        ),
        "b": lambda xp, t, a, axis: xp.linear_recurrence(a, t, axis=axis),
    },
    forward=_linear_recurrence,
)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    r"""Running sums, :math:`y_i = \sum_{j \le i} x_j`.

    Parameters
    ----------
    x : array
        Of one axis at least and a numeric dtype.
    axis : int, optional
        Along which axis; it may be left out where there is only one.
    dtype : dtype, optional
        Of the sums. By default that of ``x``, and the default integer for smaller integers.
    include_initial : bool
        Whether the result starts with 0, and so is longer by one.

    Returns
    -------
    Tensor
        The sums. Their cotangents are summed from the other end.

    Raises
    ------
    ValueError
        If ``x`` is 0-d, the axis is out of bounds (also an IndexError), or it is left out where
        there are several.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    at = _running_axis(x, axis, "cumulative_sum")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return _cumulative_sum(  # type: ignore[no-any-return]
        x, axis=at, dtype=dtype, include_initial=include_initial
    )


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    r"""Running products, :math:`y_i = \prod_{j \le i} x_j`.

    Parameters
    ----------
    x : array
        Of one axis at least and a numeric dtype.
    axis : int, optional
        Along which axis; it may be left out where there is only one.
    dtype : dtype, optional
        Of the products. By default that of ``x``, and the default integer for smaller integers.
    include_initial : bool
        Whether the result starts with 1, and so is longer by one.

    Returns
    -------
    Tensor
        The products, with the derivative :math:`\partial y_k / \partial x_i` = the product of
        the other factors of :math:`y_k`: right at zeros, however many there are.

    Raises
    ------
    ValueError
        If ``x`` is 0-d, the axis is out of bounds (also an IndexError), or it is left out where
        there are several.

    Notes
    -----
    Array API standard 2025.12, statistical functions.
    """
    at = _running_axis(x, axis, "cumulative_prod")
    if dtype is not None:
        dtype = raw_dtype(x, dtype)
    return _cumulative_prod(  # type: ignore[no-any-return]
        x, axis=at, dtype=dtype, include_initial=include_initial
    )


def _running_axis(x: Any, axis: int | None, function: str) -> int:
    ndim = len(shape_of(x))
    if axis is None and ndim != 1:
        raise ValueError(f"{function} of an array of {ndim} axes needs axis=")
    if not ndim:
        raise ValueError(f"{function} needs an array of one axis at least")
    return as_axis(0 if axis is None else axis, ndim, function)
