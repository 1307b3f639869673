"""Dead code elimination."""

from collections.abc import Container
from dataclasses import replace

from wengert.backends import dtype_of
from wengert.compiler.facts import facts_of, row_of
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["dead"]


def _may_raise(step: Instruction, constants: Container[Value]) -> bool:
    """Whether an operation may raise for some values of its operands; arithmetic does not count."""
    found, result = row_of(step.name), step.results[0]
    if found is None or result.shape is None:
        return False
    if found.elementwise and dtype_of(result.dtype).inexact:
        return False
    raises = facts_of(found).raises
    at = [i for i, name in enumerate(found.inputs) if name.lstrip("*") in raises]
    if found.variadic in raises:
        at += range(len(found.inputs), len(step.operands))
    given = [x for i in at for x in step.operands[i : i + 1] if isinstance(x, Value)]
    return any(x not in constants for x in given)


def dead(program: Program, *, errors: bool = False) -> Program:
    """Remove instructions and constants on which no output depends.

    Inputs stay, and so do impure instructions: a draw advances its generator, and a check of values
    may raise. With ``errors``, unused operations that may raise stay, too.
    """
    needed: set[Value] = set(values_in(program.outputs))
    kept: list[Instruction] = []
    for step in reversed(program.instructions):
        if (
            step.pure
            and needed.isdisjoint(step.results)
            and not (errors and _may_raise(step, program.constants))
        ):
            continue
        kept.append(step)
        needed.update(step.uses())
    constants = {value: x for value, x in program.constants.items() if value in needed}
    if len(kept) == len(program.instructions) and len(constants) == len(program.constants):
        return program
    return replace(program, instructions=tuple(kept[::-1]), constants=constants)
