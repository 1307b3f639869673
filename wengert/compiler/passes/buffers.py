"""Buffers: results are written into memory that is there already."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from wengert.backends.numpy import SMALL, broadcast_to
from wengert.compiler.passes.forms import RESHAPE, Form, form, taken
from wengert.compiler.passes.liveness import Liveness, liveness
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["buffers"]

#: Columns up to which a row is added faster as an array of copies.
NARROW: Final = 128


def buffers(program: Program, *, kept: bool = True) -> Program:
    """Say where results are written, for a library whose functions take ``out`` as NumPy's do.

    A result is written over an operand that nothing needs any more, or into a buffer: memory that
    stays from run to run. A buffer is used again when all that may look at it is done. What the
    caller gets stays a new array.

    A result that NumPy makes in another order than C's is left to it: in a buffer it would be
    summed in another order later.

    Parameters
    ----------
    program : Program
        The program.
    kept : bool
        Whether there are buffers, which stay from call to call. On a GPU two calls may be under
        way at once, in two streams, and what is allocated in each call is that call's own.
    """
    return _hoisted(_Placer(_spread(program) if kept else program, kept).placed())


def _spread(program: Program) -> Program:
    """Add a short row to a matrix as a whole array of copies: faster than row by row."""
    steps: list[Instruction] = []
    for step in program.instructions:
        row = next((x for x in step.used() if x.shape is not None and len(x.shape) == 1), None)
        if row is not None and step.function is np.add and _is_narrow(step.result):
            whole = Value(step.result.shape, row.dtype)
            steps.append(
                Instruction(
                    "broadcast_to", broadcast_to, (row, whole.shape), {}, (whole,), line=step.line
                )
            )
            step = step.with_values({row: whole})
        steps.append(step)
    return replace(program, instructions=tuple(steps))


def _is_narrow(x: Value) -> bool:
    """Whether it is a matrix of several short rows, in order."""
    if x.shape is None or len(x.shape) != 2 or x.order:
        return False
    return x.shape[0] > 1 and 0 < x.shape[1] <= NARROW and x.size <= SMALL


class _Placer:
    """One walk through a program."""

    def __init__(self, program: Program, kept: bool) -> None:
        self.program, self.kept = program, kept
        self.live: Liveness = liveness(program)
        self.buffers: list[Value] = []
        self.free: dict[tuple[Any, int], list[Value]] = {}  # by dtype and size
        self.home: dict[Value, Value] = {}  # the buffers that results have
        self.own: set[Value] = set()  # results with memory that is nobody else's
        self.shaped: dict[tuple[Value, tuple[int, ...]], Instruction] = {}
        self.ending: dict[int, list[Value]] = {}

    def placed(self) -> Program:
        steps = [self._placed(i, step) for i, step in enumerate(self.program.instructions)]
        return replace(
            self.program,
            instructions=tuple(steps),
            buffers=tuple(self.buffers),
            views=tuple(self.shaped.values()),
        )

    def _placed(self, i: int, step: Instruction) -> Instruction:
        for buffer in self.ending.pop(i - 1, ()):
            self.free.setdefault((buffer.dtype, buffer.size), []).append(buffer)
        if step.several:
            return step
        found, result = form(step), step.result
        if result.shape is None or step.out is not None:
            return step
        if not found.views:
            self.own.add(result)
        # NumPy rounds products of complex numbers otherwise when it writes into an operand.
        if not found.writes or result.order or not result.size or result.dtype.kind == "c":
            return step
        if not result.shape or result in self.live.escaping:
            return step
        out = self._operand(i, step, found)
        if out is None and self.kept and found.inside != "only":
            out = self._buffer(i, result)
        return step if out is None else replace(step, out=out)

    def _operand(self, i: int, step: Instruction, found: Form) -> Value | None:
        """An operand that is needed no more, and whose memory is not the caller's."""
        for x in step.used():
            if x not in self.own or self.live.last[x] != i or not _like(x, step.result):
                continue
            if found.inside == "any" or (found.inside == "only" and self._only(step, x)):
                buffer = self.home.pop(x, None)
                if buffer is not None:
                    self.ending[i].remove(buffer)
                    self._keep(step.result, buffer, i)
                return x
        return None

    def _only(self, step: Instruction, x: Value) -> bool:
        """Whether a call reads a value's memory as its first operand alone."""
        readers = [each for each in step.used() if x in self.live.holders.get(each, ())]
        return len(readers) == 1 and step.operands[0] is x

    def _buffer(self, i: int, result: Value) -> Value:
        """A buffer that nothing needs, or a new one."""
        free = self.free.get((result.dtype, result.size))
        if not free:
            buffer = Value(result.shape, result.dtype, "buffer")
            self.buffers.append(buffer)
        else:
            # One of this shape, if there is one: another shape is a view of it.
            at = next((k for k, b in enumerate(free) if b.shape == result.shape), -1)
            buffer = free.pop(at)
        self._keep(result, buffer, i)
        return self._shaped(buffer, result)

    def _keep(self, result: Value, buffer: Value, i: int) -> None:
        """Let a result have a buffer until it is needed no more."""
        self.home[result] = buffer
        self.ending.setdefault(self.live.last.get(result, i), []).append(buffer)

    def _shaped(self, buffer: Value, like: Value) -> Value:
        if buffer.shape == like.shape or like.shape is None:
            return buffer
        view = self.shaped.get((buffer, like.shape))
        if view is None:
            result = Value(like.shape, like.dtype)
            view = Instruction("reshape", RESHAPE, (buffer, like.shape), {}, (result,))
            self.shaped[buffer, like.shape] = view
        return view.result


def _like(x: Value, y: Value) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype and x.order == y.order


def _hoisted(program: Program) -> Program:
    """Take views of buffers once, beforehand.

    Whether the elements' places allow a view is NumPy's to say, of an array that stands for the
    buffer: a transposed one's reshape is a copy.
    """
    kept = [*program.buffers, *[view.result for view in program.views]]
    home: dict[Value, Value] = {buffer: buffer for buffer in kept}
    stands: dict[Value, Any] = {x: np.empty(x.shape or (), x.dtype) for x in kept}
    before: dict[Any, Instruction] = {}
    moved: dict[Value, Value] = {}
    steps: list[Instruction] = []
    for step in program.instructions:
        if step.out is not None and step.out in home:
            home[step.result] = home[step.out]
        elif taken(step) and step.operands[0] in home:
            operand = home[step.operands[0]]
            key = operand, step.name, repr(step.operands[1:]), repr(step.parameters)
            seen = before.get(key)
            if seen is None:
                array = step.function(stands[operand], *step.operands[1:], **step.parameters)
                if not np.may_share_memory(array, stands[operand]):
                    steps.append(step)
                    continue
                operands = (operand, *step.operands[1:])
                view = Value.like(array, step.result.name)
                stands[view] = array
                seen = before[key] = replace(step, operands=operands, results=(view,), line=None)
            home[step.result] = moved[step.result] = seen.result
            continue
        steps.append(step)
    if not before:
        return program
    steps = [step.with_values(moved) for step in steps]
    return replace(program, instructions=tuple(steps), views=(*program.views, *before.values()))
