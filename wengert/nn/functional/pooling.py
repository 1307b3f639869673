"""Pooling: of each window the mean, or the maximum and where it is."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wengert import ops
from wengert.interpreters.namespaces import differentiable
from wengert.nn.functional.convolution import window_lengths
from wengert.nn.functional.define import refusing
from wengert.nn.functional.spatial import Sizes, examples, pad_with_zeros, sizes, unbatch
from wengert.ops.beyond.places import adaptive_places, pooled_places
from wengert.ops.beyond.pooling import take_windows, window_argmax, window_sum
from wengert.ops.conversion import beside
from wengert.ops.shares import by_float32
from wengert.tape.tensor import Tensor

_Size = int | tuple[int, ...]


class _Windows(NamedTuple):
    """The options of pooling for each axis, and how many windows there are."""

    size: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    counts: Sizes


def _windows(
    name: str, lengths: Sizes, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> _Windows:
    count = len(lengths)
    size = sizes(kernel_size, count, name, "kernel_size", 1)
    given = stride is None or stride in ((), [])
    steps = size if given else sizes(stride, count, name, "stride", 1)
    padded = sizes(padding, count, name, "padding")
    spread = sizes(dilation, count, name, "dilation", 1)
    if any(2 * p > (k - 1) * d + 1 for p, k, d in zip(padded, size, spread, strict=True)):
        raise RuntimeError(
            f"{name}: pad should be at most half of effective kernel size, and got "
            f"padding={padded}, kernel_size={size} and dilation={spread}"
        )
    wide = tuple([n + 2 * p for n, p in zip(lengths, padded, strict=True)])
    return _Windows(size, steps, padded, spread, window_lengths(wide, size, steps, spread, name))


# -- means ----------------------------------------------------------------------------------------


def _mean(
    name: str,
    count: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    count_include_pad: bool,
) -> Tensor:
    x, batched = examples(input, count, name)
    if x.dtype.narrow:
        given = (kernel_size, stride, padding, count_include_pad)
        return by_float32(partial(_mean, name, count), input, *given)  # type: ignore[no-any-return]
    lengths = tuple(x.shape[2:])
    size, steps, padded, _, counts = _windows(name, lengths, kernel_size, stride, padding, 1)
    divisor = np.asarray(math.prod(size))
    if any(padded) and not count_include_pad:
        divisor = np.ones((1,) * count)
        for axis, (n, c, k, s, p) in enumerate(
            zip(lengths, counts, size, steps, padded, strict=True)
        ):
            start = np.arange(c) * s - p
            own = np.minimum(start + k, n) - np.maximum(start, 0)
            divisor = divisor * own.reshape([-1 if i == axis else 1 for i in range(count)])
    x = pad_with_zeros(x, [(p, p) for p in padded])
    return unbatch(_divide_sums(window_sum(x, size=size, stride=steps), divisor), batched)


def _divide_sums(total: Tensor, divisor: Any) -> Tensor:
    """Sums divided by numbers of elements, which are integers."""
    if (divisor == divisor.flat[0]).all():
        return ops.divide(total, int(divisor.flat[0]))
    return ops.divide(total, beside(total, divisor, ops.real(total).dtype))


def _adaptive_mean(name: str, count: int, input: Any, output_size: Any) -> Tensor:
    x, batched = examples(input, count, name)
    if x.dtype.narrow:
        return by_float32(partial(_adaptive_mean, name, count), input, output_size)  # type: ignore[no-any-return]
    lengths = tuple(x.shape[2:])
    counts = _adaptive_counts(name, lengths, output_size)
    places = [adaptive_places(*axis) for axis in zip(lengths, counts, strict=True)]
    divisor = np.ones((1,) * count, np.int64)
    for i, p in enumerate(places):
        divisor = divisor * p.counts().reshape([-1 if i == j else 1 for j in range(count)])
    if not any(n % len(p.first) for n, p in zip(lengths, places, strict=True)):
        size = tuple([p.length for p in places])  # of windows side by side, all of one length
        total = window_sum(x, size=size, stride=size)
        return unbatch(_divide_sums(total, divisor), batched)
    windows = take_windows(differentiable, x, places)
    # Of those that a shorter window has in excess none counts.
    for i, p in enumerate(places):
        own = (np.arange(p.length) < p.counts()[:, None]).T
        shape = [1] * (2 * count)
        shape[i], shape[count + i] = own.shape
        windows = ops.where(beside(x, own.reshape(shape)), windows, 0)
    total = ops.sum(windows, axis=tuple(range(2, 2 + count)), dtype=x.dtype)
    return unbatch(_divide_sums(total, divisor), batched)


def _adaptive_counts(name: str, lengths: Sizes, output_size: Any) -> Sizes:
    """How many windows there are along each axis."""
    count = len(lengths)
    if isinstance(output_size, list | tuple) and len(output_size) == count:
        given = [n if one is None else one for one, n in zip(output_size, lengths, strict=True)]
    else:
        given = list(lengths) if output_size is None else output_size
    return sizes(given, count, name, "output_size", 1)


# -- maxima ---------------------------------------------------------------------------------------


def _maximum(
    name: str, count: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> Tensor:
    x, batched = examples(input, count, name)
    if x.dtype.complex:
        raise TypeError(f"{name} takes real numbers, and complex ones have no order")
    found = _windows(name, tuple(x.shape[2:]), kernel_size, stride, padding, dilation)
    options = (found.size, found.stride, found.padding, found.dilation)
    if any(found.padding) and any(
        (p.high < p.low).any() for p in pooled_places(tuple(x.shape[2:]), found.counts, options)
    ):
        raise RuntimeError(
            f"{name}: a window of kernel_size={found.size} and dilation={found.dilation} has no "
            f"element of the input of shape {tuple(x.shape)}, but padding alone"
        )
    lead, counts = tuple(x.shape[:2]), found.counts
    where = window_argmax(x, counts=counts, options=options)
    rows = ops.reshape(x, (*lead, math.prod(x.shape[2:])))
    places = ops.reshape(where, (*lead, math.prod(counts)))
    largest = ops.take_along_axis(rows, places, axis=2)
    return unbatch(ops.reshape(largest, (*lead, *counts)), batched)


# -- the functions --------------------------------------------------------------------------------


@refusing
def avg_pool1d(
    input: Any,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    *,  # in PyTorch's place of this there is ceil_mode
    count_include_pad: bool = True,
) -> Tensor:
    """Means of a signal's windows.

    The input is floating or complex, of shape (N, C, L), or (C, L) for one example, the result of
    shape (N, C, places). The cotangent of an element is the sum of those of its windows, each
    divided as the mean is. ``padding`` zeros, half a window at most, are added at both ends, and
    count with ``count_include_pad``. Raises `RuntimeError` if a window is longer than the input
    with its padding, or of padding alone, or an option does not fit.
    PyTorch: ``torch.nn.functional.avg_pool1d``.

    Examples
    --------
    >>> wg.nn.functional.avg_pool1d(wg.asarray([[[1.0, 2.0, 3.0, 4.0]]]), 2)
    tensor([[[1.5000, 3.5000]]])
    """
    return _mean("avg_pool1d", 1, input, kernel_size, stride, padding, count_include_pad)


@refusing
def avg_pool2d(
    input: Any,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    *,  # in PyTorch's place of this there is ceil_mode
    count_include_pad: bool = True,
) -> Tensor:
    """Means of an image's windows.

    The input is of shape (N, C, H, W) or (C, H, W), and the result of shape (N, C, rows, columns).
    Cotangents, options and errors are those of `avg_pool1d`.
    PyTorch: ``torch.nn.functional.avg_pool2d``.

    Examples
    --------
    >>> wg.nn.functional.avg_pool2d(wg.ones((1, 3, 8, 8)), 2, stride=1).shape
    (1, 3, 7, 7)
    """
    return _mean("avg_pool2d", 2, input, kernel_size, stride, padding, count_include_pad)


@refusing
def max_pool1d(
    input: Any,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
) -> Tensor:
    """Maxima of a signal's windows.

    The input is real, of shape (N, C, L), or (C, L) for one example, the result of shape
    (N, C, places). A cotangent goes to the first of equal maxima, in an image row by row. A window
    with a nan gives nan. Errors are those of `avg_pool1d`.
    PyTorch: ``torch.nn.functional.max_pool1d``.

    Examples
    --------
    >>> wg.nn.functional.max_pool1d(wg.asarray([[[1.0, 5.0, 3.0, 4.0]]]), 2)
    tensor([[[5., 4.]]])
    """
    return _maximum("max_pool1d", 1, input, kernel_size, stride, padding, dilation)


@refusing
def max_pool2d(
    input: Any,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
) -> Tensor:
    """Maxima of an image's windows.

    The input is of shape (N, C, H, W) or (C, H, W), and the result of shape (N, C, rows, columns).
    Cotangents, options and errors are those of `max_pool1d`.
    PyTorch: ``torch.nn.functional.max_pool2d``.

    Examples
    --------
    >>> wg.nn.functional.max_pool2d(wg.ones((1, 3, 8, 8)), 2).shape
    (1, 3, 4, 4)
    """
    return _maximum("max_pool2d", 2, input, kernel_size, stride, padding, dilation)


def adaptive_avg_pool1d(input: Any, output_size: _Size) -> Tensor:
    """Means of as many windows of a signal as are asked for.

    Window i of n is from floor(i L / n) to before ceil((i + 1) L / n). Shapes, cotangents and
    errors are those of `avg_pool1d`. PyTorch: ``torch.nn.functional.adaptive_avg_pool1d``.

    Examples
    --------
    >>> wg.nn.functional.adaptive_avg_pool1d(wg.asarray([[[1.0, 2.0, 3.0, 4.0]]]), 2)
    tensor([[[1.5000, 3.5000]]])
    """
    return _adaptive_mean("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: _Size | tuple[int | None, ...] | None) -> Tensor:
    """Means of as many windows of an image as are asked for, along each axis as of a signal.

    The input is of shape (N, C, H, W) or (C, H, W). Cotangents and errors are those of
    `adaptive_avg_pool1d`. PyTorch: ``torch.nn.functional.adaptive_avg_pool2d``.

    Examples
    --------
    >>> wg.nn.functional.adaptive_avg_pool2d(wg.ones((1, 3, 7, 5)), 2).shape
    (1, 3, 2, 2)
    """
    return _adaptive_mean("adaptive_avg_pool2d", 2, input, output_size)
