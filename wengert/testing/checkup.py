"""All that is checked of one function, as lines of a report."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import hypothesis
import numpy as np

from wengert.func.trees import tree_map
from wengert.inspection.breaks import GraphBreakError
from wengert.inspection.differentiable import assert_differentiable
from wengert.testing.check import GradientTest, as_input
from wengert.testing.gradcheck import gradcheck
from wengert.testing.oracles import ORACLES, differences_from
from wengert.testing.targets import Target
from wengert.testing.tracebacks import first_line
from wengert.testing.verdicts import GradcheckError, KinkError

Status = Literal["ok", "wrong", "not checked", "note"]
#: How many of the drawn points the later checks look at.
POINTS = 5
TITLES = {"torch": "PyTorch", "jax": "JAX"}


class Line(NamedTuple):
    """A line of the report: what was checked, the outcome, and details of it."""

    what: str
    status: Status
    told: str = ""


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
        The function, and its arguments.
    backends : sequence of str
        Where derivatives are compared with differences; the other checks use the first.
    examples : int
        How many calls to draw on each backend.
    seed : int, optional
        Of the draws; by default the same calls are drawn each time.
    """
    if target.function is None or target.why_not:
        return Examination(target, [Line("derivatives", "not checked", target.why_not)])
    points: list[tuple[Any, ...]] = []
    lines = _differences(target, backends, examples, seed, points)
    first = lines[0].status
    if first == "ok":
        smooth = [p for p in points if _smooth(target.function, p)][:POINTS]
        lines += [_batches(target.function, smooth), _complex_steps(target.function, smooth)]
        lines += [_oracle(name, target.function, smooth) for name in ORACLES]
    if points:
        lines.append(_breaks(target.function, points[-1], first == "ok"))
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
        modes = "reverse and forward"
        if order > deepest:
            lines.append(Line(what, "not checked", "its declaration says order=1"))
            continue
        if lines and lines[0].status != "ok":
            lines.append(Line(what, "not checked", "the first is not right"))
            continue
        for backend in backends:
            test = _Recorded(
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
            line = _run(test, f"{what}, {modes}, {backend}")
            if test.lacks_forward:
                told = "the function has no forward derivative"
                line = line._replace(what=f"{what}, reverse, {backend}", told=line.told or told)
            lines.append(line)
    return lines


class _Recorded(GradientTest):
    """A test that keeps the first points that are drawn."""

    points: list[tuple[Any, ...]]

    def example(self, drawn: tuple[Any, ...]) -> None:
        if len(self.points) < 8 * POINTS:
            self.points.append(drawn[0])
        super().example(drawn)


def _run(test: _Recorded, what: str) -> Line:
    try:
        test.run()
    except KinkError as error:
        return Line(what, "not checked", str(error))
    except GradcheckError as error:
        return Line(what, "wrong", str(error))
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        notes = "\n".join(getattr(error, "__notes__", ()))
        return Line(what, "wrong", f"{type(error).__name__}: {error}\n{notes}".strip())
    return Line(what, "ok", str(test.drawn))


def _inputs(point: tuple[Any, ...]) -> Any:
    return tree_map(as_input, point)


def _smooth(function: Callable[..., Any], point: tuple[Any, ...]) -> bool:
    """Whether the function has a derivative at a point, and an input to differentiate."""
    try:
        with np.errstate(all="ignore"):
            return gradcheck(function, _inputs(point), fast_mode=True, raise_exception=False)
    except Exception:
        return False


def _at_points(
    what: str,
    points: list[tuple[Any, ...]],
    check: Callable[[tuple[Any, ...]], tuple[Status, str]],
    told: Callable[[int], str],
) -> Line:
    """The line of a check at several points: wrong if it is at one, ok if it is at any other."""
    done, why = 0, "no smooth point was drawn"
    for point in points:
        with np.errstate(all="ignore"):
            status, why = check(point)
        if status == "wrong":
            return Line(what, "wrong", why)
        done += status == "ok"
    return Line(what, "ok", told(done)) if done else Line(what, "not checked", why)


def _batches(function: Callable[..., Any], points: list[tuple[Any, ...]]) -> Line:
    modes = ["cotangents", "tangents"]

    def check(point: tuple[Any, ...]) -> tuple[Status, str]:
        forward = "tangents" in modes
        try:
            gradcheck(
                function,
                _inputs(point),
                fast_mode=True,
                check_batched_grad=True,
                check_forward_ad=forward,
                check_batched_forward_grad=forward,
            )
        except Exception as error:
            wrong = isinstance(error, GradcheckError)
            absent = "forward mode fails" in str(error) and "not implemented" in str(error)
            if forward and (absent if wrong else isinstance(error, NotImplementedError)):
                modes.remove("tangents")
                return check(point)
            return "wrong", str(error) if wrong else f"{type(error).__name__}: {error}"
        return "ok", ""

    def told(done: int) -> str:
        return f"{done} calls" + ("" if "tangents" in modes else ", of cotangents alone")

    return _at_points("batches of cotangents and tangents", points, check, told)


def _complex_steps(function: Callable[..., Any], points: list[tuple[Any, ...]]) -> Line:
    def check(point: tuple[Any, ...]) -> tuple[Status, str]:
        try:
            gradcheck(function, _inputs(point), fast_mode=True, complex_step=True)
        except GradcheckError:
            return "not checked", (
                "it differs, while differences agree with the gradient: the function does not "
                "extend to complex numbers (abs, where, maximum, ...)"
            )
        except Exception as error:
            return "not checked", f"not for complex numbers: {first_line(error) or repr(error)}"
        return "ok", ""

    return _at_points("complex step", points, check, lambda done: f"{done} of {len(points)} calls")


def _oracle(library: str, function: Callable[..., Any], points: list[tuple[Any, ...]]) -> Line:
    name = TITLES[library]
    what = f"{name}'s own derivatives"
    if find_spec(library) is None:
        return Line(what, "not checked", f"{name} is not installed")

    def check(point: tuple[Any, ...]) -> tuple[Status, str]:
        for order in (2, 1):
            try:
                found = differences_from(library, function, point, order)
            except Exception as error:
                why = f"it is no program of {name}'s: {type(error).__name__}: {first_line(error)}"
                continue
            return ("wrong", f"{found}, at {_shown(point)}") if found else ("ok", "")
        return "not checked", why

    def told(done: int) -> str:
        return f"values, first and second derivatives agree at {done} points"

    return _at_points(what, points, check, told)


def _shown(point: tuple[Any, ...]) -> str:
    return ", ".join(
        np.array2string(x, separator=", ") if isinstance(x, np.ndarray) else repr(x) for x in point
    )


def _breaks(function: Callable[..., Any], point: tuple[Any, ...], right: bool) -> Line:
    what = "graph breaks"
    try:
        with np.errstate(all="ignore"):
            found = assert_differentiable(function, *_inputs(point))
    except GraphBreakError as error:
        return Line(what, "note" if right else "wrong", str(error))
    except Exception as error:
        return Line(what, "not checked", f"{type(error).__name__}: {error}")
    return Line(what, "note" if len(found) else "ok", str(found))
