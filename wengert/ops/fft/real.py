"""Transforms between real numbers and half of a spectrum, and between half a signal and reals."""

from collections.abc import Sequence
from typing import Any, Never

from wengert.ops.axes import unexpected
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
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor

__all__ = ["hfft", "ihfft", "irfft", "irfftn", "rfft", "rfftn"]


@takes("x")
def rfft(
    x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward", **wrong: Never
) -> Tensor:
    r"""Discrete Fourier transform of real numbers: the first half of the spectrum.

    Parameters
    ----------
    x : array
        Of one axis at least and a real floating dtype.
    n, axis, norm
        As for `fft`.

    Returns
    -------
    Tensor
        :math:`y_0, \dots, y_{\lfloor n/2 \rfloor}` of `fft`, of the complex dtype of the precision
        of ``x``. Its adjoint is the real part of the inverse transform of the cotangent, filled
        with zeros: `irfft` after the numbers that stand for two are halved.

    Raises
    ------
    TypeError
        If ``x`` is not real and floating.
    ValueError
        As for `fft`.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(rfft, wrong)
    s, axes = over_one(x, n, axis)
    return transform(from_real, "rfft", x, s, axes, norm, real=True)


@takes("x")
def irfft(
    x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward", **wrong: Never
) -> Tensor:
    r"""Inverse of `rfft`: real numbers from the first half of their spectrum.

    Parameters
    ----------
    x : array
        Of one axis at least and a complex dtype; a real floating one is converted. Imaginary parts
        that a real number's spectrum has not, at 0 and in the middle of an even length, are
        ignored.
    n : int, optional
        Length of the result, of which the first ``n // 2 + 1`` numbers of the spectrum are used;
        ``2 * (m - 1)`` by default, ``m`` being the length of ``x`` along ``axis``.
    axis : int
        Along which axis.
    norm : {"backward", "ortho", "forward"}
        The norm of the transform that this one inverts.

    Returns
    -------
    Tensor
        Real, of the precision of ``x``. Its adjoint is `rfft`, in which the numbers that stand for
        two count twice.

    Raises
    ------
    TypeError, ValueError
        As for `fft`.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(irfft, wrong)
    s, axes = over_one(x, n, axis)
    return to_real("irfft", x, s, axes, norm)


@takes("x")
def rfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    **wrong: Never,
) -> Tensor:
    """Discrete Fourier transform of real numbers over several axes.

    Parameters
    ----------
    x : array
        Of one axis at least and a real floating dtype.
    s, axes, norm
        As for `fftn`.

    Returns
    -------
    Tensor
        `rfft` along the last of the axes, then `fft` along the others.

    Raises
    ------
    TypeError
        If ``x`` is not real and floating.
    ValueError
        As for `fftn`, and if there is no axis.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(rfftn, wrong)
    return transform(from_real, "rfftn", x, s, axes, norm, real=True)


@takes("x")
def irfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    **wrong: Never,
) -> Tensor:
    """Inverse of `rfftn`: `ifft` along all axes but the last one, then `irfft` along that.

    Parameters
    ----------
    x : array
        Of one axis at least and a complex dtype; a real floating one is converted.
    s : sequence of int, optional
        Lengths of the result along the axes, the last one as ``n`` of `irfft`; -1 for those that
        they have by default.
    axes, norm
        As for `fftn`.

    Returns
    -------
    Tensor
        Real, of the precision of ``x``.

    Raises
    ------
    TypeError, ValueError
        As for `fftn`, and if there is no axis.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(irfftn, wrong)
    return to_real("irfftn", x, s, axes, norm)


@takes("x")
def hfft(
    x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward", **wrong: Never
) -> Tensor:
    """Discrete Fourier transform of half a Hermitian signal, whose spectrum is real.

    Parameters
    ----------
    x : array
        The first half of the signal: as for `irfft`.
    n, axis
        As for `irfft`.
    norm : {"backward", "ortho", "forward"}
        As for `fft`.

    Returns
    -------
    Tensor
        Real, of the precision of ``x``.

    Raises
    ------
    TypeError, ValueError
        As for `fft`.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(hfft, wrong)
    check_norm(norm, "hfft")
    s, axes = over_one(x, n, axis)
    return to_real("hfft", conj(operand(x, "hfft", real=False)), s, axes, ADJOINT[norm])


@takes("x")
def ihfft(
    x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward", **wrong: Never
) -> Tensor:
    """Inverse of `hfft`: the first half of a Hermitian signal from its real spectrum.

    Parameters
    ----------
    x : array
        Of one axis at least and a real floating dtype.
    n, axis
        As for `fft`.
    norm : {"backward", "ortho", "forward"}
        The norm of the transform that this one inverts.

    Returns
    -------
    Tensor
        ``n // 2 + 1`` numbers along ``axis``, of the complex dtype of the precision of ``x``.

    Raises
    ------
    TypeError, ValueError
        As for `rfft`.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(ihfft, wrong)
    check_norm(norm, "ihfft")
    s, axes = over_one(x, n, axis)
    return conj(transform(from_real, "ihfft", x, s, axes, ADJOINT[norm], real=True))
