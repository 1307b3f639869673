"""Kernel fusion, for a library that launches a kernel for each call.

An elementwise call is delayed to the first call of another kind that uses its result. Elementwise
calls that are due before the same call are fused. Calls of other kinds keep their order.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from wengert.compiler.cupy.routines import (
    NUMBERS,
    Reduced,
    Routine,
    conversion,
    reduction,
    routine,
    universal,
)
from wengert.compiler.passes.dead import dead
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["Body", "Fusion"]

#: Calls at most that a reduction recomputes instead of reading their results.
LONGEST: Final = 16
#: Calls of the longest kernel, a limit on the time to compile it.
LARGEST: Final = 64
#: Bytes of a kernel's arguments; CUDA allows 4096, or 32 764 since Volta and CUDA 12.1.
ARGUMENTS: Final = 4000
#: Views with other axes of length 1, and one that repeats elements.
_AXES: Final = frozenset({"broadcast_to", "expand_dims", "reshape", "squeeze"})
#: For each axis of a loop the array's axis along it; None if it has none.
Alignment = tuple[int | None, ...]


@dataclass(eq=False)
class Body:
    """What a kernel computes for each element.

    Attributes
    ----------
    steps : dict of (Instruction, tuple of int or None)
        In order, each with its alignment; a value of fewer axes is recomputed for each element.
    outputs : list of Value
        The stored values; for a reduction, the reduced value.
    routines : dict
        The C code of each elementwise call.
    leaves : dict
        The values to read, with their alignments.
    reduced : (Instruction, Reduced), optional
        The reduction that this computes the operand of.
    """

    steps: dict[tuple[Instruction, Alignment], None]
    outputs: list[Value]
    routines: dict[Instruction, Routine]
    leaves: dict[tuple[Value, Alignment], None] = field(default_factory=dict)
    reduced: tuple[Instruction, Reduced] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the loop."""
        return self.outputs[0].shape or ()

    @property
    def last(self) -> Instruction:
        """The last call, which gives the user's line."""
        return self.reduced[0] if self.reduced is not None else next(reversed(self.steps))[0]

    @property
    def size(self) -> int:
        """The bytes of its arguments: an array takes pointer, size, shape and strides."""
        arrays = [*[value for value, _ in self.leaves], *self.outputs]
        numbers = sum(x.shape is None for step, _ in self.steps for x in step.uses())
        return sum(16 + 16 * len(x.shape or ()) for x in arrays) + 16 * numbers + 64

    def operands(self, step: Instruction, at: Alignment) -> Iterator[tuple[Any, Alignment | None]]:
        """A call's operands: values with alignments, and numbers."""
        if step not in self.routines:
            yield step.operands[0], _through(at, step)
            return
        for x in step.operands[: len(self.routines[step].takes)]:
            if isinstance(x, Value) and x.shape is not None:
                yield x, _below(at, step.result, x)
            else:
                yield x, None


