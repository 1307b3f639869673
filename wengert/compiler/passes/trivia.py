"""Algebraic trivia: operations that give what they were given, to the last bit."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wengert.backends import dtype_of
from wengert.compiler.passes.forms import fresh
from wengert.compiler.passes.sharing import shown
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["trivia"]


class Known:
    """What is known of the values up to some instruction.

    Attributes
    ----------
    made : dict of Value to Instruction
        What each result was made by.
    full : dict of Value to number
        Arrays of which all elements are the same number: 0 or 1.
    """

    def __init__(self) -> None:
        self.made: dict[Value, Instruction] = {}
        self.full: dict[Value, Any] = {}

    def learn(self, step: Instruction) -> None:
        """Take note of what an instruction makes."""
        for result in step.results:
            self.made[result] = step
        filling = _FILLING.get(step.name)
        if filling is not None and (number := filling(step, self)) is not None:
            self.full[step.result] = number

    def number(self, x: Any) -> Any:
        """The number that an operand is, or is full of; None where that is not known."""
        return self.full.get(x) if isinstance(x, Value) else x

    def by(self, x: Any, name: str) -> Instruction | None:
        """The instruction that made an operand, if it has this name."""
        step = self.made.get(x) if isinstance(x, Value) else None
        return step if step is not None and step.name == name else None


def trivia(program: Program) -> Program:
    """Replace results that equal an operand: for all values, with the same dtype and shape.

    What equals only up to the sign of a zero, or except at infinities, stays, so ``x + 0`` of
    floats and ``z * 1`` of complex numbers do. So does what puts elements in order, such as a copy
    of a transpose. Instructions that become unused are left to `dead`.
    """
    apart = shown(program)
    known = Known()
    same: dict[Value, Any] = {}
    steps: list[Instruction] = []
    for step in program.instructions:
        if same:
            step = step.with_values(same)
        steps.append(step)
        rule = _RULES.get(step.name)
        if rule is not None:
            equal, result = rule(step, known), step.result
            if _stands_for(equal, result) and _free(equal, result, known, apart):
                same[result] = equal
                continue
        known.learn(step)
    if not same:
        return program
    outputs = substitute(program.outputs, same)
    return replace(program, instructions=tuple(steps), outputs=outputs)


def _stands_for(x: Any, result: Value) -> bool:
    """Whether an operand is of the same shape, dtype and order in memory as the result."""
    same = isinstance(x, Value) and x.shape == result.shape and x.order == result.order
    return same and x.dtype == result.dtype


def _free(equal: Value, result: Value, known: Known, apart: set[Value]) -> bool:
    """Whether one may stand for the other; what callers see needs memory that nobody else has."""
    if result not in apart:
        return True
    maker = known.made.get(equal)
    if maker is None or not fresh(maker) or equal in apart:
        return False
    apart.add(equal)
    return True


# -- what equals an operand ------------------------------------------------------------------------

Rule = Callable[[Instruction, Known], Any]


def _complex(x: Any) -> bool:
    return x.dtype is complex if x.shape is None else dtype_of(x.dtype).complex


def _whole(x: Value) -> bool:
    """Whether a value is an integer, or of integers."""
    if x.shape is None:
        return x.dtype is int
    return not dtype_of(x.dtype).inexact


def _times(step: Instruction, known: Known) -> Any:
    """``x * 1`` and ``1 * x``. Of complex numbers an infinity times 0j is nan."""
    if _complex(step.result):
        return None
    x, y = step.operands
    if _equals(known.number(y), 1):
        return x
    return y if _equals(known.number(x), 1) else None


def _over(step: Instruction, known: Known) -> Any:
    """``x / 1`` and ``x ** 1``."""
    x, y = step.operands
    return x if _equals(known.number(y), 1) and not _complex(step.result) else None


def _plus(step: Instruction, known: Known) -> Any:
    """``n + 0`` of integers, and ``x + -0.0`` of floats: 0.0 would make a 0.0 of -0.0."""
    if _complex(step.result):
        return None
    x, y = step.operands
    whole = _whole(step.result)
    if _zero(known.number(y)) and (whole or _below(known.number(y))):
        return x
    return y if _zero(known.number(x)) and (whole or _below(known.number(x))) else None


def _minus(step: Instruction, known: Known) -> Any:
    """``x - 0``. Minus -0.0 is plus 0.0."""
    x, y = step.operands
    number = known.number(y)
    return x if _zero(number) and (_whole(step.result) or not _below(number)) else None


def _equals(number: Any, one: int) -> bool:
    return isinstance(number, int | float) and number == one


def _zero(number: Any) -> bool:
    return isinstance(number, int | float) and number == 0


def _below(number: Any) -> bool:
    return math.copysign(1, number) < 0


def _twice(step: Instruction, known: Known) -> Any:
    """An involution of what it gave: ``-(-x)``, the transpose of a transpose."""
    before = known.by(step.operands[0], step.name)
    return before.operands[0] if before is not None else None


def _own_dtype(step: Instruction, known: Known) -> Any:
    """``astype`` to the dtype that it has, or a copy."""
    return step.operands[0] if step.parameters.get("device") is None else None


def _own_shape(step: Instruction, known: Known) -> Any:
    """``broadcast_to`` the shape that it has."""
    return step.operands[0]


def _in_order(step: Instruction, known: Known) -> Any:
    """Back to the shape that it had, through steps that keep the elements in order."""
    x, shape = step.operands[0], step.result.shape
    while x.shape != shape:
        before = known.made.get(x)
        if before is None or _RULES.get(before.name) is not _in_order:
            return None
        x = before.operands[0]
    return x


def _permuted(step: Instruction, known: Known) -> Any:
    """A permutation of no axes, or of those of one that it takes back."""
    axes = _axes(step)
    if axes == [*range(len(axes))]:
        return step.operands[0]
    before = known.by(step.operands[0], "permute_dims")
    if before is None:
        return None
    first = _axes(before)
    return before.operands[0] if [first[i] for i in axes] == [*range(len(axes))] else None


def _axes(step: Instruction) -> list[int]:
    given = step.parameters["axes"] if "axes" in step.parameters else step.operands[1]
    return [i % len(given) for i in given]


def _real(step: Instruction, known: Known) -> Any:
    """What does nothing to real numbers."""
    return None if _complex(step.operands[0]) else step.operands[0]


def _rounded(step: Instruction, known: Known) -> Any:
    """What does nothing to integers."""
    return step.operands[0] if _whole(step.operands[0]) else None


def _over_no_axes(step: Instruction, known: Known) -> Any:
    return step.operands[0] if step.parameters.get("axis") == () else None


def _sum_over_no_axes(step: Instruction, known: Known) -> Any:
    """Some libraries start from 0.0, which makes a 0.0 of -0.0."""
    return _over_no_axes(step, known) if _whole(step.result) else None


def _idle(step: Instruction, known: Known) -> Any:
    """``maximum(x, x)``."""
    x, y = step.operands
    return x if x is y else None


def _chosen(step: Instruction, known: Known) -> Any:
    """``where`` of a condition that is the same everywhere, or between two that are the same."""
    condition, x, y = step.operands
    if x is y:
        return x
    number = known.number(condition)
    return None if number is None else x if number else y


def _only(step: Instruction, known: Known) -> Any:
    """The concatenation of one array, which some libraries take in a list."""
    arrays = step.used()
    return arrays[0] if len(arrays) == 1 and step.parameters.get("axis") is not None else None


def _all_of_it(step: Instruction, known: Known) -> Any:
    """``x[...]``, ``x[:]`` and other slices of steps of 1 that leave nothing out."""
    x = step.operands[0]
    key = step.parameters.get("key", (None,))
    slices = all(
        part is Ellipsis or (type(part) is slice and part.step in (None, 1)) for part in key
    )
    return x if slices and x.shape == step.result.shape else None


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("multiply", "number.mul"), _times),
    **dict.fromkeys(("divide", "number.truediv", "pow", "number.pow"), _over),
    **dict.fromkeys(("add", "number.add"), _plus),
    **dict.fromkeys(("subtract", "number.sub"), _minus),
    **dict.fromkeys(("negative", "number.neg"), _twice),
    **dict.fromkeys(("bitwise_invert", "logical_not", "matrix_transpose"), _twice),
    **dict.fromkeys(("asarray", "astype"), _own_dtype),
    "broadcast_to": _own_shape,
    **dict.fromkeys(("reshape", "expand_dims", "squeeze"), _in_order),
    "permute_dims": _permuted,
    **dict.fromkeys(("conj", "real", "positive"), _real),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), _rounded),
    **dict.fromkeys(("max", "min", "prod"), _over_no_axes),
    "sum": _sum_over_no_axes,
    **dict.fromkeys(("maximum", "minimum"), _idle),
    "where": _chosen,
    **dict.fromkeys(("concat_arrays",), _only),
    "getitem": _all_of_it,
}


# -- what is full of one number --------------------------------------------------------------------


def _filled(step: Instruction, known: Known) -> Any:
    """``full`` and ``full_like``, of numbers that every dtype has."""
    given = [*step.operands[1:], step.parameters.get("fill_value")]
    return given[0] if type(given[0]) in (bool, int, float) and given[0] in (0, 1) else None


def _moved(step: Instruction, known: Known) -> Any:
    """What takes elements from an array, or gives them another dtype."""
    return known.full.get(step.operands[0]) if isinstance(step.operands[0], Value) else None


_FILLING: Mapping[str, Rule] = {
    **dict.fromkeys(("ones", "ones_like"), lambda step, known: 1),
    **dict.fromkeys(("zeros", "zeros_like"), lambda step, known: 0),
    **dict.fromkeys(("full", "full_like"), _filled),
    **dict.fromkeys(("reshape", "broadcast_to", "expand_dims", "squeeze", "getitem"), _moved),
    **dict.fromkeys(("permute_dims", "matrix_transpose", "flip", "roll", "take"), _moved),
    **dict.fromkeys(("astype", "asarray"), _moved),
}
