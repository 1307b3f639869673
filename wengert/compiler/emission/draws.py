"""Random draws of saved programs, which take the generator as an operand.

They draw the numbers that the generators of `wengert.backends` would draw next. The functions here
are copied into the saved file, so that they use nothing of this package.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from wengert.backends import Backend, dtype_of
from wengert.backends.generators import host, stream, uniform
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["drawing"]


#: Libraries that draw on a device.
_OF_DEVICES: Final = frozenset({"cupy", "dask", "jax", "torch"})


def drawing(program: Program, backend: Backend, device: Any) -> list[Instruction]:
    """The instructions of a program, with the generator as the first operand of draws."""
    made = cache(partial(_generator, backend, device))  # all draws go on from one state
    return [x for step in program.instructions for x in _drawn(step, backend, made)]


def _drawn(step: Instruction, backend: Backend, made: Callable[[], Any]) -> list[Instruction]:
    if step.name == "draw":
        _, (draw, *given), _ = step.operands
        return _in_host_memory(step, backend, draw, (host(), *given))
    if step.name != "rand_like":
        return [step]
    (x,) = step.used()
    dtype = step.parameters["dtype"]
    if backend.name in _OF_DEVICES:
        raise ValueError(
            f"random numbers of {backend.name}'s own generators can't be written into a file that "
            "runs without wengert: draw by wg.rand, which draws in host memory"
        )
    return _in_host_memory(step, backend, uniform, (made(), x.shape, dtype_of(dtype).name))


def _generator(backend: Backend, device: Any) -> Any:
    """The generator in host memory, as saved programs have it."""

    def make(seed: int) -> Any:  # the recorded draw has made one
        raise ValueError(f"nothing has been drawn on {device}, so there is no generator to save")

    return stream(backend.name, device, make).generator


def _in_host_memory(
    step: Instruction,
    backend: Backend,
    function: Callable[..., Any],
    operands: tuple[Any, ...],
) -> list[Instruction]:
    """A call in host memory, and the conversion of its result to the library's array."""
    direct = backend.name == "numpy"
    made = step.result if direct else Value(step.result.shape, step.result.dtype)
    call = Instruction("draw", function, operands, {}, (made,), pure=False, line=step.line)
    asarray = backend.xp.asarray
    back = Instruction("asarray", asarray, (made,), {}, step.results, line=step.line)
    return [call] if direct else [call, back]
