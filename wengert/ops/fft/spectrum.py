"""Transforms of complex numbers."""

from collections.abc import Sequence
from typing import Any

from wengert.ops.fft.transform import (
    Norm,
    forward,
    inverse,
    over_one,
    transform,
    transforms,
)
from wengert.tape.tensor import Tensor

__all__ = ["fft", "fftn", "ifft", "ifftn"]


@transforms().complete
def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    r"""Discrete Fourier transform, :math:`y_k = \sum_j x_j e^{-2 \pi i jk / n}`, of length ``n``.

    Its adjoint is the inverse transform without the factor: ``n`` times `ifft`, under the norm
    "backward".

    Examples
    --------
    >>> wg.fft.fft(wg.asarray([1.0, 1.0, 1.0, 1.0]))
    tensor([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])
    >>> wg.grad(lambda x: wg.sum(wg.abs(wg.fft.fft(x)) ** 2))(wg.asarray([1.0, 2.0]))  # 2 n x
    tensor([4., 8.])
    """
    s, axes = over_one(x, n, axis, "fft")
    return transform(forward, "fft", x, s, axes, norm, real=False)


@transforms(inverse=True).complete
def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    r"""Inverse discrete Fourier transform, :math:`y_j = \frac 1n \sum_k x_k e^{2 \pi i jk / n}`.

    Its adjoint is `fft` with the factor :math:`1/n`.

    Examples
    --------
    >>> wg.real(wg.fft.ifft(wg.fft.fft(wg.asarray([1.0, 2.0, 3.0, 4.0]))))
    tensor([1., 2., 3., 4.])
    """
    s, axes = over_one(x, n, axis, "ifft")
    return transform(inverse, "ifft", x, s, axes, norm, real=False)


@transforms(several=True).complete
def fftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Discrete Fourier transform over several axes: `fft` along each of them.

    Examples
    --------
    >>> wg.fft.fftn(wg.ones((2, 2)))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return transform(forward, "fftn", x, s, axes, norm, real=False)


@transforms(several=True, inverse=True).complete
def ifftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Inverse discrete Fourier transform over several axes: `ifft` along each of them.

    Examples
    --------
    >>> wg.real(wg.fft.ifftn(wg.fft.fftn(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return transform(inverse, "ifftn", x, s, axes, norm, real=False)
