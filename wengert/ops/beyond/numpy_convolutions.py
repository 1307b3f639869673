"""NumPy's convolutions of images: products of matrices with windows of few images, or of few rows.

Images are first copied between zeros, elements a stride apart next to each other. So each element
of all windows reads one run of numbers, across the ends of rows. The result leaves out what a run
has beside. That can overflow or be nan: a result that is not finite is computed again without it.
"""

import math
from collections.abc import Iterator, Mapping
from functools import wraps
from itertools import product
from typing import Any, Final

import numpy as np

from wengert.backends.backend import Kernel, add_kernels, composites
from wengert.backends.registry import namespaces
from wengert.backends.windows import window_counts

__all__ = ["COVERED", "KERNELS", "covers", "where_covered"]

Sizes = tuple[int, ...]
Margins = tuple[tuple[int, int], ...]
#: Stride, zeros before and after each axis, dilation and groups.
How = tuple[Sizes, Margins, Sizes, int]

#: Numbers of windows that are made at once: two megabytes in single precision.
AT_ONCE: Final = 1 << 19
#: Products that OpenBLAS multiplies without arranging matrices, and the fewest places of these.
SMALL: Final = 10**6
FEWEST: Final = 64
#: Channels, and numbers in all windows, up to which composites are faster (NumPy 2.4).
FEW: Final = 4
FEW_NUMBERS: Final = 1 << 17
#: Results for each channel from which the composite gives the images' cotangent faster.
MANY: Final = 6


