"""Constant folding: what depends on nothing that changes is computed once, when compiling."""

from dataclasses import replace
from typing import Any

import numpy as np

from wengert.compiler.passes.liveness import blanks, shown
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["LARGEST", "folding"]

#: Elements of the largest results that are kept; beyond it, memory costs more than the time.
LARGEST = 1 << 16


def folding(program: Program) -> Program:
    """Compute instructions of constants, and of nothing at all, such as ``zeros``, beforehand.

    Python numbers are written where they are used. What an output is made of in each run anew
    stays an instruction: constants belong to the program, and outputs to the caller.
    """
    apart = shown(program) | blanks(program)
    constants = dict(program.constants)
    numbers: dict[Value, Any] = {}
    kept: list[Instruction] = []
    for step in program.instructions:
        if numbers:
            step = step.with_values(numbers)
        if not step.pure or any(value not in constants for value in step.used()):
            kept.append(step)
        elif step.results[0].shape is None:
            (numbers[step.result],) = _computed(step, constants)
        elif _foldable(step, apart):
            constants.update(zip(step.results, _computed(step, constants), strict=True))
        else:
            kept.append(step)
    if len(kept) == len(program.instructions):
        return program
    outputs = substitute(program.outputs, numbers)
    return replace(program, instructions=tuple(kept), outputs=outputs, constants=constants)


def _foldable(step: Instruction, apart: set[Value]) -> bool:
    return all(result not in apart and result.size <= LARGEST for result in step.results)


def _computed(step: Instruction, constants: dict[Value, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):  # the trace has warned
        return step.run(constants)
