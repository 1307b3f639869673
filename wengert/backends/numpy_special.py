"""NumPy's error functions of large arrays in single precision: SciPy computes one number at a time.

Quotients of polynomials in double precision have relative errors below 3e-9. So results are rounded
as the functions themselves, but for one in some hundred.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel

__all__ = ["KERNELS", "erf", "erfc"]

#: Elements at once: their powers stay in the cache.
BLOCK = 1 << 13
#: Coefficients of numerator and denominator, lowest power first: of ``erf(x) / x`` in ``x**2`` up
#: to 4, from where on it is 1; and of ``exp(x**2) erfc(x)`` up to 10.2, from where on erfc is 0.
ERF = (
    (1.128379169378, 0.1852032414164, 0.05431691496603, 0.003849612476336, 3.796088566759e-4,
     4.684776644701e-6, -1.320222700785e-8),
    (1.0, 0.4974655130755, 0.1139584251269, 0.01546209174872, 0.001307570048915,
     6.311057164797e-5, 0.0),
)  # fmt: skip
TAIL = (
    (0.9999999999187, 1.434219016889, 1.000636333805, 0.4023926454003, 0.09283010981754,
     0.0100172419068, 0.0),
    (1.0, 2.562598173009, 2.892218965432, 1.85556483311, 0.722122715495, 0.1645360044632,
     0.01775512186856),
)  # fmt: skip


def _in_blocks(x: Any, table: Any, limit: float, base: Any, finish: Any) -> Any:
    """``finish`` of numbers up to a limit, and of quotients of polynomials of their ``base``."""
    flat, out, coefficients = x.reshape(-1), np.empty(x.size, x.dtype), np.array(table)
    powers, parts = np.ones((7, BLOCK)), np.empty((2, BLOCK))
    for start in range(0, x.size, BLOCK):
        y = flat[start : start + BLOCK].astype(np.float64)
        np.clip(y, -limit, limit, y)
        power = powers[:, : len(y)]
        base(y, power[1])
        np.multiply(power[1], power[1], power[2])
        np.multiply(power[1:3], power[2], power[3:5])
        np.multiply(power[3:5], power[2], power[5:7])
        # All polynomials by one product of matrices.
        above, below = np.matmul(coefficients, power, parts[:, : len(y)])
        out[start : start + BLOCK] = finish(np.divide(above, below, above), y)
    return out.reshape(x.shape)


def _reflect(tail: Any, y: Any) -> Any:
    """``erfc(y)``, which is 2 less the tail where ``y`` is negative."""
    far = np.multiply(y, -y)
    np.multiply(tail, np.exp(far, far), tail)
    below = np.floor(np.multiply(y, 1 / 16, y), y)  # -1 or 0
    np.add(tail, np.add(below, below, below), tail)
    return np.abs(tail, tail)


def erf(x: Any, /) -> Any:
    """The error function."""
    return _in_blocks(x, ERF, 4.0, np.square, np.multiply)


def erfc(x: Any, /) -> Any:
    """Its complement."""
    return _in_blocks(x, TAIL, 10.2, np.abs, _reflect)


KERNELS: Mapping[str, Kernel] = {"erf": erf, "erfc": erfc}