class Fusion:
    """Decides which calls of a program are fused, and where.

    Calls that are not elementwise stay in order. A place is the position of such a call, with the
    number of a part before it (see `_divide`).
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = program.instructions
        self.routines: dict[Instruction, Routine] = {}
        self.axes: set[Instruction] = set()
        self.reduced: dict[Instruction, Reduced] = {}
        self.maker: dict[Value, Instruction] = {}  # the elementwise call or view of each such value
        for step in self.steps:
            self._look(step)
        self.outputs = set(values_in(program.outputs))
        self.hard = set(self.outputs)  # values that other calls use
        for step in self.steps:
            if not self._moves(step) and step not in self.reduced:
                self.hard.update(step.uses())
        self.place: dict[Instruction, tuple[int, int]] = {}
        self.absorbing: set[Instruction] = set()
        self._find_places()
        self.stored = self._store()

    def _look(self, step: Instruction) -> None:
        """Classify a call."""
        if step.several or not step.pure or step.result.shape is None or not step.result.size:
            return
        if (found := _routine(step)) is not None:
            self.routines[step] = found
            self.maker[step.result] = step
        elif _shows(step):
            self.axes.add(step)
            self.maker[step.result] = step
        elif (reduced := _reduce(step)) is not None:
            self.reduced[step] = reduced

    def _moves(self, step: Instruction) -> bool:
        return step in self.routines or step in self.axes

    def _find_places(self) -> None:
        """Delay each elementwise call to the first other call that needs it."""
        end = len(self.steps)
        due = dict.fromkeys(self.outputs, end)
        for i in range(end - 1, -1, -1):
            step, place = self.steps[i], i
            if self._moves(step):
                place = due.get(step.result, end)
                self.place[step] = place, 0
            elif step in self.reduced and self._maps(step, i, due):
                self.absorbing.add(step)
                continue
            for x in step.uses():
                due[x] = min(due.get(x, end), place)
        self._divide()

    def _divide(self) -> None:
        """Divide dependent calls of one place into parts, if they are too many for a kernel."""
        first: dict[Instruction, Instruction] = {}  # union-find

        def find(step: Instruction) -> Instruction:
            while first[step] is not step:
                first[step] = step = first[first[step]]
            return step

        moved = [step for step in self.steps if step in self.place]
        for step in moved:
            first[step] = step
            makers = [self.maker[x] for x in step.uses() if x in self.maker]
            for maker in makers:
                if self.place[maker] == self.place[step]:
                    first[find(maker)] = find(step)
        counts = Counter[Instruction]()
        for step in moved:
            counts[find(step)] += 1
            self.place[step] = self.place[step][0], (counts[find(step)] - 1) // LARGEST

    def _maps(self, step: Instruction, i: int, due: dict[Value, int]) -> bool:
        """Whether a reduction can compute its operand itself, because no other call needs it."""
        value = step.operands[0]
        if value in self.hard or value not in self.maker:
            return False
        open_, calls, last = [value], set[Instruction](), self.maker[value]
        while open_:
            value = open_.pop()
            maker = self.maker.get(value)
            if maker is not None and maker not in calls and due.get(value, i + 1) > i:
                calls.add(maker)
                open_ += maker.uses()
                if len(calls) > LONGEST:  # then the last one alone, of what is due before it
                    due |= {x: min(due.get(x, i), i) for x in last.uses()}
                    return last in self.routines
        return any(call in self.routines for call in calls)

    def _store(self) -> set[Value]:
        """Results of elementwise calls that are used outside their kernel."""
        found = set(self.outputs)
        for step in self.steps:
            if step not in self.absorbing:
                place = self.place.get(step)
                makers = [(x, self.maker[x]) for x in step.uses() if x in self.maker]
                found.update(x for x, maker in makers if self.place[maker] != place)
        for step in reversed(self.steps):
            if step in self.axes and step.result in found:
                found.update(step.uses())
        return found

    # -- the program -----------------------------------------------------------------------------

    def fuse(self, made: Callable[[Sequence[Body]], Sequence[Instruction]]) -> Program:
        """The program with the calls of independent kernels, which ``made`` makes.

        Results are the same bitwise, except that a fused sum may add in another order than the
        library's own sum.
        """
        steps = tuple(self._order(made))
        return dead(replace(self.program, instructions=steps), errors=True)

    def _order(self, made: Any) -> Iterator[Instruction]:
        """All calls in a valid order."""
        due: dict[tuple[int, int], list[Instruction]] = {}
        for step in self.steps:
            if step in self.place:
                due.setdefault(self.place[step], []).append(step)
        places = sorted(due, reverse=True)
        for i in range(len(self.steps) + 1):
            while places and places[-1][0] == i:
                yield from self._make(due[places[-1]], places.pop(), made)
            if i == len(self.steps):
                return
            step, last = self.steps[i], (i, len(self.steps))  # after all parts
            if step in self.absorbing and not self._there(step.operands[0], last):
                yield from made([self._map(step, last)])
            elif step not in self.place:
                yield step

    def _there(self, value: Value, place: tuple[int, int]) -> bool:
        """Whether a value can be read at a place."""
        maker = self.maker.get(value)
        return maker is None or (value in self.stored and self.place[maker] <= place)

    def _map(self, step: Instruction, place: tuple[int, int]) -> Body:
        value = step.operands[0]
        body = Body({}, [value], self.routines, reduced=(step, self.reduced[step]))
        self._write(body, value, tuple(range(len(value.shape))), place)
        return body

    def _make(
        self, steps: Sequence[Instruction], place: tuple[int, int], made: Any
    ) -> Iterator[Instruction]:
        """The kernels of one place, by shape, and views of their results."""
        stored: dict[tuple[int, ...], list[Value]] = {}
        for step in steps:
            if step in self.routines and step.result in self.stored:
                stored.setdefault(_long(step.result.shape), []).append(step.result)
        bodies = [body for values in stored.values() for body in self._bodies(values, place)]
        for together in _independent(bodies):
            yield from made(together)
        yield from (step for step in steps if step in self.axes and step.result in self.stored)

    def _bodies(self, values: list[Value], place: tuple[int, int]) -> list[Body]:
        """The kernels for values of one shape: as many per kernel as its arguments allow."""
        body = Body({}, values, self.routines)
        for value in values:
            self._write(body, value, _align(value.shape or (), body.shape), place)
        if body.size <= ARGUMENTS or len(values) == 1:
            return [body]
        half = len(values) // 2
        return [*self._bodies(values[:half], place), *self._bodies(values[half:], place)]

    def _write(self, body: Body, value: Value, at: Alignment, place: tuple[int, int]) -> None:
        """Add the calls that compute a value, unless it is stored before the kernel."""
        maker = self.maker.get(value)
        own = body.reduced is None and value in body.outputs
        if maker is None or (maker in self.routines and not own and self._there(value, place)):
            body.leaves[value, at] = None
        elif (maker, at) not in body.steps:
            for x, below in Body.operands(body, maker, at):
                if below is not None:
                    self._write(body, x, below, place)
            body.steps[maker, at] = None


def _long(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """A shape without the axes of length 1."""
    return tuple([n for n in shape or () if n != 1])


def _below(at: Alignment, result: Value, operand: Value) -> Alignment:
    """The alignment of an operand that broadcasts to a result."""
    less = len(result.shape or ()) - len(operand.shape or ())
    return tuple([None if axis is None or axis < less else axis - less for axis in at])


def _align(shape: tuple[int, ...], loop: tuple[int, ...]) -> Alignment:
    """The alignment of an array that differs from the loop in axes of length 1 alone."""
    axes = iter([axis for axis, n in enumerate(shape) if n != 1])
    return tuple([None if n == 1 else next(axes) for n in loop])


def _through(at: Alignment, step: Instruction) -> Alignment:
    """The alignment of a view's operand."""
    shape = step.result.shape or ()
    if step.name == "broadcast_to":
        return _below(at, step.result, step.operands[0])
    where = _align(step.operands[0].shape, shape)
    return tuple([None if axis is None else where[axis] for axis in at])


