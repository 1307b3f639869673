"""The errors of checks, one for each verdict, and the tolerance of a comparison."""

from typing import ClassVar, NamedTuple

import numpy as np

from wengert.testing.differences import Estimate, Reals
from wengert.testing.likeness import Found


class GradcheckError(AssertionError):
    """A check of derivatives failed.

    Attributes
    ----------
    verdict : str
        The kind of failure in a few words; each subclass has its own.
    order : int
        2 if `check_gradients` found the failure in the second derivative, otherwise 1.
    found : wengert.testing.likeness.Found or None
        The two Jacobians, if they differ.
    """

    verdict: ClassVar[str] = "wrong conduct"
    order: int = 1
    found: Found | None = None


class WrongGradientError(GradcheckError):
    """The derivative is not the one that the function has at this point."""

    verdict = "wrong"


class KinkError(GradcheckError):
    """The function has no derivative here: a kink, a jump, or the edge of its domain."""

    verdict = "not differentiable here"


class BadlyScaledError(GradcheckError):
    """Differences give no estimate here: the function overflows nearby or bends too sharply."""

    verdict = "badly scaled"


class Tolerance(NamedTuple):
    """How far a derivative may be from an estimate, beside the estimate's own rounding."""

    atol: float
    rtol: float

    def __call__(self, found: Estimate) -> Reals:
        return self.atol + self.rtol * abs(found.value) + found.rounding

    def settled(self, found: Estimate) -> bool:
        """Whether the error of an estimate is small beside the tolerance."""
        return bool(np.all(found.error <= self(found) / 4))
