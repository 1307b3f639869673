"""Which of the user's lines runs now: for a program's comments, and for errors."""

import linecache
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

from wengert.compiler.program import Line

__all__ = ["callers", "described", "reader", "running_line", "user_line"]

#: Names of this package's modules, by the identities of their globals.
_modules: dict[int, str] = {}
#: The functions of `wengert.tape.autograd` that run rules and add what they give.
_SWEEP = ("sweep", "_flow")


def running_line() -> tuple[Line | None, Any]:
    """The user's line with its stage, and the node at which a sweep is, if one runs."""
    stage, node = "forward", None
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        scope = frame.f_globals
        name = _modules.get(id(scope))
        if name is None:
            name = str(scope.get("__name__"))
            if not name.startswith("wengert"):
                break
            _modules[id(scope)] = name
        code = frame.f_code.co_name
        if stage == "forward" and name == "wengert.tape.autograd" and code in _SWEEP:
            stage, node = "backward", frame.f_locals.get("node")
        elif name == "wengert.optim.optimizer":
            stage = "update"
        frame = frame.f_back
    if frame is None:
        return None, node
    return Line(frame.f_code.co_filename, frame.f_lineno, stage), node


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, the one that has called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def user_line() -> str:
    """The user's line that runs now, for an error."""
    for frame in callers(sys._getframe(1)):
        if not _is_own(frame):
            return described(Line(frame.f_code.co_filename, frame.f_lineno))
    return "wg.compile"


def _is_own(frame: FrameType) -> bool:
    """Whether a frame is of this package."""
    return str(frame.f_globals.get("__name__")).startswith("wengert")


def described(line: Line) -> str:
    """A line as an error names it: file, number, text."""
    text = linecache.getline(line.file, line.number).strip()
    where = f"{Path(line.file).name}, line {line.number}"
    return f"{where} ({text})" if text else where


def reader() -> str:
    """Which method of a Tensor asks for values."""
    own = [*takewhile(_is_own, callers(sys._getframe(1)))]
    asked = [x for x in own if x.f_globals["__name__"] == "wengert.tape.tensor"]
    return asked[-1].f_code.co_name if asked else "values"
