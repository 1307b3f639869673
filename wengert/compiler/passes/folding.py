"""Constant folding: what depends on nothing that changes is computed once, when compiling."""

from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import Any, Final

import numpy as np

from wengert.compiler.passes.liveness import escaping, written_allocations
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["LARGEST", "folding"]

#: What rounds each result as the standard of floating-point numbers says.
_ROUNDED: Final = (np.add, np.subtract, np.multiply, np.divide)

#: Elements of the largest results that are kept; beyond it, memory costs more than the time.
LARGEST = 1 << 16


def folding(program: Program) -> Program:
    """Compute instructions of constants, and of nothing at all, such as ``zeros``, beforehand.

    Python numbers are written where they are used, also in place of NumPy's constants of which all
    elements are one number. What makes an output stays an instruction: constants belong to the
    program, and outputs to the caller.
    """
    apart = escaping(program) | written_allocations(program)
    constants = dict(program.constants)
    numbers: dict[Value, Any] = {}
    full: dict[Value, float | None] = {}  # constants, and the number that each is full of
    kept: list[Instruction] = []
    for step in program.instructions:
        if numbers:
            step = step.with_values(numbers)
        if not constants.keys().isdisjoint(step.used()):
            step = _with_numbers(step, constants, full)
        if not step.pure or any(value not in constants for value in step.used()):
            kept.append(step)
        elif step.results[0].shape is None:
            (numbers[step.result],) = _computed(step, constants)
        elif _foldable(step, apart):
            constants.update(zip(step.results, _computed(step, constants), strict=True))
        else:
            kept.append(step)
    if len(kept) == len(program.instructions) and all(map(is_, kept, program.instructions)):
        return program
    outputs = substitute(program.outputs, numbers)
    return replace(program, instructions=tuple(kept), outputs=outputs, constants=constants)


def _with_numbers(
    step: Instruction, constants: Mapping[Value, Any], full: dict[Value, float | None]
) -> Instruction:
    """A sum or product with a number in place of a constant that is full of it.

    These are rounded alike however an operand is given; other functions may have a loop of their
    own for numbers.
    """
    if step.function not in _ROUNDED or step.parameters or len(step.operands) != 2:
        return step
    for at, x in enumerate(step.operands):
        other, result = step.operands[1 - at], step.result
        if not isinstance(x, Value) or x not in constants or not isinstance(other, Value):
            continue
        alike = (other.shape, other.dtype, other.order) == (result.shape, x.dtype, result.order)
        if alike and other.shape and other not in constants and x.dtype == result.dtype:
            if x not in full:
                full[x] = _element(constants[x])
            if full[x] is not None:
                return step.with_values({x: full[x]})
    return step


def _element(array: Any) -> float | None:
    """The number that all elements of an array of floats are, to the bit."""
    if type(array) is not np.ndarray or array.dtype.kind != "f" or not array.size:
        return None
    first = array.flat[0]
    if not (array == first).all() or not (np.signbit(array) == np.signbit(first)).all():
        return None
    return float(first)


def _foldable(step: Instruction, apart: set[Value]) -> bool:
    return all(result not in apart and result.size <= LARGEST for result in step.results)


def _computed(step: Instruction, constants: dict[Value, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):  # the trace has warned
        return step.run(constants)
