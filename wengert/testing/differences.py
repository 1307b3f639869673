"""Derivatives from values alone: central differences, extrapolated, with an estimate of error."""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np

Reals = np.ndarray[Any, np.dtype[np.float64]]

#: Each step is this much smaller than the last. A power of two keeps ``x + h`` exact.
RATIO = 4
#: Steps that are always taken: fewer can't tell the error of the extrapolation from the order of
#: what it removes.
FIRST_STEPS = 3
MOST_STEPS = 12
#: Multiples of the rounding error that a kink or jump has to show.
NOISE = 100
#: How many of the last steps have to show it, each like the one before to within a fifth.
SHOWING, STEADY = 4, 1.2


class Estimate(NamedTuple):
    """A derivative estimated from differences.

    Attributes
    ----------
    value : ndarray of float64
        The derivative of each result along the direction.
    error : ndarray of float64
        How far successive extrapolations disagree: large where the function is not smooth.
    rounding : ndarray of float64
        What rounding alone may have changed in ``value``.
    kink : ndarray of float64
        How much the derivatives from the right and from the left differ, if smaller steps don't
        change it; otherwise 0.
    right, left : ndarray of float64
        The one-sided differences of the smallest step.
    jump : ndarray of bool
        Whether the values on both sides, or on one and at the point, stay apart while the step
        shrinks: a jump, or an infinite slope.
    """

    value: Reals
    error: Reals
    rounding: Reals
    kink: Reals
    right: Reals
    left: Reals
    jump: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def exact(cls, value: Reals) -> "Estimate":
        """A derivative that is known to rounding, as the complex step's is."""
        none = np.zeros_like(value)
        return cls(value, none, none, none, value, value, none.astype(np.bool_))


def to_reals(array: np.ndarray[Any, Any]) -> Reals:
    """Return the numbers of an array as one row, a complex one as its real and imaginary part."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        return flat.astype(np.complex128, copy=False).view(np.float64)
    return flat.astype(np.float64, copy=False)


def derivative(
    line: Callable[[float], Reals],
    eps: float,
    good_enough: Callable[[Estimate], bool],
    middle: Reals | None = None,
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
        Tells whether an estimate can stand, or smaller steps should be tried.
    middle : ndarray, optional
        ``line(0)``, where it is known.

    References
    ----------
    C. J. F. Ridders, Accurate computation of F'(x) and F'(x)F''(x), Advances in Engineering
    Software 4 (1982) 75-76.
    """
    middle = line(0.0) if middle is None else middle
    row: list[Reals] = []
    bends: list[Reals] = []
    aparts: list[Reals] = []
    best = Estimate.exact(np.full_like(middle, np.nan))
    h = eps
    with np.errstate(all="ignore"):
        for step in count(1):
            right, left = line(h), line(-h)
            before, row = row, [(right - left) / (2 * h)]
            rounding = np.finfo(np.float64).eps * np.maximum(abs(right), abs(left)) / h
            bends.append(abs(right - 2 * middle + left) / h)
            aparts.append(abs(right - left))
            if step == 1:
                best = best._replace(
                    value=row[0], error=np.full_like(row[0], np.inf), rounding=rounding
                )
            for order, coarse in enumerate(before):
                gain = RATIO ** (2 * order + 2) - 1
                value = row[order] + (row[order] - coarse) / gain
                error = np.maximum(abs(value - row[order]), abs(value - coarse))
                better = error < best.error
                best = best._replace(
                    value=np.where(better, value, best.value),
                    error=np.where(better, error, best.error),
                    rounding=np.where(better, 4 * rounding, best.rounding),
                )
                row.append(value)
            if step == MOST_STEPS or (step >= FIRST_STEPS and good_enough(best)):
                break
            h /= RATIO
        bent = bends[-1] > NOISE * rounding
        return best._replace(
            kink=np.where(bent & _steady(bends, 0.5, 1.5), bends[-1], 0.0),
            right=(right - middle) / h,
            left=(middle - left) / h,
            jump=(bent & _steady(bends, 1.5, 5.0))
            | ((aparts[-1] > NOISE * rounding * h) & _steady(aparts, 0.3, 2.0)),
        )


def _steady(found: list[Reals], low: float, high: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether the last steps' values change by one factor, between the bounds."""
    last = np.stack(found[-SHOWING:])
    factors = last[1:] / last[:-1]
    least, most = np.min(factors, axis=0), np.max(factors, axis=0)
    steady: np.ndarray[Any, np.dtype[np.bool_]] = (
        (least > low) & (most < high) & (most < STEADY * least)
    )
    return steady
