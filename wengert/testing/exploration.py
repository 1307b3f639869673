"""Run a check at arguments that Hypothesis draws, and raise the gravest failure."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import hypothesis
import numpy as np
from hypothesis import strategies as st

from wengert.func.trees import tree_leaves
from wengert.tape.tensor import Tensor
from wengert.testing.arguments import (
    SCALES,
    SPECIAL,
    Argument,
    Axis,
    as_arguments,
    calls,
    special_calls,
)
from wengert.testing.problem import values
from wengert.testing.verdicts import (
    BadlyScaledError,
    GradcheckError,
    KinkError,
    WrongGradientError,
)

Kinks = Literal["skip", "fail"]
#: Of several failures, the one that comes first here is raised.
GRAVITY = (WrongGradientError, GradcheckError, BadlyScaledError, KinkError)


class Exploration:
    """A function and the strategy of its arguments; a subclass checks each call that is drawn.

    Attributes
    ----------
    function : callable
        The function under test.
    layouts : bool
        Whether calls are also made with arrays that are not contiguous.
    """

    layouts = True

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        *,
        dtypes: str | Sequence[str] = ("float64",),
        kinks: Kinks = "skip",
        examples: int | None = None,
        settings: Any = None,
        min_side: int = 0,
        max_side: int = 3,
        max_dims: int = 3,
    ) -> None:
        if settings is not None and not isinstance(settings, hypothesis.settings):
            raise TypeError(
                f"settings should be hypothesis.settings, not {type(settings).__name__}"
            )
        if kinks not in ("skip", "fail"):
            raise ValueError(f"kinks should be 'skip' or 'fail', not {kinks!r}")
        self.function, self.kinks = function, kinks
        self.dtypes = [dtypes] if isinstance(dtypes, str) else list(dtypes)
        self.bounds = {"min_side": min_side, "max_side": max_side, "max_dims": max_dims}
        self.arguments = as_arguments(arguments or [...] * _arity(function))
        # Lengths without a value may be 0 where `min_side` allows it.
        self.may_be_empty = not min_side and any(
            isinstance(given, Argument) and any(type(part) is not int for part in given.shape)
            for given in self.arguments
        )
        self.strategy = self._calls(max(1, min_side))
        self.empties = self._calls(min_side).filter(_has_empty)
        self.special, self.scaled = (
            st.tuples(special_calls(self.arguments, self.dtypes[0], side, scaled), st.just(False))
            for side, scaled in ((max(1, min_side), False), (min(3, max_side), True))
        )
        arrays = [given for given in self.arguments if isinstance(given, Argument)]
        # In special calls, arrays of any shape are 0-d: there is no axis to choose.
        self.has_scaled = (
            bool(arrays)
            and all(x.elements is None for x in arrays)
            and not any(
                isinstance(given, Axis) and getattr(self.arguments[given.of], "shape", ()) == (...,)
                for given in self.arguments
            )
        )
        self.has_special = self.has_scaled and all(not x.unique and x.specials() for x in arrays)
        self.settings, self.examples = settings, examples
        self.drawn = Drawn()
        self.seed: int | None = None

    def _calls(self, min_side: int) -> Any:
        """The strategy of what `example` takes, with lengths from ``min_side`` on."""
        bounds = self.bounds | {"min_side": min_side}
        # False is the simpler boolean: failures shrink to contiguous arrays where these fail too.
        apart = st.booleans() if self.layouts else st.just(False)
        return st.tuples(calls(self.arguments, dtypes=self.dtypes, **bounds), apart)

    @property
    def name(self) -> str:
        """The function's name, of a class's own method with that of the class."""
        name = str(getattr(self.function, "__name__", type(self.function).__name__))
        owner = getattr(self.function, "__self__", None)
        return f"{owner.__name__}.{name}" if isinstance(owner, type) else name

    def example(self, drawn: tuple[Any, ...]) -> None:
        """Check what was drawn: a call, and whether its arrays are to lie apart in memory.

        Raises
        ------
        GradcheckError
            If a derivative is wrong.
        """
        raise NotImplementedError

    def explore(self, digest: str, share: float = 1.0) -> None:
        """Check a share of the calls that the settings ask for, and raise the gravest failure."""
        self.drawn = Drawn()
        drawn = Argument | Axis | st.SearchStrategy
        if not any(isinstance(given, drawn) for given in self.arguments):
            self.drawn.add(self.arguments)
            self.example((tuple(self.arguments), False))
            return
        given = self.settings or hypothesis.settings()
        count = math.ceil(share * (self.examples or given.max_examples))
        # Empty arrays come last: other failures would shrink to them, which hides the cause.
        empty = count // 5 if self.may_be_empty else 0
        special = min(len(SPECIAL), count // 3) if self.has_special else 0
        scaled = min(2 * len(SCALES), count // 5) if self.has_scaled else 0
        __tracebackhide__ = True
        if special:
            self._explore(self.special, f"{digest}_special", special)
        if not self._explore(self.strategy, digest, count - empty - special - scaled):
            raise KinkError(
                f"no call of {self.name} could be checked: {self.drawn.skipped} examples lie at "
                "kinks, or at the edge of the domain. Say with Argument(domain=..., "
                "away_from=...) where it is differentiable"
            )
        if scaled:
            self._explore(self.scaled, f"{digest}_scaled", scaled, lenient=True)
        if empty:
            try:
                self._explore(self.empties, f"{digest}_empty", empty)
            except Exception as error:
                error.add_note(
                    f"{self.name} is right for arrays with elements, in {count - empty} examples: "
                    "min_side=1 leaves empty ones out"
                )
                raise

    def _explore(self, strategy: Any, digest: str, count: int, lenient: bool = False) -> bool:
        """Check ``count`` calls; False if none of them could be checked.

        ``lenient`` is for values that the function may not be for: only wrong derivatives count.
        """

        def run(drawn: tuple[Any, ...]) -> None:
            if not self.drawn.failed:
                self.drawn.add(drawn[0])
            try:
                self.example(drawn)
            except Exception as error:
                skipped = isinstance(error, KinkError) and self.kinks == "skip"
                if skipped or (lenient and not _is_judged(error)):
                    self.drawn.skipped += 1
                    hypothesis.reject()
                self.drawn.failed = True
                raise

        run.__name__ = run.__qualname__ = digest  # the key in Hypothesis's database
        known = self.settings or hypothesis.settings()
        chosen = hypothesis.settings(
            known,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            max_examples=count,
            # Nothing is made of explanations, which take more calls than shrinking.
            phases=[p for p in known.phases if p is not hypothesis.Phase.explain],
        )
        __tracebackhide__ = True
        try:
            test = hypothesis.given(strategy)(run)
            chosen(test if self.seed is None else hypothesis.seed(self.seed)(test))()
        except GradcheckError as error:
            raise _without_notes(error) from None
        except BaseExceptionGroup as group:
            raise _without_notes(min(group.exceptions, key=_gravity)) from None
        except hypothesis.errors.Unsatisfiable:
            return False
        return True


class Drawn:
    """What was drawn, up to the first failure."""

    def __init__(self) -> None:
        self.calls = self.skipped = 0
        self.failed = False
        self.dtypes: set[str] = set()
        self.shapes: set[tuple[int, ...]] = set()
        self.range = math.inf, 0.0

    def add(self, call: Sequence[Any]) -> None:
        """Count a call."""
        self.calls += 1
        for x in tree_leaves(call):
            array = values(x) if isinstance(x, Tensor) else x
            if isinstance(array, np.ndarray) and array.dtype.kind in "fc":
                self.dtypes.add(array.dtype.name)
                self.shapes.add(array.shape)
                sizes = abs(array[np.isfinite(array) & (array != 0)])
                low, high = self.range
                self.range = float(np.min(sizes, initial=low)), float(np.max(sizes, initial=high))

    def __str__(self) -> str:
        if not self.dtypes:
            return f"{self.calls} calls"
        shapes = sorted(self.shapes, key=lambda shape: (len(shape), shape))
        few = ", ".join(map(str, shapes[:2])) + (f", ... {shapes[-1]}" if len(shapes) > 2 else "")
        low, high = self.range
        told = f"magnitudes {low:.3g} to {high:.3g}" if high else "zeros"
        left = f"; {self.skipped} not judged" if self.skipped else ""
        return f"{self.calls} calls: {', '.join(sorted(self.dtypes))}; shapes {few}; {told}{left}"


def _has_empty(drawn: Any) -> bool:
    """Whether a drawn call has an array without elements."""
    return any(isinstance(x, np.ndarray) and not x.size for x in tree_leaves(drawn))


def _is_judged(error: Exception) -> bool:
    """Whether an error tells of a wrong derivative at values the function may not be for."""
    if isinstance(error, KinkError | BadlyScaledError) or not isinstance(error, GradcheckError):
        return False
    if error.below_atol:  # rules such as expit(x) - 1 have absolute digits alone
        return False
    # Squares within second derivatives overflow where the function does not.
    return error.order == 1 or error.found is None or bool(np.isfinite(error.found.analytic).all())


def _gravity(error: BaseException) -> tuple[int, int]:
    kinds = [kind for kind in GRAVITY if isinstance(error, kind)]
    return (GRAVITY.index(kinds[0]) if kinds else len(GRAVITY)), getattr(error, "order", 0)


def _without_notes(error: BaseException) -> BaseException:
    """An error without Hypothesis's notes, as its message has the falsifying example as code."""
    if isinstance(error, GradcheckError):
        error.__notes__ = []
    return error


def _arity(function: Callable[..., Any]) -> int:
    """The number of arguments that a function has to be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    needed = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if not needed:
        raise TypeError(
            f"{function!r} does not tell how many arguments it takes: give check_gradients one "
            "strategy, shape or value for each"
        )
    return len(needed)
