"""Steps that rules of several functions share, mostly for singular points."""

import math
from typing import Any

from wengert.backends import dtype_of
from wengert.tape.primitive import Primitive


def is_complex(x: Any) -> bool:
    """Whether an array or Tensor has a complex dtype."""
    return dtype_of(x.dtype).complex


def cast_like(xp: Any, x: Any, like: Any) -> Any:
    """``x`` in the dtype of ``like``."""
    return x if x.dtype == like.dtype else xp.astype(x, like.dtype)


def _cosine(xp: Any, x: Any, y: Any) -> Any:
    radius = xp.hypot(x, y)
    x, y = (v if hasattr(v, "shape") else xp.full_like(radius, v) for v in (x, y))
    far, farther = xp.isinf(x), xp.isinf(y)
    # Of finite numbers whose radius overflows nothing is known.
    radius = xp.where(xp.isinf(radius), math.nan, xp.where(radius == 0, 1, radius))
    near = xp.where(farther, 0, x / radius)
    return xp.where(far, xp.where(farther, math.nan, xp.sign(x)), near)


def over_radius(xp: Any, g: Any, x: Any, y: Any) -> Any:
    """``g * x / hypot(x, y)**2`` of a point, and 0 at the origin, where there is no derivative."""
    radius = xp.hypot(x, y)
    ratio = xp.cosine_of(x, y) / xp.where(radius == 0, 1, radius)
    return g * ratio


def _off_origin(xp: Any, x: Any, y: Any, moved: Any) -> Any:
    """``moved * y / hypot(x, y)``, which the origin has not, and no derivative of it."""
    nothing = sum(xp.sharp(v) for v in (x, y) if hasattr(v, "shape")) + math.nan
    return xp.where(xp.hypot(x, y) == 0, nothing, moved * xp.cosine_of(y, x))


# x / hypot(x, y), and 0 at the origin, where it has no derivative. Elsewhere its own derivative,
# y**2 / hypot(x, y)**3, would be the difference of almost equal numbers for a large x.
Primitive(
    "cosine_of",
    ("x", "y"),
    {
        "x": lambda xp, g, x, y: _off_origin(xp, x, y, over_radius(xp, g, y, x)),
        "y": lambda xp, g, x, y: _off_origin(xp, x, y, over_radius(xp, -g, x, y)),
    },
    elementwise=True,
    dtypes="floating",
    composite=_cosine,
)
