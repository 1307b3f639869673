"""Programs of functions of the tracing namespace, and what tests ask of them."""

from collections.abc import Callable
from typing import Any

from tests.compiler.bits import same_bits
from wengert.backends import Backend
from wengert.compiler.capture.trace import Trace
from wengert.compiler.capture.traced import traced
from wengert.compiler.program import Program
from wengert.tape.tensor import untracked

__all__ = ["agrees", "names", "trace_arrays", "traces"]


def traces(function: Callable[..., Any], *inputs: Any) -> Program:
    """The program of a function of the tracing namespace, raw arrays and numbers."""
    trace = Trace()
    with trace.running():
        answer = function(traced, *[trace.input(x) for x in inputs])
        return trace.program(answer if isinstance(answer, tuple) else (answer,))


def names(program: Program) -> list[str]:
    return [step.name for step in program.instructions]


def agrees(program: Program, better: Program, backend: Backend, *inputs: Any) -> None:
    """Both give the same on the inputs, which are NumPy arrays or numbers."""
    for x, y in zip(program(*_raw(backend, inputs)), better(*_raw(backend, inputs)), strict=True):
        if hasattr(x, "dtype"):
            x, y = backend.to_numpy(backend.array(x)), backend.to_numpy(backend.array(y))
        assert same_bits(x, y)


def _raw(backend: Backend, inputs: Any) -> list[Any]:
    return [backend.from_numpy(x) if hasattr(x, "dtype") else x for x in inputs]


def trace_arrays(
    function: Callable[..., Any], *arrays: Any, requires_grad: bool = False
) -> Program:
    """The program of a function of Tensors that closes over nothing which changes."""
    trace = Trace()
    with trace.running():
        tensors = [untracked(trace.input(x, f"x{i}")) for i, x in enumerate(arrays)]
        for tensor in tensors:
            tensor.requires_grad = requires_grad
        answer = function(*tensors)
        outputs = answer if isinstance(answer, tuple | list) else (answer,)
        return trace.program([x._array for x in outputs])
