"""Which of the user's lines runs now: for a program's comments, and for errors."""

import linecache
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from wengert.compiler.program import Line

__all__ = ["described", "reader", "running_line", "user_line"]

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


def user_frame() -> FrameType | None:
    """The innermost frame that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("wengert"):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """The user's line that runs now, for an error."""
    frame = user_frame()
    if frame is None:
        return "wg.compile"
    return described(Line(frame.f_code.co_filename, frame.f_lineno))


def described(line: Line) -> str:
    """A line as an error names it: file, number, text."""
    text = linecache.getline(line.file, line.number).strip()
    where = f"{Path(line.file).name}, line {line.number}"
    return f"{where} ({text})" if text else where


def reader() -> str:
    """Which method of a Tensor asks for values."""
    frame: FrameType | None = sys._getframe(1)
    found = "values"
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("wengert"):
        if frame.f_globals["__name__"] == "wengert.tape.tensor":
            found = frame.f_code.co_name
        frame = frame.f_back
    return found
