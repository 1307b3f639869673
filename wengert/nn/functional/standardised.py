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


def _composite(
    xp: Any, x: Any, weight: Any, bias: Any, *, axis: Axes, eps: float, centred: bool
) -> tuple[Any, ...]:
    mean = _mean(xp, x, axis)
    x = x - mean if centred else x
    number = math.prod([x.shape[i] for i in axis])
    root = length(xp, x, axis=axis, keepdims=True, share=number**-0.5)
    inverse = xp.divide(1, xp.hypot(root, xp.full_like(root, eps**0.5)))
    y, more = x * inverse, (inverse, *([mean, xp.square(root)] if centred else []))
    if weight is None:
        return y, *more
    return y * weight if bias is None else y * weight + bias, *more, y


def _project(xp: Any, g: Any, y: Any, inverse: Any, axis: Axes, centred: bool) -> Any:
    """The cotangent of the input, and the tangent of the numbers ``y``: the map is symmetric."""
    found = g * inverse - y * (_mean(xp, g * y, axis) * inverse)
    return found - _mean(xp, g, axis) * inverse if centred else found


share(
    "standardised_cotangent",
    lambda xp, g, y, weight, inverse, *, axis, centred: _project(
        xp, g if weight is None else g * weight, y, inverse, axis, centred
    ),
)
share("standardised_by_weight", lambda xp, g, y, *, axis, shape: g * y)


def _numbers(weight: Any, out: Any) -> Any:
    return out[0] if weight is None else out[-1]


def _by_x(xp: Any, g: Any, weight: Any, out: Any, axis: Axes, centred: bool) -> Any:
    y, inverse, options = _numbers(weight, out), out[1], {"axis": axis, "centred": centred}
    number = math.prod([y.shape[i] for i in axis])
    found = []
    for by_y, factor in ((g[0], weight), (None if weight is None else g[-1], None)):
        if by_y is not None:
            found.append(xp.standardised_cotangent(by_y, y, factor, inverse, **options))
    if g[1] is not None:
        found.append(y * (g[1] * (-1 / number) * inverse * inverse))
    if centred and g[2] is not None:
        found.append(xp.broadcast_to(g[2] / number, y.shape))
    if centred and g[3] is not None:
        found.append(y * (g[3] * (2 / number) / inverse))
    return reduce(xp.add, found)


def _zeros(xp: Any, shape: Any, like: Any) -> Any:
    return xp.zeros(tuple(shape), dtype=like.dtype, device=xp.device(like))


def _by_weight(xp: Any, g: Any, weight_shape: Any, out: Any, axis: Axes) -> Any:
    if g[0] is None:
        return _zeros(xp, weight_shape, out[1])
    return xp.standardised_by_weight(g[0], out[-1], axis=axis, shape=tuple(weight_shape))


def _by_bias(xp: Any, g: Any, bias_shape: Any, out: Any) -> Any:
    return _zeros(xp, bias_shape, out[1]) if g[0] is None else g[0]


def _of_x(xp: Any, t: Any, weight: Any, out: Any, axis: Axes, centred: bool) -> tuple[Any, ...]:
    y, inverse = _numbers(weight, out), out[1]
    slope = _mean(xp, t * y, axis)
    found = _project(xp, t, y, inverse, axis, centred)
    more = (
        -(slope * inverse * inverse),
        *([_mean(xp, t, axis), slope * 2 / inverse] if centred else []),
    )
    return (found, *more) if weight is None else (found * weight, *more, found)


def _of_weight(xp: Any, t: Any, out: Any) -> tuple[Any, ...]:
    return out[-1] * t, *map(xp.zeros_like, out[1:])


def _of_bias(xp: Any, t: Any, out: Any) -> tuple[Any, ...]:
    return xp.broadcast_to(t, tuple(out[0].shape)), *map(xp.zeros_like, out[1:])


# Beside the numbers, one over the root is a result for the rules' sake, as are the numbers without
# their weight; the mean and the variance, of centred numbers, are for averages over batches.
# A bias comes with a weight.
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
