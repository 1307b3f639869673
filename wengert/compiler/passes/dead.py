"""Dead code elimination."""

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wengert.backends import dtype_of
from wengert.compiler.facts import facts_of, row_of
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["dead"]


#: Python's arithmetic that may raise, with a test of right operands for which it does not.
_HARMLESS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("number.truediv", "number.floordiv", "number.mod"), bool),
    "number.pow": lambda x: x in (0, 1),
    **dict.fromkeys(("number.lshift", "number.rshift"), lambda x: x >= 0),
}
#: Functions that cast their second operand to the result's dtype.
_STORING: Final = frozenset({"full", "full_like", "setitem"})


def _may_raise(step: Instruction, constants: Container[Value]) -> bool:
    """Whether a call may raise for some values of its operands."""
    result = step.results[0].dtype
    integer = any(isinstance(x, Value) and x.dtype is int for x in step.operands)
    if step.name.startswith("number."):
        if integer and (result is float or result is complex):
            return True  # it may be too large to be a float
        if step.function is round or step.function.__module__ == "math":
            return True  # for what is infinite or NaN
        harmless, right = _HARMLESS.get(step.name), step.operands[-1]
        return harmless is not None and (isinstance(right, Value) or not harmless(right))
    if _converts(step):
        return True
    found = row_of(step.name)
    if found is None:
        return step.name.startswith("raw.") and not isinstance(step.function, np.ufunc)
    inexact = dtype_of(result).inexact
    if inexact and integer:
        return True  # as above
    if found.elementwise and inexact:
        return False
    raises = facts_of(found).raises
    at = [i for i, name in enumerate(found.inputs) if name.lstrip("*") in raises]
    if found.variadic in raises:
        at += range(len(found.inputs), len(step.operands))
    given = [x for i in at for x in step.operands[i : i + 1] if isinstance(x, Value)]
    return any(x not in constants for x in given)


def _converts(step: Instruction) -> bool:
    """Whether a number is stored in a dtype that may not hold it, such as NaN in an integer.

    NumPy raises Python's error for a number, and casts arrays as C does.
    """
    if step.name not in _STORING or not isinstance(value := step.operands[1], Value):
        return False
    kind = value.dtype
    if kind is int:  # a traced number
        return True
    inexact = kind is float or kind is complex or (kind is not bool and dtype_of(kind).inexact)
    return inexact and not dtype_of(step.results[0].dtype).inexact


def dead(program: Program, *, errors: bool = False) -> Program:
    """Remove instructions and constants on which no output depends.

    Inputs stay, and so do impure instructions: a draw advances its generator, and a check of values
    may raise. With ``errors``, unused calls that may raise stay, too.
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
        needed.update(step.used())
    constants = {value: x for value, x in program.constants.items() if value in needed}
    if len(kept) == len(program.instructions) and len(constants) == len(program.constants):
        return program
    return replace(program, instructions=tuple(kept[::-1]), constants=constants)
