r"""Why a derivative differs from the differences: it is wrong, or the function has none there.

At a kink, a right rule returns a derivative that the function has close by, or a mean of several:
an element of Clarke's generalised gradient. So along any direction it lies between slopes close by.
The maximum of three equal numbers, say, has the slopes (1, 0, 0), (0, 1, 0) and (0, 0, 1) around,
so (1/3, 1/3, 1/3) is right there and (1, 1, 1) is wrong: along (1, 1, 1) all slopes are 1.

References
----------
F. H. Clarke, Optimization and Nonsmooth Analysis (1983), chapter 2.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wengert.tape.observers import Observer, observed_by
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor
from wengert.testing.differences import EPSILON, RATIO, Estimate, Reals, Segment
from wengert.testing.problem import Problem, inexact
from wengert.testing.verdicts import (
    BadlyScaledError,
    GradcheckError,
    KinkError,
    WrongGradientError,
)

Flags = np.ndarray[Any, np.dtype[np.bool_]]

#: The distance of points that are close by, in the last steps of the differences, and its bounds.
CLOSE, NEAREST, FARTHEST = 2.0**-6, 2.0**-28, 2.0**-18
#: Slopes are taken over a step that is this much shorter, so that few of them straddle a kink.
SHORTER = 2.0**-6
#: Multiples of the rounding error that a kink or a jump has to show.
NOISE = 100
#: How much the growth of a jump's slopes may vary from step to step.
STEADY = 1.2
#: Points at which slopes are compared; and points for each real number of the inputs that are
#: searched for one slope: close by, each of n equal elements is their median once in n points.
GLANCES, TRIES = 12, 24
#: The relative tolerance of a slope: slopes change a little around the point.
MISS = 1e-3
#: The precision, relative to how far a derivative is from the estimate, to which slopes tell them
#: apart, and to which one is the other.
TELLS, IS = 0.05, 0.1
#: Places where a polynomial is fitted to the results, and points of its line around each. They are
#: random so that no staircase is in step with them.
PLACES = (-3.0, 0.0, 3.0)
POINTS = np.random.default_rng(6).uniform(-1, 1, 12)
_powers = np.vander(POINTS, 7)
REST = np.eye(12) - _powers @ np.linalg.pinv(_powers)
#: A line with fewer steps between its points is as good as constant.
FEW = 6
#: Extremes of the first axis that pass over NaN, and are NaN, without a warning, where all is.
_largest: Any = np.fmax.reduce
_least: Any = np.fmin.reduce


class _Sides(NamedTuple):
    """The slopes on both sides of a point, and how they change while the step shrinks."""

    #: Of the smallest step.
    right: Reals
    left: Reals
    #: Whether the two differ by as much at each step.
    kink: Flags
    #: Whether they grow without bounds: a jump, or an infinite slope.
    jump: Flags


class Region:
    """The points close by that differ in some inputs, and a problem's results there.

    Parameters
    ----------
    problem : Problem
        The function at the point.
    own : ndarray of float64
        1 for the numbers of those inputs, and 0 for others.
    step : float
        The last step of the differences.
    """

    def __init__(self, problem: Problem, own: Reals, step: float) -> None:
        self.problem, self.own = problem, own
        self.radius = min(max(CLOSE * step, NEAREST), FARTHEST)
        self.step = SHORTER * self.radius
        self.last = step
        #: What rounding may change in a slope.
        self.rounding = 8 * EPSILON * (1 + abs(problem.middle())) / self.step

    def slope(self, at: Reals, direction: Reals) -> Reals:
        """The slopes along a direction at a point close by."""
        move = self.step * direction
        with np.errstate(all="ignore"):
            ahead, behind = self.problem.results_at(at + move), self.problem.results_at(at - move)
            found: Reals = (ahead - behind) / (2 * self.step)
        return found

    def random(self, random: np.random.Generator, radius: float) -> Reals:
        """A random point."""
        return random.uniform(-radius, radius, self.own.size)

    @property
    def bent(self) -> Flags:
        """Whether slopes of each result differ close by, and no less where points are closer."""
        return self._look[0]

    @property
    def several(self) -> bool:
        """Whether several operations have a kink here.

        Each rule may then return another derivative of its own operation, and their sum may be
        one that the function has nowhere: in the sum of the maximum and the minimum of equal
        numbers, 2 for the first number.
        """
        return self._look[1]

    @cached_property
    def _look(self) -> tuple[Flags, bool]:
        """`bent` and `several`, from the same evaluations."""
        operations = _Operations()
        try:
            steps = Problem(operations.of(self.problem), self.problem.arguments)
            steps = steps.scale_results(np.max(self.problem.scale_of_results))
            found = Region(steps, self.own, self.radius / CLOSE).bends(self.own)
            several = operations.kinks(found, steps.segments) > 1
            found = found[-self.problem.middle().size :]
        except (KinkError, ValueError):  # other operations close by, or single precision
            found, several = self.bends(self.own), True
        if not self.own.all():
            # At the edge of the domain in one input, the others can still be moved.
            found |= self.bends(np.ones_like(self.own))
        return found, several

    def bends(self, mask: Reals) -> Flags:
        """Whether slopes differ between points that differ in the numbers of a mask."""
        random = np.random.default_rng(3)
        way = mask * self.random(random, 1.0)

        def spread(radius: float) -> Reals:
            near = np.stack(
                [self.slope(mask * self.random(random, radius), way) for _ in range(GLANCES)]
            )
            near = np.where(np.isfinite(near), near, np.nan)
            with np.errstate(all="ignore"):
                found: Reals = _largest(near) - _least(near)
            return found

        close = spread(self.radius)
        differ: Flags = close > NOISE * self.rounding
        return differ & (close > spread(self.radius / SHORTER) / 8) if differ.any() else differ


class Surroundings:
    """The results of a problem around its point, along a direction in which a derivative differs.

    Parameters
    ----------
    region : Region
        The points close by that differ in the inputs of the direction.
    direction : ndarray of float64
        Along which derivatives are taken.
    """

    def __init__(self, region: Region, direction: Reals) -> None:
        self.region, self.direction = region, direction

    def verdict(
        self, found: Estimate, row: int, given: float, allowed: float
    ) -> tuple[type[GradcheckError], str]:
        """Return why a result's derivative differs from the estimate: the error, and the cause.

        The cause is empty if the function is smooth. The two may differ by ``allowed``.
        """
        kind, cause = self._cause(found, row, given, allowed)
        if kind is WrongGradientError and (
            self.region.several and (cause or self._narrow_region.several)
        ):
            return KinkError, (
                "several operations have a kink here: each rule may be right, and the gradient "
                "still none that the function has, so there is nothing to compare with"
            )
        return kind, cause

    @cached_property
    def _narrow_region(self) -> Region:
        """The points that differ in the direction's numbers alone: others may have kinks, too."""
        return Region(self.region.problem, (self.direction != 0) * 1.0, self.region.last)

    def _cause(
        self, found: Estimate, row: int, given: float, allowed: float
    ) -> tuple[type[GradcheckError], str]:
        if not np.isfinite(self.region.problem.middle()[row]):
            return KinkError, "the function is not finite, or not defined, at this point"
        right, left = self.sides.right[row], self.sides.left[row]
        if not np.isfinite(found.value[row]):
            if np.isfinite(right) != np.isfinite(left):
                return KinkError, (
                    "the function is finite on one side of this point alone, so it is not finite, "
                    "or not defined, around it"
                )
            return BadlyScaledError, (
                "the function is finite here, and not finite close by: it overflows"
            )
        rests, off = self.rests[:, row], abs(found.value[row] - given) * found.step / 4
        rounded = (
            f"the function's values are rounded to about {rests[1]:.1g}, as by a part in single "
            "precision or a difference of large numbers: differences cannot tell"
        )
        if off <= np.min(rests):
            return BadlyScaledError, rounded
        if self.sides.jump[row]:
            return KinkError, (
                "the function jumps here, or is infinitely steep: its values on both sides stay "
                "apart"
            )
        if self.sides.kink[row]:
            if self.stands(row, given):
                return KinkError, (
                    "the function has a kink here: its derivatives from both sides differ by "
                    f"{abs(right - left):.3g}, so there is no derivative to compare with"
                )
            return WrongGradientError, (
                f"the function has a kink here, with the derivatives {left:.6g} and {right:.6g} "
                "from both sides, and the one given is not between them: it is wrong"
            )
        if found.error[row] > 4 * allowed:
            return BadlyScaledError, (
                f"the differences don't settle (to {found.error[row]:.3g}): the function is not "
                "smooth here, or badly scaled"
            )
        if self._hides(found, row, given):
            return KinkError, (
                "the function has a kink or jump so close by that differences reach across it, so "
                "there is no derivative to compare with"
            )
        if off <= rests[1]:
            return BadlyScaledError, rounded
        if not self.region.bent[row]:
            return WrongGradientError, ""
        if self.stands(row, given):
            return KinkError, (
                "the function has a kink here: its derivatives close by differ, so there is no "
                "derivative to compare with"
            )
        return WrongGradientError, (
            "the function has a kink here, and the derivative given is neither among those close "
            "by nor between them: it is wrong"
        )

    def has_slopes(self, row: int) -> bool:
        """Whether the slopes of a result on both sides are numbers."""
        sides = self.sides
        finite = np.isfinite(sides.right[row]) and np.isfinite(sides.left[row])
        return bool(finite and not sides.jump[row])

    def stands(self, row: int, given: float) -> bool:
        """Whether a derivative lies among the slopes close by."""
        sides = self.sides.right[row], self.sides.left[row]
        miss = self.region.rounding[row] + MISS * abs(given)
        return all(
            max(sign * side for side in sides) >= sign * given - miss
            or self._reaches(row, sign, sign * given - miss)
            for sign in (1, -1)
        )

    @cached_property
    def sides(self) -> _Sides:
        """The slopes on both sides of the point."""
        middle, t = self.region.problem.middle(), self.region.radius
        gaps, sizes = [], []
        with np.errstate(all="ignore"):
            while t >= self.region.step:
                right = (self.region.problem.results_at(t * self.direction) - middle) / t
                left = (middle - self.region.problem.results_at(-t * self.direction)) / t
                gaps.append(abs(right - left))
                sizes.append(np.maximum(abs(right), abs(left)))
                t /= RATIO
            large = NOISE * self.region.rounding
            bends, grows = np.divide(gaps[1:], gaps[:-1]), np.divide(sizes[1:], sizes[:-1])
            kink = (gaps[-1] > large) & np.all((bends > 0.5) & (bends < 1.5), axis=0)
            jump = (sizes[-1] > large) & np.all(grows > 1.4, axis=0)
            jump &= np.max(grows, axis=0) < STEADY * np.min(grows, axis=0)
        return _Sides(right, left, kink, jump)

    @cached_property
    def rests(self) -> Reals:
        """How far the results are from a polynomial, on lines around each of the `PLACES`.

        Few of these lie at a kink. A result with few steps has longer lines.
        """
        reach, found, flat = RATIO * self.region.last, np.array(0.0), np.array(True)
        with np.errstate(all="ignore"):
            while flat.any() and reach < 2.0**-5 * self.region.problem.scale(self.direction):
                reach *= RATIO
                moves = reach * np.add.outer(PLACES, POINTS)[..., None] * self.direction
                lines = [[self.region.problem.results_at(x) for x in place] for place in moves]
                found = np.where(flat, np.max(abs(REST @ np.array(lines)), axis=1), found)
                steps = np.count_nonzero(np.diff(np.sort(lines[1], axis=0), axis=0), axis=0)
                flat = flat & (steps < FEW)
        return found

    def _hides(self, found: Estimate, row: int, given: float) -> bool:
        """Whether a side has the derivative given, over steps that differences reach across."""
        problem, gap = self.region.problem, abs(found.value[row] - given)
        middle, t, seen = problem.middle()[row], found.step, 0
        noise = 8 * EPSILON * (1 + abs(middle)) / (TELLS * gap)
        with np.errstate(all="ignore"):
            while t > max(noise, EPSILON / TELLS**2 * problem.scale(self.direction)) and seen < 2:
                sides = [
                    (problem.results_at(by * self.direction)[row] - middle) / by for by in (t, -t)
                ]
                # One step alone may be right by chance, where the function is curved.
                seen = seen + 1 if any(abs(side - given) < IS * gap for side in sides) else 0
                t /= RATIO
        return seen == 2

    def _reaches(self, row: int, sign: int, wanted: float) -> bool:
        """Whether a slope close by is at least ``wanted``, by a random search."""
        region, random = self.region, np.random.default_rng(4)
        here, best = np.zeros_like(self.direction), -np.inf
        for trial in range(max(64, TRIES * here.size)):
            there = region.random(random, region.radius)
            if trial % 2:  # most numbers stay those of the steepest point so far
                there = np.where(random.random(there.size) < 0.7, here, there)
            if trial % 3 == 0:
                there *= region.own
            steep = sign * region.slope(there, self.direction)[row]
            if steep >= best:
                here, best = there, steep
            if best >= wanted:
                return True
        return False


