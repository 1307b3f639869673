"""Buffers: results are written into memory that is there already."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from wengert.backends.numpy import SMALL, broadcast_to
from wengert.compiler.passes.forms import Form, form, taken
from wengert.compiler.passes.liveness import Liveness, liveness
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["Buffer", "Placed", "buffers"]

#: Columns up to which a row is added faster as an array of copies.
NARROW: Final = 128


class Buffer(Value):
    """Memory that a program keeps from run to run: an array of its own, or a part of another.

    Attributes
    ----------
    base : Buffer or None
        Whose elements it shares.
    start : int
        The first of them.
    """

    __slots__ = ("base", "start")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        name: str = "buffer",
        base: "Buffer | None" = None,
        start: int = 0,
    ) -> None:
        super().__init__(shape, dtype, name)
        self.base, self.start = base, start


@dataclass(frozen=True, eq=False)
class Placed(Program):
    """A program whose results have memory.

    Attributes
    ----------
    buffers : tuple of Buffer
        What is allocated beforehand, each after its base.
    views : tuple of Instruction
        Views of buffers, which are taken beforehand.
    in_place : dict of int to int
        Outputs that are written into an input's own array, and that input's position.
    """

    buffers: tuple[Buffer, ...] = ()
    views: tuple[Instruction, ...] = ()
    in_place: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program) -> "Placed":
        """A program as it is, with nothing placed."""
        if isinstance(program, Placed):
            return program
        return cls(
            program.inputs,
            program.instructions,
            program.outputs,
            program.constants,
            program.donated,
            program.updates,
        )


def buffers(program: Program, *, kept: bool = True) -> Placed:
    """Say where results are written, for a library whose functions take ``out`` as NumPy's do.

    A result is written over the state whose next value it is, or over an operand that nothing
    needs any more, or into a buffer. A buffer is used again when all that may look at it is done.
    What the caller gets stays a new array.

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
    placed = Placed.of(_spread(program) if kept else program)
    return _hoisted(_Placer(placed, kept).placed())


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

    def __init__(self, program: Placed, kept: bool) -> None:
        self.program, self.kept = program, kept
        self.live: Liveness = liveness(program)
        self.buffers = list(program.buffers)
        self.in_place = dict(program.in_place)
        self.known: dict[tuple[Any, int], list[Buffer]] = {}  # free ones, by dtype and size
        self.home: dict[Value, Buffer] = {}
        self.own: set[Value] = set()  # results with memory that is nobody else's
        self.shapes: dict[tuple[Buffer, tuple[int, ...]], Buffer] = {}
        self.ending: dict[int, list[Buffer]] = {}
        self.state: dict[Any, tuple[int, int]] = {}
        for at, source in program.updates.items():
            if at not in self.in_place:
                self.state.setdefault(program.outputs[at], (at, source))

    def placed(self) -> Placed:
        steps = [self._placed(i, step) for i, step in enumerate(self.program.instructions)]
        inputs = self.program.inputs
        for at, source in self.program.updates.items():
            if self.program.outputs[at] is inputs[source]:
                self.in_place[at] = source
        return replace(
            self.program,
            instructions=tuple(steps),
            buffers=tuple(self.buffers),
            in_place=self.in_place,
        )

    def _placed(self, i: int, step: Instruction) -> Instruction:
        for buffer in self.ending.pop(i - 1, ()):
            self.known.setdefault((buffer.dtype, buffer.size), []).append(buffer)
        if step.several:
            return step
        found, result = form(step), step.result
        if result.shape is None:
            return step
        if not found.views and step.out is None:
            self.own.add(result)
        # NumPy rounds products of complex numbers otherwise when it writes into an operand.
        fixed = step.out is not None or result.dtype.kind == "c"
        if not found.writes or result.order or not result.shape or not result.size or fixed:
            return step
        out = self._state(i, step, found)
        if out is None and result not in self.live.escaping:
            out = self._operand(i, step, found)
            if out is None and self.kept and found.inside != "only":
                out = self._buffer(i, result)
        return step if out is None else replace(step, out=out)

    def _state(self, i: int, step: Instruction, found: Form) -> Value | None:
        """The state's own memory, if the result is what it becomes."""
        at, source = self.state.get(step.result, (-1, -1))
        if at < 0:
            return None
        old = self.program.inputs[source]
        if old not in self.program.donated or not _like(old, step.result):
            return None
        last = self.live.last.get(old, -1)
        if last > i or (last == i and not self._inside(step, found, old)):
            return None
        self.in_place[at] = source
        return old

    def _inside(self, step: Instruction, found: Form, holder: Value) -> bool:
        """Whether the call may write into memory that it reads through its operands."""
        readers = [x for x in step.used() if holder in self.live.holders.get(x, ())]
        if found.inside == "any":  # ufuncs copy operands that overlap otherwise than in place
            return True
        return found.inside == "only" and len(readers) == 1 and step.operands[0] is readers[0]

    def _operand(self, i: int, step: Instruction, found: Form) -> Value | None:
        """An operand that is needed no more, and whose memory is not the caller's."""
        result, live = step.result, self.live
        for x in step.used():
            if (
                x in self.own
                and live.last[x] == i
                and _like(x, result)
                and (found.inside == "any" or (found.inside == "only" and step.operands[0] is x))
                and self._inside(step, found, x)
            ):
                buffer = self.home.pop(x, None)
                if buffer is not None:
                    self.ending[i].remove(buffer.base or buffer)
                    self._keep(result, buffer, i)
                return x
        return None

    def _buffer(self, i: int, result: Value) -> Buffer:
        """A buffer that nothing needs, or a new one."""
        assert result.shape is not None
        free = self.known.get((result.dtype, result.size))
        if not free:
            buffer = Buffer(result.shape, result.dtype)
            self.buffers.append(buffer)
        else:
            # One of this shape, if there is one: another shape is a view of it.
            at = next((k for k, b in enumerate(free) if b.shape == result.shape), -1)
            buffer = self._shaped(free.pop(at), result.shape)
        self._keep(result, buffer, i)
        return buffer

    def _keep(self, result: Value, buffer: Buffer, i: int) -> None:
        """Let a result have a buffer until it is needed no more."""
        self.home[result] = buffer
        last = self.live.last.get(result, i)
        self.ending.setdefault(last, []).append(buffer.base or buffer)

    def _shaped(self, buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
        if buffer.shape == shape:
            return buffer
        found = self.shapes.get((buffer, shape))
        if found is None:
            found = self.shapes[buffer, shape] = Buffer(shape, buffer.dtype, base=buffer)
            self.buffers.append(found)
        return found


def _like(x: Value, y: Value) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype and x.order == y.order


def _hoisted(program: Placed) -> Placed:
    """Take views of buffers once, beforehand.

    Whether the elements' places allow a view is NumPy's to say, of an array that stands for the
    buffer: a transposed one's reshape is a copy.
    """
    home: dict[Value, Value] = {buffer: buffer for buffer in program.buffers}
    stands: dict[Value, Any] = {x: np.empty(x.shape or (), x.dtype) for x in program.buffers}
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
    return replace(program, instructions=tuple(steps), views=tuple(before.values()))
