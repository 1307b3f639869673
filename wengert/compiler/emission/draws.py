"""Random draws of saved programs, which take the generator as an operand.

They draw the numbers that the generators of `wengert.backends` would draw next. The functions here
are copied into the saved file, so that they use nothing of this package.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

from wengert.backends import Backend, cupy, dask, dtype_of, jax, torch
from wengert.backends.generators import host, stream, uniform
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["Made", "drawing", "in_host_memory"]


class Made:
    """An object of a saved program, described by the call that makes it.

    Attributes
    ----------
    function : callable
        What is called.
    arguments : tuple
        Strings, numbers and NumPy arrays.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


class Generator(Made):
    """A generator of a saved program, in its present state."""


# -- on an array's device -------------------------------------------------------------------------


def torch_generator(device: str, state: Any) -> Any:
    """A generator in a state."""
    import torch

    generator = torch.Generator(device)
    generator.set_state(torch.from_numpy(state))
    return generator


def jax_keys(state: Any) -> Any:
    """A key in a list, which each draw replaces by splitting it."""
    import jax

    return [jax.random.wrap_key_data(state)]


def cupy_generator(device: int, state: Any) -> Any:
    """A generator in a state."""
    import cupy

    with cupy.cuda.Device(device):
        generator = cupy.random.Generator(cupy.random.Philox4x3210(seed=0))
        vars(generator.bit_generator)["_state"][...] = cupy.asarray(state)
    return generator


#: For each library the function that draws, and the generator made of device and state.
_DEVICE: Final[Mapping[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]]] = {
    "cupy": (
        cupy.uniform_like,
        lambda device, found: Generator(cupy_generator, int(device), found.state.get()),
    ),
    "dask": (dask.uniform_like, lambda device, found: found.generator),
    "jax": (jax.uniform_like, lambda device, found: Generator(jax_keys, found.state)),
    "torch": (
        torch.uniform_like,
        lambda device, found: Generator(torch_generator, str(device), found.state.numpy()),
    ),
}


def drawing(program: Program, backend: Backend, device: Any) -> list[Instruction]:
    """The instructions of a program, with the generator as the first operand of draws."""
    made = cache(partial(_generator, backend, device))  # all draws go on from one state
    return [x for step in program.instructions for x in _drawn(step, backend, made)]


def _drawn(step: Instruction, backend: Backend, made: Callable[[], Any]) -> list[Instruction]:
    if step.name == "draw":
        _, (draw, *given), _ = step.operands
        return in_host_memory(step, backend, draw, (host(), *given))
    if step.name != "rand_like":
        return [step]
    (x,) = step.used()
    dtype = step.parameters["dtype"]
    if backend.name not in _DEVICE:
        given = made(), x.shape, dtype_of(dtype).name
        return in_host_memory(step, backend, uniform, given)
    function, _ = _DEVICE[backend.name]
    given = made(), x, dtype
    return [Instruction(step.name, function, given, {}, step.results, pure=False, line=step.line)]


def _generator(backend: Backend, device: Any) -> Any:
    """The generator of a device, as saved programs have it."""

    def make(seed: int) -> Any:  # the recorded draw has made one
        raise ValueError(f"nothing has been drawn on {device}, so there is no generator to save")

    found = stream(backend.name, device, make)
    if backend.name not in _DEVICE:
        return found.generator
    _, made = _DEVICE[backend.name]
    return made(device, found)


def in_host_memory(
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
