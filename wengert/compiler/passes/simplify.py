"""Algebraic simplification: calls whose result equals an operand bitwise are removed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from wengert.backends import dtype_of
from wengert.compiler.passes.forms import fresh, row
from wengert.compiler.passes.liveness import escaping
from wengert.compiler.program import Instruction, Program, Value, substitute
from wengert.interpreters.identities import same_elements
from wengert.tape.primitive import Primitive

__all__ = ["Call", "simplify"]


class Call:
    """An instruction, as identity rules see it (`wengert.interpreters.identities`).

    Attributes
    ----------
    name : str
        Of the primitive.
    rule : callable or None
        The primitive's identity rule.
    operands, parameters, result
        Of the instruction.
    """

    __slots__ = ("_known", "name", "operands", "parameters", "result", "rule")

    def __init__(self, step: Instruction, known: "Known", found: Primitive | None) -> None:
        self.name = step.name if found is None else found.name
        self.rule = None if found is None else found.identity
        self.operands, self.parameters, self.result = step.operands, step.parameters, step.result
        self._known = known

    @property
    def complex(self) -> bool:
        """Whether the result is complex."""
        return self.complex_of(self.result)

    @staticmethod
    def complex_of(x: Any) -> bool:
        """Whether an operand is complex."""
        if not isinstance(x, Value):
            return type(x) is complex
        return x.dtype is complex if x.shape is None else dtype_of(x.dtype).complex

    @property
    def whole(self) -> bool:
        """Whether the result is an integer or an array of integers."""
        x = self.result
        return x.dtype is int if x.shape is None else not dtype_of(x.dtype).inexact

    def number(self, x: Any) -> Any:
        """The number that an operand is or is filled with; None if unknown."""
        return self._known.full.get(x) if isinstance(x, Value) else x

    def maker(self, x: Any) -> "Call | None":
        """The call that made an operand, if that has one result."""
        step = self._known.made.get(x) if isinstance(x, Value) else None
        return None if step is None or step.several else Call(step, self._known, row(step))


class Known:
    """Facts about values, collected in the order of instructions.

    Attributes
    ----------
    made : dict of Value to Instruction
        The instruction that made each result.
    full : dict of Value to number
        Arrays that are filled with 0 or 1.
    """

    def __init__(self) -> None:
        self.made: dict[Value, Instruction] = {}
        self.full: dict[Value, Any] = {}

    def learn(self, step: Instruction, found: Primitive | None) -> None:
        """Add the facts about an instruction's results."""
        for result in step.results:
            self.made[result] = step
        number = self._number(step, found)
        if number is not None:
            self.full[step.result] = number

    def _number(self, step: Instruction, found: Primitive | None) -> Any:
        """The number that fills a result, if it is 0 or 1, which every dtype has."""
        filled = _FILLED.get(step.name.removesuffix("_like"))
        if filled is not None:
            number = filled(step)
            return number if type(number) in (bool, int, float) and number in (0, 1) else None
        first = step.operands[0] if step.operands else None
        if found is None or step.several or not isinstance(first, Value):
            return None
        # Calls that move elements, or change shape or dtype.
        moves = found.identity is same_elements or (found.kind == "structural" and found.fixed)
        return self.full.get(first) if moves else None


#: The numbers with which creation functions fill an array.
_FILLED: Final[Mapping[str, Callable[[Instruction], Any]]] = {
    "full": lambda step: [*step.operands[1:], step.parameters.get("fill_value")][0],
    "ones": lambda step: 1,
    "zeros": lambda step: 0,
}


def simplify(program: Program) -> Program:
    """Replace results that equal an operand for all values, with the same dtype and shape.

    The rows of the primitives have the identity rules. Copies that change the memory layout stay.
    Unused instructions are left to `dead`.
    """
    apart = escaping(program)
    known = Known()
    same: dict[Value, Any] = {}
    steps: list[Instruction] = []
    for step in program.instructions:
        if same:
            step = step.with_values(same)
        steps.append(step)
        found = row(step)
        if found is not None and found.identity is not None and not step.several:
            equal, result = found.identity(Call(step, known, found)), step.result
            alike = isinstance(equal, Value) and equal.alike(result)
            if alike and _free(equal, result, known, apart):
                same[result] = equal
                continue
        known.learn(step, found)
    if not same:
        return program
    outputs = substitute(program.outputs, same)
    return replace(program, instructions=tuple(steps), outputs=outputs)


def _free(equal: Value, result: Value, known: Known, apart: set[Value]) -> bool:
    """Whether a result may be replaced: if it escapes, only by new memory that does not."""
    if result not in apart:
        return True
    maker = known.made.get(equal)
    if maker is None or not fresh(maker) or equal in apart:
        return False
    apart.add(equal)
    return True
