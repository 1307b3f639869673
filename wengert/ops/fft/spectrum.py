"""Transforms of complex numbers."""

from collections.abc import Sequence
from typing import Any

from wengert.ops.define import operation
from wengert.ops.fft.transform import ADJOINT, Norm, over_one, transform, transform_batch
from wengert.tape.tensor import Tensor

__all__ = ["fft", "fftn", "ifft", "ifftn"]


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    r"""Discrete Fourier transform, :math:`y_k = \sum_j x_j e^{-2 \pi i jk / n}`, of length ``n``.

    Its adjoint is the inverse transform without the factor: ``n`` times `ifft`, under the norm
    "backward". The result is complex, of the precision of ``x`` (single for half precision). Raises
    `TypeError` if ``x`` is neither floating nor complex; `ValueError` if ``n`` is less than 1,
    there is no such norm, or an axis is out of bounds. Array API standard.

    Parameters
    ----------
    n : int, optional
        Length to transform: ``x`` is cut, or filled with zeros at the end. Its own by default.
    norm : {"backward", "ortho", "forward"}
        Whether the factor :math:`1/n` is the inverse transform's, is shared as
        :math:`1/\sqrt n`, or is this one's.

    Examples
    --------
    >>> wg.fft.fft(wg.asarray([1.0, 1.0, 1.0, 1.0]))
    tensor([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])
    >>> wg.grad(lambda x: wg.sum(wg.abs(wg.fft.fft(x)) ** 2))(wg.asarray([1.0, 2.0]))  # 2 n x
    tensor([4., 8.])
    """
    s, axes = over_one(x, n, axis, "fft")
    return transform(fftn.run, "fft", x, s, axes, norm, real=False)


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    r"""Inverse discrete Fourier transform, :math:`y_j = \frac 1n \sum_k x_k e^{2 \pi i jk / n}`.

    Its adjoint is `fft` with the factor :math:`1/n`. The result is complex, of the precision of
    ``x`` (single for half precision). Raises `TypeError` if ``x`` is neither floating nor complex;
    `ValueError` if ``n`` is less than 1, there is no such norm, or an axis is out of bounds. Other
    arguments are those of `fft`. Array API standard.

    Examples
    --------
    >>> wg.real(wg.fft.ifft(wg.fft.fft(wg.asarray([1.0, 2.0, 3.0, 4.0]))))
    tensor([1., 2., 3., 4.])
    """
    s, axes = over_one(x, n, axis, "ifft")
    return transform(ifftn.run, "ifft", x, s, axes, norm, real=False)


@operation(
    "fft.fftn",
    x=lambda xp, g, axes, norm: xp.fft.ifftn(g, axes=axes, norm=ADJOINT[norm]),
    linear="together",
    view=None,
    batch=transform_batch,
)
def fftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    r"""Discrete Fourier transform over several axes: `fft` along each of them.

    Its adjoint is that of each transform in turn. The result is complex, of the precision of ``x``
    (single for half precision). Raises `TypeError` if ``x`` is neither floating nor complex;
    `ValueError` if ``s`` and ``axes`` differ in number, an axis comes twice, a length is less than
    1, there is no such norm, or an axis is out of bounds. Array API standard.

    Parameters
    ----------
    s : sequence of int, optional
        Lengths along the axes, each as ``n`` of `fft`; -1 for the array's own.
    axes : sequence of int, optional
        Which axes. By default the last ones, as many as ``s`` has lengths, or all.
    norm : {"backward", "ortho", "forward"}
        Whether the factor :math:`1/n` is the inverse transform's, is shared as
        :math:`1/\sqrt n`, or is this one's. Here n is the product of the lengths.

    Examples
    --------
    >>> wg.fft.fftn(wg.ones((2, 2)))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return transform(fftn.run, "fftn", x, s, axes, norm, real=False)


@operation(
    "fft.ifftn",
    x=lambda xp, g, axes, norm: xp.fft.fftn(g, axes=axes, norm=ADJOINT[norm]),
    linear="together",
    view=None,
    batch=transform_batch,
)
def ifftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Inverse discrete Fourier transform over several axes: `ifft` along each of them.

    Its adjoint is that of each transform in turn. The result is complex, of the precision of ``x``
    (single for half precision). Raises `TypeError` if ``x`` is neither floating nor complex;
    `ValueError` if ``s`` and ``axes`` differ in number, an axis comes twice, a length is less than
    1, there is no such norm, or an axis is out of bounds. Otherwise as `fftn`. Array API standard.

    Examples
    --------
    >>> wg.real(wg.fft.ifftn(wg.fft.fftn(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return transform(ifftn.run, "ifftn", x, s, axes, norm, real=False)
