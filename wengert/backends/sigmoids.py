"""The sigmoid and its relatives of complex numbers, which keep their digits near their poles."""

import math
from typing import Any


def _exponential(xp: Any, z: Any) -> tuple[Any, Any]:
    """``exp(z)``, and 1 added to it without cancellation."""
    power = xp.exp(z)
    a = xp.real(power)
    near = a < -0.5  # where a + 1 is exact
    x, y = xp.where(near, xp.real(z), 0), xp.where(near, xp.imag(z), 0)
    exact = xp.square(xp.cos(y * 0.5)) * 2 + xp.expm1(x) * xp.cos(y)
    return power, xp.add(power + 1, xp.where(near, exact - (a + 1), 0))


def expit(xp: Any, x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    right = xp.real(x) >= 0
    power, total = _exponential(xp, xp.where(right, -x, x))
    return xp.where(right, 1, power) / total


def bell(xp: Any, x: Any, width: int) -> Any:
    """``(width / (2 cosh(width x / 2)))**2``."""
    power, total = _exponential(xp, xp.where(xp.real(x) >= 0, -x, x) * width)
    return power / xp.square(total * (1 / width))


def log1p(xp: Any, z: Any, total: Any = None) -> Any:
    """``log(1 + z)``, of which NumPy's loses a small real part; ``total`` is 1 + z."""
    a, b, log = xp.real(z), xp.imag(z), xp.log(z + 1 if total is None else total)
    small = xp.abs(z) < 0.5
    size = xp.log1p(xp.where(small, a * (a + 2) + xp.square(b), 0)) * 0.5
    return xp.add(log, xp.where(small, size - xp.real(log), 0))


def softplus(xp: Any, x: Any) -> Any:
    """The principal value."""
    right = xp.real(x) >= 0
    value = xp.where(right, x, 0) + log1p(xp, *_exponential(xp, xp.where(right, -x, x)))
    return value - xp.round(xp.imag(value) * (0.5 / math.pi)) * (2j * math.pi)


def log_expit(xp: Any, x: Any) -> Any:
    """``-softplus(-x)``, with no sign of zero."""
    return 0 - softplus(xp, -x)
