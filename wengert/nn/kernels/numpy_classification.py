"""NumPy's cross entropy of classes, in few passes over the logits."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel, add_kernels
from wengert.backends.numpy_networks import ones, row_layout, scalar

__all__ = ["KERNELS"]

_multiply = np.multiply


def _along_rows(values: Any, row_of: Any) -> Any:
    """One value for each row: as a column, or repeated for each element where that is faster."""
    return values.reshape((-1, 1)) if row_of is None else values.take(row_of)


def _sum_last(x: Any) -> Any:
    """The sum over the last axis: by BLAS, which needs a third of the time, where it can."""
    if x.dtype.char in "fd":
        return x.dot(ones(x.shape[-1], x.dtype))
    return np.add.reduce(x, axis=-1)


def softmax_cross_entropy_parts(
    x: Any, target: Any, *, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Any, Any]:
    """The loss, and its derivative by each logit."""
    rows, classes = x.shape
    starts, row_of = row_layout(rows, classes)
    mean = reduction == "mean"
    places, part, counted = targets(target, starts, classes, ignore_index, mean, x.dtype)
    # For short rows, finding the largest and taking it costs half of `np.max` along an axis.
    z = np.subtract(x, _along_rows(x.take(x.argmax(1) + starts), row_of))
    chosen = z.take(places)
    if label_smoothing:
        _multiply(chosen, 1 - label_smoothing, chosen)
        np.add(chosen, _multiply(_sum_last(z), label_smoothing / classes), chosen)
    np.exp(z, z)
    total = _sum_last(z)
    losses = np.log(total)
    losses = counted_losses(np.subtract(losses, chosen, losses), counted)
    _multiply(z, _along_rows(np.divide(part, total), row_of), z)
    if label_smoothing:
        even = _multiply(part, label_smoothing / classes)
        np.subtract(z, _along_rows(even, row_of), z)
        part = _multiply(part, 1 - label_smoothing)
    z.put(places, np.subtract(z.take(places), part))
    if reduction == "none":
        return losses, z
    loss = losses.dot(ones(rows, losses.dtype))
    return loss / number_counted(counted) if mean else loss, z


#: Of indices: a negative one is larger than any other.
_UNSIGNED = np.dtype(np.uint64)


@lru_cache(maxsize=64)
def _all_counted(rows: int) -> Any:
    """A mask in which each row counts."""
    return np.ones(rows, bool)


@lru_cache(maxsize=64)
def _same_parts(rows: int, mean: bool, dtype: Any) -> tuple[Any, Any]:
    """Each row's part in the loss, the same for all, and a mask in which all count."""
    return np.full(rows, 1 / rows if mean and rows else 1, dtype), _all_counted(rows)


def targets(
    target: Any, starts: Any, classes: int, ignore_index: int, mean: bool, dtype: Any
) -> tuple[Any, Any, Any]:
    """Where each row's right class is, the row's part in the loss, and which rows count.

    Raises
    ------
    IndexError
        For a class that there is not.
    """
    rows = len(target)
    plain = target.view(_UNSIGNED)
    if not rows or (plain.item(plain.argmax()) < classes and not 0 <= ignore_index < classes):
        return starts + target, *_same_parts(rows, mean, dtype)
    counted = target != ignore_index
    wrong = target[counted & ((target < 0) | (target >= classes))]
    if wrong.size:
        raise IndexError(
            f"Target {wrong[0]} is out of bounds: there are {classes} classes, so targets are "
            f"from 0 to {classes - 1}, or ignore_index={ignore_index}"
        )
    number = int(np.count_nonzero(counted)) or 1
    part = _multiply(counted, scalar(1 / number if mean else 1, dtype))
    return starts + np.where(counted, target, 0), part, counted


def counted_losses(losses: Any, counted: Any) -> Any:
    """The losses of rows that count, and zero for the others."""
    return losses if counted is _all_counted(len(losses)) else np.where(counted, losses, 0)


def number_counted(counted: Any) -> float:
    """How many rows count; not a number if none does."""
    if counted is _all_counted(len(counted)):
        return len(counted) or math.nan
    return int(np.count_nonzero(counted)) or math.nan


KERNELS: Mapping[str, Kernel] = {"softmax_cross_entropy_parts": softmax_cross_entropy_parts}
add_kernels("numpy", KERNELS)
