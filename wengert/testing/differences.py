"""Derivatives from values alone: central differences, extrapolated, with an estimate of error."""

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

Reals = np.ndarray[Any, np.dtype[np.float64]]

#: Each step is this much smaller than the last. A power of two keeps ``x + h`` exact.
RATIO = 4
#: Steps that are always taken: the error is the difference of successive extrapolations, and fewer
#: steps have one extrapolation alone.
FIRST_STEPS = 3
MOST_STEPS = 12
#: The machine's precision.
EPSILON = float(np.finfo(np.float64).eps)


class Estimate(NamedTuple):
    """A derivative of each result along a direction, estimated from differences."""

    value: Reals
    #: How far successive extrapolations disagree: large where the function is not smooth.
    error: Reals
    #: What rounding alone may have changed in the value.
    rounding: Reals
    #: The smallest step that was taken.
    step: float


class Segment(NamedTuple):
    """The part of a row of real numbers that is one array."""

    shape: tuple[int, ...]
    #: Whether each element is two real numbers: its real and its imaginary part.
    complex: bool

    @property
    def size(self) -> int:
        """The count of real numbers."""
        return math.prod(self.shape) * (2 if self.complex else 1)

    def entry(self, name: str, at: int) -> str:
        """Return what messages call one of the numbers, such as ``Re inputs[0][1, 2]``."""
        part = ""
        if self.complex:
            part, at = ("Re ", "Im ")[at % 2], at // 2
        index = [int(i) for i in np.unravel_index(at, self.shape)] if self.shape else ""
        return f"{part}{name}{index}"


def locate(segments: Sequence[Segment], at: int) -> tuple[int, int]:
    """Return which segment a number of a row belongs to, and its position there."""
    for which, segment in enumerate(segments):
        if at < segment.size:
            return which, at
        at -= segment.size
    raise IndexError(at)


def to_reals(array: np.ndarray[Any, Any]) -> Reals:
    """Return an array's elements as one row, each complex one as its real and imaginary part."""
    flat = array.reshape(-1)
    if flat.dtype.char == "d":
        return flat
    if flat.dtype.kind == "c":
        return np.ascontiguousarray(flat, np.complex128).view(np.float64)
    return flat.astype(np.float64, copy=False)


def agree(
    given: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    rtol: float,
    atol: float,
    of_largest: float,
) -> bool:
    """Return whether two arrays are equal up to rounding, each nan to a nan.

    Elements may differ by ``rtol`` of their own size, and by ``of_largest`` of the largest finite
    one (at least ``atol``): small ones may be differences of large ones.
    """
    largest = float(np.max(abs(expected), initial=0.0, where=np.isfinite(expected)))
    return given.shape == expected.shape and bool(
        np.allclose(given, expected, rtol, max(atol, of_largest * largest), equal_nan=True)
    )


def derivative(
    line: Callable[[float], Reals], eps: float, good_enough: Callable[[Estimate], bool]
) -> Estimate:
    r"""Differentiate ``line`` at 0 by Ridders's method.

    Central differences :math:`D(h) = (f(h) - f(-h)) / 2h` have an error in even powers of h.
    Those for steps h, h/4, h/16, ... are combined so that one power after another cancels
    (Richardson), and of all combinations each result takes the one that changed least.

    Parameters
    ----------
    line : callable
        The results, as one row of reals, at a distance along the direction.
    eps : float
        The first step.
    good_enough : callable
        Whether an estimate is accurate enough; otherwise a smaller step follows.

    References
    ----------
    C. J. F. Ridders, Accurate computation of F'(x) and F'(x)F''(x), Advances in Engineering
    Software 4 (1982) 75-76.
    """
    row: list[Reals] = []
    h = eps
    with np.errstate(all="ignore"):
        for step in count(1):
            right, left = line(h), line(-h)
            before, row = row, [(right - left) / (2 * h)]
            rounding = EPSILON * np.maximum(abs(right), abs(left)) / h
            if step == 1:
                best = Estimate(row[0], np.full_like(row[0], np.inf), rounding, h)
            for order, coarse in enumerate(before):
                gain = RATIO ** (2 * order + 2) - 1
                value = row[order] + (row[order] - coarse) / gain
                error = np.maximum(abs(value - row[order]), abs(value - coarse))
                better = error < best.error
                best = Estimate(
                    np.where(better, value, best.value),
                    np.where(better, error, best.error),
                    np.where(better, 4 * rounding, best.rounding),
                    h,
                )
                row.append(value)
            if step == MOST_STEPS or (step >= FIRST_STEPS and good_enough(best)):
                return best
            h /= RATIO
    raise AssertionError("the loop ends with its last step")
