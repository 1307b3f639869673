"""Elimination of negations: ``a + -b`` becomes ``a - b``, with the same bits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from wengert.backends.numpy import add_part
from wengert.compiler.passes.forms import subtract_part
from wengert.compiler.passes.liveness import escaping
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["signs"]

#: Functions whose result is negated if one operand is.
_PRODUCTS: Final = (np.multiply, np.divide)
#: Functions that read the sign of NaN.
_READERS: Final = (np.copysign, np.signbit)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def signs(program: Program) -> Program:
    """Move negations of NumPy's real arrays through products into sums, where they vanish.

    Rounding is symmetric in sign, so that products, quotients and sums of floats keep their bits.
    A sum of two negated operands stays, because ``-a + -b`` is 0.0 where they cancel, and
    ``-(a + b)`` is -0.0. The sign of NaN may change, so that nothing is done in programs that read
    it.
    """
    steps = program.instructions
    functions = [step.function for step in steps]
    if not any(x is np.negative for x in functions) or any(x in _READERS for x in functions):
        return program
    uses = Counter([value for step in steps for value in step.used()])
    walk = _Walk(uses, escaping(program))
    for step in steps:
        walk.take(step)
    if walk.written == list(steps):
        return program
    outputs = substitute(program.outputs, walk.same)
    return replace(program, instructions=tuple(walk.written), outputs=outputs)


class _Walk:
    """One walk through a program, which delays negations until an instruction needs them."""

    def __init__(self, uses: Counter[Value], apart: set[Value]) -> None:
        self.uses, self.apart = uses, apart
        self.written: list[Instruction] = []
        #: Delayed negations by their results.
        self.off: dict[Value, Instruction] = {}
        #: Replacements of double negations.
        self.same: dict[Value, Any] = {}
        #: Written products and quotients by their results.
        self.products: dict[Value, Instruction] = {}

    def take(self, step: Instruction) -> None:
        """Write an instruction, in another form if that eliminates a negation."""
        if self.same:
            step = step.with_values(self.same)
        found = self._spared(step)
        if self._is_back(found):
            return
        for x in found.used():
            negation = self.off.pop(x, None)
            if negation is not None:
                self._write(negation)
        if _negates(found) and self._alone(found.result):
            self.off[found.result] = found
        else:
            self._write(found)

    def _is_back(self, step: Instruction) -> bool:
        """Eliminate a double negation, and return whether this was one.

        Double negations arise when a product passes a negation on. One that has other uses stays:
        two negations in place take less time than one into new memory.
        """
        if not _negates(step):
            return False
        before: Any = step.operands[0]
        x = self._inside(before)
        if x is None:
            return False
        if step.result in self.apart:  # the caller gets its memory
            if x in self.apart or x not in self.products:
                return False
            self.apart.add(x)
        self.same[step.result] = x
        self.uses[x] = self.uses[step.result]
        del self.off[before]
        return True

    def _write(self, step: Instruction) -> None:
        self.written.append(step)
        if step.function in _PRODUCTS:
            self.products[step.result] = step

    def _alone(self, x: Value) -> bool:
        """Whether a value has one use, and does not escape."""
        return self.uses[x] == 1 and x not in self.apart

    def _inside(self, x: Any) -> Any:
        """The operand of a delayed negation; None for other values."""
        return self.off[x].operands[0] if isinstance(x, Value) and x in self.off else None

    def _spared(self, step: Instruction) -> Instruction:
        """An equal instruction without negated operands, perhaps with a negation after it."""
        function = step.function
        if step.several or step.result.shape is None or step.result.dtype.kind != "f":
            return step
        if function is np.negative:
            return self._turned(step)
        inside = [self._inside(x) for x in step.operands]
        if not any(x is not None for x in inside):
            return step
        if function is add_part and inside[0] is None:
            self._done(step)
            operands, more = (step.operands[0], inside[1]), {"key": step.parameters["key"]}
            return _call(subtract_part, operands, step, more)
        if step.parameters:
            return step
        if function is np.square:
            return self._called(step, np.square, inside[0])
        if len(inside) != 2:
            return step
        (x, y), (a, b) = step.operands, inside
        if function is np.add and b is not None:
            return self._called(step, np.subtract, x, b)
        if function is np.add and (not isinstance(y, Value) or y.order == a.order):
            return self._called(step, np.subtract, y, a)
        if function is np.subtract and b is not None:
            return self._called(step, np.add, x, b)
        if function in _PRODUCTS:
            return self._product(step, a, b)
        return step

    def _turned(self, step: Instruction) -> Instruction:
        """A negated product with a number, as a product with the negated number."""
        x = step.operands[0]
        product = self.products.get(x) if isinstance(x, Value) else None
        if product is None or step.parameters or not self._alone(product.result):
            return step
        pair = [_negated(x) for x in product.operands]
        if None not in pair or len(set(pair)) == 1:
            return step
        both = zip(product.operands, pair, strict=True)
        operands = tuple([x if turned is None else turned for x, turned in both])
        return _call(product.function, operands, step)

    def _product(self, step: Instruction, a: Any, b: Any) -> Instruction:
        """A product or quotient of delayed negations."""
        x, y = step.operands
        if a is not None and b is not None:
            return self._called(step, step.function, a, b)
        turned = _negated(y if b is None else x)
        if turned is not None:
            return self._called(step, step.function, *((a, turned) if b is None else (turned, b)))
        one = a if b is None else b
        if (one.shape, one.order) != (step.result.shape, step.result.order):
            return step  # negating the broadcast result would take longer
        product = Value(step.result.shape, step.result.dtype, step.result.name, step.result.order)
        self._done(step)
        made = (a, y) if b is None else (x, b)
        self._write(Instruction(step.name, step.function, made, {}, (product,), line=step.line))
        self.uses[product] = 1
        return _call(np.negative, (product,), step)

    def _called(self, step: Instruction, function: Any, *operands: Any) -> Instruction:
        """The same result by a call without the negation."""
        self._done(step, operands)
        return _call(function, operands, step)

    def _done(self, step: Instruction, kept: tuple[Any, ...] = ()) -> None:
        """Drop the delayed negations that an instruction has absorbed."""
        for x in step.used():
            if x not in kept:
                self.off.pop(x, None)


def _call(
    function: Any, operands: tuple[Any, ...], step: Instruction, parameters: Any = _NOTHING
) -> Instruction:
    """A call with the results of another instruction."""
    name = str(function.__name__)
    return Instruction(name, function, operands, parameters, step.results, line=step.line)


def _negates(step: Instruction) -> bool:
    """Whether it negates an array of floats, keeping shape and layout."""
    if step.function is not np.negative or step.parameters:
        return False
    x, result = step.operands[0], step.result
    alike = isinstance(x, Value) and (x.shape, x.order) == (result.shape, result.order)
    return alike and result.dtype.kind == "f"


def _negated(x: Any) -> Any:
    """A number negated, zero included; None for other operands."""
    if type(x) not in (int, float):
        return None
    return -x if x else -float(x)
