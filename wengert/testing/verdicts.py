"""What is the matter with a derivative that differs: it is wrong, there is none, or no telling."""

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


def judge(
    found: Estimate, row: int, analytic: float, middle: float, allowed: float
) -> tuple[type[GradcheckError], str]:
    """Tell why a derivative differs from the estimate.

    Parameters
    ----------
    found : Estimate
        Of all results along one direction.
    row : int
        Which result.
    analytic, middle : float
        Its derivative as given, and its value at the point.
    allowed : float
        How much the two may differ.

    Returns
    -------
    type, str
        The error to raise, and the cause in words.
    """
    numerical, right, left = found.value[row], found.right[row], found.left[row]
    if not np.isfinite(middle):
        return KinkError, "the function is not finite, or not defined, at this point"
    if not np.isfinite(numerical):
        if np.isfinite(right) != np.isfinite(left):
            return KinkError, (
                "the function is finite on one side of this point alone, so it is not finite, or "
                "not defined, around it"
            )
        return (
            BadlyScaledError,
            "the function is finite here, and not finite close by: it overflows",
        )
    if found.kink[row] > 0:
        if min(right, left) - allowed <= analytic <= max(right, left) + allowed:
            return KinkError, (
                "the function has a kink here: its derivatives from both sides differ by "
                f"{found.kink[row]:.3g}, so there is no derivative to compare with"
            )
        return WrongGradientError, (
            f"the function has a kink here, with the derivatives {left:.6g} and {right:.6g} from "
            "both sides, and the one given is not between them: it is wrong"
        )
    if found.jump[row]:
        return KinkError, (
            "the function jumps here, or is infinitely steep: its values on both sides stay apart"
        )
    if found.error[row] > 4 * allowed:
        return BadlyScaledError, (
            f"the differences don't settle (to {found.error[row]:.3g}): the function is not smooth "
            "here, or badly scaled"
        )
    return WrongGradientError, "the gradient is wrong"
