"""What rules of several functions share: mostly how they behave at singular points."""

from typing import Any

from wengert.backends import dtype_of
from wengert.tape.primitive import Primitive


def is_complex(x: Any) -> bool:
    """Whether an array or Tensor has a complex dtype."""
    return dtype_of(x.dtype).complex


def matched(xp: Any, x: Any, like: Any) -> Any:
    """``x`` in the dtype of ``like``."""
    return x if x.dtype == like.dtype else xp.astype(x, like.dtype)


def _cosine(xp: Any, x: Any, y: Any) -> Any:
    radius = xp.hypot(x, y)
    centre = xp.equal(radius, 0)
    return xp.where(centre, 0, xp.divide(x, xp.where(centre, 1, radius)))


def over_radius(xp: Any, g: Any, x: Any, y: Any) -> Any:
    """``g * x / hypot(x, y)**2`` of a point, and 0 at the origin, as are all its derivatives."""
    radius = xp.hypot(x, y)
    centre = xp.equal(radius, 0)
    ratio = xp.divide(xp.cosine_of(x, y), xp.where(centre, 1, radius))
    return xp.multiply(g, xp.where(centre, 0, ratio))


def _cosine_x(xp: Any, g: Any, x: Any, y: Any) -> Any:
    return xp.multiply(over_radius(xp, g, y, x), xp.cosine_of(y, x))


def _cosine_y(xp: Any, g: Any, x: Any, y: Any) -> Any:
    return xp.negative(xp.multiply(over_radius(xp, g, x, y), xp.cosine_of(y, x)))


# x / hypot(x, y), and 0 at the origin. Its own derivative, y**2 / hypot(x, y)**3, would be the
# difference of almost equal numbers for a large x.
Primitive(
    "cosine_of",
    ("x", "y"),
    {"x": _cosine_x, "y": _cosine_y},
    kind="elementwise",
    dtypes="floating",
    forward=_cosine,
    weak=True,
)
