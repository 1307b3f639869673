"""Error functions of large arrays in single precision: SciPy computes one number at a time.

Quotients of polynomials, in double precision and with relative errors below 3e-9, are rounded as
the functions themselves but for one result in some hundred.
"""

import math
from functools import partial
from typing import Any

import numpy as np

BLOCK = 1 << 13  # elements at once: their powers stay in the cache
#: Coefficients of numerator and denominator, lowest power first: of ``erf(x) / x`` in ``x**2`` up
#: to 4, from where on it is 1; and of ``exp(x**2) erfc(x)`` up to 10.2, from where on erfc is 0.
ERF = (
    (1.128379169378, 0.1852032414164, 0.05431691496603, 0.003849612476336, 3.796088566759e-4,
     4.684776644701e-6, -1.320222700785e-8),
    (1.0, 0.4974655130755, 0.113958425127, 0.0154620917487, 0.00130757004891, 6.3110571648e-5, 0.0),
)  # fmt: skip
TAIL = (
    (0.99999999992, 1.4342190169, 1.0006363338, 0.40239264540, 0.092830109818, 0.010017241907, 0.0),
    (1.0, 2.5625981730, 2.8922189655, 1.8555648331, 0.72212271550, 0.16453600446, 0.017755121869),
)  # fmt: skip


def _in_blocks(x: Any, table: Any, limit: float, base: Any, finish: Any, scale: Any = 1) -> Any:
    """``finish`` of numbers up to a limit, and of quotients of polynomials of their ``base``."""
    flat, out, coefficients = x.reshape(-1), np.empty(x.size, x.dtype), np.array(table)
    powers, parts = np.ones((7, BLOCK)), np.empty((2, BLOCK))
    for start in range(0, x.size, BLOCK):
        y = flat[start : start + BLOCK].astype(np.float64)
        np.clip(y if scale == 1 else np.multiply(y, scale, y), -limit, limit, y)
        power = powers[:, : len(y)]
        base(y, power[1])
        np.multiply(power[1], power[1], power[2])
        np.multiply(power[1:3], power[2], power[3:5])
        np.multiply(power[3:5], power[2], power[5:7])
        above, below = np.matmul(coefficients, power, parts[:, : len(y)])
        out[start : start + BLOCK] = finish(np.divide(above, below, above), y)
    return out.reshape(x.shape)


def _reflect(tail: Any, y: Any, most: int = 2) -> Any:
    """A tail times ``exp(-y * y)``, and the most less that where ``y`` is negative."""
    tail *= np.exp(y * -y)
    return np.abs(tail + most * np.floor(y / 16))  # of -1 or 0


def erf(x: Any, /) -> Any:
    """The error function."""
    return _in_blocks(x, ERF, 4.0, np.square, np.multiply)


def erfc(x: Any, /) -> Any:
    """Its complement."""
    return _in_blocks(x, TAIL, 10.2, np.abs, _reflect)


def ndtr(x: Any, /) -> Any:
    """The normal distribution, half of ``erfc(-x / sqrt(2))``."""
    half = [c / 2 for c in TAIL[0]], TAIL[1]
    return _in_blocks(x, half, 10.2, np.abs, partial(_reflect, most=1), -math.sqrt(0.5))


KERNELS = {"erf": erf, "erfc": erfc, "ndtr": ndtr}
