"""NumPy's kernels for networks and optimisers: what is written into a temporary of their own."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.backends import sigmoids
from wengert.backends.backend import Kernel

__all__ = [
    "BITS",
    "FILLED",
    "KERNELS",
    "WIDE",
    "blend",
    "keep_where",
    "ones",
    "relu",
    "row_layout",
    "scalar",
]

_add, _multiply, _divide = np.add, np.multiply, np.divide


#: Columns up to which broadcasting a column costs more than an index for each element.
SHORT = 16


@lru_cache(maxsize=16)
def row_layout(rows: int, columns: int) -> tuple[Any, Any]:
    """Where each row of a matrix starts in its elements, and the row of each of these.

    One index is faster than two. The second is None where NumPy may as well broadcast.
    """
    starts = np.arange(0, rows * columns, columns) if columns else np.zeros(rows, np.int64)
    if columns > SHORT:
        return starts, None
    return starts, np.repeat(np.arange(rows), columns).reshape(rows, columns)


@lru_cache(maxsize=16)
def ones(length: int, dtype: Any) -> Any:
    """An array of ones that is kept, and only read: BLAS sums rows by a product with it."""
    return np.ones(length, dtype)


@lru_cache(maxsize=16)
def zeros(length: int | tuple[int, ...], dtype: Any) -> Any:
    """An array of zeros that is kept, and only read."""
    return np.zeros(length, dtype)


@lru_cache(maxsize=64)
def scalar(value: float, dtype: Any) -> Any:
    """A number as an array: NumPy takes as long to convert a Python number as to use it."""
    return np.asarray(value, dtype)


def _add_into(out: Any, x: Any) -> Any:
    """``out + x`` in ``out``, a temporary, if it can hold the sum."""
    try:
        return _add(out, x, out)
    except TypeError:  # a scalar, or of a lesser dtype than ``x``
        return _add(out, x)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """``x @ weight.T + bias`` of a matrix or vector ``x``."""
    out = x.dot(weight.mT)  # `np.matmul` of small matrices takes a third of a microsecond longer
    if bias is None:
        return out
    try:  # `_add_into` without its call, as in `axpby`
        return _add(out, bias, out)
    except TypeError:
        return _add(out, bias)


def axpby(a: float, x: Any, b: float, y: Any) -> Any:
    """``a * x + b * y``, of floating arrays."""
    if a == 1:  # as in the update of every parameter
        if b == 1:
            return _add(x, y)
        # One zero stands for both where numbers are looked up.
        out = _multiply(y, scalar(b, y.dtype) if b else np.asarray(b, y.dtype))
        try:  # `_add_into` without its call, which takes a tenth of a small update
            return _add(out, x, out)
        except TypeError:
            return _add(out, x)
    y = y if b == 1 else _multiply(y, b)  # first, so that ``x`` may be scaled in place
    return _add_into(_multiply(x, a), y)


def add_squares(a: float, x: Any, b: float, g: Any) -> Any:
    """``a * x + (b * g)**2``, of floating arrays."""
    root = g if b == 1 else _multiply(g, b)
    square = _multiply(root, root, root) if root.shape and root is not g else root * root
    return _add_into(square, x if a == 1 else _multiply(x, a))


def add_normalised(p: Any, a: float, m: Any, v: Any, eps: float) -> Any:
    """``p + a * m / (sqrt(v) + eps)``, of floating arrays."""
    root = np.sqrt(v)
    if not root.shape:
        return p + m / (root + eps) * a
    _add(root, eps, root)
    _divide(m, root, root)
    if a != 1:
        _multiply(root, a, root)
    return _add(root, p, root)


def expit(x: Any) -> Any:
    """``exp(x) / (1 + exp(x))``, whose quotient is 1 long before the exponential overflows."""
    dtype = x.dtype
    if dtype.kind == "c":
        return sigmoids.expit(np, x)
    limit = 11 if dtype.char == "e" else 50
    # NumPy has vector code for a number in `clip` alone, which takes longer to start.
    small = np.minimum(x, scalar(limit, dtype)) if x.size <= WIDE else np.clip(x, -math.inf, limit)
    if not small.shape:
        small = np.exp(small)
        return small / (small + 1)
    np.exp(small, small)
    below = _add(small, scalar(1, dtype))
    return _divide(small, below, below)


def logistic_bell(x: Any, *, width: int) -> Any:
    """``(width / (2 cosh(width x / 2)))**2``."""
    if x.dtype.kind == "c":
        return sigmoids.bell(np, x, width)
    small = np.abs(x)
    if not small.shape:
        small = np.exp(small * -width)
        return small / np.square((small + 1) * (1 / width))
    np.exp(_multiply(small, -width, small), small)
    below = _add(small, 1)
    if width != 1:
        _multiply(below, 1 / width, below)
    return _divide(small, np.square(below, below), small)


#: Elements from which the time in NumPy's loops outweighs that of starting them.
WIDE = 1 << 12

#: Elements up to which zeros of the whole shape are kept: more push other things out of the caches.
FILLED = 1 << 14

#: Integers as wide as the floats of each size.
BITS: Any = {"e": np.dtype(np.int16), "f": np.dtype(np.int32), "d": np.dtype(np.int64)}


def relu(x: Any, /) -> Any:
    """``max(x, 0)``, by zeros, or by `clip`: for a number NumPy has vector code there alone."""
    shape, dtype = x.shape, x.dtype
    if x.size <= FILLED:
        return np.maximum(x, zeros(shape, dtype))
    if dtype.kind == "f":
        return np.clip(x, scalar(0, dtype), scalar(math.inf, dtype))
    return np.maximum(x, scalar(0, dtype))


def mask(x: Any, by: Any) -> Any:
    """``x`` where ``by`` is not zero, and zero elsewhere."""
    return keep_where(x, np.not_equal(by, scalar(0, by.dtype)))


def keep_where(x: Any, keep: Any) -> Any:
    """``x`` where ``keep`` holds, and zero elsewhere, without a branch for each element."""
    dtype, shape = x.dtype, x.shape
    bits = BITS.get(dtype.char)
    if bits is None or not shape or shape != keep.shape:
        return np.where(keep, x, scalar(0, dtype))
    # As integers, for which zero times an infinity is no question.
    factors = keep.astype(bits)
    return _multiply(x.view(bits), factors, factors).view(dtype)


def blend(condition: Any, x1: Any, x2: Any) -> Any:
    """``np.where``, of large arrays of one shape and dtype without a branch for each element."""
    shape = getattr(condition, "shape", ())
    alike = shape == getattr(x1, "shape", None) == getattr(x2, "shape", None)
    bits = BITS.get(x1.dtype.char) if alike and math.prod(shape) > 512 else None
    if bits is None or x1.dtype != x2.dtype or condition.dtype.char != "?":
        return np.where(condition, x1, x2)
    other = x2.view(bits)
    out = np.subtract(x1.view(bits), other)  # which may overflow, and then comes back
    _multiply(out, condition.astype(bits), out)
    return _add(out, other, out).view(x1.dtype)


KERNELS: Mapping[str, Kernel] = {
    "add_normalised": add_normalised,
    "add_squares": add_squares,
    "axpby": axpby,
    "expit": expit,
    "linear": linear,
    "logistic_bell": logistic_bell,
    "mask": mask,
    "relu": relu,
}
