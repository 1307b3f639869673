"""An optimiser's update of many small parameters, done once on all of them in one line."""

import operator
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from wengert.backends.references import counts
from wengert.compiler.passes.forms import form
from wengert.compiler.passes.inplace import ALONE, in_place
from wengert.compiler.passes.liveness import holders
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["FlatArrays", "flatten"]

#: Elements of a parameter from which copying it costs more than calls of its own.
LARGEST = 1 << 13

#: Lines that are kept for later steps: that of the state, the next, and some that users look at.
KEPT = 4


class FlatArrays:
    """Arrays in one line, and lines that nobody else looks at any more.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Of the arrays.
    dtype : dtype
        Of all of them.
    name : str
        How a reader of the source would call them.

    Notes
    -----
    What a step leaves (parameters, gradients) is the caller's own. While the caller keeps it, by
    whatever view, its memory has more references than the two that are known here; when the next
    step has put other arrays in its place, it has no more, and is written again.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: Any, name: str) -> None:
        self.name = name
        self._shapes, self._dtype = list(shapes), np.dtype(dtype)
        sizes = [int(np.prod(shape)) for shape in shapes]
        self._ends = list(accumulate(sizes))
        self._starts = [end - size for end, size in zip(self._ends, sizes, strict=True)]
        self._lines: list[tuple[Any, tuple[Any, ...]]] = []  # the one made last comes last
        self._counts = self._counted(self._made())

    def __reduce__(self) -> tuple[Any, ...]:
        return FlatArrays, (self._shapes, self._dtype, self.name)

    def memory(self) -> Any:
        """A line to write to."""
        lines = self._lines
        for i, held in enumerate(lines):
            if self._counted(held) == self._counts:
                lines.append(lines.pop(i))
                return held[0]
        if len(lines) == KEPT:
            del lines[0]
        lines.append(self._made())
        return lines[-1][0]

    def join(self, *arrays: Any) -> Any:
        """The arrays' elements one after the other. Nobody writes into them."""
        for line, parts in self._lines:
            if all(map(operator.is_, arrays, parts)):
                return line
        return np.concatenate([x.reshape(-1) for x in arrays])

    def split(self, line: Any) -> tuple[Any, ...]:
        """The arrays that a line is made of."""
        for known, parts in self._lines:
            if known is line:
                return parts
        return self._parts(line)

    def _made(self) -> tuple[Any, tuple[Any, ...]]:
        line = np.empty(self._ends[-1], self._dtype)
        return line, self._parts(line)

    def _parts(self, line: Any) -> tuple[Any, ...]:
        size = self._dtype.itemsize
        return tuple(
            [
                np.ndarray(shape, self._dtype, line, start * size)
                for start, shape in zip(self._starts, self._shapes, strict=True)
            ]
        )

    @staticmethod
    def _counted(held: tuple[Any, tuple[Any, ...]]) -> list[int]:
        """How many references there are: also a view of a part counts for the line."""
        line, parts = held
        return counts((line, *parts))


class _Run:
    """The instructions that update one parameter, and what they take from elsewhere."""

    def __init__(self, steps: list[Instruction]) -> None:
        self.steps = steps
        self.shape, self.dtype = steps[-1].result.shape, steps[-1].result.dtype
        self.size = steps[-1].result.size
        local = {step.result: i for i, step in enumerate(steps)}
        self.outside: list[Value] = []
        pattern: list[Hashable] = []
        self.regular = True
        for step in steps:
            self.regular &= step.result.shape == self.shape and step.result.dtype == self.dtype
            self.regular &= step.result.order is None  # as the parts of a line are
            taken: list[Hashable] = []
            for x in step.operands:
                if not isinstance(x, Value) or x.shape is None:
                    taken.append((type(x), repr(x)))
                elif x in local:
                    taken.append(local[x])
                else:
                    self.regular &= x.shape == self.shape and x.dtype == self.dtype
                    if x not in self.outside:
                        self.outside.append(x)
                    taken.append(("outside", self.outside.index(x)))
            pattern.append((step.name, tuple(taken), repr(step.parameters)))
        self.pattern = (self.dtype, tuple(pattern))


def flatten(program: Program, becomes: Mapping[Value, Value] = MappingProxyType({})) -> Program:
    """Do what an optimiser does to each of several small parameters once, to all of them.

    What it does to large ones comes last, and in place where it can (`in_place`).

    Of instructions of the stage ``"update"``, those from one output to the next are one
    parameter's. Where several parameters' are the same elementwise chain, with the same numbers,
    it runs on their elements in one line. What it is given is joined, what it gives is split.

    Parameters
    ----------
    program : Program
        Of NumPy arrays.
    becomes : dict of Value to Value
        For outputs that are the next values of inputs, these inputs: what is split in one run is
        joined in the next.
    """
    groups: dict[Hashable, list[_Run]] = {}
    large: list[_Run] = []
    for run in _runs(program):
        if run.size > LARGEST:
            large.append(run)
        elif run.regular:
            groups.setdefault(run.pattern, []).append(run)
    chosen = [runs for runs in groups.values() if len(runs) > 1]
    if not chosen and not large:
        return program
    outputs = set(values_in(program.outputs))
    moved = {step for runs in (*chosen, large) for run in runs for step in run.steps}
    steps = [step for step in program.instructions if step not in moved]
    for runs in chosen:  # at the end: what they give, nothing else takes
        steps = _joined(runs, outputs, steps, becomes)
    alone = Value((0,), np.dtype(float), ALONE)
    updates = in_place([run.steps for run in large], becomes, holders(program), alone, outputs)
    used = any(alone in step.used() for step in updates)
    inputs = (*program.inputs, alone) if used else program.inputs
    return replace(program, inputs=inputs, instructions=(*steps, *updates))


