"""Errors for functions that can't be recorded, and for wrong programs; how texts count."""

from collections.abc import Iterable
from contextvars import ContextVar

__all__ = [
    "ChangeError",
    "CompileError",
    "DecisionError",
    "TraceError",
    "several",
    "trace_errors",
]

#: All errors raised during the trace of this thread or task, also if they were caught.
trace_errors: "ContextVar[list[TraceError] | None]" = ContextVar(
    "wengert_trace_errors", default=None
)


class TraceError(RuntimeError):
    """A function does something that a replay could not repeat."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        known = trace_errors.get()
        if known is not None:
            known.append(self)


class ChangeError(TraceError):
    """A function replaces numbers, or tuples of Tensors, that were assumed constant.

    Attributes
    ----------
    names : frozenset of str
        The names of their places.
    """

    def __init__(self, message: str, names: Iterable[str]) -> None:
        super().__init__(message)
        self.names = frozenset(names)


class DecisionError(TraceError):
    """Control flow depends on a number that each call changes: each would need a program."""


class CompileError(RuntimeError):
    """A program's results or changes differ from those of the function."""


def several(count: int, noun: str) -> str:
    """A number of things in words, as in "1 call" and "2 calls"."""
    return f"{count} {noun}{'s' if count != 1 else ''}"
