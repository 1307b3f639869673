"""Liveness: whose memory a value may have, and when it is used for the last time."""

from collections.abc import Mapping
from dataclasses import dataclass

from wengert.compiler.passes.forms import form, fresh
from wengert.compiler.program import Program, Value, values_in

__all__ = ["END", "Liveness", "escaping", "holders", "liveness", "written_allocations"]

#: After the last instruction, as long as outputs live.
END = 1 << 60

Holders = Mapping[Value, frozenset[Value]]


def escaping(program: Program) -> set[Value]:
    """The outputs, and what they may be views of: values whose memory the caller sees.

    These have to be made by their own instructions in each run: were such a value replaced by an
    equal one, which somebody else holds, the caller would get memory that is not its own. So no
    pass replaces them by an input, a constant, or one another.
    """
    found = set(values_in(program.outputs))
    for step in reversed(program.instructions):
        if not fresh(step) and not found.isdisjoint(step.results):
            found.update(step.used())
    return {value for value in found if value.shape is not None}  # numbers have no memory


def written_allocations(program: Program) -> set[Value]:
    """New arrays made of nothing, such as zeros, that calls may write into.

    Each is an array of its own in each run: were it a constant, or one for two calls, it would have
    to be copied.
    """
    written = {step.operands[0] for step in program.instructions if form(step).inside == "only"}
    return {
        result
        for step in program.instructions
        if not step.used()
        for result in step.results
        if result in written
    }


def holders(program: Program, *, parts: bool = True) -> Holders:
    """For each value those values whose memory it may have.

    A value that nothing else shares its memory with is its own only holder.

    Parameters
    ----------
    program : Program
        The program.
    parts : bool
        Whether the parts of a line (`wengert.compiler.passes.flatten`) count as views of it.
    """
    given = (*program.inputs, *program.constants, *program.buffers)
    given += tuple([view.result for view in program.views])
    held = {value: frozenset({value}) for value in given}
    for step in program.instructions:
        shared: frozenset[Value] = frozenset()
        if not fresh(step) and (parts or step.name != "split"):
            shared = shared.union(*[held[x] for x in step.used() if x.shape is not None])
        for result in step.results:
            # Results of one instruction may be views of one another, too.
            several = shared.union(step.results) if step.several and shared else shared
            held[result] = several | {result}
            if step.out is not None:
                held[result] = frozenset({step.out})
    return held


@dataclass(frozen=True)
class Liveness:
    """What is known of a program's memory.

    Attributes
    ----------
    holders : dict of Value to frozenset of Value
        Whose memory a value may have.
    last : dict of Value to int
        The last instruction that reads a value's memory, through whatever view; `END` for outputs.
    escaping : frozenset of Value
        Values whose memory the caller gets.
    """

    holders: Holders
    last: Mapping[Value, int]
    escaping: frozenset[Value]


def liveness(program: Program) -> Liveness:
    """Find out whose memory is needed until when."""
    held = holders(program)
    last: dict[Value, int] = {}
    for i, step in enumerate(program.instructions):
        for value in step.used():
            for holder in held.get(value, ()):
                last[holder] = i
    escaping = frozenset().union(*[held[x] for x in values_in(program.outputs)])
    last.update(dict.fromkeys(escaping, END))
    return Liveness(held, last, escaping)
