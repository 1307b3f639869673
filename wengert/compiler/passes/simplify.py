"""Simplification: results that are known, or equal to an operand or an earlier result bitwise."""

from collections.abc import Hashable
from dataclasses import replace
from operator import is_
from typing import Any, Final

import numpy as np

from wengert.compiler.facts import Facts, facts_of, row_of, same_elements
from wengert.compiler.passes.forms import fresh
from wengert.compiler.passes.liveness import escaping, written_allocations
from wengert.compiler.program import Instruction, Program, Value, substitute

__all__ = ["LARGEST", "Known", "simplify"]

#: Elements of the largest results that are computed once; larger ones would cost too much memory.
LARGEST: Final = 1 << 16


def simplify(program: Program) -> Program:
    """Replace results by equal values, in one walk.

    A result equals an operand for all values by an identity rule (`wengert.compiler.facts`); an
    instruction without inputs, such as ``zeros``, is computed once; and an instruction that calls
    the same function with the same operands as an earlier one has its results.

    The caller gets new memory in each run: an output is no operand that it may see elsewhere, nor a
    constant, and two equal outputs are both computed. Copies that change the memory layout stay.
    Instructions that an identity replaces are left to `dead`.
    """
    known = Known(program)
    seen: dict[Hashable, Instruction] = {}
    steps: list[Instruction] = []
    for step in program.instructions:
        step = step.with_values(known.same) if known.same else step
        facts = facts_of(row_of(step.name))
        if facts.identity is not None and not step.several:
            equal = facts.identity(step, known)
            if isinstance(equal, Value) and known.stands_for(equal, step.result):
                steps.append(step)
                continue
        known.learn(step, facts)
        if step.pure:
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
        #: Values whose memory the caller gets, or that calls write into.
        self.apart = escaping(program) | written_allocations(program)
        self.made: dict[Value, Instruction] = {}  # of which each is the only result
        self.ones: set[Value] = set()  # arrays that are filled with 1

    def learn(self, step: Instruction, facts: Facts) -> None:
        """Add the facts about an instruction's result."""
        if step.several:
            return
        self.made[step.result] = step
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
        if not self.constants.keys() >= {*step.used()}:
            return False
        number = step.results[0].shape is None
        if not number and any(x in self.apart or x.size > LARGEST for x in step.results):
            return False
        with np.errstate(all="ignore"):  # the trace has warned already
            made = zip(step.results, step.run(self.constants), strict=True)
        (self.same if number else self.constants).update(made)
        return True


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
