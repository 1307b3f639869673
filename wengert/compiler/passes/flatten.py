"""Updates of many small parameters, joined into one update of a flat array."""

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from wengert.backends.references import counts
from wengert.compiler.passes.forms import elementwise, form
from wengert.compiler.passes.inplace import ALONE, in_place
from wengert.compiler.passes.liveness import holders
from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["FlatArrays", "flatten"]

#: Elements of a parameter from which copying it costs more than separate calls.
LARGEST = 1 << 13

#: Flat arrays that are kept: the state's, the next one, and some that the user holds views of.
KEPT = 4


class FlatArrays:
    """Arrays of one dtype as views of one flat array, and a pool of such flat arrays.

    Parameters and gradients that a step makes are the caller's. As long as the caller holds one of
    them, or a view, the flat array has more references than those known here. After the next steps
    have replaced them it has no more, and its memory is reused.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: Any, name: str) -> None:
        self.name = name
        self._shapes, self._dtype = list(shapes), np.dtype(dtype)
        sizes = [int(np.prod(shape)) for shape in shapes]
        self._ends = list(accumulate(sizes))
        self._starts = [end - size for end, size in zip(self._ends, sizes, strict=True)]
        self._flat: list[tuple[Any, tuple[Any, ...]]] = []  # each with its parts; newest last
        self._counts = self._count(self._make())

    def memory(self) -> Any:
        """A flat array that nobody else refers to."""
        kept = self._flat
        for i, held in enumerate(kept):
            if self._count(held) == self._counts:
                kept.append(kept.pop(i))
                return held[0]
        if len(kept) == KEPT:
            del kept[0]
        kept.append(self._make())
        return kept[-1][0]

    def join(self, *arrays: Any) -> Any:
        """The flat array of these arrays: their own one, or a concatenation."""
        for flat, parts in self._flat:
            if all(map(operator.is_, arrays, parts)):
                return flat
        return np.concatenate(arrays, None)  # each in C order

    def split(self, flat: Any) -> tuple[Any, ...]:
        """The arrays as views of a flat array."""
        for known, parts in self._flat:
            if known is flat:
                return parts
        return self._split(flat)

    def _make(self) -> tuple[Any, tuple[Any, ...]]:
        flat = np.empty(self._ends[-1], self._dtype)
        return flat, self._split(flat)

    def _split(self, flat: Any) -> tuple[Any, ...]:
        size = self._dtype.itemsize
        return tuple(
            [
                np.ndarray(shape, self._dtype, flat, start * size)
                for start, shape in zip(self._starts, self._shapes, strict=True)
            ]
        )

    @staticmethod
    def _count(held: tuple[Any, tuple[Any, ...]]) -> list[int]:
        """The reference counts of a flat array and its parts; a view refers to the flat array."""
        flat, parts = held
        return counts((flat, *parts))


class _Run:
    """The instructions that update one parameter, and their operands from outside."""

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
            self.regular &= step.result.order is None  # as the parts of a flat array are
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
    """Join the updates of small parameters into updates of flat arrays, for NumPy.

    The instructions of the stage ``"update"`` between two outputs update one parameter. Small
    parameters whose updates are the same elementwise chain, with the same numbers, are updated by
    one chain: its operands are joined into flat arrays, and its results are split. ``becomes`` has
    the inputs whose next values outputs are, so that parts that one run splits need not be joined
    in the next.

    Updates of large parameters come last, and in place where possible (`in_place`).
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
    for runs in chosen:  # at the end, since nothing else uses their results
        steps = _join_updates(runs, outputs, steps, becomes)
    alone = Value((0,), np.dtype(float), ALONE)
    last = [run.steps for run in large]
    updates = in_place(last, becomes, holders(program), alone, outputs)
    used = any(alone in step.uses() for step in updates)
    inputs = (*program.inputs, alone) if used else program.inputs
    return replace(program, inputs=inputs, instructions=(*steps, *updates))