def _windows(
    x: Any, size: Sizes, how: How, products: int, exact: bool
) -> Iterator[tuple[slice, slice, int, Any]]:
    """Images, rows, the places of a row, and windows (images, groups, numbers, places)."""
    stride, margins, dilation, groups = how
    inside = [
        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape[2:], margins, strict=True)
    ]
    x = x[:, :, *inside]
    (top, bottom), (left, right) = ((max(a, 0), max(b, 0)) for a, b in margins)
    batch, channels, height, width = x.shape
    high, whole, (down, across) = height + top + bottom, width + left + right, stride
    rows, columns = window_counts((high, whole), size, stride, dilation)
    # The zeros after a row are before the next one. Elements a stride apart lie together.
    wide = max(-(-(width + max(left, right)) // across), columns)
    length = columns if exact else wide
    numbers = channels * math.prod(size)
    places = SMALL // (numbers * products)  # a number of a window is a factor of so many products
    number = (places if places >= FEWEST else AT_ONCE // numbers) // length
    number = -(-rows // -(-rows // max(number, 1)))  # blocks of one size
    phase = -(-high // down) * wide
    at_once = AT_ONCE // max(numbers * number * length, channels * phase * down * across)
    images = min(max(at_once, 1), max(batch, 1))
    held = np.zeros((images, channels, *stride, phase + whole), x.dtype)
    image = held[..., :phase].reshape(images, channels, *stride, -1, wide, copy=False)
    memory = np.empty(images * numbers * number * length, x.dtype)
    steps = *held.strides[:2], *np.multiply((*dilation, 1, 1), (wide, 1, wide, 1)) * x.itemsize
    for first in range(0, batch, images):
        some = slice(first, min(first + images, batch))
        for i, j in product(range(min(down, height)), range(min(across, width))):
            own = x[some, :, i::down, j::across]
            (row, p), (col, q) = divmod(top + i, down), divmod(left + j, across)
            place = slice(row, row + own.shape[2]), slice(col, col + own.shape[3])
            image[: len(own), :, p, q, *place] = own
        for start in range(0, rows, number):
            part = slice(start, min(start + number, rows))
            shape = some.stop - first, channels, *size, part.stop - start, length
            windows = memory[: math.prod(shape)].reshape(shape)
            for i, j in product(range(min(down, size[0])), range(min(across, size[1]))):
                (row, p), (col, q) = divmod(i * dilation[0], down), divmod(j * dilation[1], across)
                at = (p * across + q) * (phase + whole) + (start + row) * wide + col
                target = windows[:, :, i::down, j::across]  # (`as_strided` takes ten times as long)
                target[...] = np.ndarray(target.shape, x.dtype, held, at * x.itemsize, steps)
            yield some, part, length, windows.reshape(shape[0], groups, numbers // groups, -1)


def _correlate(x: Any, weight: Any, how: How, out: Any, exact: bool) -> None:
    """Write products of weights (groups, O, C, h, w) with windows into an array (N, O, H, W)."""
    groups, products, _, *size = weight.shape
    matrix, memory = weight.reshape(groups, products, -1), out[:0]
    for some, part, length, windows in _windows(x, tuple(size), how, products, exact):
        shape = len(windows), groups, products, windows.shape[3]
        if memory.shape != shape:
            memory = np.empty(shape, x.dtype)
        found = np.matmul(matrix, windows, memory).reshape(shape[0], groups * products, -1, length)
        out[some, :, part] = found[..., : out.shape[3]]


def _of_images(compute: Kernel) -> Kernel:
    """A function of images, or of signals, which computes again if its result is not finite."""

    @wraps(compute)
    def kernel(first: Any, second: Any, *bias: Any, how: How, **lengths: Any) -> Any:
        if signals := len(how[0]) == 1:
            first, second = first[:, :, None], second[:, :, None]
            how = (1, *how[0]), ((0, 0), *how[1]), (1, *how[2]), how[3]
            lengths = {name: (1, *n) for name, n in lengths.items()}
        with np.errstate(all="ignore"):
            out = compute(first, second, *bias, how=how, exact=False, **lengths)
            numbers = out.reshape(-1)
            finite = math.isfinite(np.vdot(numbers, numbers).real)
        if not finite:
            out = compute(first, second, *bias, how=how, exact=True, **lengths)
        return out[:, :, 0] if signals else out

    return kernel


def _is_pointwise(size: Sizes, how: How) -> bool:
    """Whether a window is one element, and each element has one."""
    return {*size, *how[0]} == {1} and not any(map(any, how[1]))


def _group(x: Any, groups: int) -> Any:
    """Images as stacks of matrices (N, groups, C, places)."""
    shape = len(x), groups, x.shape[1] // groups, math.prod(x.shape[2:])
    return np.ascontiguousarray(x).reshape(shape)


@_of_images
def convolution(x: Any, weight: Any, bias: Any, *, how: How, exact: bool) -> Any:
    """Products of weights (O, C / groups, h, w) with windows, and a bias."""
    stride, padding, dilation, groups = how
    produced, inner, *size = weight.shape
    wide = [n + a + b for n, (a, b) in zip(x.shape[2:], padding, strict=True)]
    shape = len(x), produced, *window_counts(wide, size, stride, dilation)
    by_group = np.ascontiguousarray(weight).reshape(groups, produced // groups, inner, *size)
    if _is_pointwise(size, how):
        out = np.matmul(by_group[..., 0, 0], _group(x, groups)).reshape(shape)
    else:
        out = np.empty(shape, x.dtype)
        _correlate(x, by_group, how, out, exact)
    return out if bias is None else np.add(out, bias.reshape(-1, 1, 1), out)


def _phases(
    n: int, k: int, s: int, d: int, before: int, count: int
) -> Iterator[tuple[slice, slice, tuple[int, int]]]:
    """Parts of windows, the elements that they read, and how far these are from the first window.

    Either the stride or the dilation is 1.
    """
    for first in range(min(k, s)):
        start = (first - before) % s
        at, number = (start + before - first) // s, len(range(start, n, s))
        reach = (k - 1 - first) // s * d
        if number:
            yield slice(first, None, s), slice(start, None, s), (reach - at, number + at - count)


@_of_images
def convolution_input(y: Any, weight: Any, *, lengths: Sizes, how: How, exact: bool) -> Any:
    """Convolve each phase of the images with its part of the weights.

    Zeros beside ``y`` meet the weights, so a non-finite weight spreads to more elements.
    """
    stride, padding, dilation, groups = how
    produced, inner, *size = weight.shape
    by_group = np.ascontiguousarray(weight).reshape(groups, produced // groups, inner, *size)
    turned = by_group.swapaxes(1, 2)
    shape = len(y), groups * inner, *lengths
    if _is_pointwise(size, how):
        return np.matmul(turned[..., 0, 0], _group(y, groups)).reshape(shape)
    out = np.zeros(shape, y.dtype)
    before = [a for a, _ in padding]
    axes = map(_phases, lengths, size, stride, dilation, before, y.shape[2:])
    for (down, high, rows), (across, wide, columns) in product(*axes):
        own = np.ascontiguousarray(turned[:, :, :, down, across][..., ::-1, ::-1])
        alike = (1, 1), (rows, columns), dilation, groups
        _correlate(y, own, alike, out[:, :, high, wide], exact)
    return out


@_of_images
def convolution_weight(x: Any, y: Any, *, size: Sizes, how: How, exact: bool) -> Any:
    """Products of windows with an array (N, O, H, W)."""
    groups, numbers = how[3], x.shape[1] // how[3] * math.prod(size)
    products, width = y.shape[1] // groups, y.shape[3]
    if _is_pointwise(size, how):
        total = np.matmul(_group(y, groups), _group(x, groups).mT).sum(axis=0)
        return total.reshape(y.shape[1], -1, *size)
    total, held = np.zeros((groups, numbers, products), x.dtype), y[:0]
    for some, part, length, windows in _windows(x, size, how, products, exact):
        shape = len(windows), y.shape[1], part.stop - part.start, length
        if held.shape != shape:
            held = np.zeros(shape, y.dtype)
        held[..., :width] = y[some, :, part]
        places = _group(held, groups).mT
        if numbers > products:  # NumPy turns the smaller matrix faster than OpenBLAS does
            places = np.ascontiguousarray(places)
        total += np.matmul(windows, places).sum(axis=0)
    return np.ascontiguousarray(total.mT).reshape(y.shape[1], -1, *size)


def covers(
    first: Any, second: Any, *bias: Any, how: How, lengths: Any = None, size: Any = None
) -> bool:
    """Whether a kernel is faster than the composite: not for few channels of small images."""
    channels = first.shape[1] if size else second.shape[1] * how[3]
    windows = math.prod((*first.shape, *(size or second.shape[2:])))
    small = channels <= FEW and windows <= FEW_NUMBERS
    alike = {x.dtype for x in (first, second, *bias) if x is not None}
    if len(how[0]) > 2 or small or len(alike) > 1 or first.dtype.char not in "fdFD":
        return False
    one = all(1 in both for both in zip(how[0], how[2], strict=True))
    few = first.shape[1] < MANY * channels or _is_pointwise(second.shape[2:], how)
    return lengths is None or (one and few)


def where_covered(name: str, kernel: Kernel, covers: Kernel = covers) -> Kernel:
    """A kernel with its composite for operands that it does not cover."""

    def function(*operands: Any, **parameters: Any) -> Any:
        if covers(*operands, **parameters):
            return kernel(*operands, **parameters)
        return composites[name](namespaces[np.ndarray], *operands, **parameters)

    return function


COVERED: Final = {f.__name__: f for f in (convolution, convolution_input, convolution_weight)}
KERNELS: Mapping[str, Kernel] = {n: where_covered(n, kernel) for n, kernel in COVERED.items()}
add_kernels("numpy", KERNELS)
