"""Roots of sums of squares that neither overflow nor vanish, and directions, their slopes.

Norms, deviations, normalisations and moduli have their numbers and derivatives from here. The first
derivative of a norm at 0 is 0, by convention. The second is nan: a function of the norm may be
smooth there, and 0 would be wrong for it.
"""

import math
from collections.abc import Callable
from typing import Any

from wengert.backends import dtype_of
from wengert.ops.domain import NOT_ZERO
from wengert.tape.primitive import Primitive

__all__ = ["SCALES", "factor_of", "length", "nan_where", "without_slope"]

Axes = tuple[int, ...]

#: By the size of a dtype, exponents of 2: from and below which numbers are scaled, and by how much.
SCALES = {4: (45, -48, 96), 8: (480, -450, 600)}


def factor_of(xp: Any, size: Any, axis: Axes) -> Any:
    """A power of two for each row by which the largest number's square is well within the range."""
    largest = xp.max(size, axis=axis, keepdims=True)
    high, low, step = SCALES[dtype_of(size.dtype).itemsize]
    factor = xp.where(largest < 2.0**low, 2.0**step, xp.ones_like(largest))
    return xp.where(largest > 2.0**high, 2.0**-step, factor)


def length(xp: Any, x: Any, /, *, axis: Axes, keepdims: bool = False, share: float = 1) -> Any:
    """Root of the sum of squared absolute values over axes, times a share of at most 1."""
    size = xp.abs(x)
    usual = 0 in x.shape or dtype_of(size.dtype).itemsize not in SCALES
    factor = None if usual else factor_of(xp, size, axis)
    size = size if factor is None else size * factor
    root = xp.sqrt(xp.sum(xp.square(size), axis=axis, keepdims=True))
    root = root if share == 1 else root * share
    root = root if factor is None else root / factor
    return root if keepdims else xp.squeeze(root, axis=axis)


def nan_where(xp: Any, mask: Any, found: Any) -> Any:
    """``found``, and nan where the mask says so: in both parts of a complex number."""
    nan = complex(math.nan, math.nan) if dtype_of(found.dtype).complex else math.nan
    return xp.where(mask, nan, found)


def _direction(xp: Any, scale: Any, x: Any, norm: Any) -> Any:
    # Of an infinite norm the direction is unknown, and nothing is known where it overflows.
    infinite = xp.isinf(norm)
    safe = xp.where(infinite, math.nan, xp.where(norm == 0, 1, norm))
    return x / safe * scale


def _by_x(xp: Any, g: Any, scale: Any, norm: Any) -> Any:
    return nan_where(xp, (norm == 0) & (g != 0), xp.direction(xp.conj(scale), g, norm))


# scale x / norm, and 0 where the norm is 0.
Primitive(
    "direction",
    ("scale", "x", "norm"),
    {
        "scale": lambda xp, g, x, norm: xp.direction(g, xp.conj(x), norm),
        "x": _by_x,
        # In this order nothing that is 0 meets an infinity.
        "norm": lambda xp, g, out, norm: -xp.direction(xp.conj(out), g, norm),
    },
    elementwise=True,
    composite=_direction,
    # With complex numbers the derived ones see a g of 1, and no derivative where nothing moves.
    jvps={
        "scale": lambda xp, t, x, norm: xp.direction(t, x, norm),
        "x": lambda xp, t, scale, norm: _by_x(xp, t, xp.conj(scale), norm),
        "norm": lambda xp, t, out, norm: -xp.direction(out, t, norm),
    },
    domain={"norm": NOT_ZERO},
)


# 0, where a function has no slope: as a tangent or a cotangent arrives, that is nan.
Primitive(
    "sharp",
    ("x",),
    {"x": lambda xp, g: nan_where(xp, g != 0, g)},
    elementwise=True,
    composite=lambda xp, x: xp.zeros_like(x),
)


def tangent_of_direction(xp: Any, t: Any, x: Any) -> Any:
    """The tangent, and the cotangent, of ``x / |x|``: the part of ``t / |x|`` at right angles to x.

    A difference of t and its part along x would lose it where it is small.
    """
    modulus = xp.abs(x)
    unit = xp.along(xp.ones_like(modulus), x)
    turn = xp.imag(t * xp.conj(unit))
    turn = turn / xp.where(modulus == 0, 1, modulus)
    return unit * 1j * turn


def _turned_or_none(xp: Any, t: Any, x: Any, scale: Any = 1) -> Any:
    # Where the scale is 0, a smooth function of the modulus may have its only slope.
    return nan_where(xp, (x == 0) & (t != 0), tangent_of_direction(xp, scale * t, x))


# scale x / |x| of complex numbers, and 0 where x is 0.
Primitive(
    "along",
    ("scale", "x"),
    {
        "scale": lambda xp, g, x: xp.along(g, xp.conj(x)),
        "x": lambda xp, g, scale, x: _turned_or_none(xp, g, x, xp.conj(scale)),
    },
    elementwise=True,
    composite=lambda xp, scale, x: xp.direction(scale, x, xp.abs(x)),
    jvps={
        "scale": lambda xp, t, x: xp.along(t, x),
        "x": lambda xp, t, scale, x: scale * _turned_or_none(xp, t, x),
    },
    domain={"x": NOT_ZERO},
)


def without_slope(xp: Any, found: Any, where: Callable[[], tuple[Any, Any]]) -> Any:
    """A derivative that has at some points a value by convention, and no slope.

    ``where`` gives a mask of these points, and what has no slope there.
    """
    if not xp.records and xp.backend:  # nothing differentiates this
        return found
    at, x = where()
    return xp.where(at, found + xp.sharp(x), found)
