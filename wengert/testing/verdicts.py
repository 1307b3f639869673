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
    below_atol : bool
        Whether they differ by less than ``atol``, and by more at the result's own scale.

    Examples
    --------
    >>> x = wg.tensor([1.0], dtype=wg.float64, requires_grad=True)
    >>> try:
    ...     wg.testing.gradcheck(lambda x: wg.sin(1e8 * x), x)
    ... except wg.testing.GradcheckError as error:
    ...     print(error.verdict)
    badly scaled
    """

    verdict: ClassVar[str] = "wrong conduct"
    order: int = 1
    found: Found | None = None
    below_atol: bool = False


class WrongGradientError(GradcheckError):
    """The derivative is not the one that the function has at this point.

    Examples
    --------
    >>> class Square(wg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g  # and not 2 x g
    >>> x = wg.tensor([3.0], dtype=wg.float64, requires_grad=True)
    >>> wg.testing.gradcheck(Square.apply, x)
    Traceback (most recent call last):
        ...
    WrongGradientError: the gradient is wrong: d result 0[0] / d inputs[0][0]
    """

    verdict = "wrong"


class KinkError(GradcheckError):
    """The function has no derivative here: a kink, a jump, or the edge of its domain.

    Examples
    --------
    >>> x = wg.tensor([1.0], dtype=wg.float64, requires_grad=True)
    >>> wg.testing.gradcheck(wg.floor, x)
    Traceback (most recent call last):
        ...
    KinkError: the function jumps here, or is infinitely steep: its values on ...
    """

    verdict = "not differentiable here"


class BadlyScaledError(GradcheckError):
    """Differences give no estimate here: the function overflows nearby or bends too sharply.

    Examples
    --------
    >>> x = wg.tensor([1.0], dtype=wg.float64, requires_grad=True)
    >>> wg.testing.gradcheck(lambda x: wg.sin(1e8 * x), x)
    Traceback (most recent call last):
        ...
    BadlyScaledError: the differences don't settle (to 121): the function is not ...
    """

    verdict = "badly scaled"


class Tolerance(NamedTuple):
    """How far a derivative may be from an estimate, beside the estimate's own rounding."""

    atol: float
    rtol: float

    def __call__(self, found: Estimate) -> Reals:
        return self.atol + self.rtol * abs(found.value) + found.rounding

    def accepts(self, found: Estimate) -> bool:
        """Whether the error of an estimate is small beside the tolerance."""
        return bool(np.all(found.error <= self(found) / 4))
