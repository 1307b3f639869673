"""``scipy.signal``: convolutions and filters.

>>> from wengert.scipy import signal
>>> a = wg.tensor([1.0, -0.5], dtype=wg.float64, requires_grad=True)
>>> signal.lfilter([1.0], a, [1.0, 0.0, 0.0]).sum().backward()
>>> a.grad
tensor([-2.7500, -2.0000], dtype=wengert.float64)
"""

from typing import Any

import numpy as np
from scipy import signal as _scipy

import wengert as wg
from wengert.protocols.numeric import convolve as _of_sequences
from wengert.scipy.naming import host, inexact, publish
from wengert.tape.tensor import Tensor


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """A convolution: of sequences by sums of products, unless ``method="fft"``."""
    x, y = inexact(in1, in2)
    if method == "fft" or x.ndim != 1 or y.ndim != 1:
        return fftconvolve(x, y, mode)
    found = _of_sequences(x, y, "full" if mode == "same" else mode)
    start = (y.shape[0] - 1) // 2
    return found[start : start + x.shape[0]] if mode == "same" else found


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
    """A convolution by Fourier transforms."""
    x, y = inexact(in1, in2)
    if mode not in ("full", "same", "valid") or x.ndim != y.ndim:
        raise ValueError("of arrays of as many axes, with mode='full', 'same' or 'valid'")
    axes = range(x.ndim) if axes is None else np.atleast_1d(axes).tolist()
    sizes = {axis % x.ndim: (x.shape[axis], y.shape[axis]) for axis in axes}
    if mode == "valid" and len({n < m for n, m in sizes.values() if n != m}) == 2:
        raise ValueError("mode='valid' needs one array that is at least as long along all axes")
    wide = wg.result_type(x, y, wg.complex64)
    whole, other = wg.astype(x, wide), wg.astype(y, wide)
    for axis, (n, m) in sizes.items():
        whole, other = (wg.fft.fft(z, n=n + m - 1, axis=axis) for z in (whole, other))
    whole = whole * other
    key = [slice(None)] * x.ndim
    for axis, (n, m) in sizes.items():
        whole = wg.fft.ifft(whole, axis=axis)
        if mode == "valid":
            key[axis] = slice(min(n, m) - 1, max(n, m))
    if mode == "same":  # along the other axes, too
        starts = [(more - n) // 2 for more, n in zip(whole.shape, x.shape, strict=True)]
        key = [slice(start, start + n) for start, n in zip(starts, x.shape, strict=True)]
    return (whole if x.dtype.complex or y.dtype.complex else wg.real(whole))[tuple(key)]


def _filter(a: Any, x: Any) -> Any:
    factors = np.concatenate([np.ones(1, a.dtype), a[1:]])
    if np.isnan(a[0]):  # a quotient by itself
        raise ValueError("scipy.signal.lfilter: the first coefficient a[0] is zero, or NaN")
    return _scipy.lfilter(factors[:1], factors, x)


def _adjoint(xp: Any, g: Any, a: Any) -> Any:
    """The filter's adjoint, which runs backwards."""
    return xp.flip(xp.scipy_recursive(xp.conj(a), xp.flip(g, axis=-1)), axis=-1)


def _delay(xp: Any, x: Any, k: int) -> Any:
    """A signal that comes ``k`` places later."""
    return xp.concat([0 * x[..., :k], x], axis=-1)[..., : x.shape[-1]]


def _cotangent(xp: Any, g: Any, a: Any, out: Any) -> Any:
    """The cotangent of the coefficients: products with what the filter gave before."""
    back, out = _adjoint(xp, g, a), xp.conj(out)
    found = [-xp.sum(back * _delay(xp, out, k)) for k in range(1, a.shape[0])]
    return xp.stack([0 * xp.sum(a), *found])


def _tangent(xp: Any, t: Any, a: Any, out: Any) -> Any:
    late = [t[k] * _delay(xp, out, k) for k in range(1, a.shape[0])]
    return -xp.scipy_recursive(a, sum(late, 0 * out))


#: The filter of denominators whose first one is 1, along the last axis.
_recursive = host(
    "scipy_recursive",
    "a x",
    _filter,
    {"a": _cotangent, "x": _adjoint},
    jvps={"a": _tangent, "x": lambda xp, t, a: xp.scipy_recursive(a, t)},
)


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> Tensor:
    """A digital filter along an axis."""
    top, below, y = inexact(b, a, x)
    dtype = wg.result_type(top, below, y)
    top, below = (wg.astype(wg.reshape(z, (-1,)), dtype) for z in (top, below))
    y = wg.astype(wg.moveaxis(y, axis, -1), dtype)
    total = sum((top[k] * _delay(wg, y, k) for k in range(1, top.shape[0])), top[0] * y)
    return wg.moveaxis(_recursive(below / below[0], total / below[0]), -1, axis)


publish(globals(), {})