def _runs(program: Program) -> list[_Run]:
    """The updates of parameters: connected calls whose results nothing else uses."""
    used: set[Value] = set()
    moving: list[Instruction] = []
    for step in reversed(program.instructions):
        if _is_update(step) and step.result not in used:
            moving.append(step)
        else:
            used.update(step.uses())
    runs: dict[Value, list[Instruction]] = {}
    for step in reversed(moving):
        linked = [runs[x] for x in dict.fromkeys(step.uses()) if x in runs]
        run: list[Instruction] = max(linked, key=len, default=[])
        for other in linked:
            if other is not run and runs[other[0].result] is other:
                run += other
                runs.update(dict.fromkeys([each.result for each in other], run))
        run.append(step)
        runs[step.result] = run
    # What two updates read, the later one may overwrite.
    at = {step: i for i, step in enumerate(program.instructions)}
    found = {id(run): sorted(run, key=at.__getitem__) for run in runs.values()}
    return [_Run(run) for run in sorted(found.values(), key=lambda run: at[run[0]])]


def _is_update(step: Instruction) -> bool:
    """Whether an optimiser calls it element by element of a parameter."""
    if step.several or step.line is None or step.line.stage != "update":
        return False
    return elementwise(step) and bool(step.result.shape) and bool(step.result.size)


def _join_updates(
    runs: list[_Run], outputs: set[Value], steps: list[Instruction], becomes: Mapping[Value, Value]
) -> list[Instruction]:
    """The instructions, with one chain for several updates appended."""
    first = runs[0]
    shapes = [run.shape or () for run in runs]
    size = sum(int(np.prod(shape)) for shape in shapes)
    line = first.steps[0].line
    made: list[Instruction] = []
    flats: dict[Value, Any] = {}
    splits: dict[tuple[Value, ...], FlatArrays] = {}

    def value(name: str) -> Value:
        return Value((size,), first.dtype, name)

    def memory(flat: FlatArrays) -> Instruction:
        return Instruction("flat", flat.memory, (), {}, (value(""),), pure=False, line=line)

    for k, x in enumerate(first.outside):
        parts = tuple([run.outside[k] for run in runs])
        short = x.name.rpartition(".")[2] or "grad"
        flat = splits[parts] = FlatArrays(shapes, first.dtype, f"flat_{short}")
        flats[x] = value(f"all.{short}")
        steps = _write_into_parts(steps, parts, flat, memory(flat))
        made.append(Instruction("join", flat.join, parts, {}, (flats[x],), line=line))
    ends: list[Instruction] = []
    for i, step in enumerate(first.steps):
        result = value("")
        parts = tuple([run.steps[i].result for run in runs])
        out = None
        if any(part in outputs for part in parts):
            # The next run joins what this one splits, by the same object.
            before = tuple([becomes.get(part, part) for part in parts])
            flat = splits.get(before) or FlatArrays(shapes, first.dtype, "flat_new")
            ends.append(Instruction("split", flat.split, (result,), {}, parts, True, line=line))
            if form(step).writes and result.dtype.kind != "c":
                made.append(memory(flat))
                out = made[-1].result
        made.append(replace(step.with_values(flats), results=(result,), line=line, out=out))
        flats[step.result] = result
    return [*steps, *made, *ends]


def _write_into_parts(
    steps: list[Instruction], parts: tuple[Value, ...], flat: FlatArrays, memory: Instruction
) -> list[Instruction]:
    """Let instructions write their results into parts of a flat array, if all of them can."""
    at = {step.result: i for i, step in enumerate(steps) if not step.several}
    makers = [at.get(part, -1) for part in parts]
    if len(set(parts)) < len(parts) or not all(i >= 0 and _writes(steps[i]) for i in makers):
        return steps
    places = tuple([Value(part.shape, part.dtype) for part in parts])
    start = min(makers)
    line = steps[start].line
    views = Instruction("split", flat.split, (memory.result,), {}, places, True, line=line)
    steps = list(steps)
    for i, place in zip(makers, places, strict=True):
        steps[i] = steps[i].writing(place)
    return [*steps[:start], replace(memory, line=line), views, *steps[start:]]


def _writes(step: Instruction) -> bool:
    """Whether a call can write into given memory with the same result."""
    found = form(step)
    free = step.out is None and step.result.dtype.kind != "c"
    ordered = step.result.order is None
    return bool(found.writes) and found.inside != "only" and ordered and free
