"""Constant folding: instructions without inputs are computed once, when compiling."""

from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import Any, Final

import numpy as np

from wengert.compiler.passes.liveness import escaping, written_allocations
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["LARGEST", "folding"]

#: Functions whose results are correctly rounded (IEEE 754).
_ROUNDED: Final = (np.add, np.subtract, np.multiply, np.divide)

#: Elements of the largest results that are folded; larger ones would cost too much memory.
LARGEST = 1 << 16


def folding(program: Program) -> Program:
    """Compute instructions whose operands are all constant, such as ``zeros``.

    Python numbers replace their uses, and NumPy constants of equal elements become such numbers
    where that gives the same bits. An instruction that makes an output stays: constants belong to
    the program, and outputs to the caller.
    """
    apart = escaping(program) | written_allocations(program)
    constants = dict(program.constants)
    numbers: dict[Value, Any] = {}
    full: dict[Value, float | None] = {}  # the number that fills a constant, or None
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
    """A sum or product with a number in place of a constant filled with it.

    Correct rounding makes the two equal; other functions may have another loop for numbers.
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
    """The number that fills an array of floats, bitwise; None if elements differ."""
    if type(array) is not np.ndarray or array.dtype.kind != "f" or not array.size:
        return None
    first = array.flat[0]
    if not (array == first).all() or not (np.signbit(array) == np.signbit(first)).all():
        return None
    return float(first)


def _foldable(step: Instruction, apart: set[Value]) -> bool:
    return all(result not in apart and result.size <= LARGEST for result in step.results)


def _computed(step: Instruction, constants: dict[Value, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):  # the trace has warned already
        return step.run(constants)
