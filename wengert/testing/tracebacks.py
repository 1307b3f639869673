"""Errors of the tested function in short: without the tester's frames, or as one line."""

import os
from types import TracebackType
from typing import TypeVar

_Error = TypeVar("_Error", bound=BaseException)

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 -- as frames have it
_HYPOTHESIS = os.sep + "hypothesis" + os.sep


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).splitlines() or [""])[0]


def shorten(error: _Error) -> _Error:
    """Remove the frames of the tester and of Hypothesis from a traceback; return the error."""
    entries = []
    entry = error.__traceback__
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        if not name.startswith(_HERE) and _HYPOTHESIS not in name:
            entries.append(entry)
        entry = entry.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return error.with_traceback(kept)
