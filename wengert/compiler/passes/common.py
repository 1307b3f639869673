"""Common subexpression elimination."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from wengert.compiler.passes.liveness import escaping, written_allocations
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["common"]


def common(program: Program) -> Program:
    """Merge instructions that call the same function with the same operands.

    If one of two equal values is an output, that one stays. Two equal outputs are both computed,
    because the caller gets two arrays.
    """
    apart = escaping(program) | written_allocations(program)
    same: dict[Value, Any] = {}
    seen: dict[Hashable, Instruction] = {}
    kept: list[Instruction] = []
    for step in program.instructions:
        if same:
            step = step.with_values(same)
        if step.pure:
            first = seen.setdefault(_key(step), step)
            if first is not step and _merge(step, first, same, apart):
                continue
        kept.append(step)
    if not same:
        return program
    outputs = substitute(program.outputs, same)
    return replace(program, instructions=tuple(kept), outputs=outputs)


def _merge(
    step: Instruction, first: Instruction, same: dict[Value, Any], apart: set[Value]
) -> bool:
    """Replace an instruction's results by those of an equal one; False if both escape."""
    pairs = list(zip(step.results, first.results, strict=True))
    if any(result in apart and before in apart for result, before in pairs):
        return False
    for result, before in pairs:
        same[result] = before
        if result in apart:
            apart.add(before)
    return True


def _key(step: Instruction) -> Hashable:
    """Equal for instructions that do the same, and for no others."""
    key = (step.name, step.function, _part(step.operands), _part(step.parameters))
    try:
        hash(key)
    except TypeError:  # an unhashable object of the library
        return step
    return key


def _part(x: Any) -> Hashable:
    kind = type(x)
    if kind is Value or x is None or kind is str or kind is int or kind is bool:
        return x if kind is not bool else (bool, x)  # True == 1
    if kind is float or kind is complex:
        return kind, repr(x)  # 0.0 == -0.0 == 0, and nan != nan
    if kind is tuple or kind is list:
        return kind, *map(_part, x)
    if kind is slice:
        return slice, _part(x.start), _part(x.stop), _part(x.step)
    if isinstance(x, dict):
        return dict, *[(name, _part(part)) for name, part in x.items()]
    return kind, x
