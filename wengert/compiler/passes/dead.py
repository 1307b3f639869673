"""Dead code: what no output needs is not computed."""

from dataclasses import replace

from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["dead"]


def dead(program: Program) -> Program:
    """Leave out instructions and constants on which no output depends.

    Inputs stay, and so does what is not pure: a generator of random numbers goes on although
    nobody looks at what it drew.
    """
    needed: set[Value] = set(values_in(program.outputs))
    kept: list[Instruction] = []
    for step in reversed(program.instructions):
        if step.pure and needed.isdisjoint(step.results):
            continue
        kept.append(step)
        needed.update(step.used())
    constants = {value: x for value, x in program.constants.items() if value in needed}
    if len(kept) == len(program.instructions) and len(constants) == len(program.constants):
        return program
    return replace(program, instructions=tuple(kept[::-1]), constants=constants)
