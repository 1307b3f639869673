"""NumPy's convolutions: products of matrices with windows that are copied in long rows.

The rows of images are first copied next to each other, with zeros between them, so that what one
element of all windows reads is one row of numbers. It has a few more numbers than there are places,
which the result leaves out. The windows are made of so few images, or rows of one, that they stay
in a cache, and never of a whole batch. With a stride, elements that are so far apart are copied
next to each other: those of one phase.

What is left out meets zeros, so that what is not finite could spread, and warnings would tell of
what no window has. So results that are not finite are computed again, without those numbers.
"""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache, wraps
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends.backend import Kernel, composed
from wengert.backends.registry import namespaces

__all__ = ["COVERED", "KERNELS", "covers"]

Sizes = tuple[int, ...]
Margins = tuple[tuple[int, int], ...]
#: Stride, zeros before and after each axis, dilation and groups.
How = tuple[Sizes, Margins, Sizes, int]

#: Numbers of windows that are made at once: two megabytes in single precision.
AT_ONCE: Final = 1 << 19
#: Products up to which OpenBLAS multiplies matrices as they are, which is a quarter faster than to
#: arrange them first, and the fewest places for which matrices are made so small.
SMALL: Final = 10**6
FEWEST: Final = 64
#: As many channels for each one that they are of have windows that take longer to be copied than
#: products with every part of a window take to be added.
MANY: Final = 6
#: Channels up to which composites are faster, by up to six times (NumPy 2.4).
FEW: Final = 4
#: Places of any image.
WHOLE: Final = 1 << 62


class Phase(NamedTuple):
    """Elements of an axis that are a stride apart, and the parts of windows that read them.

    Attributes
    ----------
    taps : slice
        These parts of a window.
    offset, step, reach : int
        What the first of them reads for the first window, how far apart they are, and what the last
        of them reads.
    source : slice
        The elements of the axis.
    start, stop : int
        Where these lie. Everything else is zero.
    """

    taps: slice
    offset: int
    step: int
    reach: int
    source: slice
    start: int
    stop: int


