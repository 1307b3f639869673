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


def normalised(xp: Any, m: Any, v: Any, scale: float, eps: float) -> Any:
    """Return ``m / (sqrt(v) / scale + eps)`` in a new array."""
    return xp.divide(m, xp.add(xp.divide(xp.sqrt(v), scale), eps))


def slope(xp: Any, p: Any, g: Any, maximize: bool, decay: float) -> Any:
    """Return what a step goes down along: the gradient or its negative, with weight decay."""
    if maximize:
        g = xp.negative(g)
    return xp.axpby(1, g, decay, p) if decay else g


def squares(xp: Any, beta: float, held: Any, g: Any) -> Any:
    """Return the running mean of squares: ``beta * held + (1 - beta) * g**2``."""
    return xp.axpby(beta, held, 1 - beta, xp.multiply(g, g))


add_composite("axpby", axpby)
add_composite("normalised", normalised)
