"""NumPy's reductions, where the simulation has to ask for them in another way."""

from typing import Any

import numpy as np


def _mean(x: np.ndarray, name: str, axis: Any, dtype: Any, *, keepdims: bool) -> Any:
    """NumPy's, which warns of no elements."""
    if x.size:
        return x.mean(axis, dtype, keepdims=keepdims)
    total = x.sum(axis, dtype or (x.dtype if x.dtype.kind in "fc" else float), keepdims=keepdims)
    return total / np.zeros_like(total)


def _deviation(
    x: np.ndarray, name: str, axis: Any, dtype: Any, out: None, ddof: float, *, keepdims: bool
) -> Any:
    """NumPy's variance or standard deviation, which warns of too few elements."""
    mean = _mean(x, "mean", axis, dtype, keepdims=True)
    square = np.asarray(abs(x - mean) ** 2)
    number = max(x.size // mean.size - ddof, 0) if mean.size else 0
    found = square.sum(axis, keepdims=keepdims) / square.dtype.type(number)
    return np.sqrt(found) if name == "std" else found


#: Methods that warn of what CuPy answers without a word.
_STATISTICS = {"mean": _mean, "var": _deviation, "std": _deviation}


def computed(x: np.ndarray, name: str, *args: Any, **kwargs: Any) -> Any:
    """What NumPy's method of that name gives, without its warnings."""
    if name in _STATISTICS:
        return _STATISTICS[name](x, name, *args, **kwargs)
    return getattr(x, name)(*args, **kwargs)
