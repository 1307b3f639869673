"""Derivatives by reverse and forward mode, compared with differences of the values."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from wengert.testing.differences import Estimate, Reals, derivative, to_reals
from wengert.testing.kinks import Region, Surroundings
from wengert.testing.likeness import Found
from wengert.testing.problem import Problem, normal, values
from wengert.testing.verdicts import (
    BadlyScaledError,
    GradcheckError,
    KinkError,
    Tolerance,
    WrongGradientError,
)

Mode = Literal["reverse", "forward"]
#: Below it squares within a derivative underflow.
TINY = 1e-150


class _Sample(NamedTuple):
    """One random combination of the results, along one random direction in each input."""

    cotangents: list[np.ndarray[Any, Any]]
    #: The cotangents as one row of reals.
    weights: Reals
    #: One in each input that is not empty.
    directions: list[Reals]
    #: The derivatives of the results along each.
    found: list[Estimate]


class Comparison:
    """The derivatives of a problem by differences, and by reverse and forward mode.

    Parameters
    ----------
    problem : Problem
        The function at a point.
    eps : float
        The first step of the differences.
    tolerance : Tolerance
        How far derivatives may be from them.
    complex_step : bool
        Whether steps are imaginary, which leaves nothing to extrapolate.
    """

    def __init__(
        self, problem: Problem, eps: float, tolerance: Tolerance, complex_step: bool = False
    ) -> None:
        self.problem, self.eps, self.tolerance = problem, eps, tolerance
        self.complex_step = complex_step
        self._regions: dict[tuple[bytes, float], Region] = {}
        self._around: dict[tuple[bytes, float], Surroundings] = {}

    def check_values(self) -> None:
        """Compare the gradient with ``create_graph`` to the one without, which differences use."""
        problem, (atol, rtol) = self.problem, self.tolerance
        plain = problem.middle()
        recorded = np.concatenate([to_reals(values(result)) for result in problem.run()])
        wrong = np.flatnonzero(~np.isclose(recorded, plain, rtol, atol, equal_nan=True))
        if wrong.size:
            row = int(wrong[0])
            raise WrongGradientError(
                f"the gradient with create_graph=True differs from the one without: "
                f"{problem.result_entry(row)} of the gradients\n  with:    {recorded[row]:.12g}"
                f"\n  without: {plain[row]:.12g}"
            )

    def check(self, mode: Mode, called: str, fast: bool) -> Reals | None:
        """Compare one mode's derivatives, and return its Jacobian if it was needed.

        Parameters
        ----------
        mode : {"reverse", "forward"}
            Which mode.
        called : str
            What messages call its derivative.
        fast : bool
            Whether the derivative of one random combination of the results along a random
            direction in each input stands for all.
        """
        differing: list[tuple[int, float]] = []
        if fast:
            weights, combined, small = self.sample.weights, self._combine(mode), False
            for at, (found, given) in enumerate(zip(self.sample.found, combined, strict=True)):
                allowed = self._allowance(found, weights)
                miss = abs(given - weights @ found.value)
                if not miss <= np.sum(allowed + self.tolerance.atol):
                    differing.append((at, given))
                small |= bool(miss > np.sum(allowed, where=found.value != 0))
            if not (differing or small):
                return None
        jacobian = self._jacobian(mode)
        self._check_entries(jacobian, mode, called)
        self._check_sums(jacobian)
        self._check_small(jacobian, mode, called)
        for at, given in differing:
            self._explain(jacobian, at, given, called)
        return jacobian

    # -- differences -------------------------------------------------------------------------------

    def _along(
        self, direction: Reals, good_enough: Callable[[Estimate], bool] | None = None
    ) -> Estimate:
        problem = self.problem
        if self.complex_step:
            exact = problem.imaginary_step(direction)
            return Estimate(exact, np.zeros_like(exact), np.zeros_like(exact), self.eps)
        first = self.eps * problem.scale(direction)
        return derivative(
            lambda t: problem.results_at(t * direction),
            first,
            good_enough or self.tolerance.accepts,
        )

    def _allowance(self, found: Estimate, weights: Reals) -> Reals:
        """How far each term of a weighted sum of derivatives may be off, beside ``atol``."""
        return self.tolerance.rtol * abs(weights * found.value) + abs(weights) * found.rounding

    @cached_property
    def sample(self) -> _Sample:
        """The derivatives of a random combination, computed once for both modes."""
        problem, random = self.problem, np.random.default_rng(0)
        cotangents = [normal(random, r.shape, r.dtype.complex) for r in problem.run()]
        weights = np.concatenate([to_reals(g) for g in cotangents])
        directions = []
        for i, mask in problem.masks().items():
            # No number is negative, so that equal elements move the same way: at a tie a rule
            # that is wrong by a factor can't have a derivative that another one has close by.
            drawn = abs(random.standard_normal(mask.size)) * mask
            if problem.before[i].size:
                directions.append(drawn / np.linalg.norm(drawn))

        def is_settled(found: Estimate) -> bool:
            allowed = self._allowance(found, weights) + self.tolerance.atol
            return bool(np.all(abs(weights) * found.error <= allowed / 2))

        found = [self._along(direction, is_settled) for direction in directions]
        return _Sample(cotangents, weights, directions, found)

    @cached_property
    def columns(self) -> list[Estimate]:
        """The Jacobian's columns."""
        return [self._along(direction) for direction in np.eye(self.problem.width)]

    def _surroundings(self, direction: Reals, step: float) -> Surroundings:
        """The surroundings along a direction, which are kept for further entries."""
        masks = self.problem.masks()
        own = sum(masks[i] for i in self.problem.parts(direction))
        assert isinstance(own, np.ndarray)
        region = self._regions.setdefault((own.tobytes(), step), Region(self.problem, own, step))
        return self._around.setdefault((direction.tobytes(), step), Surroundings(region, direction))

    # -- what the modes give -----------------------------------------------------------------------

    def _jacobian(self, mode: Mode) -> Reals:
        problem = self.problem
        if mode == "reverse":
            return problem.jacobian()
        columns = [problem.forward(direction) for direction in np.eye(problem.width)]
        return np.stack(columns, axis=1) if columns else np.zeros((problem.middle().size, 0))

    def _combine(self, mode: Mode) -> list[float]:
        """The derivatives of the weighted results along each of the random directions."""
        problem, sample = self.problem, self.sample
        if mode == "forward":
            return [float(sample.weights @ problem.forward(d)) for d in sample.directions]
        gradients = problem.sweep(problem.run(), sample.cotangents, retain_graph=False)
        problem.check_unchanged("the backward pass")
        row = np.concatenate([to_reals(gradient) for gradient in gradients])
        return [float(row @ direction) for direction in sample.directions]

    # -- the two together --------------------------------------------------------------------------

    def _check_small(self, analytic: Reals, mode: Mode, called: str) -> None:
        """Compare derivatives that ``atol`` hides, with results times powers of two.

        The largest derivative of each result by the input is then about 1.
        """
        if not self.tolerance.atol or not analytic.size:
            return
        numerical = np.stack([found.value for found in self.columns], axis=1)
        strict = self.tolerance._replace(atol=0.0)
        differ = abs(analytic - numerical) > np.stack([strict(x) for x in self.columns], axis=1)
        for mask in self.problem.masks().values():
            among = differ & (mask > 0)
            size = np.max(abs(numerical * mask), axis=1, keepdims=True)
            among &= (size > TINY) & (size < 1)
            if among.any():
                _, power = np.frexp(np.where(among.any(axis=1), size[:, 0], 0.5))
                scaled = self.problem.scale_results(2.0**-power)
                alone = Comparison(scaled, self.eps, self.tolerance, self.complex_step)
                try:
                    alone._check_entries(analytic, mode, called, among)
                except (KinkError, BadlyScaledError):
                    continue
                except WrongGradientError as error:
                    error.below_atol = True
                    raise

    def _check_entries(self, analytic: Reals, mode: Mode, called: str, among: Any = True) -> None:
        """Compare entries of the Jacobian, which has a row for each real number of the results.

        The message has the worst of the wrong entries; if none is called wrong, of all that differ.
        """
        problem, tolerance = self.problem, self.tolerance
        scale = np.broadcast_to(problem.scale_of_results, len(analytic))
        analytic = analytic * scale[:, None]
        if not analytic.size:
            return
        numerical = np.stack([found.value for found in self.columns], axis=1)
        allowed = np.stack([tolerance(found) for found in self.columns], axis=1)
        with np.errstate(all="ignore"):
            excess = abs(analytic - numerical) / allowed
        excess = np.where(np.isnan(excess), np.inf, excess)
        wrong = (excess > 1) & among
        told: tuple[type[GradcheckError], str, int, int] | None = None
        kinks: dict[int, list[int]] = {}
        units = np.eye(problem.width)
        for place in np.argsort(-excess, axis=None, kind="stable")[: np.sum(wrong)]:
            row, column = divmod(int(place), problem.width)
            given, found = float(analytic[row, column]), self.columns[column]
            # A nan may come from another result's infinity, times a cotangent of zero.
            finite = np.isfinite(found.value + problem.middle())
            infinite = np.flatnonzero(np.isnan(given) & ~finite)
            at = int(infinite[0]) if infinite.size else row
            around = self._surroundings(units[column], found.step)
            kind, cause = around.verdict(found, at, given, float(allowed[at, column]))
            if told is None or kind is WrongGradientError:
                told = kind, cause, row, column
            if kind is WrongGradientError:
                break
            # An entry that does not stand alone has its kink where slopes close by do not show it.
            if kind is KinkError and around.has_slopes(row) and around.stands(row, given):
                kinks.setdefault(row, []).append(column)
        if told is None:
            return
        kind, cause, row, column = told
        if kind is KinkError:
            for together, columns in kinks.items():
                why = self._refute(analytic[together], together, columns)
                if why:
                    kind, cause, row, column = WrongGradientError, why, together, columns[0]
                    break
        analytic, numerical = (x / scale[:, None] for x in (analytic, numerical))
        if not cause or scale[row] != 1:  # a cause has numbers of the scaled results
            cause = f"{called} is wrong"
            if mode == "reverse" and not problem.tracks(row):
                cause = (
                    "the result is not tracked, but it depends on the input: the graph is broken"
                )
        error = kind(
            f"{cause}: d {problem.result_entry(row)} / d {problem.input_entry(column)}"
            f"\n  numerical: {numerical[row, column]:.12g}  (from differences of values)"
            f"\n  analytic:  {analytic[row, column]:.12g}  (from the derivative)"
            f"\n{np.sum(wrong)} of {analytic.size} entries are wrong by more than "
            f"atol={tolerance.atol / scale[row]:g} + rtol={tolerance.rtol:g} * abs(numerical)"
        )
        error.found = Found(analytic, numerical, wrong, problem.inputs, problem.segments)
        raise error

    def _refute(self, given: Reals, row: int, columns: list[int]) -> str:
        """Why the entries of a row at a kink can't be right together; empty if they can."""
        step = min(self.columns[column].step for column in columns)
        alike, downhill = np.zeros((2, self.problem.width))
        alike[columns] = 1.0
        downhill[columns] = np.where(given[columns] < 0, -1.0, 1.0)
        for direction in (alike, downhill, self._surroundings(alike, step).region.own):
            around, along = self._surroundings(direction, step), float(given @ direction)
            if not around.has_slopes(row) or around.region.several:
                continue
            if not around.stands(row, along):
                return (
                    "the function has a kink here, and the entries of the row are wrong together: "
                    f"along {np.count_nonzero(direction)} axes at once they give {along:.6g}, "
                    "which no derivative close by does"
                )
        return ""

    def _check_sums(self, jacobian: Reals) -> None:
        """Compare the derivatives along random directions, where a kink may show on no axis.

        The median of three equal numbers stays where it is when one of them moves, and moves with
        all of them.
        """
        tolerances = [self.tolerance(found) for found in self.columns]
        for direction, found in zip(self.sample.directions, self.sample.found, strict=True):
            given = jacobian @ direction
            allowed = self.tolerance(found) + found.error
            allowed = allowed + sum(abs(d) * t for d, t in zip(direction, tolerances, strict=True))
            for row in map(int, np.flatnonzero(abs(given - found.value) > allowed)):
                around = self._surroundings(direction, found.step)
                kind, cause = around.verdict(found, row, float(given[row]), float(allowed[row]))
                if kind is WrongGradientError and cause:
                    raise kind(
                        f"{cause}: d {self.problem.result_entry(row)} along a random direction"
                        f"\n  numerical: {found.value[row]:.12g}  (from differences of values)"
                        f"\n  analytic:  {given[row]:.12g}  (from the derivative)"
                    )

    def _explain(self, jacobian: Reals, at: int, given: float, called: str) -> None:
        """Raise the reason why a sum of entries differs, though each entry is right."""
        weights, direction = self.sample.weights, self.sample.directions[at]
        terms = weights[:, None] * jacobian * direction
        where = f"along a random direction in inputs[{min(self.problem.parts(direction))}]"
        if abs(given - np.sum(terms)) <= self.tolerance.rtol * np.sum(abs(terms)):
            raise KinkError(f"the function has a kink here {where}")
        raise WrongGradientError(
            f"{called} for random weights of the results {where} differs from the differences, "
            "although each entry of the Jacobian is right: the rules are not linear"
        )
