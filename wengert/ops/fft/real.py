"""Transforms between real numbers and half of a spectrum, and between half a signal and reals."""

from collections.abc import Sequence
from typing import Any

from wengert.ops.define import operation
from wengert.ops.elementwise import conj
from wengert.ops.fft.transform import (
    ADJOINT,
    Axes,
    Norm,
    check_norm,
    fit,
    operand,
    over_one,
    prepare,
    transform,
    transform_batch,
)
from wengert.tape.tensor import Tensor

__all__ = ["hfft", "ihfft", "irfft", "irfftn", "rfft", "rfftn"]

# Each number of half a spectrum stands for two of the whole, itself and its conjugate, but for the
# first, and the last one of an even length, which stand for themselves alone.


def _scale_pairs(xp: Any, spectrum: Any, axis: int, n: int, factor: float) -> Any:
    """Multiply those numbers of half a spectrum that stand for two."""
    length = spectrum.shape[axis]
    doubled = xp.arange(0, 2 * length, 2, dtype=xp.int64, device=xp.device(spectrum))
    pairs = xp.remainder(doubled, n) != 0
    pairs = xp.reshape(pairs, (length,) + (1,) * (len(spectrum.shape) - axis - 1))
    return xp.where(pairs, spectrum * factor, spectrum)


def _rfftn_rule(xp: Any, g: Any, x_shape: tuple[int, ...], axes: Axes, norm: str) -> Any:
    lengths = tuple([x_shape[i] for i in axes])
    g = _scale_pairs(xp, g, axes[-1], lengths[-1], 0.5)
    return xp.fft.irfftn(g, s=lengths, axes=axes, norm=ADJOINT[norm])


def _irfftn_rule(xp: Any, g: Any, s: tuple[int, ...], axes: Axes, norm: str) -> Any:
    spectrum = xp.fft.rfftn(g, axes=axes, norm=ADJOINT[norm])
    return _scale_pairs(xp, spectrum, axes[-1], s[-1], 2.0)


def _to_real(name: str, x: Any, s: Sequence[int] | None, axes: Any, norm: Any) -> Tensor:
    """A transform of half a spectrum to real numbers."""
    x, lengths, over = prepare(name, x, s, axes, norm, half=True)
    x = fit(x, (*lengths[:-1], lengths[-1] // 2 + 1), over)
    return irfftn.run(x, s=tuple(lengths), axes=over, norm=norm)


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    r"""Discrete Fourier transform of real numbers: the first half of the spectrum.

    It is :math:`y_0, \dots, y_{\lfloor n/2 \rfloor}` of `fft`. Its adjoint is the real part of the
    inverse transform, without its factor, of the cotangent filled with zeros: ``n`` times `irfft`,
    after the numbers that stand for two are halved. The result is complex, of the precision of
    ``x`` (single for half precision). Raises `ValueError` if ``n`` is less than 1, there is no such
    norm, or an axis is out of bounds. Arguments are those of `fft`. Array API standard.

    Examples
    --------
    >>> wg.fft.rfft(wg.asarray([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    >>> wg.grad(lambda x: wg.sum(wg.abs(wg.fft.rfft(x)) ** 2))(wg.asarray([1.0, 0.0]))
    tensor([4., 0.])
    """
    s, axes = over_one(x, n, axis, "rfft")
    return transform(rfftn.run, "rfft", x, s, axes, norm, real=True)


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse of `rfft`: real numbers from the first half of their spectrum.

    Imaginary parts that a real number's spectrum has not, at 0 and in the middle of an even length,
    are ignored. Its adjoint is `rfft` with the factor :math:`1/n`, in which the numbers that stand
    for two count twice. The result is real, of the precision of ``x``. Raises `TypeError` if ``x``
    is neither floating nor complex; `ValueError` if ``n`` is less than 1, there is no such norm, or
    an axis is out of bounds. Array API standard.

    Parameters
    ----------
    n : int, optional
        Length of the result, of which the first ``n // 2 + 1`` numbers of the spectrum are used;
        ``2 * (m - 1)`` by default, ``m`` being the length of ``x`` along ``axis``.

    Examples
    --------
    >>> x = wg.asarray([1.0, 2.0, 3.0])
    >>> wg.round(wg.fft.irfft(wg.fft.rfft(x), n=3))  # the spectrum does not tell 3 from 2
    tensor([1., 2., 3.])
    """
    s, axes = over_one(x, n, axis, "irfft")
    return _to_real("irfft", x, s, axes, norm)


@operation("fft.rfftn", x=_rfftn_rule, linear="together", batch=transform_batch)
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
    length is less than 1, there is no such norm, or an axis is out of bounds. Arguments are those
    of `fftn`. Array API standard.

    Examples
    --------
    >>> wg.fft.rfftn(wg.ones((4, 6))).shape
    (4, 4)
    """
    return transform(rfftn.run, "rfftn", x, s, axes, norm, real=True)


@operation("fft.irfftn", x=_irfftn_rule, linear="together", batch=transform_batch)
def irfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Inverse of `rfftn`: `ifft` along all axes but the last one, then `irfft` along that.

    There has to be one axis at least. Its adjoint is that of each transform in turn. The result is
    real, of the precision of ``x``. Raises `TypeError` if ``x`` is neither floating nor complex;
    `ValueError` if ``s`` and ``axes`` differ in number, an axis comes twice, a length is less than
    1, there is no such norm, or an axis is out of bounds. Array API standard.

    Parameters
    ----------
    s : sequence of int, optional
        Lengths of the result along the axes, the last one as ``n`` of `irfft`; -1 for those that
        they have by default.

    Examples
    --------
    >>> x = wg.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.fft.irfftn(wg.fft.rfftn(x))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _to_real("irfftn", x, s, axes, norm)


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Discrete Fourier transform of half a Hermitian signal, whose spectrum is real.

    ``x`` is the first half of the signal. It is ``n`` times `irfft` of the conjugate, and has the
    adjoint of that. The result is real, of the precision of ``x``. Raises `TypeError` if ``x`` is
    neither floating nor complex; `ValueError` if ``n`` is less than 1, there is no such norm, or an
    axis is out of bounds. ``n`` is that of `irfft`. Array API standard.

    Examples
    --------
    >>> wg.fft.hfft(wg.asarray([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    check_norm(norm, "hfft")
    s, axes = over_one(x, n, axis, "hfft")
    return _to_real("hfft", conj(operand(x, "hfft", real=False)), s, axes, ADJOINT[norm])


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse of `hfft`: the first half of a Hermitian signal from its real spectrum.

    It has ``n // 2 + 1`` numbers along ``axis``. It is the conjugate of `rfft`, divided by ``n``,
    and has the adjoint of that. The result is complex, of the precision of ``x`` (single for half
    precision). Raises `ValueError` if ``n`` is less than 1, there is no such norm, or an axis is
    out of bounds. Array API standard.

    Examples
    --------
    >>> wg.fft.hfft(wg.fft.ihfft(wg.asarray([1.0, 2.0, 3.0, 4.0])))
    tensor([1., 2., 3., 4.])
    """
    check_norm(norm, "ihfft")
    s, axes = over_one(x, n, axis, "ihfft")
    return conj(transform(rfftn.run, "ihfft", x, s, axes, ADJOINT[norm], real=True))
