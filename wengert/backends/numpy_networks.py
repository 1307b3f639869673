"""NumPy's kernels for networks and optimisers: what is written into a temporary of their own."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel

__all__ = [
    "BITS",
    "FILLED",
    "KERNELS",
    "WIDE",
    "counted_targets",
    "masked",
    "ones",
    "row_layout",
    "scalar",
    "zeros",
]

_add, _multiply, _divide = np.add, np.multiply, np.divide
_sum = np.add.reduce


# `np.matmul` of small matrices takes a third of a microsecond longer than the method `dot`.
_dot = np.ndarray.dot


@lru_cache(maxsize=16)
def row_layout(rows: int, columns: int) -> tuple[Any, Any]:
    """Where each row of a matrix starts in its elements, and the row of each of these.

    One index is faster than two. The second is None where NumPy may as well broadcast.
    """
    starts = np.arange(0, rows * columns, columns) if columns else np.zeros(rows, np.int64)
    if columns > SHORT:
        return starts, None
    return starts, np.repeat(np.arange(rows), columns).reshape(rows, columns)


def _along_rows(values: Any, row_of: Any) -> Any:
    """One value for each row, to be used with a matrix: NumPy broadcasts row by row."""
    return values[:, None] if row_of is None else values.take(row_of)


@lru_cache(maxsize=16)
def ones(length: int, dtype: Any) -> Any:
    """Ones that nobody writes into: a product with them is a sum."""
    return np.ones(length, dtype)


@lru_cache(maxsize=16)
def zeros(length: int | tuple[int, ...], dtype: Any) -> Any:
    """Zeros that nobody writes into."""
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
    out = _dot(x, weight.T)
    if bias is None:
        return out
    try:
        return _add(out, bias, out)
    except TypeError:  # a scalar, or of a lesser dtype than the bias
        return _add(out, bias)


def _sum_last(x: Any) -> Any:
    """The sum over the last axis: by BLAS, which needs a third of the time, where it can."""
    if x.dtype.char in "fd":
        return _dot(x, ones(x.shape[-1], x.dtype))
    return _sum(x, axis=-1)


def axpby(a: float, x: Any, b: float, y: Any) -> Any:
    """``a * x + b * y``, of floating arrays."""
    if a == 1:  # as in the update of every parameter
        if b == 1:
            return _add(x, y)
        out = _multiply(y, scalar(b, y.dtype))
        try:
            return _add(out, x, out)
        except TypeError:
            return _add(out, x)
    return _add_into(_multiply(x, a), y if b == 1 else _multiply(y, b))


def normalised(m: Any, v: Any, scale: float, eps: float) -> Any:
    """``m / (sqrt(v) / scale + eps)``."""
    root = np.sqrt(v)
    if type(root) is not np.ndarray:
        return m / (root / scale + eps)
    _divide(root, scale, out=root)
    _add(root, eps, out=root)
    return _divide(m, root, out=root)


def logistic_bell(x: Any, *, width: int) -> Any:
    """``(width / (2 cosh(width x / 2)))**2``."""
    small = np.abs(x) if x.dtype.kind == "f" else np.where(x.real >= 0, x, -x)
    if not small.shape:
        small = np.exp(small * -width)
        return small / np.square((small + 1) * (1 / width))
    np.exp(_multiply(small, -width, small), small)
    below = _add(small, 1)
    if width != 1:
        _multiply(below, 1 / width, below)
    return _divide(small, np.square(below, below), small)


def softmax_cross_entropy_parts(
    x: Any, target: Any, *, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Any, Any]:
    """The loss, and its derivative by each logit."""
    rows, classes = x.shape
    starts, row_of = row_layout(rows, classes)
    # For short rows, finding the largest and taking it costs half of `np.max` along an axis.
    z = np.subtract(x, _along_rows(x.take(starts + x.argmax(1)), row_of))
    counted, number = None, rows
    # Unsigned, a negative index is larger than any other.
    plain = target.view(np.uint64)
    if rows and (plain.item(plain.argmax()) >= classes or 0 <= ignore_index < classes):
        target, counted, number = counted_targets(target, classes, ignore_index, x.dtype)
    places = starts + target
    chosen = z.take(places)
    if label_smoothing:
        _multiply(chosen, 1 - label_smoothing, chosen)
        _add(chosen, _multiply(_sum_last(z), label_smoothing / classes), chosen)
    np.exp(z, z)
    total = _sum_last(z)
    losses = np.log(total)
    np.subtract(losses, chosen, losses)
    # Each row's part in the loss, and so in the slopes too.
    part = 1 / number if number and reduction == "mean" else 1
    part = scalar(part, x.dtype)
    if counted is not None:
        part = _multiply(counted, part)
        losses = np.where(counted, losses, 0)
    _multiply(z, _along_rows(_divide(part, total), row_of), z)
    if label_smoothing:
        even = _multiply(part, label_smoothing / classes)
        np.subtract(z, even if counted is None else _along_rows(even, row_of), z)
        part = _multiply(part, 1 - label_smoothing)
    z.put(places, np.subtract(z.take(places), part))
    if reduction == "none":
        return losses, z
    loss = _dot(losses, ones(rows, losses.dtype))
    return (loss / number if number else loss * math.nan) if reduction == "mean" else loss, z


def counted_targets(
    target: Any, classes: int, ignore_index: int, dtype: Any
) -> tuple[Any, Any, int]:
    """Indices that can be looked up, which of them count, and how many do."""
    valid = target != ignore_index
    wrong = target[valid & ((target < 0) | (target >= classes))]
    if wrong.size:
        raise IndexError(
            f"Target {wrong[0]} is out of bounds: there are {classes} classes, so targets are "
            f"from 0 to {classes - 1}, or ignore_index={ignore_index}"
        )
    return np.where(valid, target, 0), valid.astype(dtype), int(np.count_nonzero(valid))


#: Elements from which the time in NumPy's loops outweighs that of starting them.
WIDE = 1 << 12

#: Elements up to which zeros of the whole shape are kept: more push other things out of the caches.
FILLED = 1 << 14

#: Columns up to which broadcasting a column costs more than an index for each element.
SHORT = 16

#: Integers as wide as the floats of each size.
BITS: Any = {"e": np.dtype(np.int16), "f": np.dtype(np.int32), "d": np.dtype(np.int64)}


def relu(x: Any, /) -> Any:
    """``max(x, 0)``, with zeros, or a row of them: NumPy has no vector code for a scalar."""
    shape, dtype = x.shape, x.dtype
    if shape and x.size <= FILLED:
        return np.maximum(x, zeros(shape, dtype))
    width = shape[-1] if shape else 0
    zero = zeros(width, dtype) if 64 <= width <= 16 * WIDE else scalar(0, dtype)
    return np.maximum(x, zero)


def mask(x: Any, by: Any) -> Any:
    """``x`` where ``by`` is not zero, and zero elsewhere."""
    return masked(x, np.not_equal(by, scalar(0, by.dtype)))


def masked(x: Any, keep: Any) -> Any:
    """``x`` where ``keep`` holds, and zero elsewhere, without a branch for each element."""
    dtype = x.dtype
    bits = BITS.get(dtype.char)
    arrays = type(x) is type(keep) is np.ndarray  # and not scalars
    if bits is None or x.shape != keep.shape or not arrays:
        return np.where(keep, x, scalar(0, dtype))
    # As integers, for which zero times an infinity is no question.
    factors = keep.astype(bits)
    return _multiply(x.view(bits), factors, factors).view(dtype)


KERNELS: Mapping[str, Kernel] = {
    "axpby": axpby,
    "linear": linear,
    "logistic_bell": logistic_bell,
    "mask": mask,
    "normalised": normalised,
    "relu": relu,
    "softmax_cross_entropy_parts": softmax_cross_entropy_parts,
}
