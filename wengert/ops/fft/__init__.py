"""The standard's extension ``fft``: discrete Fourier transforms, with their derivatives.

Four primitives are behind all of it: the complex transform over several axes and its inverse, and
those between real numbers and half of a spectrum. The transforms are linear, and each is another
one's adjoint, so derivatives of any order need nothing else.
"""

import sys

from wengert.interpreters.differentiable import differentiable
from wengert.ops.fft.frequency import fftfreq, fftshift, ifftshift, rfftfreq
from wengert.ops.fft.real import hfft, ihfft, irfft, irfftn, rfft, rfftn
from wengert.ops.fft.spectrum import fft, fftn, ifft, ifftn

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return __all__


vars(differentiable)["fft"] = sys.modules[__name__]
