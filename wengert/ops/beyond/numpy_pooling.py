"""NumPy's pooling: from one array for each element of the windows, with their places as axes."""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from wengert.backends.backend import Kernel, add_kernels
from wengert.backends.windows import window_counts
from wengert.ops.beyond.places import Options, pooled_places

__all__ = ["KERNELS"]

Sizes = tuple[int, ...]
#: Elements of the longest windows that are added one after the other.
LONGEST: Final = 64
#: Places of windows' elements that are kept for the next call: one megabyte.
KEPT: Final = 1 << 17


def _elements(x: Any, size: Sizes, stride: Sizes, dilation: Sizes, counts: Sizes) -> Iterator[Any]:
    """The first, second, ... element of all windows: views."""
    for at in np.ndindex(*size):
        parts = zip(at, dilation, counts, stride, strict=True)
        yield x[(..., *[slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in parts])]


def window_sum(x: Any, *, size: Sizes, stride: Sizes) -> Any:
    """The sums of windows of the last axes."""
    count = len(size)
    dilation, lengths = (1,) * count, x.shape[x.ndim - count :]
    counts = window_counts(lengths, size, stride, dilation)
    if counts == (1,) * count:
        key: Any = (..., *[slice(n) for n in size])
        return x[key].sum(axis=tuple(range(x.ndim - count, x.ndim)), keepdims=True, dtype=x.dtype)
    if math.prod(size) > LONGEST:
        view: Any = np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(-count, 0)))
        steps = (..., *[slice(None, None, s) for s in stride], *[slice(None)] * count)
        return view[steps].sum(axis=tuple(range(-count, 0)), dtype=x.dtype)
    first, *others = _elements(x, size, stride, dilation, counts)
    total = np.add(first, others[0]) if others else first.copy()
    for part in others[1:]:
        np.add(total, part, total)
    return total


def window_argmax(x: Any, *, counts: Sizes, options: Options) -> Any:
    """Flat indices of windows' largest elements: of the first, and of the last nan."""
    lengths = x.shape[x.ndim - len(counts) :]
    layout = _layout if math.prod(options[0]) * math.prod(counts) <= KEPT else _layout.__wrapped__
    flat = layout(lengths, counts, options)
    parts = _parts(x, counts, options)
    best, at = _largest(parts, nan=False)
    if x.dtype.kind == "f" and np.isnan(best).any():
        _, at = _largest(parts, nan=True)
    where = np.multiply(at, flat.shape[1], dtype=np.intp)
    where += np.arange(flat.shape[1]).reshape(counts)
    return flat.reshape(-1).take(where).astype(np.int64, copy=False)


@lru_cache(maxsize=32)
def _layout(lengths: Sizes, counts: Sizes, options: Options) -> Any:
    """Flat indices of each element (row) of each window (column).

    Those in a margin are the nearest ones inside.
    """
    places = pooled_places(lengths, counts, options)
    flat: Any = 0
    axes = range(len(counts))
    for axis, table in enumerate([p.table() for p in places]):
        shape = [n for i in axes for n in (table.T.shape if i == axis else (1, 1))]
        flat = flat * lengths[axis] + table.T.reshape(shape)
    flat = flat.transpose([2 * i + k for k in (0, 1) for i in axes])
    return flat.reshape(-1, math.prod(counts))


def _largest(parts: list[Any], *, nan: bool) -> tuple[Any, Any]:
    """The largest of some arrays' elements, and in which array: the first, or the last nan."""
    best = parts[0].copy()
    at: Any = np.zeros(best.shape, np.uint8 if len(parts) <= 256 else np.intp)
    # NumPy copies numbers that lie apart in half of the time that it takes to compare them.
    held, more, better = np.empty_like(best), np.empty_like(at), np.empty(best.shape, np.bool_)
    factor = better.view(np.uint8) if len(parts) <= 256 else better
    for number, part in enumerate(parts[1:], 1):
        held[...] = part
        np.greater(held, best, out=better)
        if nan:
            np.logical_or(better, np.not_equal(held, held), out=better)
        np.maximum(best, held, out=best)
        # A difference that a byte does not have comes round.
        np.multiply(np.subtract(number, at, out=more), factor, out=more)
        np.add(at, more, out=at)
    return best, at


def _parts(x: Any, counts: Sizes, options: Options) -> list[Any]:
    """One array for each element of the windows; margins are less than any element."""
    size, stride, padding, dilation = options
    if any(padding):
        lead, lengths = x.shape[: x.ndim - len(counts)], x.shape[x.ndim - len(counts) :]
        wide = [n + 2 * p for n, p in zip(lengths, padding, strict=True)]
        lowest = -math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        held: Any = np.full((*lead, *wide), lowest, x.dtype)
        held[(..., *[slice(p, p + n) for p, n in zip(padding, lengths, strict=True)])] = x
        x = held
    return list(_elements(x, size, stride, dilation, counts))


KERNELS: Mapping[str, Kernel] = {"window_argmax": window_argmax, "window_sum": window_sum}
add_kernels("numpy", KERNELS)
