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


def _deviations(xp: Any, x: Any, axis: Axes) -> Any:
    return x - xp.mean(x, axis=axis, keepdims=True)


def _composite(xp: Any, x: Any, *, axis: Axes, eps: float, centred: bool) -> tuple[Any, Any]:
    x = _deviations(xp, x, axis) if centred else x
    number = math.prod([x.shape[i] for i in axis])
    root = length(xp, x, axis=axis, keepdims=True, share=number**-0.5)
    inverse = xp.divide(1, xp.hypot(root, xp.full_like(root, eps**0.5)))
    return x * inverse, inverse


def _project(xp: Any, g: Any, y: Any, inverse: Any, *, axis: Axes, centred: bool) -> Any:
    """The cotangent of the input, and the tangent of the result ``y``: the map is symmetric."""
    found = g - y * xp.mean(g * y, axis=axis, keepdims=True)
    return (_deviations(xp, found, axis) if centred else found) * inverse


share("standardised_cotangent", _project)


def _by_x(xp: Any, g: Any, out: Any, axis: Axes, centred: bool) -> Any:
    y, inverse = out
    found = []
    if g[0] is not None:
        found.append(xp.standardised_cotangent(g[0], y, inverse, axis=axis, centred=centred))
    if g[1] is not None:
        number = math.prod([y.shape[i] for i in axis])
        found.append(y * (g[1] * (-1 / number) * inverse * inverse))
    return reduce(xp.add, found)


def _of_x(xp: Any, t: Any, out: Any, axis: Axes, centred: bool) -> tuple[Any, Any]:
    y, inverse = out
    slope = xp.mean(t * y, axis=axis, keepdims=True) * inverse * inverse
    return _project(xp, t, y, inverse, axis=axis, centred=centred), -slope


# The second result, one over the root, is for the rules' sake.
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
