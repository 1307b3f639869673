"""What rules of several functions share: mostly how they behave at singular points."""

from typing import Any

from wengert.backends import dtype_of

__all__ = ["is_complex", "matched", "over_radius", "twice_over_radius"]


def is_complex(x: Any) -> bool:
    """Whether an array or Tensor has a complex dtype."""
    return dtype_of(x.dtype).complex


def matched(xp: Any, x: Any, like: Any) -> Any:
    """``x`` in the dtype of ``like``."""
    return x if x.dtype == like.dtype else xp.astype(x, like.dtype)


def over_radius(xp: Any, g: Any, x: Any, radius: Any) -> Any:
    """``g * x / radius``, and 0 where the radius is 0, with derivatives that are 0 there too."""
    centre = xp.equal(radius, 0)
    ratio = xp.divide(x, xp.where(centre, 1, radius))
    return xp.multiply(g, xp.where(centre, 0, ratio))


def twice_over_radius(xp: Any, g: Any, x: Any, radius: Any) -> Any:
    """``g * x / radius**2`` likewise, without squaring what may be very large or small."""
    centre = xp.equal(radius, 0)
    safe = xp.where(centre, 1, radius)
    ratio = xp.divide(xp.divide(x, safe), safe)
    return xp.multiply(g, xp.where(centre, 0, ratio))
