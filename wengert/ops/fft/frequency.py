"""The frequencies of a spectrum, and their order."""

from collections.abc import Sequence
from operator import index
from typing import Any

from wengert.backends import as_dtype
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import as_axes, operand, shape_of
from wengert.ops.creation import arange, floating_tensors
from wengert.ops.data_type import get_default_dtype
from wengert.ops.elementwise import multiply
from wengert.ops.fft.transform import check_length
from wengert.ops.manipulation import roll
from wengert.tape.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _frequencies(
    function: str, n: int, d: Any, start: int, stop: int, dtype: Any, device: Any
) -> Tensor:
    if floating_tensors(d):
        dtype = d.dtype if dtype is None else dtype
        device = differentiable.device(d) if device is None else device
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    if wanted.kind != "real floating":
        raise TypeError(f"frequencies are of a real floating dtype, not {wanted.name}")
    counts = arange(start, stop, dtype=wanted, device=device)
    return multiply(counts, 1 / (n * operand(d, counts, function, "d")))


def fftfreq(n: int, /, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    r"""Frequencies of the numbers of a spectrum.

    The result is 1-d, :math:`(0, 1, \dots, \lceil n/2 \rceil - 1,` :math:`-\lfloor n/2 \rfloor,
    \dots, -1) / (n d)`. Raises `ValueError` if ``n`` is less than 1. It is differentiable in a
    Tensor ``d``, the distance of samples, and has its dtype by default. Array API standard.

    Examples
    --------
    >>> wg.fft.fftfreq(4, d=0.5)
    tensor([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    n = index(n)
    check_length(n, "fftfreq")
    half = n // 2
    return roll(_frequencies("fftfreq", n, d, -half, n - half, dtype, device), -half)


def rfftfreq(n: int, /, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    r"""Frequencies of the numbers of half a spectrum, none of them negative.

    The result is 1-d, :math:`(0, 1, \dots, \lfloor n/2 \rfloor) / (n d)`. Raises `ValueError` if
    ``n`` is less than 1. Arguments are those of `fftfreq`. Array API standard.

    Examples
    --------
    >>> wg.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    n = index(n)
    check_length(n, "rfftfreq")
    return _frequencies("rfftfreq", n, d, 0, n // 2 + 1, dtype, device)


def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Bring the frequency 0 from the beginning to the middle.

    The cotangent is rolled back. The result is ``x``, rolled by half its length along the axes.
    Raises `ValueError` if an axis comes twice or is out of bounds. Array API standard.

    Examples
    --------
    >>> wg.fft.fftshift(wg.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    shape = shape_of(x)
    over = tuple(range(len(shape))) if axes is None else as_axes(axes, len(shape))
    return roll(x, tuple([shape[i] // 2 for i in over]), axis=over)


def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Bring the frequency 0 back to the beginning: the inverse of `fftshift`.

    The two differ where a length is odd. The cotangent is rolled back. The result is ``x``, rolled
    by half its length along the axes. Raises `ValueError` if an axis comes twice or is out of
    bounds. Array API standard.

    Examples
    --------
    >>> x = wg.arange(5)
    >>> wg.fft.ifftshift(wg.fft.fftshift(x))
    tensor([0, 1, 2, 3, 4])
    """
    shape = shape_of(x)
    over = tuple(range(len(shape))) if axes is None else as_axes(axes, len(shape))
    return roll(x, tuple([-(shape[i] // 2) for i in over]), axis=over)
