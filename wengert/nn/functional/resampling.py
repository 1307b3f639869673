"""Resampling: images made larger or smaller by interpolation, or by their channels."""

import math
from typing import Any, Literal

import numpy as np

from wengert import ops
from wengert.nn.functional.define import refusing
from wengert.nn.functional.spatial import sizes
from wengert.ops.axes import number
from wengert.ops.conversion import beside
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrap

Interpolation = Literal["nearest", "linear", "bilinear"]
#: How many spatial axes each mode is for.
_AXES = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,)}


@refusing
def interpolate(
    input: Any,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: Interpolation = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resample signals or images (N, C, ...) to other lengths.

    An element of the result is that at or before its place (``"nearest"``), or a mean of its
    neighbours along each axis by their distances (``"linear"`` of signals, ``"bilinear"`` of
    images); its cotangent goes back to these. With ``align_corners`` the centres of the first and
    last elements stay where they are, otherwise their outer edges. The lengths are ``size``, or
    ``scale_factor`` times the input's, rounded down. Raises `NotImplementedError` if the mode is
    unknown, or not for so many axes; `TypeError` if means of integers are asked for;
    `RuntimeError` if an axis is empty, or would be; `ValueError` if not exactly one of ``size`` and
    ``scale_factor`` is given, or an option does not go with the mode.
    PyTorch: ``torch.nn.functional.interpolate``.

    Examples
    --------
    >>> x = wg.asarray([[[1.0, 3.0]]])
    >>> wg.nn.functional.interpolate(x, 3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    x = wrap(input)
    count = x.ndim - 2
    if mode not in _AXES or count not in _AXES[mode]:
        raise NotImplementedError(
            f"interpolate: mode is one of {', '.join(_AXES)}, each for its number of spatial axes, "
            f"and not {mode!r} for an input of shape {tuple(x.shape)}"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: exactly one of size and scale_factor has to be given")
    linear = "linear" in mode
    if align_corners is not None and not linear:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear"
        )
    lengths = tuple(x.shape[2:])
    scales: tuple[float | None, ...] = (None,) * count
    if size is None:
        scales = _scales(scale_factor, count)
        given = tuple([math.floor(n * s) for n, s in zip(lengths, scales, strict=True)])
    else:
        given = sizes(size, count, "interpolate", "size", 1)
    if min(*lengths, *given) < 1:
        raise RuntimeError(
            f"interpolate: input of lengths {lengths} and result of {given} should be greater than "
            "0"
        )
    if linear and not x.dtype.inexact:
        raise TypeError(
            f"interpolate: mode={mode!r} takes means, which are no {x.dtype.name}; convert with "
            "wg.astype(x, wg.float32) first"
        )
    dtype = ops.real(x).dtype
    for axis, (n, m, scale) in enumerate(zip(lengths, given, scales, strict=True), 2):
        if linear:
            x = _interpolate_linear(x, axis, _places(n, m, scale, bool(align_corners)), dtype)
        else:
            x = _take_nearest(x, axis, m, scale)
    return anew(x) if x is input else x


def _scales(scale_factor: Any, count: int) -> tuple[float, ...]:
    several = isinstance(scale_factor, list | tuple)
    given = scale_factor if several else (scale_factor,) * count
    found = tuple([float(number(one, "interpolate", "scale_factor")) for one in given])
    if len(found) != count or min(found) <= 0:
        raise ValueError(
            f"interpolate: scale_factor is a positive number, or one for each of {count} axes, and "
            f"not {scale_factor!r}"
        )
    return found


def _take_nearest(x: Tensor, axis: int, m: int, scale: float | None) -> Tensor:
    n = x.shape[axis]
    # As PyTorch has it, of images (and there alone) also where the scale says otherwise.
    if m in (n, 2 * n) and x.ndim > 3:
        scale = None
    step = np.float32(n) / np.float32(m) if scale is None else np.float32(1 / scale)
    rows = np.minimum(np.floor(np.arange(m).astype(np.float32) * step).astype(np.int64), n - 1)
    if m % n == 0 and (rows == np.arange(m) // (m // n)).all():
        return ops.repeat(x, m // n, axis=axis)  # whose derivative is a sum of neighbours
    return ops.take(x, beside(x, rows), axis=axis)


def _places(n: int, m: int, scale: float | None, corners: bool) -> Any:
    """Where the elements of the result are between those of the input.

    PyTorch finds them in single precision, in which far ones have no digits between two elements.
    """
    at = np.arange(m, dtype=np.float64)
    if corners:
        return at * ((n - 1) / (m - 1) if m > 1 else 0)
    return np.maximum((at + 0.5) * (n / m if scale is None else 1 / scale) - 0.5, 0)


def _interpolate_linear(x: Tensor, axis: int, places: Any, dtype: Any) -> Tensor:
    """Means of two neighbours along an axis, by their distances from places."""
    n = x.shape[axis]
    if n == len(places):  # in PyTorch whatever the scale says
        return x
    below = np.minimum(places.astype(np.int64), n - 1)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    weight = np.clip(places - below, 0, 1).reshape(shape)
    left = ops.take(x, beside(x, below), axis=axis)
    right = ops.take(x, beside(x, np.minimum(below + 1, n - 1)), axis=axis)
    return ops.add(
        ops.multiply(left, beside(x, 1 - weight, dtype)),
        ops.multiply(right, beside(x, weight, dtype)),
    )


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Make images larger by their channels: each element becomes a square of r² channels' elements.

    Here r is ``upscale_factor``, the input of shape (..., C r², H, W), the result of shape
    (..., C, H r, W r). The cotangent is the result's, taken apart likewise. Raises `RuntimeError`
    if there are fewer than three axes, or r² does not divide the channels.
    PyTorch: ``torch.nn.functional.pixel_shuffle``.

    Examples
    --------
    >>> wg.nn.functional.pixel_shuffle(wg.ones((1, 8, 4, 4)), 2).shape
    (1, 2, 8, 8)
    """
    x = wrap(input)
    (r,) = sizes(upscale_factor, 1, "pixel_shuffle", "upscale_factor", 1)
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor={r}, and a shape (..., C, H, W), but got {tuple(x.shape)}"
        )
    (*lead, channels, height, width), k = x.shape, x.ndim - 3
    x = ops.reshape(x, (*lead, channels // r**2, r, r, height, width))
    x = ops.permute_dims(x, (*range(k + 1), k + 3, k + 1, k + 4, k + 2))
    return ops.reshape(x, (*lead, channels // r**2, height * r, width * r))
