"""Tests of derivatives, for Wengert's own functions and for yours.

`gradcheck` and `gradgradcheck` need nothing but Wengert. `check_gradients`, `check_derivative` and
`wengert.testing.strategies` draw arguments with Hypothesis (the extra ``wengert[testing]``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert.backends.backend import importing
from wengert.inspection.breaks import (
    GraphBreak,
    GraphBreakError,
    GraphBreaks,
    graph_breaks,
)
from wengert.inspection.differentiable import assert_differentiable
from wengert.testing.gradcheck import gradcheck, gradgradcheck
from wengert.testing.problem import strided
from wengert.testing.verdicts import BadlyScaledError, GradcheckError, KinkError, WrongGradientError

if TYPE_CHECKING:
    from wengert.testing.arguments import Argument as Argument
    from wengert.testing.arguments import Axis as Axis
    from wengert.testing.check import check_gradients as check_gradients
    from wengert.testing.hand_written import check_derivative as check_derivative

#: What needs Hypothesis, which `gradcheck` does not.
_LATER = {
    "Argument": "arguments",
    "Axis": "arguments",
    "check_derivative": "hand_written",
    "check_gradients": "check",
}

__all__ = [
    "BadlyScaledError",
    "GradcheckError",
    "GraphBreak",
    "GraphBreakError",
    "GraphBreaks",
    "KinkError",
    "WrongGradientError",
    "assert_differentiable",
    "gradcheck",
    "gradgradcheck",
    "graph_breaks",
    "strided",
]
__all__ += ["Argument", "Axis", "check_derivative", "check_gradients"]


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Any:
        if name == "strategies":  # says itself what it needs
            return import_module(f"{__name__}.strategies")
        if name not in _LATER:
            raise import_module("wengert.ops.hints").no_attribute(__name__, name, __all__)
        needs = f"wengert.testing.{name} needs Hypothesis ({{}}): install wengert[testing]"
        with importing(needs):
            return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)

    def __dir__() -> list[str]:
        return __all__
