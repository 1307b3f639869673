"""``scipy.signal``: convolutions and filters.

>>> from wengert.scipy import signal
>>> a = wg.tensor([1.0, -0.5], dtype=wg.float64, requires_grad=True)
>>> signal.lfilter([1.0], a, [1.0, 0.0, 0.0]).sum().backward()
>>> a.grad
tensor([-2.7500, -2.0000], dtype=wengert.float64)
"""

import math
from typing import Any

import numpy as np

import wengert as wg
from wengert.ops.define import operation
from wengert.scipy.naming import inexact, like_first, namespace, scipy_module
from wengert.tape.tensor import Tensor

_scipy = scipy_module("signal")


def _part(whole: Tensor, mode: str, shape1: Any, shape2: Any, axes: Any) -> Tensor:
    """What a mode keeps of a whole convolution."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode is 'full', 'same' or 'valid', and not {mode!r}")
    key = [slice(None)] * whole.ndim
    for axis in axes:
        n, m = shape1[axis], shape2[axis]
        if mode == "same":
            key[axis] = slice((m - 1) // 2, (m - 1) // 2 + n)
        elif mode == "valid":
            key[axis] = slice(min(n, m) - 1, max(n, m))
    return whole[tuple(key)]


def _convolved(in1: Any, in2: Any, mode: str, axes: Any, by_products: bool) -> Tensor:
    x, y = inexact(in1, in2)
    if x.ndim != y.ndim:
        raise ValueError(f"arrays of as many axes are convolved, not {x.ndim} and {y.ndim}")
    if axes is None:
        axes = range(x.ndim)
    axes = [a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)]
    if mode == "valid" and any(x.shape[a] < y.shape[a] for a in axes):
        if any(x.shape[a] > y.shape[a] for a in axes):
            raise ValueError("mode='valid' needs one array that is at least as long along all axes")
        x, y = y, x
    sizes = [x.shape[a] + y.shape[a] - 1 for a in axes]
    if by_products and x.ndim == 1:
        if y.shape[0] > x.shape[0]:
            whole = np.convolve(y, x)
        else:
            whole = np.convolve(x, y)
    elif math.prod(x.shape) == 0 or math.prod(y.shape) == 0:
        return wg.zeros(0, dtype=x.dtype)
    else:
        f, g = (_transformed(z, axes, sizes) for z in (x, y))
        whole = f * g
        for axis, n in zip(axes, sizes, strict=True):
            whole = wg.fft.ifft(whole, n=n, axis=axis)
        whole = whole if x.dtype.complex or y.dtype.complex else wg.real(whole)
    return _part(whole, mode, x.shape, y.shape, axes)


def _transformed(z: Tensor, axes: Any, sizes: Any) -> Tensor:
    wide = z.dtype.name if z.dtype.complex else {"float32": "complex64"}.get(z.dtype.name)
    found = wg.astype(z, wide or "complex128")
    for axis, n in zip(axes, sizes, strict=True):
        found = wg.fft.fft(found, n=n, axis=axis)
    return found


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """A convolution: of sequences by sums of products, unless ``method="fft"``."""
    return _convolved(in1, in2, mode, None, method != "fft")


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
    """A convolution by Fourier transforms."""
    return _convolved(in1, in2, mode, axes, False)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """A correlation, which conjugates the second array."""
    x, y = inexact(in1, in2)
    turned = wg.conj(wg.flip(y))
    return _convolved(x, turned, mode, None, method != "fft")


# -- filters ---------------------------------------------------------------------------------------


def _recursive_rule(xp: Any, g: Any, a: Any, out: Any) -> Any:
    """The cotangent of the coefficients: products with what the filter gave before."""
    back = _back(xp, g, a)
    n, found = out.shape[-1], [0 * xp.sum(a)]
    for k in range(1, a.shape[0]):
        found.append(-xp.sum(back[..., k:] * xp.conj(out[..., : max(n - k, 0)])))
    return xp.stack(found)


def _back(xp: Any, g: Any, a: Any) -> Any:
    """The filter's adjoint, which runs backwards."""
    turned = xp.flip(g, axis=-1)
    return xp.flip(xp.scipy_recursive(xp.conj(a), turned), axis=-1)


def _recursive_tangent(xp: Any, t: Any, a: Any, out: Any) -> Any:
    total = 0 * out
    for k in range(1, a.shape[0]):
        late = xp.concat([0 * out[..., :k], out], axis=-1)[..., : out.shape[-1]]
        total = total - t[k] * late
    return xp.scipy_recursive(a, total)


