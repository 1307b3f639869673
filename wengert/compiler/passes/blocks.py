"""Runs of elementwise calls on large arrays, which are computed a block of rows at a time.

A call on an array that no cache holds waits for memory. A run of such calls reads and writes each
block while it is in the cache, and the arrays themselves once.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from wengert.compiler.passes.forms import form
from wengert.compiler.passes.inplace import writable
from wengert.compiler.passes.liveness import holders
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["Run", "blocks", "together"]

#: Bytes of a result from which calls are divided. Smaller arrays stay in a processor's last cache.
LARGE: Final = 1 << 22
#: Bytes of a block, about a core's own cache. A call takes a microsecond or two to begin.
BLOCK: Final = 1 << 19
#: Calls of a run at least. Fewer read their operands from memory anyway.
SHORTEST: Final = 4
#: Elements whose multiple a block has, so that vectors of a processor hold the same elements as in
#: one call: functions may round otherwise where one element of a vector is special.
VECTOR: Final = 64


class Run(NamedTuple):
    """Consecutive instructions that are computed by blocks.

    Attributes
    ----------
    start, stop : int
        Their positions in the program.
    shape : tuple of int
        Of the results.
    rows : int
        Of a block.
    """

    start: int
    stop: int
    shape: tuple[int, ...]
    rows: int

    def divided(self, x: Value) -> bool:
        """Whether an operand has all rows; others are the same for each block."""
        return _divided(x, self.shape)


def blocks(program: Program) -> list[Run]:
    """Find the runs of a program whose results have memory: NumPy's, after `buffers`."""
    if not any(map(_is_large, program.instructions)):
        return []
    memory = _Memory(program)
    found: list[Run] = []
    open_: _Open | None = None
    for i, step in enumerate(program.instructions):
        if open_ is not None and not open_.takes(step):
            found += open_.run(i)
            open_ = None
        if open_ is None and _is_large(step):
            open_ = _Open(i, step, memory)
            if not open_.takes(step):
                open_ = None
    return found if open_ is None else [*found, *open_.run(len(program.instructions))]


def together(
    steps: Sequence[Instruction], runs: Iterable[Run]
) -> tuple[dict[int, int], dict[int, Run]]:
    """The ranges of instructions that `at_once` calls, by first and last position, and the runs.

    One range from the first to the last instruction that writes in place, if all between run no
    Python code; otherwise one range for each updated array. A run that is computed by blocks, so in
    several calls, is in such a range as a whole if it writes in place. One that can't be is left
    out. The others are returned by their first position.
    """
    found: dict[int, int] = {}
    places = {x for step in steps if step.function is writable for x in step.results}
    first: dict[Value, int] = {}
    for i, step in enumerate(steps):
        if step.out in places:
            found[first.setdefault(step.out, i)] = i
    if found:
        start, end = min(found), max(found.values())
        if all(map(_plainly, steps[start : end + 1])):
            found = {start: end}
    kept: dict[int, Run] = {}
    for run in runs:
        met = {at: end for at, end in found.items() if at < run.stop and run.start <= end}
        if met:
            start, end = min(run.start, *met), max(run.stop - 1, *met.values())
            if not all(map(_plainly, steps[start : end + 1])):
                continue
            found = {at: end for at, end in found.items() if at not in met} | {start: end}
        kept[run.start] = run
    return {start: end for start, end in found.items() if start < end}, kept


def _plainly(step: Instruction) -> bool:
    """Whether a call is a ufunc's that writes into given memory."""
    return step.out is not None and type(step.function) is np.ufunc


class _Memory:
    """Which memory values have: an array, or a view of a buffer, and the buffer."""

    def __init__(self, program: Program) -> None:
        self.held = holders(program)
        self._place: dict[Value, Value] = {}
        self._root: dict[Value, Value] = {}
        for view in program.views:
            self._root[view.result] = self._root.get(view.operands[0], view.operands[0])
        for step in program.instructions:
            if step.out is not None:
                self._place[step.result] = self.place(step.out)
            elif step.function is writable:  # the operands themselves, or new arrays
                pairs = zip(step.results, step.operands, strict=False)
                self._place |= {result: self.place(x) for result, x in pairs}

    def place(self, x: Value) -> Value:
        """The array, or the view of a buffer, that a result is written to."""
        return self._place.get(x, x)

    def roots(self, x: Value) -> set[Value]:
        """The arrays and buffers in whose memory a value may be."""
        places = [self.place(held) for held in self.held.get(x, (x,))]
        return {self._root.get(place, place) for place in places}


class _Open:
    """A run that may go on.

    A block of a result may be written where other rows are still to be read, unless the memory is
    that of the same rows. So all values of one memory have to be at one place in it.
    """

    def __init__(self, start: int, step: Instruction, memory: _Memory) -> None:
        self.start, self.shape = start, step.result.shape or ()
        self._size = step.result.dtype.itemsize
        self._memory = memory
        #: For each memory the place that results are written to.
        self._written: dict[Value, Value] = {}
        #: For each memory the places that are read; None for all of it.
        self._read: dict[Value, set[Value | None]] = {}

    def takes(self, step: Instruction) -> bool:
        """Add an instruction, if it can be computed by blocks together with those before."""
        if not (_is_large(step) and step.result.shape == self.shape):
            return False
        reads: dict[Value, set[Value | None]] = {}
        for x in step.used():
            if x.shape is None:  # a number
                continue
            divided = _divided(x, self.shape)
            if not (_in_order(x) if divided else _whole(x, self.shape)):
                return False
            place = self._memory.place(x) if divided else None
            for root in self._memory.roots(x):
                reads.setdefault(root, set()).add(place)
        place = self._memory.place(step.result)
        writes = dict.fromkeys(self._memory.roots(place), place)
        for root, at in (self._written | writes).items():
            known = self._read.get(root, set()) | reads.get(root, set())
            if known - {at} or self._written.get(root, at) is not at:
                return False
        self._written |= writes
        for root, places in reads.items():
            self._read.setdefault(root, set()).update(places)
        return True

    def run(self, stop: int) -> Iterable[Run]:
        """The run, if it saves anything."""
        row = math.prod(self.shape[1:])
        unit = VECTOR // math.gcd(row, VECTOR)
        rows = max(BLOCK // (self._size * row) // unit, 1) * unit
        if stop - self.start >= SHORTEST and 2 * rows <= self.shape[0]:
            yield Run(self.start, stop, self.shape, rows)


def _divided(x: Value, shape: tuple[int, ...]) -> bool:
    """Whether a value has a row for each row of a shape."""
    own = x.shape or ()
    return bool(own) and len(own) == len(shape) and own[0] == shape[0]


def _in_order(x: Value) -> bool:
    """Whether a value is in C order, or has one element for all places."""
    return x.order is None or not any(x.order)


def _whole(x: Value, shape: tuple[int, ...]) -> bool:
    """Whether a value has the same part for each row of a shape."""
    return len(x.shape or ()) < len(shape) or (x.shape or ())[0] == 1


def _is_large(step: Instruction) -> bool:
    """Whether it is an elementwise call of NumPy's whose result is a large array in C order."""
    if step.several or type(step.function) is not np.ufunc or not step.result.shape:
        return False
    result, found = step.result, form(step)
    if result.order is not None or found.inside != "any" or result.dtype.kind == "c":
        return False
    return bool(result.size * result.dtype.itemsize >= LARGE)
