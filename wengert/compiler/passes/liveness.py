"""Liveness: whose memory a value may have, and when it is used for the last time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wengert.compiler.passes.forms import fresh
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["END", "Liveness", "holders", "liveness", "may_view"]

#: After the last instruction: outputs live as long.
END = 1 << 60

Holders = Mapping[Value, frozenset[Value]]


def may_view(step: Instruction) -> bool:
    """Whether a result may be a view of an operand, or the operand itself."""
    return not fresh(step)


def holders(program: Program, views: Callable[[Instruction], bool] = may_view) -> Holders:
    """For each value those values whose memory it may have.

    A value that nothing else shares its memory with is its own only holder.

    Parameters
    ----------
    program : Program
        The program.
    views : callable
        Whether results of an instruction may be views of its operands.
    """
    held = {value: frozenset({value}) for value in (*program.inputs, *program.constants)}
    for step in program.instructions:
        shared: frozenset[Value] = frozenset()
        if views(step):
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