class _Operations(Observer):
    """The operations that a function carries out, and their results."""

    def __init__(self) -> None:
        self.seen: list[tuple[Primitive | None, list[Tensor], list[Tensor]]] = []

    def operated(
        self, name: str, primitive: Primitive | None, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        inexact = [result for result in results if result.dtype.inexact]
        if inexact:
            self.seen.append((primitive, inputs, inexact))

    def of(self, problem: Problem) -> Callable[..., list[Tensor]]:
        """The function that returns the results of all operations, and then its own."""

        def run(*arguments: Any) -> list[Tensor]:
            self.seen = []
            with observed_by(self):
                returned = inexact(problem.func(*arguments))
            return [*(result for *_, results in self.seen for result in results), *returned]

        return run

    def kinks(self, bent: Flags, segments: list[Segment]) -> int:
        """How many operations have a kink of their own, of those with a result that has one."""
        rows = np.split(bent, np.cumsum([segment.size for segment in segments])[:-1])
        found: set[int] = set()
        places, count = iter(rows), 0
        for primitive, inputs, results in self.seen:
            own = [next(places) for _ in results]
            if np.any(np.concatenate(own)):
                handed_on = any(id(x) in found for x in inputs)
                count += not handed_on or not (
                    primitive and (primitive.elementwise or primitive.linear)
                )
                found |= {id(result) for result in results}
        return count