def _phases(n: int, k: int, s: int, d: int, before: int, count: int) -> list[Phase]:
    """The phases of ``n`` elements with zeros before them that ``count`` windows read."""
    together = math.gcd(s, d)
    found = []
    for first in range(min(k, s // together)):
        taps = slice(first, k, s // together)
        offset, step = first * d // s, d // together
        reach = offset + step * ((k - 1 - first) // (s // together))
        # Number u of the phase is element ``begin + s u`` of the axis.
        begin = first * d % s - before
        start = max(-(begin // s), 0)
        stop = min((n - 1 - begin) // s + 1, count + reach)
        if start >= stop:  # none is read, and memory need not go as far
            start = stop = 0
        source = slice(begin + s * start, begin + s * stop, s) if stop else slice(0)
        found.append(Phase(taps, offset, step, reach, source, start, stop))
    return found


class Layout(NamedTuple):
    """How images lie in memory for their windows, which are made in blocks of rows of places.

    Attributes
    ----------
    phases : list of (Phase, Phase)
        Of both axes.
    width, wide : int
        How many places are in a row, and how far apart rows are.
    length : int
        How many numbers each phase of an image takes.
    rows, blocks : int
        Of a block, and of an image.
    images, several : int
        How many images, and blocks of each, are made at once.
    """

    phases: list[Any]
    width: int
    wide: int
    length: int
    rows: int
    blocks: int
    images: int
    several: int


@lru_cache(maxsize=256)
def _layout(
    batch: int,
    lengths: Sizes,
    size: Sizes,
    stride: Sizes,
    dilation: Sizes,
    before: Sizes,
    counts: Sizes,
    numbers: int,
    places: int,
) -> Layout:
    """The layout for windows of so many numbers at a place, in blocks of so many places."""
    down, across = map(_phases, lengths, size, stride, dilation, before, counts)
    high, width = counts
    # Beyond its end a row goes on with the next one, which has zeros before its first element.
    needed = [max(q.stop, width + q.reach - q.start) for q in across if q.stop > q.start]
    wide = max(width, *needed, 1)
    blocks = -(-high // max(places // wide, 1))
    rows = -(-high // blocks)
    at_once = max(AT_ONCE // (numbers * rows * wide), 1)
    length = max(*[blocks * rows + p.reach for p in down], *[p.stop for p in down]) * wide
    length += max(q.reach for q in across)
    images = max(min(batch, at_once // blocks), 1)
    phases = list(product(down, across))
    return Layout(phases, width, wide, length, rows, blocks, images, min(blocks, at_once))


def _places(numbers: int, products: int) -> int:
    """How many places a block has if windows have so many numbers, each with so many products."""
    small = SMALL // (numbers * products)
    return small if small >= FEWEST else AT_ONCE // numbers


def _windows(x: Any, size: Sizes, layout: Layout, wide: int) -> Iterator[tuple[slice, slice, Any]]:
    """Which images, which of their blocks, and the windows: (images, blocks, C, *size, places).

    ``wide`` is how many places are made of each row.
    """
    batch, channels = x.shape[:2]
    phases, _, apart, length, rows, blocks, images, several = layout
    dtype, item = x.dtype, x.itemsize
    row, channel, image = apart * item, length * item, channels * length * item
    held = [np.zeros((images, channels, length), dtype) for _ in phases]
    memory = np.empty((images, several, channels, *size, rows, wide), dtype)
    for first in range(0, batch, images):
        some = slice(first, min(first + images, batch))
        number = some.stop - first
        for own, (p, q) in zip(held, phases, strict=True):
            # (`as_strided` takes ten times as long to make a view.)
            shape = number, channels, p.stop - p.start, q.stop - q.start
            at = p.start * row + q.start * item
            view: Any = np.ndarray(shape, dtype, own, at, (image, channel, row, item))
            view[...] = x[some, :, p.source, q.source]
        for top in range(0, blocks, several):
            part = slice(top, min(top + several, blocks))
            windows = memory[:number, : part.stop - top]
            for own, (p, q) in zip(held, phases, strict=True):
                target = windows[:, :, :, p.taps, q.taps]
                at = (top * rows + p.offset) * row + q.offset * item
                steps = image, rows * row, channel, p.step * row, q.step * item, row, item
                target[...] = np.ndarray(target.shape, dtype, own, at, steps)
            yield some, part, windows


def _in_blocks(x: Any, some: slice, part: slice, rows: int) -> Iterator[tuple[Any, slice, int]]:
    """What an array (N, O, H, W) has in blocks: a view, which blocks, and of how many rows.

    The last block may have fewer rows than the others.
    """
    high = x.shape[2]
    whole = min(part.stop, high // rows)
    if whole > part.start:
        view = x[some, :, part.start * rows : whole * rows]
        shape = *view.shape[:2], whole - part.start, rows, x.shape[3]
        yield view.reshape(shape, copy=False).swapaxes(1, 2), slice(whole - part.start), rows
    if whole < part.stop:
        yield x[some, None, :, whole * rows :], slice(whole - part.start, None), high % rows


def _correlate(
    x: Any, weight: Any, bias: Any, into: Any, size: Sizes, layout: Layout, wide: int
) -> None:
    """Write products of weights (groups, O, elements) with windows into an array (N, O, H, W)."""
    rows, width = layout.rows, layout.width
    memory = np.empty((layout.images, layout.several, *weight.shape[:2], rows * wide), into.dtype)
    for some, part, windows in _windows(x, size, layout, wide):
        out = memory[: windows.shape[0], : windows.shape[1]]
        matrices = windows.reshape(*out.shape[:3], weight.shape[2], rows * wide, copy=False)
        np.matmul(weight, matrices, out=out)
        if bias is not None:
            np.add(out, bias, out)
        found = out.reshape(*out.shape[:2], -1, rows, wide, copy=False)[..., :width]
        for target, these, high in _in_blocks(into, some, part, rows):
            target[...] = found[:, these, :, :high]


def _of_images(compute: Kernel) -> Kernel:
    """A function of images, which computes again if its result is not finite."""

    @wraps(compute)
    def kernel(first: Any, second: Any, *bias: Any, how: How, **lengths: Any) -> Any:
        finite = False
        if first.dtype == second.dtype and first.dtype.char in "fdFD":
            with np.errstate(all="ignore"):
                out = compute(first, second, *bias, how=how, exact=False, **lengths)
                numbers = out.reshape(-1)
                finite = math.isfinite(np.vdot(numbers, numbers).real)
        return out if finite else compute(first, second, *bias, how=how, exact=True, **lengths)

    return kernel


def _is_pointwise(size: Sizes, how: How) -> bool:
    """Whether a window is one element, and each element has one."""
    return {*size, *how[0]} == {1} and not any(map(any, how[1]))


def _grouped(x: Any, groups: int) -> Any:
    """Images as stacks of matrices (N, groups, C, places)."""
    batch, channels = x.shape[:2]
    shape = batch, groups, channels // groups, math.prod(x.shape[2:])
    return np.ascontiguousarray(x).reshape(shape)


@_of_images
def convolution(x: Any, weight: Any, bias: Any, *, how: How, exact: bool) -> Any:
    """Products of weights (O, C / groups, h, w) with windows, and a bias."""
    stride, padding, dilation, groups = how
    produced, inner, *size = weight.shape
    dtype = np.result_type(x, weight) if bias is None else np.result_type(x, weight, bias)
    rows = groups, produced // groups, inner * math.prod(size)
    matrix = np.ascontiguousarray(weight).reshape(rows)
    column = None if bias is None else bias.reshape(groups, produced // groups, 1)
    counts = tuple(
        [
            (n + a + b - (k - 1) * d - 1) // s + 1
            for n, (a, b), k, d, s in zip(x.shape[2:], padding, size, dilation, stride, strict=True)
        ]
    )
    shape = len(x), produced, *counts
    if _is_pointwise(size, how):
        out = np.matmul(matrix, _grouped(x, groups))
        return (out if column is None else out + column).reshape(shape)
    before = tuple([a for a, _ in padding])
    numbers = x.shape[1] * math.prod(size)
    places = WHOLE if exact else _places(numbers, produced // groups)
    layout = _layout(
        *(len(x), x.shape[2:], tuple(size), stride, dilation, before, counts, numbers, places)
    )
    out = np.empty(shape, dtype)
    _correlate(x, matrix, column, out, tuple(size), layout, layout.width if exact else layout.wide)
    return out


@_of_images
def convolution_input(y: Any, weight: Any, *, lengths: Sizes, how: How, exact: bool) -> Any:
    """For each phase of the images a convolution with the part of the weights that reads it.

    Where windows would be of many channels, sums of the products with each part instead.
    """
    stride, padding, dilation, groups = how
    produced, inner, *size = weight.shape
    dtype, channels = np.result_type(y, weight), groups * inner
    if exact or produced >= MANY * channels or _is_pointwise(size, how):
        shape = groups, produced // groups, inner * math.prod(size)
        matrix = np.ascontiguousarray(weight).reshape(shape).mT
        if _is_pointwise(size, how):
            return np.matmul(matrix, _grouped(y, groups)).reshape(len(y), channels, *lengths)
        return _overlapped(y, matrix, (channels, *size), lengths, how)
    turned = weight.reshape(groups, produced // groups, inner, *size).swapaxes(1, 2)
    before = [a for a, _ in padding]
    down, across = map(_phases, lengths, size, stride, dilation, before, y.shape[2:])
    out = np.zeros((len(y), channels, *lengths), dtype)
    for p, q in product(down, across):
        counts = p.stop - p.start, q.stop - q.start
        if 0 in counts:
            continue
        own = turned[:, :, :, p.taps, q.taps][..., ::-1, ::-1]
        part, numbers = own.shape[3:], produced * math.prod(own.shape[3:])
        layout = _layout(
            *(len(y), y.shape[2:], part, (1, 1), (p.step, q.step)),
            *((p.reach - p.start, q.reach - q.start), counts),
            *(numbers, _places(numbers, inner)),
        )
        matrix = np.ascontiguousarray(own).reshape(groups, inner, numbers // groups)
        _correlate(y, matrix, None, out[:, :, p.source, q.source], part, layout, layout.wide)
    return out


def _overlapped(y: Any, matrix: Any, window: Sizes, lengths: Sizes, how: How) -> Any:
    """The sums of windows (C, h, w), products with a matrix, in images of some lengths."""
    stride, padding, dilation, groups = how
    (batch, _, high, width), numbers = y.shape, math.prod(window)
    wide = [n + a + b for n, (a, b) in zip(lengths, padding, strict=True)]
    out: Any = np.zeros((batch, window[0], *wide), np.result_type(y, matrix))
    # Windows that are read once need not stay in a cache.
    rows = max(4 * AT_ONCE // max(numbers * width, 1), 1)
    images = max(rows // max(high, 1), 1)
    for first, top in product(range(0, batch, images), range(0, high, rows)):
        part = y[first : first + images, :, top : top + rows]
        parts = np.matmul(matrix, _grouped(part, groups))
        parts = parts.reshape(len(part), *window, *part.shape[2:])
        into = out[first : first + images, :, top * stride[0] :]
        for at in np.ndindex(*window[1:]):
            key = [
                slice(i * d, i * d + (n - 1) * s + 1, s)
                for i, d, n, s in zip(at, dilation, part.shape[2:], stride, strict=True)
            ]
            into[(..., *key)] += parts[(slice(None), slice(None), *at)]
    inside = [slice(a, a + n) for n, (a, _) in zip(lengths, padding, strict=True)]
    return out[(..., *inside)].copy()


@_of_images
def convolution_weight(x: Any, y: Any, *, size: Sizes, how: How, exact: bool) -> Any:
    """Products of windows with an array (N, O, H, W)."""
    stride, padding, dilation, groups = how
    inner, produced, counts = x.shape[1] // groups, y.shape[1] // groups, y.shape[2:]
    total = np.zeros((groups, inner * math.prod(size), produced), np.result_type(x, y))
    if _is_pointwise(size, how):
        few = max(AT_ONCE // total.size, 1)
        for first in range(0, len(x), few):
            part = slice(first, first + few)
            given = _grouped(x[part], groups), _grouped(y[part], groups).mT
            total += np.matmul(*given).sum(axis=0)
    else:
        numbers, before = x.shape[1] * math.prod(size), tuple([a for a, _ in padding])
        layout = _layout(
            *(len(x), x.shape[2:], size, stride, dilation, before, counts),
            *(numbers, WHOLE if exact else _places(numbers, produced)),
        )
        rows, wide = layout.rows, layout.width if exact else layout.wide
        memory = np.zeros((layout.images, layout.several, y.shape[1], rows, wide), y.dtype)
        for some, part, windows in _windows(x, size, layout, wide):
            held = memory[: windows.shape[0], : windows.shape[1]]
            for given, these, high in _in_blocks(y, some, part, rows):
                held[:, these, :, :high, : counts[1]] = given
                held[:, these, :, high:] = 0
            shape = *held.shape[:2], groups, -1, rows * wide
            by_places = held.reshape(shape, copy=False).mT
            if numbers > produced * groups:
                # NumPy turns the smaller matrix faster than OpenBLAS does.
                by_places = np.ascontiguousarray(by_places)
            total += np.matmul(windows.reshape(shape, copy=False), by_places).sum(axis=(0, 1))
    return np.ascontiguousarray(total.mT).reshape(groups * produced, inner, *size)


def covers(first: Any, second: Any, *bias: Any, how: How, **lengths: Any) -> bool:
    """Whether a kernel is faster than the composite: of images of more than a few channels."""
    channels = first.shape[1] if "size" in lengths else second.shape[1] * how[3]
    return len(how[0]) == 2 and channels > FEW


def _where_covered(name: str, kernel: Kernel) -> Kernel:
    def function(*operands: Any, **parameters: Any) -> Any:
        if covers(*operands, **parameters):
            return kernel(*operands, **parameters)
        return composed(name)(namespaces[np.ndarray], *operands, **parameters)

    return function


COVERED: Mapping[str, Kernel] = {
    "convolution": convolution,
    "convolution_input": convolution_input,
    "convolution_weight": convolution_weight,
}
KERNELS: Mapping[str, Kernel] = {
    name: _where_covered(name, kernel) for name, kernel in COVERED.items()
}