def _runs(program: Program) -> list[_Run]:
    """The updates of parameters: chains of which nothing else takes the results."""
    outputs = set(values_in(program.outputs))
    uses = Counter(value for step in program.instructions for value in step.used())
    found: list[_Run] = []
    steps: list[Instruction] = []
    for step in program.instructions:
        if step.line is None or step.line.stage != "update" or step.name[:7] == "number.":
            continue
        if step.several or not _elementwise(step):
            steps = []
            continue
        steps.append(step)
        own = _own(steps, uses) if step.result in outputs else []
        if own and own[-1] is step:  # a parameter's update ends with what nothing else takes
            run = _Run(own)
            if run.shape and run.size:
                found.append(run)
            steps = []
    return found


def _own(steps: list[Instruction], uses: Counter[Value]) -> list[Instruction]:
    """Those of some instructions whose results nothing takes but they themselves."""
    inside: Counter[Value] = Counter()
    kept: list[Instruction] = []
    for step in reversed(steps):
        if uses[step.result] == inside[step.result]:
            kept.append(step)
            inside.update(step.used())
    return kept[::-1]


def _elementwise(step: Instruction) -> bool:
    return isinstance(step.function, np.ufunc) and step.function.signature is None


def _joined(
    runs: list[_Run],
    outputs: set[Value],
    steps: list[Instruction],
    becomes: Mapping[Value, Value],
) -> list[Instruction]:
    """The instructions before, and one chain for several parameters."""
    first = runs[0]
    shapes = [run.shape or () for run in runs]
    size = sum(int(np.prod(shape)) for shape in shapes)
    line = first.steps[0].line
    made: list[Instruction] = []
    lines: dict[Value, Any] = {}
    splits: dict[tuple[Value, ...], FlatArrays] = {}

    def value(name: str) -> Value:
        return Value((size,), first.dtype, name)

    def memory(joint: FlatArrays) -> Instruction:
        return Instruction("flat", joint.memory, (), {}, (value(""),), pure=False, line=line)

    for k, x in enumerate(first.outside):
        parts = tuple([run.outside[k] for run in runs])
        short = x.name.rpartition(".")[2] or "grad"
        joint = splits[parts] = FlatArrays(shapes, first.dtype, f"flat_{short}")
        lines[x] = value(f"all.{short}")
        steps = _written(steps, parts, joint, memory(joint))
        made.append(Instruction("join", joint.join, parts, {}, (lines[x],), line=line))
    ends: list[Instruction] = []
    for i, step in enumerate(first.steps):
        result = value("")
        parts = tuple([run.steps[i].result for run in runs])
        out = None
        if any(part in outputs for part in parts):
            # What is split now is joined in the next run of the program: the same joint does both.
            before = tuple([becomes.get(part, part) for part in parts])
            joint = splits.get(before) or FlatArrays(shapes, first.dtype, "flat_new")
            ends.append(Instruction("split", joint.split, (result,), {}, parts, True, line=line))
            if form(step).writes and result.dtype.kind != "c":
                made.append(memory(joint))
                out = made[-1].result
        made.append(replace(step.with_values(lines), results=(result,), line=line, out=out))
        lines[step.result] = result
    return [*steps, *made, *ends]


def _written(
    steps: list[Instruction], parts: tuple[Value, ...], joint: FlatArrays, memory: Instruction
) -> list[Instruction]:
    """Let instructions write their results into a line, if all of them can."""
    at = {step.result: i for i, step in enumerate(steps) if not step.several}
    makers = [at.get(part, -1) for part in parts]
    if len(set(parts)) < len(parts) or not all(i >= 0 and _writes(steps[i]) for i in makers):
        return steps
    places = tuple([Value(part.shape, part.dtype) for part in parts])
    start = min(makers)
    line = steps[start].line
    views = Instruction("split", joint.split, (memory.result,), {}, places, True, line=line)
    steps = list(steps)
    for i, place in zip(makers, places, strict=True):
        steps[i] = steps[i].writing(place)
    return [*steps[:start], replace(memory, line=line), views, *steps[start:]]


def _writes(step: Instruction) -> bool:
    """Whether a call can be told where to write, and writes what it would give otherwise."""
    found = form(step)
    free = step.out is None and step.result.dtype.kind != "c"
    ordered = step.result.order is None
    return bool(found.writes) and found.inside != "only" and ordered and free
