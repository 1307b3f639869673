"""What a backend does with an emitted function before it runs."""

from collections.abc import Callable
from typing import Any

from wengert.backends import Backend
from wengert.compiler.program import Program
from wengert.compiler.report import Report

__all__ = ["finish"]

Function = Callable[..., tuple[Any, ...]]


def finish(
    program: Program, function: Function, backend: Backend | None, report: Report
) -> Function:
    """Return what is called for a program: the function, or what its library makes of it."""
    if backend is None or backend.name != "jax":
        return function
    if not all(step.pure for step in program.instructions):
        report.note(
            "the program draws random numbers, so jax.jit would draw them once: plain calls"
        )
        return function
    return _jitted(function, backend, report)


def _jitted(function: Function, backend: Any, report: Report) -> Function:
    """The function under ``jax.jit``; as it is where a kernel asks for values."""
    jax = backend.jax
    compiled: Function | None = jax.jit(function)
    report.note("jax.jit has compiled the program")

    def call(*inputs: Any) -> tuple[Any, ...]:
        nonlocal compiled
        if compiled is not None:
            try:
                return compiled(*inputs)
            except jax.errors.JAXTypeError as error:
                compiled = None
                reason = str(error).partition("\n")[0]
                report.note(f"jax.jit can't compile the program ({reason}): plain calls")
        return function(*inputs)

    return call
