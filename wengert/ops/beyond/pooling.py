"""Sums of windows, and where the largest element of each is."""

import itertools
import math
from typing import Any

from wengert.backends import dtype_of
from wengert.interpreters.batching import as_it_is
from wengert.ops.beyond import numpy_pooling as numpy_pooling
from wengert.ops.beyond import windows as windows  # called through the namespace
from wengert.ops.beyond.places import Options, Places
from wengert.tape.primitive import Primitive

Sizes = tuple[int, ...]


# -- sums ------------------------------------------------------------------------------------------


def _sum(xp: Any, x: Any, *, size: Sizes, stride: Sizes) -> Any:
    found = xp.sliding_windows(x, size=size, stride=stride, dilation=(1,) * len(size))
    lead = len(x.shape) - len(size)
    return xp.sum(found, axis=tuple(range(lead, lead + len(size))), dtype=x.dtype)


def _sum_rule(xp: Any, g: Any, x_shape: Sizes, size: Sizes, stride: Sizes) -> Any:
    lead, places = tuple(x_shape[: -len(size)]), tuple(g.shape[-len(size) :])
    g = xp.reshape(g, (*lead, *[1] * len(size), *places))
    return xp.overlap_add(
        xp.broadcast_to(g, (*lead, *size, *places)),
        lengths=tuple(x_shape[-len(size) :]),
        size=size,
        stride=stride,
        dilation=(1,) * len(size),
    )


#: ``window_sum(x, size=, stride=)``: the sums of windows of the last axes.
window_sum = Primitive(
    "window_sum", ("x",), {"x": _sum_rule}, linear="together", composite=_sum, batch=as_it_is
).bind


# -- maxima ----------------------------------------------------------------------------------------


def take_windows(xp: Any, x: Any, places: list[Places]) -> Any:
    """Take the windows at tabulated places; the axes are those of `sliding_windows`."""
    count, lead = len(places), len(x.shape) - len(places)
    for i, p in enumerate(places):
        rows = p.table().T.reshape(-1).tolist()
        index = xp.asarray(rows, dtype=xp.int64, device=xp.device(x))
        x = xp.take(x, index, axis=lead + i)
    split = [n for p in places for n in (p.length, len(p.first))]
    x = xp.reshape(x, (*x.shape[:lead], *split))
    inside, between = range(lead, lead + 2 * count, 2), range(lead + 1, lead + 2 * count, 2)
    return xp.permute_dims(x, (*range(lead), *inside, *between))


def _argmax(xp: Any, x: Any, *, counts: Sizes, options: Options) -> Any:
    size, stride, padding, dilation = options
    lead, lengths = tuple(x.shape[: -len(counts)]), tuple(x.shape[-len(counts) :])
    inexact = dtype_of(x.dtype).inexact
    if any(padding):
        lowest = -math.inf if inexact else xp.iinfo(x.dtype).min
        wide = [n + 2 * p for n, p in zip(lengths, padding, strict=True)]
        held = xp.full((*lead, *wide), lowest, dtype=x.dtype, device=xp.device(x))
        inside = [slice(p, p + n) for n, p in zip(lengths, padding, strict=True)]
        x = xp.setitem(held, x, key=(..., *inside))
    windows = xp.sliding_windows(x, size=size, stride=stride, dilation=dilation)
    best: Any = None
    at: Any = None
    for number, place in enumerate(itertools.product(*map(range, size))):
        value = xp.getitem(windows, key=(..., *place, *[slice(None)] * len(counts)))
        if best is None:
            best = value
            continue
        better = value > best
        if inexact:
            better = better | (value != value)
        best = xp.maximum(best, value)
        last = xp.astype(better, xp.int64) * number
        at = last if at is None else xp.maximum(at, last)
    at = xp.zeros_like(best, dtype=xp.int64) if at is None else at
    flat: Any = 0
    for i, (n, k, s, p, d) in enumerate(zip(lengths, *options, strict=True)):
        after = math.prod(size[i + 1 :])
        own = xp.floor_divide(at, after) if after > 1 else at
        own = xp.remainder(own, k) if i else own
        first = xp.arange(-p, counts[i] * s - p, s, dtype=xp.int64, device=xp.device(x))
        own = own * d + xp.reshape(first, (-1, *[1] * (len(counts) - 1 - i)))
        if p:  # where all are the least of the dtype a margin's stands for the nearest inside
            own = xp.where(own < 0, xp.remainder(own, d), own)
            own = xp.where(own < n, own, n - 1 - xp.remainder(n - 1 - own, d))
        flat = own * math.prod(lengths[i + 1 :]) + flat
    return flat


#: ``window_argmax(x, counts=, options=)``: for so many windows of the last axes, flat indices of
#: their largest elements: of the first of equal ones, and the last of several nan.
window_argmax = Primitive(
    "window_argmax", ("x",), dtypes="real numeric", composite=_argmax, batch=as_it_is
).bind
