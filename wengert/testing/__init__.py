"""Tests of derivatives, for Wengert's own functions and for yours.

`gradcheck` and `gradgradcheck` need nothing but Wengert. `wengert.testing.strategies` generates
Tensors, shapes, axes and index keys with Hypothesis (the extra ``wengert[testing]``).
"""

from wengert.testing.gradcheck import gradcheck, gradgradcheck
from wengert.testing.verdicts import (
    BadlyScaledError,
    GradcheckError,
    NotDifferentiableError,
    WrongGradientError,
)

__all__ = [
    "BadlyScaledError",
    "GradcheckError",
    "NotDifferentiableError",
    "WrongGradientError",
    "gradcheck",
    "gradgradcheck",
]
