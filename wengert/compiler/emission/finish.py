"""Programs handed to their library's compiler: ``jax.jit`` and ``torch.compile``."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wengert.compiler.emission.emit import emit
from wengert.compiler.program import Program, Value, values_in
from wengert.compiler.report import Report

__all__ = ["finish"]

Function = Callable[..., tuple[Any, ...]]


def finish(
    program: Program,
    function: Function,
    backend: Any,
    report: Report,
    torch_compile: bool | str = False,
) -> Function:
    """Return the function that runs a program: its own, or one compiled by the library."""
    if backend is not None and backend.name == "torch" and torch_compile:
        torch, how = backend.torch, {} if torch_compile is True else {"backend": torch_compile}
        compiled = torch.compile(function, **how)
        report.note(f"torch.compile({', '.join(f'{k}={v!r}' for k, v in how.items())}) is used")
        failing = torch._dynamo.exc.TorchDynamoException
        return _tried(compiled, function, "torch.compile", report, failing)
    if backend is None or backend.name != "jax":
        return function
    looks = [step for step in program.instructions if not step.results]
    if looks:
        report.note("jax.jit can't raise for values: the program does not look at them")
        kept = [step for step in program.instructions if step.results]
        program = replace(program, instructions=tuple(kept))
    if not all(step.pure for step in program.instructions):
        report.note(
            "jax.jit would draw the program's random numbers once, or run its collectives once: "
            "plain calls instead"
        )
        return function
    jax = backend.jax
    compiled = _divided(program, backend, jax.jit)
    report.note("jax.jit has compiled the program")
    errors = jax.errors.JAXTypeError, jax.errors.JAXIndexError
    return _tried(compiled, function, "jax.jit", report, *errors)


def _tried(
    compiled: Function, function: Function, by: str, report: Report, *errors: type[Exception]
) -> Function:
    """A compiled program; the function itself after one of these errors."""
    works: Function | None = compiled

    def call(*inputs: Any) -> tuple[Any, ...]:
        nonlocal works
        if works is not None:
            try:
                return works(*inputs)
            except errors as error:
                works = None
                reason = str(error).partition("\n")[0]
                report.note(f"{by} can't compile the program ({reason}): plain calls instead")
        return function(*inputs)

    return call


def _divided(program: Program, backend: Any, made: Callable[[Function], Function]) -> Function:
    """Calls of arrays by the function that ``made`` gives, of numbers in Python."""
    numbers, arrays = _split(program)
    before = emit(numbers, backend, name="numbers").function
    run = made(emit(arrays, backend, name="arrays").function)
    join = _joiner(program, numbers, arrays)

    def call(*inputs: Any) -> tuple[Any, ...]:
        known = before(*inputs)
        return join(known, run(*inputs, *known))

    return call


def _joiner(program: Program, numbers: Program, arrays: Program) -> Function:
    """A function that assembles a program's outputs from those of its two parts."""
    # Each output is of the numbers' program, of the arrays', or a constant.
    computed = {value: i for i, value in enumerate(numbers.outputs)}
    made = {value: i for i, value in enumerate(arrays.outputs)}

    def join(known: Sequence[Any], answer: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            [
                known[computed[x]] if x in computed else answer[made[x]] if x in made else x
                for x in program.outputs
            ]
        )

    return join


def _split(program: Program) -> tuple[Program, Program]:
    """Split a program: arithmetic of numbers, and the rest, which takes its results as inputs."""
    steps = program.instructions
    own = tuple([step for step in steps if step.name.startswith("number.")])
    rest = tuple([step for step in steps if not step.name.startswith("number.")])
    results: list[Value] = [step.result for step in own]
    given = {value for value in program.inputs if value.shape is None}
    passed = [x for x in dict.fromkeys(values_in(program.outputs)) if x in given]
    numbers = Program(program.inputs, own, (*results, *passed))
    outputs = [
        x for x in dict.fromkeys(values_in(program.outputs)) if x not in set(numbers.outputs)
    ]
    # Numbers among the outputs are inputs of both; the second program ignores their copies.
    spare = [Value(None, value.dtype, value.name) for value in passed]
    inputs = (*program.inputs, *results, *spare)
    return numbers, Program(inputs, rest, tuple(outputs), program.constants)
