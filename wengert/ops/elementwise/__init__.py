"""Elementwise functions: the standard's chapter of that name, with their derivatives."""

# ruff: noqa: F403 -- each file says in its __all__ what it gives

from wengert.ops.elementwise import (
    arithmetic,
    comparison,
    complex,  # noqa: A004
    exponential,
    extremum,
    rounding,
    trigonometric,
)
from wengert.ops.elementwise.arithmetic import *
from wengert.ops.elementwise.comparison import *
from wengert.ops.elementwise.complex import *
from wengert.ops.elementwise.exponential import *
from wengert.ops.elementwise.extremum import *
from wengert.ops.elementwise.rounding import *
from wengert.ops.elementwise.sigmoid import expit as expit  # for rules; no function of the standard
from wengert.ops.elementwise.trigonometric import *

__all__: list[str] = []
__all__ += arithmetic.__all__
__all__ += comparison.__all__
__all__ += complex.__all__
__all__ += exponential.__all__
__all__ += extremum.__all__
__all__ += rounding.__all__
__all__ += trigonometric.__all__
