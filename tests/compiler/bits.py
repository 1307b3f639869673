"""Comparison to the last bit."""

from typing import Any

import numpy as np

__all__ = ["same_bits"]


def same_bits(x: Any, y: Any) -> bool:
    """Whether two NumPy arrays or numbers are the same, down to the signs of zeros."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    if not np.array_equal(x, y, equal_nan=x.dtype.kind == "f"):
        return False
    if x.dtype.kind != "f":
        return True
    number = ~np.isnan(x)
    return np.array_equal(np.signbit(x[number]), np.signbit(y[number]))
