"""``scipy.signal``: convolutions and filters.

>>> from wengert.scipy import signal
>>> a = wg.tensor([1.0, -0.5], dtype=wg.float64, requires_grad=True)
>>> signal.lfilter([1.0], a, [1.0, 0.0, 0.0]).sum().backward()
>>> a.grad
tensor([-2.7500, -2.0000], dtype=wengert.float64)
"""

from typing import Any

import numpy as np

import wengert as wg
from wengert.ops.define import operation
from wengert.protocols.numeric import convolve as _of_sequences
from wengert.scipy.naming import inexact, namespace, scipy_module
from wengert.tape.tensor import Tensor

_scipy = scipy_module("signal")


def _convolved(in1: Any, in2: Any, mode: str, axes: Any, by_products: bool) -> Tensor:
    x, y = inexact(in1, in2)
    if mode not in ("full", "same", "valid") or x.ndim != y.ndim:
        raise ValueError(
            "arrays of as many axes are convolved, with mode='full', 'same' or 'valid', and not "
            f"{x.ndim} and {y.ndim} axes with mode={mode!r}"
        )
    axes = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    axes = [axis % x.ndim for axis in axes]
    pairs = [(x.shape[axis], y.shape[axis]) for axis in axes]
    if mode == "valid" and any(n < m for n, m in pairs) and any(n > m for n, m in pairs):
        raise ValueError("mode='valid' needs one array that is at least as long along all axes")
    if by_products and x.ndim == 1:
        whole = _of_sequences(x, y)
    else:
        wide = wg.result_type(x, y, wg.complex64)
        whole, other = wg.astype(x, wide), wg.astype(y, wide)
        for axis, (n, m) in zip(axes, pairs, strict=True):
            whole, other = (wg.fft.fft(z, n=n + m - 1, axis=axis) for z in (whole, other))
        whole = whole * other
        for axis in axes:
            whole = wg.fft.ifft(whole, axis=axis)
        whole = whole if x.dtype.complex or y.dtype.complex else wg.real(whole)
    key = [slice(None)] * x.ndim
    for axis, (n, m) in zip(axes, pairs, strict=True):
        if mode == "same":
            key[axis] = slice((m - 1) // 2, (m - 1) // 2 + n)
        elif mode == "valid":
            key[axis] = slice(min(n, m) - 1, max(n, m))
    return whole[tuple(key)]


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """A convolution: of sequences by sums of products, unless ``method="fft"``."""
    return _convolved(in1, in2, mode, None, method != "fft")


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
    """A convolution by Fourier transforms."""
    return _convolved(in1, in2, mode, axes, False)


# -- filters ---------------------------------------------------------------------------------------


def _back(xp: Any, g: Any, a: Any) -> Any:
    """The filter's adjoint, which runs backwards."""
    return xp.flip(xp.scipy_recursive(xp.conj(a), xp.flip(g, axis=-1)), axis=-1)


def _recursive_rule(xp: Any, g: Any, a: Any, out: Any) -> Any:
    """The cotangent of the coefficients: products with what the filter gave before."""
    back, n, zero = _back(xp, g, a), out.shape[-1], 0 * xp.sum(a)
    before = [xp.conj(out[..., : max(n - k, 0)]) for k in range(a.shape[0])]
    found = [-xp.sum(back[..., k:] * late) for k, late in enumerate(before)]
    return xp.stack([zero, *found[1:]])


def _recursive_tangent(xp: Any, t: Any, a: Any, out: Any) -> Any:
    n, total = out.shape[-1], 0 * out
    for k in range(1, a.shape[0]):
        total = total - t[k] * xp.concat([0 * out[..., :k], out], axis=-1)[..., :n]
    return xp.scipy_recursive(a, total)


def _run(xp: Any, a: Any, x: Any) -> Any:
    factors = np.array(xp.backend.to_numpy(a))
    factors[0] = 1
    found = _scipy.lfilter(factors[:1], factors, xp.backend.to_numpy(x))
    return xp.backend.from_numpy(found, xp.device(x))


@operation(
    "scipy_recursive",
    a=_recursive_rule,
    x=_back,
    jvps={"a": _recursive_tangent, "x": lambda xp, t, a: xp.scipy_recursive(a, t)},
    composite=_run,
)
def _recursive(a: Any, x: Any, /) -> Any:
    """The filter of denominators whose first one is 1, along the last axis."""


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> Tensor:
    """A digital filter along an axis."""
    top, below, y = inexact(b, a, x)
    dtype = wg.result_type(top, below, y)
    top, below = (wg.astype(wg.reshape(z, (-1,)), dtype) for z in (top, below))
    y = wg.astype(wg.moveaxis(y, axis, -1), dtype)
    total = top[0] * y
    for k in range(1, top.shape[0]):
        late = wg.concat([wg.zeros((*y.shape[:-1], k), dtype=dtype), y], axis=-1)
        total = total + top[k] * late[..., : y.shape[-1]]
    return wg.moveaxis(_recursive.run(below / below[0], total / below[0]), -1, axis)


_OWN = {one.__name__: one for one in (convolve, fftconvolve, lfilter)}
globals().update(namespace("signal", _OWN))
