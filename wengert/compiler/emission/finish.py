"""Programs handed to their library's compiler: ``jax.jit`` and ``torch.compile``."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wengert.compiler.emission.emit import emit
from wengert.compiler.program import Instruction, Program, Value, values_in
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
        return _try(compiled, function, "torch.compile", report, failing)
    if backend is None or backend.name != "jax":
        return function
    looks = [step for step in program.instructions if not step.results]
    if looks:
        report.note("jax.jit can't raise for values: the program does not look at them")
        kept = [step for step in program.instructions if step.results]
        program = replace(program, instructions=tuple(kept))
    if not all(step.pure and step.name != "to_device" for step in program.instructions):
        report.note(
            "jax.jit would draw the program's random numbers once, run its collectives once, or "
            "move no array: plain calls instead"
        )
        return function
    jax = backend.jax
    compiled = _divide(program, backend, jax.jit)
    if compiled is None:
        report.note("jax.jit gives no Python numbers to compute with: plain calls instead")
        return function
    report.note("jax.jit has compiled the program")
    errors = jax.errors.JAXTypeError, jax.errors.JAXIndexError
    return _try(compiled, function, "jax.jit", report, *errors)


def _try(
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


def _divide(program: Program, backend: Any, jit: Any) -> Function | None:
    """The arithmetic of numbers in Python, and the rest, which takes its results, by ``jit``.

    None if numbers depend on arrays.
    """
    own, rest = list[Instruction](), list[Instruction]()
    for step in program.instructions:
        (own if step.name.startswith("number.") else rest).append(step)
    if any(x.shape is not None for step in own for x in step.uses()):
        return None
    results: list[Value] = [step.result for step in own]
    outputs = list(dict.fromkeys(values_in(program.outputs)))
    passed = [x for x in outputs if x in program.inputs and x.shape is None]
    wanted = [x for x in outputs if x not in results and x not in passed]
    numbers = Program(program.inputs, tuple(own), (*results, *passed))
    arrays = Program((*program.inputs, *results), tuple(rest), tuple(wanted), program.constants)
    before = emit(numbers, backend, name="numbers").function
    run = jit(emit(arrays, backend, name="arrays").function)
    # Each output is of one of the two, or a constant.
    places = {x: i for i, x in enumerate((*results, *passed, *wanted))}
    at = [places.get(x) if isinstance(x, Value) else None for x in program.outputs]
    pairs = list(zip(at, program.outputs, strict=True))

    def call(*inputs: Any) -> tuple[Any, ...]:
        known = before(*inputs)
        found = *known, *run(*inputs, *known[: len(results)])
        return tuple([x if i is None else found[i] for i, x in pairs])

    return call
