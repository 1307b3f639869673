"""Interrupts at each place where Python runs signals' handlers."""

import dis
import sys
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import wengert

__all__ = ["Interrupt", "InterruptError"]

#: After these instructions Python looks for signals, and for exceptions of other threads.
LOOKING = {dis.opmap[name] for name in ("RESUME", "CALL", "JUMP_BACKWARD") if name in dis.opmap}
LOOKING |= {dis.opmap[name] for name in ("CALL_FUNCTION_EX", "CALL_KW") if name in dis.opmap}

COMPILER = str(Path(wengert.__file__).parent / "compiler")


class InterruptError(KeyboardInterrupt):
    """What is raised."""


class Interrupt:
    """Raises an error at the n-th such place in the compiler and in what it has written.

    Places are counted there, in `contextlib`, and where they call other functions.

    Parameters
    ----------
    at : int
        Which place; 0 for none.

    Attributes
    ----------
    count : int
        How many places there were.
    where : str
        The place.
    """

    def __init__(self, at: int) -> None:
        self.at, self.count, self.where = at, 0, ""
        self._last: dict[FrameType, int | None] = {}  # instructions of frames that are traced

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        before, file = frame.f_back, frame.f_code.co_filename
        called = before in self._last
        if called and before is not None:
            self._last[before] = None  # a return from Python is no such place
        written = file.startswith(("<binding>", "<compiled "))
        inside = written or file.startswith(COMPILER) or Path(file).name == "contextlib.py"
        # A generator that is let go of is entered, too, and what it raises then is lost.
        if (called or inside) and not frame.f_code.co_flags & CO_GENERATOR:
            self._place(frame)
        if not inside:
            return None
        frame.f_trace = self._inside  # in Python 3.13 before the next line
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._last[frame] = None
        return self._inside

    def _inside(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            last = self._last.get(frame)
            self._last[frame] = frame.f_code.co_code[frame.f_lasti]
            if last in LOOKING:
                self._place(frame)
        elif event == "return":
            self._last.pop(frame, None)
        return self._inside

    def _place(self, frame: FrameType) -> None:
        self.count += 1
        if self.count == self.at:
            name = Path(frame.f_code.co_filename).name
            self.where = f"{name}, line {frame.f_lineno}, {frame.f_code.co_name}"
            self._last.clear()
            sys.settrace(None)
            raise InterruptError(self.where)

    def __enter__(self) -> "Interrupt":
        sys.settrace(self)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