@operation(
    "scipy_recursive",
    inputs=("a", "x"),
    a=_recursive_rule,
    x=lambda xp, g, a: _back(xp, g, a),
    jvps={"a": _recursive_tangent, "x": lambda xp, t, a: xp.scipy_recursive(a, t)},
    composite=lambda xp, a, x: xp.backend.from_numpy(
        np.asarray(_scipy.lfilter([1.0], _monic(xp, a), xp.backend.to_numpy(x))), xp.device(x)
    ),
)
def _recursive(a: Any, x: Any, /) -> Tensor:
    """The filter of denominators whose first one is 1, along the last axis."""
    return _recursive.run(a, x)


def _monic(xp: Any, a: Any) -> Any:
    values = np.array(xp.backend.to_numpy(a))
    values[0] = 1
    return values


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A digital filter along an axis; with ``zi`` it gives its last state, too."""
    numerator, denominator, y, *state = inexact(b, a, x, *([] if zi is None else [zi]))
    dtype = wg.result_type(numerator, denominator, y, *state)
    numerator, denominator, y = (
        wg.astype(wg.reshape(z, (-1,)) if i < 2 else z, dtype)
        for i, z in enumerate((numerator, denominator, y))
    )
    order = max(numerator.shape[0], denominator.shape[0]) - 1
    numerator, denominator = numerator / denominator[0], denominator / denominator[0]
    y = wg.moveaxis(y, axis, -1)
    given, n = y, y.shape[-1]
    y = _delayed(numerator, y)[..., :n]
    if zi is not None:
        first = wg.moveaxis(wg.astype(state[0], dtype), axis, -1)
        lost = max(order - n, 0)
        rest = wg.zeros((*first.shape[:-1], max(n - order, 0)), dtype=dtype)
        y = y + wg.concat([first[..., : order - lost], rest], axis=-1)
    found = _recursive(denominator, y)
    result = wg.moveaxis(found, -1, axis)
    if zi is None:
        return result
    # The state is what the outputs to come have in them already.
    tail = _delayed(numerator, given)[..., n:] if n else None
    last = []
    for i in range(order):
        z = wg.zeros(found.shape[:-1], dtype=dtype)
        if tail is not None and i < tail.shape[-1]:
            z = z + tail[..., i]
        for k in range(i + 1, denominator.shape[0]):
            if n - k + i >= 0:
                z = z - denominator[k] * found[..., n - k + i]
        if n + i < order:
            z = z + first[..., n + i]
        last.append(z)
    final = wg.stack(last, axis=-1) if last else wg.zeros((*found.shape[:-1], 0), dtype=dtype)
    return result, wg.moveaxis(final, -1, axis)


def _delayed(b: Tensor, x: Tensor) -> Tensor:
    """The whole convolution with few coefficients along the last axis."""
    n, total = b.shape[0], None
    for k in range(n):
        edges = [wg.zeros((*x.shape[:-1], m), dtype=x.dtype) for m in (k, n - 1 - k)]
        part = wg.concat([edges[0], b[k] * x, edges[1]], axis=-1)
        total = part if total is None else total + part
    return total  # type: ignore[return-value]


def freqz(b: Any, a: Any = 1, worN: Any = 512, whole: bool = False, fs: float = 2 * math.pi) -> Any:
    """The response of a digital filter at frequencies."""
    numerator, denominator = (wg.reshape(z, (-1,)) for z in inexact(b, a))
    if worN is None or isinstance(worN, int):
        end = 2 * math.pi if whole else math.pi
        w = like_first([numerator], np.linspace(0, end, worN or 512, endpoint=False))
        shown = w * (fs / (2 * math.pi))
    else:
        (shown,) = inexact(worN)
        w = shown * (2 * math.pi / fs)
    turn = wg.exp(-1j * wg.astype(w, "complex128"))
    powers = [
        wg.stack([turn**k for k in range(z.shape[0])], axis=-1) for z in (numerator, denominator)
    ]
    top, below = (
        wg.sum(p * wg.astype(z, "complex128"), axis=-1)
        for p, z in zip(powers, (numerator, denominator), strict=True)
    )
    return shown, top / below


def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Tensor:
    """Data without a constant or a line, fitted by least squares."""
    if type not in ("linear", "l", "constant", "c") or (type[0] == "l" and bp != 0):
        raise TypeError("detrend of Tensors takes type='linear' or 'constant', and no bp=")
    y = wg.moveaxis(inexact(data)[0], axis, -1)
    found = y - wg.mean(y, axis=-1, keepdims=True)
    if type[0] == "l":
        t = like_first([y], np.arange(y.shape[-1]) - (y.shape[-1] - 1) / 2)
        t = wg.astype(t, y.dtype)
        found = found - wg.sum(found * t, axis=-1, keepdims=True) / wg.sum(t * t) * t
    return wg.moveaxis(found, -1, axis)


_OWN = {one.__name__: one for one in (convolve, correlate, detrend, fftconvolve, freqz, lfilter)}
globals().update(namespace("signal", _OWN))
