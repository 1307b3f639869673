"""The standard's extension ``fft``: discrete Fourier transforms, with their derivatives.

Four primitives are behind all of it: the complex transform over several axes and its inverse, and
those between real numbers and half of a spectrum. The transforms are linear, and each is another
one's adjoint, so derivatives of any order need nothing else.
"""

# ruff: noqa: F403 -- each file says in its __all__ what it gives

import sys

from wengert.interpreters.namespaces import differentiable
from wengert.ops.fft import frequency, real, spectrum
from wengert.ops.fft.frequency import *
from wengert.ops.fft.real import *
from wengert.ops.fft.spectrum import *
from wengert.ops.hints import list_public

__all__: list[str] = []
__all__ += frequency.__all__
__all__ += real.__all__
__all__ += spectrum.__all__

list_public(__name__, "wengert.fft")


vars(differentiable)["fft"] = sys.modules[__name__]
