"""What is raised for functions that can't be recorded, and for programs that are wrong."""

from collections.abc import Iterable
from contextvars import ContextVar

__all__ = ["CompileError", "CountError", "DecisionError", "TraceError", "refusals"]

#: The errors that were raised while the trace of this thread or task ran, whoever caught them.
refusals: "ContextVar[list[TraceError] | None]" = ContextVar("wengert_refusals", default=None)


class TraceError(RuntimeError):
    """A function does something that a replay could not do again."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        known = refusals.get()
        if known is not None:
            known.append(self)


class CountError(TraceError):
    """A function changes numbers that were taken for constants.

    Attributes
    ----------
    names : frozenset of str
        Of their places.
    """

    def __init__(self, message: str, names: Iterable[str]) -> None:
        super().__init__(message)
        self.names = frozenset(names)


class DecisionError(TraceError):
    """A function decides by a number that each call changes: each would need another program."""


class CompileError(RuntimeError):
    """A program has given something else than the function that it was recorded of."""
