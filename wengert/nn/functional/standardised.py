"""What normalisations have in common: numbers over the root of their mean square."""

import math
from functools import reduce
from typing import Any

from wengert.interpreters.batching import by_composite
from wengert.nn.functional.define import share
from wengert.nn.kernels import numpy_normalisations as numpy_normalisations
from wengert.ops.euclidean import length
from wengert.tape.primitive import Primitive

__all__ = ["standardised"]

Axes = tuple[int, ...]


def _mean(xp: Any, x: Any, axis: Axes) -> Any:
    return xp.mean(x, axis=axis, keepdims=True)


def _deviations(xp: Any, x: Any, axis: Axes) -> Any:
    """An array less its mean: a projection, which is its own tangent and cotangent."""
    return x - _mean(xp, x, axis)


def _composite(
    xp: Any, x: Any, weight: Any, bias: Any, *, axis: Axes, eps: float, centred: bool
) -> tuple[Any, ...]:
    if centred:
        x = _deviations(xp, x, axis)
    number = math.prod([x.shape[i] for i in axis])
    root = length(xp, x, axis=axis, keepdims=True, share=number**-0.5)
    inverse = xp.divide(1, xp.hypot(root, xp.full_like(root, eps**0.5)))
    out = x * inverse
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    return (out, inverse, x) if centred else (out, inverse)


def _slope(xp: Any, mean: Any, inverse: Any) -> Any:
    """The tangent of the inverse for the mean of products of numbers and tangents.

    The cube of the inverse would leave the range of single precision for numbers of 10^13.
    """
    return -reduce(xp.multiply, (mean, inverse, inverse, inverse))


def _project_tangent(xp: Any, t: Any, x: Any, inverse: Any, axis: Axes) -> tuple[Any, Any]:
    """The tangent of standardised numbers, and that of the inverse."""
    slope = _mean(xp, t * x, axis) * inverse * inverse
    found = (t - x * slope) * inverse
    return found, -(slope * inverse)


def _cotangent(
    xp: Any, g: Any, x: Any, weight: Any, inverse: Any, *, axis: Axes, centred: bool
) -> Any:
    g = g if weight is None else g * weight
    found = _project_tangent(xp, g, x, inverse, axis)[0]
    return _deviations(xp, found, axis) if centred else found


def _weight_cotangent(
    xp: Any, g: Any, x: Any, inverse: Any, *, axis: Axes, shape: tuple[int, ...]
) -> Any:
    return g * x * inverse


share("standardised_cotangent", _cotangent)
share("standardised_by_weight", _weight_cotangent)


def _by_x(xp: Any, g: Any, x: Any, weight: Any, out: Any, axis: Axes, centred: bool) -> Any:
    inverse = out[1]
    found = []
    if centred:
        x = out[2]
        if g[2] is not None:
            found.append(_deviations(xp, g[2], axis))
    if g[0] is not None:
        of_out = xp.standardised_cotangent(g[0], x, weight, inverse, axis=axis, centred=centred)
        found.append(of_out)
    if g[1] is not None:
        number = math.prod([x.shape[i] for i in axis])
        found.append(x * _slope(xp, g[1] / number, inverse))
    return reduce(xp.add, found)


def _zeros(xp: Any, shape: Any, x: Any) -> Any:
    return xp.zeros(tuple(shape), dtype=x.dtype, device=xp.device(x))


def _by_weight(
    xp: Any, g: Any, x: Any, weight_shape: Any, out: Any, axis: Axes, centred: bool
) -> Any:
    if g[0] is None:
        return _zeros(xp, weight_shape, x)
    x, shape = out[2] if centred else x, tuple(weight_shape)
    return xp.standardised_by_weight(g[0], x, out[1], axis=axis, shape=shape)


def _by_bias(xp: Any, g: Any, x: Any, bias_shape: Any) -> Any:
    return _zeros(xp, bias_shape, x) if g[0] is None else g[0]


def _of_x(
    xp: Any, t: Any, x: Any, weight: Any, out: Any, axis: Axes, centred: bool
) -> tuple[Any, ...]:
    inverse = out[1]
    if centred:
        x, t = out[2], _deviations(xp, t, axis)
    found, slope = _project_tangent(xp, t, x, inverse, axis)
    found = found if weight is None else found * weight
    return (found, slope, t) if centred else (found, slope)


def _of_weight(xp: Any, t: Any, x: Any, out: Any, centred: bool) -> tuple[Any, ...]:
    x = out[2] if centred else x
    return x * out[1] * t, *map(xp.zeros_like, out[1:])


def _of_bias(xp: Any, t: Any, out: Any) -> tuple[Any, ...]:
    return xp.broadcast_to(t, tuple(out[0].shape)), *map(xp.zeros_like, out[1:])


# Beside the numbers, one over the root, and the numbers less their mean, are results for the
# rules' sake. Weight and bias take part, since they cost no pass where they are a row's.
standardised = Primitive(
    "standardised",
    ("x", "weight", "bias"),
    {"x": _by_x, "weight": _by_weight, "bias": _by_bias},
    jvps={"x": _of_x, "weight": _of_weight, "bias": _of_bias},
    composite=_composite,
    several=True,
    dtypes="real floating",
    batch=by_composite,
).bind
