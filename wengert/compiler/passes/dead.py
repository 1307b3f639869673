"""Dead code elimination."""

from collections.abc import Container
from dataclasses import replace

from wengert.backends import dtype_of
from wengert.compiler.facts import facts_of, row_of
from wengert.compiler.passes.loops import Loop
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
    kept, changed = list[Instruction](), False
    for step in reversed(program.instructions):
        if (
            step.pure
            and needed.isdisjoint(step.results)
            and not (errors and _may_raise(step, program.constants))
        ):
            continue
        kept.append(_pruned(step, needed))
        changed |= kept[-1] is not step
        needed.update(step.used())
    constants = {value: x for value, x in program.constants.items() if value in needed}
    unchanged = not changed and len(kept) == len(program.instructions)
    if unchanged and len(constants) == len(program.constants):
        return program
    return replace(program, instructions=tuple(kept[::-1]), constants=constants)


def _pruned(step: Instruction, needed: Container[Value]) -> Instruction:
    """A loop without the results that nothing needs; another instruction as it is."""
    loop = step.function
    if not isinstance(loop, Loop):
        return step
    n = loop.carried
    kept = [i for i, x in enumerate(step.results) if i < n or x in needed]
    if len(kept) == len(step.results):
        return step
    body = replace(loop.body, outputs=tuple([loop.body.outputs[i] for i in kept]))
    less = Loop(dead(body, errors=True), n, loop.rows, loop.count, reverse=loop.reverse)
    return replace(step, function=less, results=tuple([step.results[i] for i in kept]))
