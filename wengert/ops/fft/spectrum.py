"""Transforms of complex numbers."""

from collections.abc import Sequence
from typing import Any, Never

from wengert.ops.axes import unexpected
from wengert.ops.fft.transform import Norm, forward, inverse, over_one, transform
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor

__all__ = ["fft", "fftn", "ifft", "ifftn"]


@takes("x")
def fft(
    x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward", **wrong: Never
) -> Tensor:
    r"""Discrete Fourier transform, :math:`y_k = \sum_j x_j e^{-2 \pi i jk / n}`.

    Parameters
    ----------
    x : array
        Of one axis at least and a complex dtype; a real floating one is converted.
    n : int, optional
        Length to transform: ``x`` is cut, or filled with zeros at the end. Its own by default.
    axis : int
        Along which axis.
    norm : {"backward", "ortho", "forward"}
        Whether the factor :math:`1/n` is the inverse transform's, is shared as
        :math:`1/\sqrt n`, or is this one's.

    Returns
    -------
    Tensor
        Complex, of the precision of ``x`` (single for half precision), and length ``n`` along
        ``axis``. Its adjoint is the inverse transform without the factor: ``n`` times `ifft`,
        under the norm "backward".

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If ``n`` is less than 1, there is no such norm, or the axis is out of bounds (also an
        IndexError).

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(fft, wrong)
    s, axes = over_one(x, n, axis)
    return transform(forward, "fft", x, s, axes, norm, real=False)


@takes("x")
def ifft(
    x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward", **wrong: Never
) -> Tensor:
    r"""Inverse discrete Fourier transform, :math:`y_j = \frac 1n \sum_k x_k e^{2 \pi i jk / n}`.

    Parameters
    ----------
    x, n, axis
        As for `fft`.
    norm : {"backward", "ortho", "forward"}
        The norm of the transform that this one inverts.

    Returns
    -------
    Tensor
        As for `fft`. Its adjoint is `fft` with the factor :math:`1/n`.

    Raises
    ------
    TypeError, ValueError
        As for `fft`.

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(ifft, wrong)
    s, axes = over_one(x, n, axis)
    return transform(inverse, "ifft", x, s, axes, norm, real=False)


@takes("x")
def fftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    **wrong: Never,
) -> Tensor:
    """Discrete Fourier transform over several axes: `fft` along each of them.

    Parameters
    ----------
    x : array
        Of any shape and a complex dtype; a real floating one is converted.
    s : sequence of int, optional
        Lengths along the axes, each as ``n`` of `fft`; -1 for the array's own.
    axes : sequence of int, optional
        Which axes. By default the last ones, as many as ``s`` has lengths, or all.
    norm : {"backward", "ortho", "forward"}
        As for `fft`, n being the product of the lengths.

    Returns
    -------
    Tensor
        As for `fft`.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If ``s`` and ``axes`` differ in number, a length is less than 1, there is no such norm, or
        an axis comes twice or is out of bounds (also an IndexError).

    Notes
    -----
    Array API standard 2025.12, ``fft`` extension.
    """
    if wrong:
        raise unexpected(fftn, wrong)
    return transform(forward, "fftn", x, s, axes, norm, real=False)


@takes("x")
def ifftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    **wrong: Never,
) -> Tensor:
    """Inverse discrete Fourier transform over several axes; parameters as for `fftn`."""
    if wrong:
        raise unexpected(ifftn, wrong)
    return transform(inverse, "ifftn", x, s, axes, norm, real=False)
