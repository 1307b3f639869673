"""Outputs that are the caller's own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from wengert.compiler.passes.forms import COPY
from wengert.compiler.passes.liveness import holders, may_view
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["own"]


def own(
    program: Program,
    copy: Callable[[Any], Any],
    views: Callable[[Instruction], bool] = may_view,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    scalar: Callable[[Any], Any] | None = None,
) -> Program:
    """Copy outputs that may be views of an input, of a constant or of another output.

    The copies are taken as soon as the values are there, so that what they are views of may be
    written into afterwards.

    Parameters
    ----------
    program : Program
        The program.
    copy : callable
        Copies an array.
    views : callable
        Whether results of an instruction may be views of its operands.
    parameters : dict
        Of ``copy``.
    scalar : callable, optional
        Copies what has no axes, where the library has scalars beside arrays.
    """
    held = holders(program, views)
    taken = {*program.inputs, *program.constants}
    outputs = list(program.outputs)
    copies: dict[Value, list[Instruction]] = {}
    # What becomes state comes first: it is the other outputs of the same memory that are copied.
    for at in sorted(range(len(outputs)), key=lambda at: at not in program.updates):
        x = outputs[at]
        if not isinstance(x, Value) or x.shape is None:
            continue
        if at in program.updates and program.inputs[program.updates[at]] is x:
            continue
        if taken.isdisjoint(held[x]):
            taken |= held[x]
            continue
        outputs[at] = Value(x.shape, x.dtype, x.name)
        function = (
            scalar if scalar is not None and not x.shape else copy
        )  # in the order that the elements have
        operands = (x,) if x.order is None or copy is not COPY else (x, "K")
        made = Instruction("copy", function, operands, parameters, (outputs[at],))
        copies.setdefault(x, []).append(made)
    if not copies:
        return program
    steps = [
        step for value in (*program.inputs, *program.constants) for step in copies.get(value, ())
    ]
    for step in program.instructions:
        steps.append(step)
        for result in step.results:
            steps += [replace(each, line=step.line) for each in copies.get(result, ())]
    return replace(program, instructions=tuple(steps), outputs=tuple(outputs))
