"""NumPy's kernels for networks and optimisers: what is written into a temporary of their own."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel

__all__ = ["KERNELS"]

_add, _multiply, _divide = np.add, np.multiply, np.divide
_sum, _max = np.add.reduce, np.maximum.reduce


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """``x @ weight.T + bias``."""
    out = np.matmul(x, weight.T)
    if bias is None:
        return out
    if out.dtype is bias.dtype and out.ndim == 2:
        return _add(out, bias, out=out)
    return _add(out, bias)


def axpby(a: float, x: Any, b: float, y: Any) -> Any:
    """``a * x + b * y``."""
    if a != 1:
        if b != 1:
            y = _multiply(y, b)
        scaled, other = _multiply(x, a), y
    elif b != 1:
        scaled, other = _multiply(y, b), x
    else:
        return _add(x, y)
    if type(scaled) is np.ndarray and scaled.dtype is other.dtype:
        return _add(scaled, other, out=scaled)
    return _add(scaled, other)


def normalised(m: Any, v: Any, scale: float, eps: float) -> Any:
    """``m / (sqrt(v) / scale + eps)``."""
    root = np.sqrt(v)
    if type(root) is not np.ndarray:
        return m / (root / scale + eps)
    _divide(root, scale, out=root)
    _add(root, eps, out=root)
    return _divide(m, root, out=root)


# Indices of each width as unsigned ones, among which a negative one is larger than any class.
_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def softmax_cross_entropy_parts(
    x: Any, target: Any, *, ignore_index: int, reduction: str
) -> tuple[Any, Any, Any]:
    """The loss, the softmax, and which rows count; None if all do."""
    rows, classes = x.shape
    z = np.subtract(x, _max(x, axis=1, keepdims=True))
    counted, number = None, rows
    if rows and _max(target.view(_UNSIGNED[target.dtype])) >= classes:
        valid = target != ignore_index
        wrong = target[valid & ((target < 0) | (target >= classes))]
        if wrong.size:
            raise IndexError(
                f"Target {wrong[0]} is out of bounds: there are {classes} classes, so targets "
                f"are from 0 to {classes - 1}, or ignore_index={ignore_index}"
            )
        counted = valid.astype(x.dtype)
        number = int(np.count_nonzero(valid))
        target = np.where(valid, target, 0)
    elif 0 <= ignore_index < classes:
        valid = target != ignore_index
        counted = valid.astype(x.dtype)
        number = int(np.count_nonzero(valid))
    chosen = z[np.arange(rows), target]
    np.exp(z, out=z)
    total = _sum(z, axis=1)
    losses = np.log(total)
    np.subtract(losses, chosen, out=losses)
    _divide(z, total[:, None], out=z)
    if counted is not None:
        losses = np.where(counted, losses, 0)
    if reduction == "none":
        return losses, z, counted
    loss = _sum(losses)
    if reduction == "mean":
        loss = loss / x.dtype.type(number) if number else x.dtype.type(np.nan)
    return loss, z, counted


def softmax_cross_entropy_pullback(
    g: Any, probs: Any, target: Any, counted: Any, *, reduction: str
) -> Any:
    """``g`` times what the softmax has more than the right class's one."""
    if counted is not None:
        if reduction == "mean":
            g = g / max(_sum(counted), 1)
        g = g * counted
        target = np.where(counted, target, 0)
    elif reduction == "mean":
        g = g / max(len(probs), 1)
    out = _multiply(probs, g[:, None] if g.ndim else g)
    out[np.arange(len(probs)), target] -= g
    return out


KERNELS: Mapping[str, Kernel] = {
    "axpby": axpby,
    "linear": linear,
    "normalised": normalised,
    "softmax_cross_entropy_parts": softmax_cross_entropy_parts,
    "softmax_cross_entropy_pullback": softmax_cross_entropy_pullback,
}
