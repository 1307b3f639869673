"""Which values may share memory, when each is last used, and what therefore is copied."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wengert.compiler.passes.forms import fresh
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["END", "Liveness", "copy_outputs", "escaping", "holders", "liveness"]

#: The last use of outputs, after the last instruction.
END = 1 << 60

Holders = Mapping[Value, frozenset[Value]]


def escaping(program: Program) -> set[Value]:
    """Values whose memory the caller gets: the outputs, and values that these may be views of.

    The caller has to get new memory in each run. So no pass may replace such a value by an input, a
    constant, or another one of them.
    """
    found = set(values_in(program.outputs))
    for step in reversed(program.instructions):
        if not fresh(step) and not found.isdisjoint(step.results):
            found.update(step.uses())
    return {value for value in found if value.shape is not None}  # numbers have no memory


def holders(program: Program, *, parts: bool = True) -> Holders:
    """For each value the values whose memory it may have; for new memory itself alone.

    Without ``parts``, those of a flat array (`wengert.compiler.passes.flatten`) are no views.
    """
    given = (*program.inputs, *program.constants, *program.buffers)
    given += tuple([view.result for view in program.views])
    held = {value: frozenset({value}) for value in given}
    for step in program.instructions:
        if step.out is None and not step.several and fresh(step):
            held[step.result] = frozenset((step.result,))
            continue
        shared: frozenset[Value] = frozenset()
        if not fresh(step) and (parts or step.name != "split"):
            shared = shared.union(*[held[x] for x in step.uses() if x.shape is not None])
        # Results of one instruction may be views of one another, but for parts of a flat array.
        if step.several and shared and step.name != "split":
            shared = shared.union(step.results)
        for result in step.results:
            held[result] = shared | {result} if step.out is None else frozenset({step.out})
    return held


@dataclass(frozen=True)
class Liveness:
    """The use of memory in a program: `holders`, and the values whose memory the caller gets."""

    holders: Holders
    #: The last instruction that reads a value's memory, also through views; `END` for outputs.
    last: Mapping[Value, int]
    escaping: frozenset[Value]


def liveness(program: Program) -> Liveness:
    """Compute the liveness of all values."""
    held = holders(program)
    last: dict[Value, int] = {}
    for i, step in enumerate(program.instructions):
        for value in step.uses():
            for holder in held.get(value, ()):
                last[holder] = i
    escaping = frozenset().union(*[held[x] for x in values_in(program.outputs)])
    last.update(dict.fromkeys(escaping, END))
    return Liveness(held, last, escaping)


def copy_outputs(
    program: Program, copy: Callable[[Value, Value], Instruction], count: int | None = None
) -> Program:
    """Copy outputs, or the first, that may be views of an input, a constant or another output.

    A copy is taken right after the value is computed, so that its memory may be reused. ``copy``
    makes the instruction that copies one value to another.
    """
    held = holders(program, parts=False)
    taken = {*program.inputs, *program.constants}
    outputs = list(program.outputs)
    copies: dict[Value, list[Instruction]] = {}
    for at, x in enumerate(outputs[:count]):
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
