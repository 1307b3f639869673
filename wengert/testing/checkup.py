"""The checks of one function, as lines of a report."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import hypothesis
import numpy as np

from wengert.func.trees import tree_map
from wengert.inspection.breaks import GraphBreakError
from wengert.inspection.differentiable import assert_differentiable
from wengert.testing.check import GradientTest, as_input
from wengert.testing.gradcheck import gradcheck
from wengert.testing.targets import Target
from wengert.testing.verdicts import BadlyScaledError, GradcheckError, KinkError

Status = Literal["ok", "wrong", "not checked", "note"]
#: How many of the drawn calls are checked with batches.
POINTS = 5


class Line(NamedTuple):
    """A line of the report: what was checked, the outcome, and details of it."""

    what: str
    status: Status
    details: str = ""


class Examination(NamedTuple):
    """A function and the lines of its checks."""

    target: Target
    lines: list[Line]

    @property
    def status(self) -> Status:
        """The gravest outcome; "not checked" if no check could be made."""
        if any(line.status == "wrong" for line in self.lines):
            return "wrong"
        return "ok" if any(line.status == "ok" for line in self.lines) else "not checked"


def examine(
    target: Target, *, backends: Sequence[str], examples: int, seed: int | None
) -> Examination:
    """Run all checks of a function.

    Parameters
    ----------
    target : Target
        The function and its arguments.
    backends : sequence of str
        Where derivatives are compared with differences; the other checks use the first.
    examples : int
        How many calls to draw on each backend.
    seed : int, optional
        Seed of the draws; by default the same calls are drawn each time.
    """
    if target.function is None or target.why_not:
        return Examination(target, [Line("derivatives", "not checked", target.why_not)])
    points: list[tuple[Any, ...]] = []
    lines = _differences(target, backends, examples, seed, points)
    right = lines[0].status == "ok"
    if right:
        lines.append(_batches(target.function, points[: 8 * POINTS]))
    if points:
        lines.append(_breaks(target.function, points[-1], right))
    return Examination(target, lines)


def _differences(
    target: Target,
    backends: Sequence[str],
    examples: int,
    seed: int | None,
    points: list[tuple[Any, ...]],
) -> list[Line]:
    options = dict(target.options or {})
    deepest = options.pop("order", 2)
    lines: list[Line] = []
    assert target.function is not None
    for order, what in ((1, "first derivative"), (2, "second derivative")):
        if order > deepest:
            lines.append(Line(what, "not checked", "its declaration says order=1"))
            continue
        if lines and lines[0].status != "ok":
            lines.append(Line(what, "not checked", "the first is not right"))
            continue
        for backend in backends:
            test = _RecordingTest(
                target.function,
                target.arguments,
                **{
                    "min_side": 1,
                    **options,
                    "order": order,
                    "backends": [backend],
                    "examples": examples,
                    "settings": hypothesis.settings(derandomize=seed is None, database=None),
                },
            )
            test.seed, test.points = seed, points
            status, details = _outcome(test)
            modes = "reverse" if test.lacks_forward else "reverse and forward"
            lines.append(Line(f"{what}, {modes}, {backend}", status, details))
    return lines


class _RecordingTest(GradientTest):
    """A test that keeps the points that are drawn."""

    points: list[tuple[Any, ...]]

    def example(self, drawn: tuple[Any, ...]) -> None:
        self.points.append(drawn[0])
        super().example(drawn)


def _outcome(test: _RecordingTest) -> tuple[Status, str]:
    try:
        test.run()
    except KinkError as error:
        return "not checked", str(error)
    except GradcheckError as error:
        return "wrong", str(error)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        notes = "\n".join(getattr(error, "__notes__", ()))
        return "wrong", f"{type(error).__name__}: {error}\n{notes}".strip()
    return "ok", str(test.drawn)


def _batches(function: Callable[..., Any], points: list[tuple[Any, ...]]) -> Line:
    """Backward passes of batches of cotangents, at the first points that can be judged."""
    what, checked = "batches of cotangents", 0
    for point in points:
        try:
            with np.errstate(all="ignore"):
                inputs = tree_map(as_input, point)
                gradcheck(function, inputs, fast_mode=True, check_batched_grad=True)
        except (KinkError, BadlyScaledError):
            continue
        except GradcheckError as error:
            return Line(what, "wrong", str(error))
        except Exception as error:
            return Line(what, "wrong", f"{type(error).__name__}: {error}")
        checked += 1
        if checked == POINTS:
            break
    if not checked:
        return Line(what, "not checked", "no smooth point was drawn")
    return Line(what, "ok", f"{checked} calls")


def _breaks(function: Callable[..., Any], point: tuple[Any, ...], right: bool) -> Line:
    what = "graph breaks"
    try:
        with np.errstate(all="ignore"):
            found = assert_differentiable(function, *tree_map(as_input, point))
    except GraphBreakError as error:
        return Line(what, "note" if right else "wrong", str(error))
    except Exception as error:
        return Line(what, "not checked", f"{type(error).__name__}: {error}")
    return Line(what, "note" if len(found) else "ok", str(found))
