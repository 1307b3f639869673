"""NumPy's kernels for networks and optimisers: what is written into a temporary of their own."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel

__all__ = ["KERNELS", "ones"]

_add, _multiply, _divide = np.add, np.multiply, np.divide
_sum = np.add.reduce


# `np.matmul` of small matrices takes a third of a microsecond longer than the method `dot`.
_dot = np.ndarray.dot


@lru_cache(maxsize=16)
def _indices(length: int) -> Any:
    return np.arange(length)


@lru_cache(maxsize=16)
def ones(length: int, dtype: Any) -> Any:
    """Ones that nobody writes into: a product with them is a sum."""
    return np.ones(length, dtype)


def _add_into(out: Any, x: Any) -> Any:
    """``out + x`` in ``out``, a temporary, if it can hold the sum."""
    try:
        return _add(out, x, out=out)
    except TypeError:  # a scalar, or of a lesser dtype than ``x``
        return _add(out, x)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """``x @ weight.T + bias`` of a matrix or vector ``x``."""
    out = _dot(x, weight.T)
    return out if bias is None else _add_into(out, bias)


def _sum_last(x: Any) -> Any:
    """The sum over the last axis: by BLAS, which needs a third of the time, where it can."""
    if x.dtype.char in "fd":
        return _dot(x, ones(x.shape[-1], x.dtype))
    return _sum(x, axis=-1)


def axpby(a: float, x: Any, b: float, y: Any) -> Any:
    """``a * x + b * y``."""
    if a == 1:
        return _add(x, y) if b == 1 else _add_into(_multiply(y, b), x)
    return _add_into(_multiply(x, a), y if b == 1 else _multiply(y, b))


def normalised(m: Any, v: Any, scale: float, eps: float) -> Any:
    """``m / (sqrt(v) / scale + eps)``."""
    root = np.sqrt(v)
    if type(root) is not np.ndarray:
        return m / (root / scale + eps)
    _divide(root, scale, out=root)
    _add(root, eps, out=root)
    return _divide(m, root, out=root)


def softmax_cross_entropy_parts(
    x: Any, target: Any, *, ignore_index: int, reduction: str
) -> tuple[Any, Any, Any]:
    """The loss, the softmax, and which rows count; None if all do."""
    rows, classes = x.shape
    index = _indices(rows)
    # For short rows, finding the largest and taking it costs half of `np.max` along an axis.
    z = np.subtract(x, x[index, x.argmax(1), None])
    counted, number = None, rows
    # A negative index would count from the end, and one that is too large raises below.
    if 0 <= ignore_index < classes or (rows and target.item(target.argmin()) < 0):
        target, counted, number = _counted(target, classes, ignore_index, x.dtype)
    try:
        chosen = z[index, target]
    except IndexError:
        target, counted, number = _counted(target, classes, ignore_index, x.dtype)
        chosen = z[index, target]
    np.exp(z, out=z)
    total = _sum_last(z)
    losses = np.log(total)
    np.subtract(losses, chosen, out=losses)
    _divide(z, total[:, None], out=z)
    if counted is not None:
        losses = np.where(counted, losses, 0)
    if reduction == "none":
        return losses, z, counted
    loss = _sum_last(losses)
    if reduction == "mean":
        loss = loss / x.dtype.type(number) if number else x.dtype.type(np.nan)
    return loss, z, counted


def _counted(target: Any, classes: int, ignore_index: int, dtype: Any) -> tuple[Any, Any, int]:
    """Indices that can be looked up, which of them count, and how many do."""
    valid = target != ignore_index
    wrong = target[valid & ((target < 0) | (target >= classes))]
    if wrong.size:
        raise IndexError(
            f"Target {wrong[0]} is out of bounds: there are {classes} classes, so targets are "
            f"from 0 to {classes - 1}, or ignore_index={ignore_index}"
        )
    return np.where(valid, target, 0), valid.astype(dtype), int(np.count_nonzero(valid))


def softmax_cross_entropy_pullback(
    g: Any, probs: Any, target: Any, counted: Any, *, reduction: str
) -> Any:
    """``g`` times what the softmax has more than the right class's one."""
    rows = len(probs)
    if counted is not None:
        if reduction == "mean":
            g = g / max(_sum(counted), 1)
        g = g * counted
        target = np.where(counted, target, 0)
    elif reduction == "mean":
        g = g / max(rows, 1)
    out = _multiply(probs, g[:, None] if g.ndim else g)
    out[_indices(rows), target] -= g
    return out


KERNELS: Mapping[str, Kernel] = {
    "axpby": axpby,
    "linear": linear,
    "normalised": normalised,
    "softmax_cross_entropy_parts": softmax_cross_entropy_parts,
    "softmax_cross_entropy_pullback": softmax_cross_entropy_pullback,
}
