"""The errors of checks, one for each verdict, and the tolerance of a comparison."""

from typing import ClassVar, NamedTuple

import numpy as np

from wengert.testing.differences import Estimate, Reals
from wengert.testing.likeness import Found


class GradcheckError(AssertionError):
    """A derivative is wrong, or something else about it is.

    Attributes
    ----------
    verdict : str
        What is the matter, in two or three words: each subclass has its own.
    order : int
        Of the derivative: 2 where `check_gradients` has found it in the second.
    found : wengert.testing.likeness.Found or None
        The two Jacobians, where they differ.
    """

    verdict: ClassVar[str] = "wrong conduct"
    order: int = 1
    found: Found | None = None


class WrongGradientError(GradcheckError):
    """The function has a derivative here, and it is another one."""

    verdict = "wrong"


class KinkError(GradcheckError):
    """The function has a kink, a jump, or the edge of its domain here: nothing to compare with."""

    verdict = "not differentiable here"


class BadlyScaledError(GradcheckError):
    """The function overflows nearby or bends too sharply: differences cannot tell."""

    verdict = "badly scaled"


class Tolerance(NamedTuple):
    """How far a derivative may be from the estimate: its own rounding comes on top."""

    atol: float
    rtol: float

    def __call__(self, found: Estimate) -> Reals:
        return self.atol + self.rtol * abs(found.value) + found.rounding

    def settled(self, found: Estimate) -> bool:
        """Whether an estimate is known well enough to be compared with."""
        return bool(np.all(found.error <= self(found) / 4))