def _independent(bodies: Sequence[Body]) -> Iterator[list[Body]]:
    """Kernels in a valid order, in groups of independent ones."""
    rest = list(bodies)
    while rest:
        given = {body: {value for value, _ in body.leaves} for body in rest}
        ready = [
            body
            for body in rest
            if not any(given[body].intersection(other.outputs) for other in rest)
        ]
        yield ready
        rest = [body for body in rest if body not in ready]


def _routine(step: Instruction) -> Routine | None:
    """The C code of an elementwise call; None for other calls."""
    if step.parameters.keys() - {"copy"} or step.result.order is not None or step.out is not None:
        return None
    operands = step.operands
    if step.name == "astype":
        given = operands[0].dtype if isinstance(operands[0], Value) else None
        return None if given is None else conversion(given, step.result.dtype)
    function = universal(step.function)
    if function is None or step.parameters:
        return None
    if not all(isinstance(x, Value) or type(x) in NUMBERS for x in operands):
        return None
    shapes = [x.shape for x in operands if isinstance(x, Value) and x.shape is not None]
    shape = np.broadcast_shapes(*shapes) if shapes else None
    if shape != step.result.shape:
        return None
    kinds = [x.dtype if isinstance(x, Value) else x for x in operands]
    return routine(function, kinds, step.result.dtype)


def _shows(step: Instruction) -> bool:
    """Whether a call is a view with other axes of length 1, or broadcast."""
    if step.name not in _AXES or [*step.uses()] != [step.operands[0]]:
        return False
    return step.name == "broadcast_to" or _long(step.operands[0].shape) == _long(step.result.shape)


def _reduce(step: Instruction) -> Reduced | None:
    """The C code of a reduction; None for other calls."""
    if not str(getattr(step.function, "__module__", "")).startswith("cupy"):
        return None
    if len(step.operands) != 1 or not isinstance(step.operands[0], Value):
        return None
    if step.parameters.keys() - {"axis", "keepdims", "dtype"} or not step.operands[0].size:
        return None
    dtype, wanted = step.operands[0].dtype, step.parameters.get("dtype")
    if wanted is not None and wanted != dtype:
        return None
    return reduction(step.name, dtype, step.result.dtype)
