"""The user's line that runs now, for comments in source and for errors."""

import linecache
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from traceback import walk_stack, walk_tb
from types import FrameType
from typing import Any

from wengert.compiler.owners import of_user
from wengert.compiler.program import Line

__all__ = ["describe", "line_that_raised", "raised_by_user", "reader", "running_line", "user_line"]

#: The modules that mark the stages "backward" and "update".
_STAGES = frozenset({"wengert.tape.sweep", "wengert.optim.optimizer"})
#: By identity of a module's globals: its name if it marks a stage, "" for others of Wengert.
_modules: dict[int, str] = {}
#: The functions of `wengert.tape.sweep` that run rules and sum cotangents.
_SWEEP = ("sweep", "_flow")


def running_line(adjoint: Callable[[Any], Line | None] = lambda node: None) -> Line | None:
    """The user's line that runs now, with its stage.

    ``adjoint`` gives the line whose adjoint a node computes; without it, it is the line that called
    the sweep.
    """
    stage = "forward"
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        scope = frame.f_globals
        name = _modules.get(id(scope))
        if name is None:
            name = str(scope.get("__name__"))
            if not name.startswith("wengert"):
                return Line(frame.f_code.co_filename, frame.f_lineno, stage)
            _modules[id(scope)] = name = name if name in _STAGES else ""
        if name:
            if name == "wengert.optim.optimizer":
                stage = "update"
            elif stage == "forward" and frame.f_code.co_name in _SWEEP:
                stage = "backward"
                node = frame.f_locals.get("node")
                line = None if node is None else adjoint(node)
                if line is not None:
                    return line
        frame = frame.f_back
    return None


def user_line() -> str:
    """The user's line that runs now, for an error."""
    frames = (frame for frame, _ in walk_stack(sys._getframe(1)) if _of_user(frame))
    frame = next(frames, None)
    return describe(Line(frame.f_code.co_filename, frame.f_lineno)) if frame else "wg.compile"


def _of_user(frame: FrameType) -> bool:
    return of_user(str(frame.f_globals.get("__name__")))


def describe(line: Line) -> str:
    """A line as an error names it: file, number, text."""
    text = linecache.getline(line.file, line.number).strip()
    where = f"{Path(line.file).name}, line {line.number}"
    return f"{where} ({text})" if text else where


def reader() -> str:
    """The method of a Tensor that reads values."""
    own = takewhile(lambda each: not _of_user(each[0]), walk_stack(sys._getframe(1)))
    asked = [x.f_code.co_name for x, _ in own if x.f_globals["__name__"] == "wengert.tape.tensor"]
    return asked[-1] if asked else "values"


def raised_by_user(error: BaseException) -> bool:
    """Whether an error was raised in code of the user's."""
    return any([_of_user(frame) for frame, _ in walk_tb(error.__traceback__)][-1:])


def line_that_raised(error: BaseException) -> str:
    """The user's line in which an error was raised."""
    found = [(x.f_code.co_filename, n) for x, n in walk_tb(error.__traceback__) if _of_user(x)]
    return describe(Line(*found[-1])) if found else "wg.compile"
