"""Simplification: results that are known, or equal to an operand or an earlier result bitwise."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from wengert.backends.numpy import add_part
from wengert.compiler.facts import Facts, facts_of, row_of, same_elements
from wengert.compiler.passes.forms import fresh, subtract_part
from wengert.compiler.passes.liveness import escaping
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["LARGEST", "Known", "simplify"]

#: Elements of the largest results that are computed once; larger ones would cost too much memory.
LARGEST: Final = 1 << 16
#: Functions that change sign with an operand.
_PRODUCTS: Final = (np.multiply, np.divide)
#: Functions whose results are correctly rounded (IEEE 754), so that signs may move through them.
_ROUNDED: Final = frozenset({np.add, np.subtract, *_PRODUCTS, np.negative, add_part})
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
#: Functions that read the sign of NaN, which moves.
_SIGN_READERS: Final = (np.copysign, np.signbit)


def simplify(program: Program) -> Program:
    """Replace results by equal values, in one walk.

    A result equals an operand for all values by an identity rule (`wengert.compiler.facts`); an
    instruction without inputs, such as ``zeros``, is computed once; and an instruction that calls
    the same function with the same operands as an earlier one has its results. In sums and products
    of NumPy's, constants of equal elements become numbers, and negations move to where they vanish.

    The caller gets new memory in each run: an output is no operand that it may see elsewhere, nor a
    constant, and two equal outputs are both computed. Copies that change the memory layout stay.
    Instructions that an identity replaces are left to `dead`.
    """
    known = Known(program)
    seen: dict[Hashable, Instruction] = {}
    steps: list[Instruction] = []
    for step in program.instructions:
        step = step.with_values(known.same) if known.same else step
        turns = step.function in _ROUNDED and not known.turning.isdisjoint(step.uses())
        for step in known.rewritten(step) if turns else (step,):  # noqa: B020
            facts = facts_of(row_of(step.name))
            if facts.identity is not None and not step.several:
                equal = facts.identity(step, known)
                if isinstance(equal, Value) and known.stands_for(equal, step.result):
                    steps.append(step)
                    continue
            known.learn(step, facts)
            if step.pure and step.name != "blank":  # which another call writes into
                first = seen.setdefault(_key(step), step)
                if (first is not step and known.merge(step, first)) or known.compute(step):
                    continue
            steps.append(step)
    kept = len(steps) == len(program.instructions) and all(map(is_, steps, program.instructions))
    if kept and not known.same:
        return program
    outputs = substitute(program.outputs, known.same)
    made = tuple(steps)
    return replace(program, instructions=made, outputs=outputs, constants=known.constants)


class Known:
    """Facts about values, collected in the order of instructions."""

    def __init__(self, program: Program) -> None:
        self.same: dict[Value, Any] = {}  # what replaces results: values and numbers
        self.constants = dict(program.constants)  # and results without inputs
        #: Values whose memory the caller gets.
        self.apart = escaping(program)
        self.made: dict[Value, Instruction] = {}  # of which each is the only result
        self.ones: set[Value] = set()  # arrays that are filled with 1
        #: Constants, negations and products, which a sum or product may be written without.
        self.turning = set(program.constants)
        self._filled: dict[Value, float | None] = {}  # the number that fills a constant, or None
        self._uses = program.uses()
        self._signed = not any(x.function in _SIGN_READERS for x in program.instructions)

    def learn(self, step: Instruction, facts: Facts) -> None:
        """Add the facts about an instruction's result."""
        if step.several:
            return
        self.made[step.result] = step
        if step.function is np.negative or step.function in _PRODUCTS:
            self.turning.add(step.result)
        filled: Any = 1 if step.name in ("ones", "ones_like") else None
        if facts.moves or facts.identity is same_elements:  # shape or dtype may change
            filled = step.operands[0]
        elif step.name in ("full", "full_like"):
            filled = [*step.operands, step.parameters.get("fill_value")][1]
        if self.is_one(filled):
            self.ones.add(step.result)

    def is_one(self, x: Any) -> bool:
        """Whether an operand is 1, or an array of ones."""
        return x in self.ones if isinstance(x, Value) else isinstance(x, int | float) and x == 1

    def stands_for(self, equal: Value, result: Value) -> bool:
        """Replace a result by an operand, and return whether that is possible.

        If the result escapes, only by new memory that does not.
        """
        if not equal.alike(result):
            return False
        if result in self.apart:
            maker = self.made.get(equal)
            if maker is None or not fresh(maker) or not self._free(equal):
                return False
            self.apart.add(equal)
        self.same[result] = equal
        return True

    def merge(self, step: Instruction, first: Instruction) -> bool:
        """Replace an instruction's results by those of an equal one; False if both escape.

        If one of two equal values is an output, that one stays.
        """
        pairs = list(zip(step.results, first.results, strict=True))
        if any(result in self.apart and not self._free(before) for result, before in pairs):
            return False
        for result, before in pairs:
            self.same[result] = self.same.get(before, before)
            if result in self.apart:
                self.apart.add(before)
        return True

    def _free(self, x: Value) -> bool:
        """Whether the caller may get a value that it does not get yet."""
        return x not in self.apart and x not in self.constants

    def compute(self, step: Instruction) -> bool:
        """Compute an instruction without inputs, and return whether it is needed no more.

        One that makes an output stays: constants belong to the program, and outputs to the caller.
        """
        if any(x not in self.constants for x in step.uses()):
            return False
        number = step.results[0].shape is None
        if not number and any(x in self.apart or x.size > LARGEST for x in step.results):
            return False
        with np.errstate(all="ignore"):  # the trace has warned already
            made = zip(step.results, step.run(self.constants), strict=True)
        (self.same if number else self.constants).update(made)
        self.turning.update(step.results)
        return True

    # -- sums and products of NumPy's ------------------------------------------------------------

    def rewritten(self, step: Instruction) -> Sequence[Instruction]:
        """An equal instruction with numbers and fewer negations, or a product and its negation."""
        if step.result.dtype.kind != "f" or not step.result.shape:
            return (step,)
        step = self._with_number(step)
        function, operands = step.function, step.operands
        if not self._signed or (step.parameters and function is not add_part):
            return (step,)
        if function is np.negative:
            return (self._negated_product(step),)
        x, y = operands
        a, b = map(self._behind_sign, operands)
        if function is add_part:
            key = {"key": step.parameters["key"]}
            return (step if b is None else _call(subtract_part, (x, b), step, key),)
        if function in (np.add, np.subtract) and b is not None:
            return (_call(np.subtract if function is np.add else np.add, (x, b), step),)
        if (
            function is np.add
            and a is not None
            and (not isinstance(y, Value) or y.order == a.order)
        ):
            return (_call(np.subtract, (y, a), step),)
        if function not in _PRODUCTS or (a is None and b is None) or self.is_one(y):
            return (step,)
        if a is not None and b is not None:
            return (_call(function, (a, b), step),)
        one, other = (x, y) if b is None else (y, x)
        inner = a if b is None else b
        if (turned := _opposite(other)) is not None:
            return (_call(function, (a, turned) if b is None else (turned, b), step),)
        result = step.result
        if (inner.shape, inner.order) != (result.shape, result.order) or not self._alone(one):
            return (step,)  # a negation of what is broadcast would take longer
        product = Value(result.shape, result.dtype, result.name, result.order)
        made = _call(function, (a, y) if b is None else (x, b), step)
        return replace(made, results=(product,)), _call(np.negative, (product,), step)

    def _alone(self, x: Value) -> bool:
        """Whether a value has one use, and the caller does not get it."""
        return self._uses[x] == 1 and x not in self.apart

    def _behind_sign(self, x: Any) -> Any:
        """What an operand is the negation of, in the same layout; None for others."""
        step = self.made.get(x) if isinstance(x, Value) else None
        if step is None or step.function is not np.negative or step.parameters:
            return None
        inner = step.operands[0]
        return inner if inner.alike(x) and x.dtype.kind == "f" else None

    def _negated_product(self, step: Instruction) -> Instruction:
        """The negation of a product with a number, as a product with the opposite number."""
        x = step.operands[0]
        product = self.made.get(x)
        if product is None or product.function not in _PRODUCTS or product.parameters:
            return step
        turned = [_opposite(each) for each in product.operands]
        if turned == [None, None] or not self._alone(x) or not x.alike(step.result):
            return step
        pairs = zip(product.operands, turned, strict=True)
        return _call(product.function, tuple([x if t is None else t for x, t in pairs]), step)

    def _with_number(self, step: Instruction) -> Instruction:
        """A sum or product with a number in place of a constant that is full of it."""
        if len(step.operands) != 2 or step.parameters:
            return step
        for x, other in (step.operands, step.operands[::-1]):
            both = isinstance(x, Value) and isinstance(other, Value)
            if not both or x not in self.constants or other in self.constants:
                continue
            if other.alike(step.result) and x.dtype == other.dtype:
                if x not in self._filled:
                    self._filled[x] = _filling(self.constants[x])
                if self._filled[x] is not None:
                    return step.with_values({x: self._filled[x]})
        return step


def _filling(array: Any) -> float | None:
    """The number that fills an array of floats, to the bit; None if elements differ."""
    if type(array) is not np.ndarray or array.dtype.kind != "f" or not array.size:
        return None
    first = array.flat[0]
    same = (array == first).all() and (np.signbit(array) == np.signbit(first)).all()
    return float(first) if same else None


def _opposite(x: Any) -> float | None:
    """A number negated, zero included; None for other operands."""
    return -x or -float(x) if type(x) in (int, float) else None


def _call(
    function: Any, operands: tuple[Any, ...], step: Instruction, parameters: Any = _NOTHING
) -> Instruction:
    """A call with the results of another instruction."""
    name = str(function.__name__)
    return Instruction(name, function, operands, parameters, step.results, line=step.line)


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
