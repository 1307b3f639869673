"""Errors for functions that can't be recorded, and for wrong programs; how texts count."""

from contextvars import ContextVar

__all__ = ["CompileError", "GraphError", "TraceError", "UnrollError", "several", "trace_errors"]

#: All errors raised during the trace of this thread or task, also if they were caught.
trace_errors: "ContextVar[list[TraceError] | None]" = ContextVar(
    "wengert_trace_errors", default=None
)


class CompileError(RuntimeError):
    """A function can't be recorded, or its program differs from it.

    Examples
    --------
    >>> try:
    ...     wg.compile(lambda x: float(x))(wg.tensor(1.0))
    ... except wg.compiler.CompileError as error:
    ...     "Return the Tensor, and read it outside" in str(error)
    True
    """


class TraceError(CompileError):
    """A function does something that a replay could not repeat."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        known = trace_errors.get()
        if known is not None:
            known.append(self)


class UnrollError(TraceError):
    """A scan can't be a loop: the function is recorded again, with its steps one by one."""


class GraphError(TraceError):
    """Results require grad, for which a function runs as it is."""


def several(count: int, noun: str) -> str:
    """A number of things in words, as in "1 call" and "2 calls"."""
    return f"{count} {noun}{'s' if count != 1 else ''}"
