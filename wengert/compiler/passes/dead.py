"""Dead code: what no output needs is not computed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["dead"]


#: Python's arithmetic that raises for some numbers on the right, and which numbers are none.
_HARMLESS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("number.truediv", "number.floordiv", "number.mod"), bool),
    "number.pow": lambda x: x in (0, 1),
    **dict.fromkeys(("number.lshift", "number.rshift"), lambda x: x >= 0),
}


def _may_raise(step: Instruction) -> bool:
    """Whether Python's arithmetic raises for some of the numbers that it may be given."""
    harmless = _HARMLESS.get(step.name)
    return harmless is not None and (
        isinstance(step.operands[1], Value) or not harmless(step.operands[1])
    )


def dead(program: Program, *, errors: bool = False) -> Program:
    """Leave out instructions and constants on which no output depends.

    Inputs stay, and so does what is not pure: a generator of random numbers goes on although
    nobody looks at what it drew.

    Parameters
    ----------
    program : Program
        Of which the outputs are needed.
    errors : bool
        Whether Python's arithmetic that may raise stays, although nobody looks at what it gives.
    """
    needed: set[Value] = set(values_in(program.outputs))
    kept: list[Instruction] = []
    for step in reversed(program.instructions):
        if step.pure and needed.isdisjoint(step.results) and not (errors and _may_raise(step)):
            continue
        kept.append(step)
        needed.update(step.used())
    constants = {value: x for value, x in program.constants.items() if value in needed}
    if len(kept) == len(program.instructions) and len(constants) == len(program.constants):
        return program
    return replace(program, instructions=tuple(kept[::-1]), constants=constants)
