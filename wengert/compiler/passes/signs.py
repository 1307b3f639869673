"""Negations that other operations take up: ``a + -b`` is ``a - b``, to the last bit."""

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

#: What is negated where one operand is.
_PRODUCTS: Final = (np.multiply, np.divide)
#: What gives numbers for the sign of NaN.
_READERS: Final = (np.copysign, np.signbit)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def signs(program: Program) -> Program:
    """Leave out negations of NumPy's reals that a product hands on, and that a sum takes up.

    A product, a quotient or a sum of floats is rounded alike whatever its sign. Sums of two negated
    numbers stay: where these cancel, both ``-a + -b`` and ``a + b`` are 0.0, of which -0.0 is the
    negation. The sign of NaN is another, so nothing changes where a function reads it.
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
    """One walk through a program, which puts negations off until something needs them."""

    def __init__(self, uses: Counter[Value], apart: set[Value]) -> None:
        self.uses, self.apart = uses, apart
        self.written: list[Instruction] = []
        #: Negations that are put off: of what, by what they give.
        self.off: dict[Value, Instruction] = {}
        #: What stands for negations of negations.
        self.same: dict[Value, Any] = {}
        #: Products and quotients that are written, by what they give.
        self.products: dict[Value, Instruction] = {}

    def take(self, step: Instruction) -> None:
        """Write an instruction, in another form where that spares a negation."""
        if self.same:
            step = step.with_values(self.same)
        found = self._spared(step)
        if self._is_back(found):
            return
        for x in found.used():
            negation = self.off.pop(x, None)
            if negation is not None:
                self._write(negation)
        if found.function is np.negative and self._may_wait(found):
            self.off[found.result] = found
        else:
            self._write(found)

    def _is_back(self, step: Instruction) -> bool:
        """Whether it negates a negation that is put off, whose operand then stands for its result.

        Such pairs come about where a product hands a negation on to one. Where others need the
        negation too, two in place take less time than one into memory of its own.
        """
        if not _negates(step):
            return False
        before: Any = step.operands[0]
        x = self._inside(before)
        if x is None:
            return False
        if step.result in self.apart:  # whose memory is the caller's, and nobody else's
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

    def _may_wait(self, step: Instruction) -> bool:
        """Whether a negation may be done later: one instruction takes it, and nobody else."""
        return self._alone(step.result) and _negates(step)

    def _alone(self, x: Value) -> bool:
        """Whether one instruction takes a value, and nobody else."""
        return self.uses[x] == 1 and x not in self.apart

    def _inside(self, x: Any) -> Any:
        """Of what a value is the negation that is put off, if it is one."""
        return self.off[x].operands[0] if isinstance(x, Value) and x in self.off else None

    def _spared(self, step: Instruction) -> Instruction:
        """An instruction of what is negated, which gives the same or is negated itself."""
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
        """A negated product with a number as one with the negated number."""
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
        """A product or quotient of what is negated."""
        x, y = step.operands
        if a is not None and b is not None:
            return self._called(step, step.function, a, b)
        turned = _negated(y if b is None else x)
        if turned is not None:
            return self._called(step, step.function, *((a, turned) if b is None else (turned, b)))
        one = a if b is None else b
        if (one.shape, one.order) != (step.result.shape, step.result.order):
            return step  # whose negation would be of more elements
        product = Value(step.result.shape, step.result.dtype, step.result.name, step.result.order)
        self._done(step)
        made = (a, y) if b is None else (x, b)
        self._write(Instruction(step.name, step.function, made, {}, (product,), line=step.line))
        self.uses[product] = 1
        return _call(np.negative, (product,), step)

    def _called(self, step: Instruction, function: Any, *operands: Any) -> Instruction:
        """The same result by another call, which needs no negation."""
        self._done(step, operands)
        return _call(function, operands, step)

    def _done(self, step: Instruction, kept: tuple[Any, ...] = ()) -> None:
        """Forget the negations that an instruction has taken up."""
        for x in step.used():
            if x not in kept:
                self.off.pop(x, None)


def _call(
    function: Any, operands: tuple[Any, ...], step: Instruction, parameters: Any = _NOTHING
) -> Instruction:
    """A call that gives what another instruction gives."""
    name = str(function.__name__)
    return Instruction(name, function, operands, parameters, step.results, line=step.line)


def _negates(step: Instruction) -> bool:
    """Whether it gives the negation of an array of floats, which lies in memory as that does."""
    if step.function is not np.negative or step.parameters:
        return False
    x, result = step.operands[0], step.result
    alike = isinstance(x, Value) and (x.shape, x.order) == (result.shape, result.order)
    return alike and result.dtype.kind == "f"


def _negated(x: Any) -> Any:
    """A number with the other sign, also of zero; None for what is no number."""
    if type(x) not in (int, float):
        return None
    return -x if x else -float(x)
