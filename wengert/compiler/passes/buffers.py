"""Buffer assignment: results are written into memory that is already allocated."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wengert.backends.numpy import SHORT, SMALL, broadcast_to
from wengert.compiler.passes.forms import REPEAT, Form, elementwise, form, is_take
from wengert.compiler.passes.liveness import Liveness, liveness
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["buffers"]

#: Columns up to which NumPy adds a row faster if it is first copied to the whole shape.
NARROW: Final = 128
#: Elements from which copying rows costs less than short inner loops.
MANY: Final = 1 << 9


def buffers(program: Program, *, kept: bool = True) -> Program:
    """Assign memory to results, for a library whose functions take ``out`` as NumPy's do.

    A result is written over an operand that is no longer live, or into a buffer: memory that
    persists between runs. A buffer is reused once everything that may be a view of it is dead.
    Arrays that the caller gets are always new. Without ``kept`` there are no buffers, and only
    operands are written over: on a GPU two calls may run at once in two streams.

    A buffer has the memory layout that NumPy would give the result, because the layout decides the
    order, and so the rounding, of later sums.
    """
    return _Placer(_spread(program) if kept else program, kept).place()


def _spread(program: Program) -> Program:
    """Make copies explicit instructions, so that they are written into buffers.

    Operands that NumPy would broadcast in short inner loops are copied to the whole shape first:
    a short row that is added to a matrix, the rows of ``x[:, None, :] - x``.
    """
    steps: list[Instruction] = []
    zeros: dict[int, Value] = {}  # arrays of zero indices, by length
    constants = dict(program.constants)
    for step in program.instructions:
        row = None
        if step.function is np.add and _is_narrow(step.result):
            row = next((x for x in step.uses() if x.shape is not None and len(x.shape) == 1), None)
        if row is not None:
            whole = Value(step.result.shape, row.dtype)
            rows = (row, whole.shape)
            steps.append(
                Instruction("broadcast_to", broadcast_to, rows, {}, (whole,), line=step.line)
            )
            step = step.with_values({row: whole})
        elif elementwise(step) and not step.several and step.result.size >= MANY:
            for x in step.operands:
                times = _stretch(x, step)
                if times is not None:
                    number, axis = times
                    if number not in zeros:
                        index = np.zeros(number, np.intp)
                        zeros[number] = Value.like(index)
                        constants[zeros[number]] = index
                    whole = Value(step.result.shape, x.dtype)
                    given = (x, zeros[number], axis)
                    steps.append(Instruction("repeat", REPEAT, given, {}, (whole,), line=step.line))
                    step = step.with_values({x: whole})
                    break
        steps.append(step)
    return replace(program, instructions=tuple(steps), constants=constants)


def _stretch(x: Any, step: Instruction) -> tuple[int, int] | None:
    """How often, and along which axis, to repeat an operand that is broadcast in short rows."""
    if not isinstance(x, Value) or x.order or step.result.order or step.parameters:
        return None
    shape, whole = x.shape, step.result.shape
    if not shape or not whole or len(shape) != len(whole):
        return None
    axes = [axis for axis, n in enumerate(shape) if n != whole[axis]]
    if len(axes) != 1 or not 1 < math.prod(whole[axes[0] + 1 :]) <= SHORT:
        return None
    return whole[axes[0]], axes[0]


def _is_narrow(x: Value) -> bool:
    """Whether a value is a C-ordered matrix of several short rows."""
    if x.shape is None or len(x.shape) != 2 or x.order:
        return False
    return x.shape[0] > 1 and 0 < x.shape[1] <= NARROW and x.size <= SMALL


class _Placer:
    """Assigns memory in one walk through a program."""

    def __init__(self, program: Program, kept: bool) -> None:
        self.program, self.kept = program, kept
        self.live: Liveness = liveness(program)
        self.planned: list[Value] = []
        #: Free buffers by dtype, shape and order in memory.
        self.free: dict[Any, list[Value]] = {}
        self.home: dict[Value, Value] = {}  # the buffers of results
        self.own: set[Value] = set()  # results that share memory with nothing else
        self.ending: dict[int, list[Value]] = {}
        self.leaving = _leaving(program, self.live)

    def place(self) -> Program:
        """The program with memory for its results."""
        steps = self.program.instructions
        outs = [self._place(i, step) for i, step in enumerate(steps)]
        views = _Views(self.planned)
        written = [
            step if out is None else step.writing(out)
            for step, out in zip(steps, outs, strict=True)
        ]
        steps = tuple(_hoist(written, self.planned, views))
        taken, buffers = tuple(views.taken.values()), tuple(self.planned)
        return replace(self.program, instructions=steps, buffers=buffers, views=taken)

    def _place(self, i: int, step: Instruction) -> Value | None:
        """The memory that a result is written into; None for a new array."""
        for buffer in self.ending.pop(i - 1, ()):
            self.free.setdefault(_layout(buffer), []).append(buffer)
        if step.several:
            return None
        found, result = form(step), step.result
        if result.shape is None or step.out is not None:
            return None
        if not found.views:
            self.own.add(result)
        # NumPy rounds products of complex numbers otherwise when it writes into an operand.
        if not found.writes or not result.size or result.dtype.kind == "c":
            return None
        if not result.shape or (result in self.leaving and found.inside != "only"):
            return None
        out = self._operand(i, step, found)
        if out is None and self.kept and found.inside != "only" and _has_no_gaps(result):
            out = self._buffer(i, result)
        return out

    def _operand(self, i: int, step: Instruction, found: Form) -> Value | None:
        """An operand that is dead after this call, and whose memory is not the caller's."""
        for x in step.uses():
            if x not in self.own or self.live.last[x] != i or not x.alike(step.result):
                continue
            if found.inside == "any" or (found.inside == "only" and self._only(step, x)):
                buffer = self.home.pop(x, None)
                if buffer is not None:
                    self.ending[i].remove(buffer)
                    self._keep(step.result, buffer, i)
                return x
        return None

    def _only(self, step: Instruction, x: Value) -> bool:
        """Whether a call reads a value's memory through its first operand only."""
        readers = [each for each in step.uses() if x in self.live.holders.get(each, ())]
        return len(readers) == 1 and step.operands[0] is x

    def _buffer(self, i: int, result: Value) -> Value:
        """A free or new buffer that a result is written to."""
        free = self.free.get(_layout(result))
        if free:
            buffer = free.pop()
        else:
            buffer = Value(result.shape, result.dtype, "buffer", result.order)
            self.planned.append(buffer)
        self._keep(result, buffer, i)
        return buffer

    def _keep(self, result: Value, buffer: Value, i: int) -> None:
        """Assign a buffer to a result for its lifetime."""
        self.home[result] = buffer
        self.ending.setdefault(self.live.last.get(result, i), []).append(buffer)


