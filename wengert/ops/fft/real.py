"""Transforms between real numbers and half of a spectrum, and between half a signal and reals."""

from collections.abc import Sequence
from typing import Any

from wengert.ops.elementwise import conj
from wengert.ops.fft.transform import (
    ADJOINT,
    Norm,
    check_norm,
    from_real,
    operand,
    over_one,
    to_real,
    transform,
)
from wengert.tape.tensor import Tensor

__all__ = ["hfft", "ihfft", "irfft", "irfftn", "rfft", "rfftn"]


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    r"""Discrete Fourier transform of real numbers: the first half of the spectrum.

    It is :math:`y_0, \dots, y_{\lfloor n/2 \rfloor}` of `fft`. Its adjoint is the real part of the
    inverse transform, without its factor, of the cotangent filled with zeros: ``n`` times `irfft`,
    after the numbers that stand for two are halved. The result is complex, of the precision of
    ``x`` (single for half precision). Raises `ValueError` if ``n`` is less than 1, there is no such
    norm, or an axis is out of bounds. Array API standard.

    Parameters
    ----------
    n : int, optional
        Length to transform: ``x`` is cut, or filled with zeros at the end. Its own by default.
    norm : {"backward", "ortho", "forward"}
        Whether the factor :math:`1/n` is the inverse transform's, is shared as
        :math:`1/\sqrt n`, or is this one's.

    Examples
    --------
    >>> wg.fft.rfft(wg.asarray([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    >>> wg.grad(lambda x: wg.sum(wg.abs(wg.fft.rfft(x)) ** 2))(wg.asarray([1.0, 0.0]))
    tensor([4., 0.])
    """
    s, axes = over_one(x, n, axis, "rfft")
    return transform(from_real, "rfft", x, s, axes, norm, real=True)


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse of `rfft`: real numbers from the first half of their spectrum.

    Imaginary parts that a real number's spectrum has not, at 0 and in the middle of an even length,
    are ignored. Its adjoint is `rfft` with the factor :math:`1/n`, in which the numbers that stand
    for two count twice. The result is real, of the precision of ``x``. Raises `TypeError` if ``x``
    is not floating; `ValueError` if ``n`` is less than 1, there is no such norm, or an axis is out
    of bounds. Array API standard.

    Parameters
    ----------
    n : int, optional
        Length of the result, of which the first ``n // 2 + 1`` numbers of the spectrum are used;
        ``2 * (m - 1)`` by default, ``m`` being the length of ``x`` along ``axis``.
    norm : {"backward", "ortho", "forward"}
        The norm of the transform that this one inverts.

    Examples
    --------
    >>> x = wg.asarray([1.0, 2.0, 3.0])
    >>> wg.round(wg.fft.irfft(wg.fft.rfft(x), n=3))  # the spectrum does not tell 3 from 2
    tensor([1., 2., 3.])
    """
    s, axes = over_one(x, n, axis, "irfft")
    return to_real("irfft", x, s, axes, norm)


def rfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    r"""Discrete Fourier transform of real numbers over several axes, at least one.

    It is `rfft` along the last of the axes, then `fft` along the others. Its adjoint is that of
    each transform in turn. The result is complex, of the precision of ``x`` (single for half
    precision). Raises `ValueError` if ``s`` and ``axes`` differ in number, an axis comes twice, a
    length is less than 1, there is no such norm, or an axis is out of bounds. Array API standard.

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
    >>> wg.fft.rfftn(wg.ones((4, 6))).shape
    (4, 4)
    """
    return transform(from_real, "rfftn", x, s, axes, norm, real=True)


def irfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Inverse of `rfftn`: `ifft` along all axes but the last one, then `irfft` along that.

    There has to be one axis at least. Its adjoint is that of each transform in turn. The result is
    real, of the precision of ``x``. Raises `TypeError` if ``x`` is not floating; `ValueError` if
    ``s`` and ``axes`` differ in number, an axis comes twice, a length is less than 1, there is no
    such norm, or an axis is out of bounds. Array API standard.

    Parameters
    ----------
    s : sequence of int, optional
        Lengths of the result along the axes, the last one as ``n`` of `irfft`; -1 for those that
        they have by default.
    norm : {"backward", "ortho", "forward"}
        The norm of the transform that this one inverts. Here n is the product of the lengths.

    Examples
    --------
    >>> x = wg.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.fft.irfftn(wg.fft.rfftn(x))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return to_real("irfftn", x, s, axes, norm)


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Discrete Fourier transform of half a Hermitian signal, whose spectrum is real.

    ``x`` is the first half of the signal. It is ``n`` times `irfft` of the conjugate, and has the
    adjoint of that. The result is real, of the precision of ``x``. Raises `TypeError` if ``x`` is
    not floating; `ValueError` if ``n`` is less than 1, there is no such norm, or an axis is out of
    bounds. Array API standard.

    Parameters
    ----------
    n : int, optional
        Length of the result, of which the first ``n // 2 + 1`` numbers of the signal are used;
        ``2 * (m - 1)`` by default, ``m`` being the length of ``x`` along ``axis``.

    Examples
    --------
    >>> wg.fft.hfft(wg.asarray([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    check_norm(norm, "hfft")
    s, axes = over_one(x, n, axis, "hfft")
    return to_real("hfft", conj(operand(x, "hfft", real=False)), s, axes, ADJOINT[norm])


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse of `hfft`: the first half of a Hermitian signal from its real spectrum.

    It has ``n // 2 + 1`` numbers along ``axis``. It is the conjugate of `rfft`, divided by ``n``,
    and has the adjoint of that. The result is complex, of the precision of ``x`` (single for half
    precision). Raises `ValueError` if ``n`` is less than 1, there is no such norm, or an axis is
    out of bounds. Array API standard.

    Parameters
    ----------
    norm : {"backward", "ortho", "forward"}
        The norm of the transform that this one inverts.

    Examples
    --------
    >>> wg.fft.hfft(wg.fft.ihfft(wg.asarray([1.0, 2.0, 3.0, 4.0])))
    tensor([1., 2., 3., 4.])
    """
    check_norm(norm, "ihfft")
    s, axes = over_one(x, n, axis, "ihfft")
    return conj(transform(from_real, "ihfft", x, s, axes, ADJOINT[norm], real=True))
