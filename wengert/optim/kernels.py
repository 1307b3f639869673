"""The arithmetic of updates, for which a backend may have faster kernels."""

from typing import Any

from wengert.backends import add_composite

__all__: list[str] = []


def axpby(xp: Any, a: float, x: Any, b: float, y: Any) -> Any:
    """Return ``a * x + b * y`` in a new array."""
    # Only an optimiser's own constants are integers; a hyper-parameter of 1 may change.
    if type(a) is not int or a != 1:
        x = xp.multiply(x, a)
    if type(b) is not int or b != 1:
        y = xp.multiply(y, b)
    return xp.add(x, y)


def add_normalised(xp: Any, p: Any, a: float, m: Any, v: Any, eps: float) -> Any:
    """Return ``p + a * m / (sqrt(v) + eps)`` in a new array."""
    return xp.axpby(1, p, a, xp.divide(m, xp.add(xp.sqrt(v), eps)))


def add_corrected(xp: Any, p: Any, a: float, m: Any, v: Any, part: float, eps: float) -> Any:
    """Return ``p + a * m / (sqrt(v / part) + eps)``, for a mean of squares that began at zero."""
    scale = part**0.5  # of the root, and so of ``eps`` and the step instead
    return xp.add_normalised(p, a * scale, m, v, eps * scale)


def add_squares(xp: Any, a: float, x: Any, b: float, g: Any) -> Any:
    """Return ``a * x + (b * g)**2`` in a new array; the square alone might overflow."""
    g = g if type(b) is int and b == 1 else xp.multiply(g, b)
    return xp.axpby(a, x, 1, xp.multiply(g, g))


add_composite("add_normalised", add_normalised)
add_composite("add_squares", add_squares)
add_composite("axpby", axpby)
