"""Copies of outputs, so that the caller gets memory of its own."""

from collections.abc import Callable
from dataclasses import replace

from wengert.compiler.passes.liveness import holders
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["copy_outputs"]


def copy_outputs(program: Program, copy: Callable[[Value, Value], Instruction]) -> Program:
    """Copy outputs that may be views of an input, of a constant or of another output.

    A copy is taken right after the value is computed, so that its memory may be reused. ``copy``
    makes the instruction that copies one value to another.
    """
    held = holders(program, parts=False)
    taken = {*program.inputs, *program.constants}
    outputs = list(program.outputs)
    copies: dict[Value, list[Instruction]] = {}
    for at, x in enumerate(outputs):
        if not isinstance(x, Value) or x.shape is None:
            continue
        if taken.isdisjoint(held[x]):
            taken |= held[x]
        else:
            outputs[at] = Value(x.shape, x.dtype, x.name)
            copies.setdefault(x, []).append(copy(x, outputs[at]))
    if not copies:
        return program
    given = (*program.inputs, *program.constants)
    steps = [each for value in given for each in copies.get(value, ())]
    for step in program.instructions:
        steps.append(step)
        for result in step.results:
            steps += [replace(each, line=step.line) for each in copies.get(result, ())]
    return replace(program, instructions=tuple(steps), outputs=tuple(outputs))
