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


def _composite(xp: Any, x: Any, *, axis: Axes, eps: float, centred: bool) -> tuple[Any, ...]:
    mean = _mean(xp, x, axis)
    x = x - mean if centred else x
    number = math.prod([x.shape[i] for i in axis])
    root = length(xp, x, axis=axis, keepdims=True, share=number**-0.5)
    inverse = xp.divide(1, xp.hypot(root, xp.full_like(root, eps**0.5)))
    return (x * inverse, inverse, *([mean, xp.square(root)] if centred else []))


def _project(xp: Any, g: Any, y: Any, inverse: Any, *, axis: Axes, centred: bool) -> Any:
    """The cotangent of the input, and the tangent of the result ``y``: the map is symmetric."""
    found = g - y * _mean(xp, g * y, axis)
    return (found - _mean(xp, found, axis) if centred else found) * inverse


share("standardised_cotangent", _project)


def _by_x(xp: Any, g: Any, out: Any, axis: Axes, centred: bool) -> Any:
    (y, inverse), (by_y, by_inverse, *others) = out[:2], g
    number = math.prod([y.shape[i] for i in axis])
    found = []
    if by_y is not None:
        found.append(xp.standardised_cotangent(by_y, y, inverse, axis=axis, centred=centred))
    if by_inverse is not None:
        found.append(y * (by_inverse * (-1 / number) * inverse * inverse))
    for part, slope in zip(others, (1, y * 2 / inverse), strict=False):
        if part is not None:
            found.append(xp.broadcast_to(slope * (part / number), y.shape))
    return reduce(xp.add, found)


def _of_x(xp: Any, t: Any, out: Any, axis: Axes, centred: bool) -> tuple[Any, ...]:
    y, inverse = out[:2]
    slope = _mean(xp, t * y, axis)
    found = _project(xp, t, y, inverse, axis=axis, centred=centred), -(slope * inverse * inverse)
    return (*found, _mean(xp, t, axis), slope * 2 / inverse) if centred else found


# Beside the numbers, one over the root is a result for the rules' sake; and the mean and the
# variance, of centred numbers, for averages over batches.
standardised = Primitive(
    "standardised",
    ("x",),
    {"x": _by_x},
    jvps={"x": _of_x},
    composite=_composite,
    several=True,
    dtypes="real floating",
    batch=by_composite,
).bind