def _layout(x: Value) -> Any:
    return x.dtype, x.shape, x.order


def _leaving(program: Program, live: Liveness) -> set[Value]:
    """Values whose memory the caller gets, through calls in place of their operand, too."""
    found = set(live.escaping)
    for i, step in reversed([*enumerate(program.instructions)]):
        if form(step).inside == "only" and step.result in found:
            x = step.operands[0]
            if live.last.get(x) == i:
                found.add(x)
    return found


class _Views:
    """Views of buffers, taken once before the first run.

    NumPy tells on a stand-in array whether a call gives a view: a reshape of a transposed buffer
    is a copy.
    """

    def __init__(self, buffers: Sequence[Value]) -> None:
        self.taken: dict[Any, Instruction] = {}
        self._stands = {x: np.ndarray(x.shape or (), x.dtype, strides=x.order) for x in buffers}

    def take(self, x: Value, step: Instruction) -> Value | None:
        """The result of a call of a buffer, or of a view of one; None if it is a copy."""
        operands = step.operands[1:]
        key = x, step.name, repr(operands), repr(step.parameters)
        seen = self.taken.get(key)
        if seen is None:
            array = step.function(self._stands[x], *operands, **step.parameters)
            if not np.may_share_memory(array, self._stands[x]):
                return None
            made = Value.like(array, step.result.name)
            self._stands[made] = array
            seen = replace(step, operands=(x, *operands), results=(made,), line=None)
            self.taken[key] = seen
        return seen.result


def _has_no_gaps(x: Value) -> bool:
    """Whether an array takes all of its memory."""
    if x.order is None:
        return True
    step = x.dtype.itemsize
    for stride, n in sorted(zip(x.order, x.shape or (), strict=True)):
        if n > 1:
            if stride != step:
                return False
            step *= n
    return True


def _hoist(
    steps: Sequence[Instruction], buffers: Sequence[Value], views: _Views
) -> list[Instruction]:
    """The instructions without views of buffers, which are taken before the first run."""
    home: dict[Value, Value] = {buffer: buffer for buffer in buffers}
    moved: dict[Value, Value] = {}
    kept: list[Instruction] = []
    for step in steps:
        if step.out is not None and step.out in home:
            home[step.result] = home[step.out]
        elif is_take(step) and step.operands[0] in home:
            view = views.take(home[step.operands[0]], step)
            if view is not None:
                home[step.result] = moved[step.result] = view
                continue
        kept.append(step)
    return [step.with_values(moved) for step in kept]
