"""Sliding windows of the last axes, and sums of overlapping windows: each other's adjoint.

Windows come before their places, so that copies of them are made of long rows.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from wengert.backends.keys import Key
from wengert.backends.windows import window_counts
from wengert.interpreters.batching import as_it_is
from wengert.tape.calling import single
from wengert.tape.primitive import Primitive

Sizes = tuple[int, ...]


def _parts(size: Sizes, stride: Sizes, dilation: Sizes, counts: Sizes) -> Iterator[tuple[Key, Key]]:
    """For each element of a window its key there, and the key of its places in all windows."""
    for at in itertools.product(*map(range, size)):
        slices = [
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(at, dilation, counts, stride, strict=True)
        ]
        yield (..., *at, *[slice(None)] * len(at)), (..., *slices)


def _windows(xp: Any, x: Any, *, size: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    lead = tuple(x.shape[: len(x.shape) - len(size)])
    counts = window_counts(x.shape[len(lead) :], size, stride, dilation)
    parts = [xp.getitem(x, key=key) for _, key in _parts(size, stride, dilation, counts)]
    return xp.reshape(xp.stack(parts, axis=len(lead)), (*lead, *size, *counts))


def _windows_rule(
    xp: Any, g: Any, x_shape: Sizes, size: Sizes, stride: Sizes, dilation: Sizes
) -> Any:
    lengths = tuple(x_shape[len(x_shape) - len(size) :])
    return xp.overlap_add(g, lengths=lengths, size=size, stride=stride, dilation=dilation)


#: ``sliding_windows(x, size=, stride=, dilation=)``: of ``x`` with last axes as many as ``size``
#: has numbers, an array with the axes of a window, and those of its places, instead of them.
sliding_windows = single(
    Primitive(
        "sliding_windows",
        ["x"],
        {"x": _windows_rule},
        linear="together",
        composite=_windows,
        view=True,
        batch=as_it_is,
    )
)


def _overlap_add(
    xp: Any, x: Any, *, lengths: Sizes, size: Sizes, stride: Sizes, dilation: Sizes
) -> Any:
    rank = len(x.shape)
    shape = (*x.shape[: rank - 2 * len(size)], *lengths)
    counts = tuple(x.shape[rank - len(size) :])
    # What a trace records is not written into.
    total, own = None, xp.backend is not None
    for inside, key in _parts(size, stride, dilation, counts):
        part = xp.getitem(x, key=inside)
        if total is None:
            total = xp.scatter_add(part, key=key, shape=shape)
        else:
            total = xp.add_part(total, part, key=key, own=own)
    return total


#: ``overlap_add(x, lengths=, size=, stride=, dilation=)``: the array with last axes of ``lengths``
#: in which windows are summed.
overlap_add = Primitive(
    "overlap_add",
    ["x"],
    {
        "x": lambda xp, g, size, stride, dilation: xp.sliding_windows(
            g, size=size, stride=stride, dilation=dilation
        )
    },
    linear="together",
    composite=_overlap_add,
    batch=as_it_is,
).bind
