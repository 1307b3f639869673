"""Calls of the user's functions, whose errors a library in C may have replaced."""

from collections.abc import Callable
from dis import opmap
from types import FrameType
from typing import Any

_RAISE = opmap["RAISE_VARARGS"]


def call_back(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function; an error of ours that a library in C has replaced is raised itself.

    NumPy does so where an element is assigned, and Python where a callback has failed.
    """
    try:
        return function(*args, **kwargs)
    except Exception as error:
        refusal = _refusal_behind(error)
        if refusal is None:
            raise
        raise refusal from None


def _refusal_behind(error: BaseException) -> BaseException | None:
    """The error of Wengert's that a library in C has replaced by one of its own, if it has.

    What Python code raises from another error, it means to say.
    """
    while (cause := error.__cause__) is not None:
        frame, instruction = _innermost(error)
        if frame is None or frame.f_code.co_code[instruction] == _RAISE:
            return None
        frame, _ = _innermost(cause)
        if frame is not None and str(frame.f_globals.get("__name__")).startswith("wengert."):
            return cause
        error = cause
    return None


def _innermost(error: BaseException) -> tuple[FrameType | None, int]:
    """The frame in which an error was raised, and where in its code."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return (None, 0) if at is None else (at.tb_frame, at.tb_lasti)
