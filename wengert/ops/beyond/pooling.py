"""Sums of windows, and where the largest element of each is."""

import itertools
import math
from typing import Any

from wengert.backends import dtype_of
from wengert.interpreters.batching import as_it_is
from wengert.ops.beyond import numpy_pooling as numpy_pooling
from wengert.ops.beyond import windows as windows  # called through the namespace
from wengert.ops.beyond.places import Options, Places, pooled_places
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
        index = _constant(xp, x, p.table().T.reshape(-1))
        x = xp.take(x, index, axis=lead + i)
    split = [n for p in places for n in (p.length, len(p.first))]
    x = xp.reshape(x, (*x.shape[:lead], *split))
    inside, between = range(lead, lead + 2 * count, 2), range(lead + 1, lead + 2 * count, 2)
    return xp.permute_dims(x, (*range(lead), *inside, *between))


def _constant(xp: Any, like: Any, values: Any) -> Any:
    """Integers of the host beside an array."""
    return xp.asarray(values.tolist(), dtype=xp.int64, device=xp.device(like))


def _argmax(xp: Any, x: Any, *, counts: Sizes, options: Options) -> Any:
    count = len(counts)
    lengths = tuple(x.shape[len(x.shape) - count :])
    places = pooled_places(lengths, counts, options)
    if options is not None and all(p.inside for p in places):
        size, stride, _, dilation = options
        windows = xp.sliding_windows(x, size=size, stride=stride, dilation=dilation)
    else:
        windows = take_windows(xp, x, places)
    best: Any = None
    at: Any = None
    for number, inside in enumerate(itertools.product(*[range(p.length) for p in places])):
        value = xp.getitem(windows, key=(..., *inside, *[slice(None)] * count))
        if best is None:
            best, at = value, xp.zeros_like(value, dtype=xp.int64)
            continue
        better = value > best
        if dtype_of(x.dtype).inexact:
            better = better | (value != value)
        best = xp.maximum(best, value)
        at = xp.maximum(at, xp.astype(better, xp.int64) * number)
    flat: Any = 0
    for i, p in enumerate(places):
        after = math.prod([q.length for q in places[i + 1 :]])
        own = xp.floor_divide(at, after) if after > 1 else at
        if i:
            own = xp.remainder(own, p.length)
        shape = [-1 if i == j else 1 for j in range(count)]
        first, low, high = [_constant(xp, x, n.reshape(shape)) for n in (p.first, p.low, p.high)]
        own = own * p.step + first
        if not p.inside:
            own = xp.minimum(xp.maximum(own, low), high)
        flat = own * math.prod(lengths[i + 1 :]) + flat
    return flat


#: ``window_argmax(x, counts=, options=)``: for so many windows of the last axes, flat indices of
#: their largest elements: of the first of equal ones, and the last of several nan.
window_argmax = Primitive(
    "window_argmax", ("x",), dtypes="real numeric", composite=_argmax, batch=as_it_is
).bind
