"""An optimiser's update of many small parameters, done once on all of them in one line."""

import operator
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["Joint", "flatten"]

#: Elements of a parameter from which copying it costs more than calls of its own.
LARGEST = 1 << 13

#: Kernels beside NumPy's ufuncs that compute each element by itself.
_ELEMENTWISE = frozenset({"axpby", "normalised"})


class Joint:
    """Arrays in one line: they are joined by copying, unless this has just split them.

    Attributes
    ----------
    taken : bool
        Whether some result is split by it already.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self._shapes = list(shapes)
        sizes = [int(np.prod(shape)) for shape in shapes]
        ends = list(accumulate(sizes))
        self._starts = [end - size for end, size in zip(ends, sizes, strict=True)]
        self.taken = False
        self._held: tuple[Any, tuple[Any, ...]] = (None, ())  # one, so that threads may share it

    def __reduce__(self) -> tuple[Any, ...]:
        return Joint, (self._shapes,)

    def join(self, *arrays: Any) -> Any:
        """The arrays' elements one after the other."""
        line, parts = self._held
        if line is not None and all(map(operator.is_, arrays, parts)):
            return line
        return np.concatenate([x.reshape(-1) for x in arrays])

    def split(self, line: Any) -> tuple[Any, ...]:
        """The arrays that a line is made of. Nobody writes into either."""
        dtype, size = line.dtype, line.itemsize
        parts = tuple(
            [
                np.ndarray(shape, dtype, line, start * size)
                for start, shape in zip(self._starts, self._shapes, strict=True)
            ]
        )
        self._held = line, parts
        return parts


class _Run:
    """The instructions that update one parameter, and what they take from elsewhere."""

    def __init__(self, steps: list[Instruction]) -> None:
        self.steps = steps
        self.shape, self.dtype = steps[-1].result.shape, steps[-1].result.dtype
        local = {step.result: i for i, step in enumerate(steps)}
        self.outside: list[Value] = []
        pattern: list[Hashable] = []
        self.regular = True
        for step in steps:
            self.regular &= step.result.shape == self.shape and step.result.dtype == self.dtype
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


def flatten(program: Program) -> Program:
    """Do what an optimiser does to each of several small parameters once, to all of them.

    Of instructions of the stage ``"update"``, those from one output to the next are one
    parameter's. Where several parameters' are the same elementwise chain, with the same numbers,
    it runs on their elements in one line. What it is given is joined, what it gives is split.

    Parameters
    ----------
    program : Program
        Of NumPy arrays.
    """
    groups: dict[Hashable, list[_Run]] = {}
    for run in _runs(program):
        groups.setdefault(run.pattern, []).append(run)
    chosen = [runs for runs in groups.values() if len(runs) > 1]
    if not chosen:
        return program
    moved = {step for runs in chosen for run in runs for step in run.steps}
    steps = [step for step in program.instructions if step not in moved]
    outputs = set(values_in(program.outputs))
    for runs in chosen:  # at the end: what they give, nothing else takes
        steps += _joined(runs, outputs)
    return Program(
        program.inputs, tuple(steps), program.outputs, program.constants, program.donated
    )


def _runs(program: Program) -> list[_Run]:
    """The updates of parameters that could be joined."""
    outputs = set(values_in(program.outputs))
    used: dict[Value, int] = {}
    for i, step in enumerate(program.instructions):
        for value in step.used():
            used[value] = i
    found: list[_Run] = []
    steps: list[Instruction] = []
    for i, step in enumerate(program.instructions):
        if step.line is None or step.line.stage != "update" or step.name[:7] == "number.":
            continue
        if step.several or not _elementwise(step):
            steps = []
            continue
        steps.append(step)
        # The last instruction of a parameter's update gives what nothing else takes.
        if step.result in outputs and used.get(step.result, -1) <= i:
            run = _Run(steps)
            inside = {s.result for s in steps}
            last = max((used.get(v, -1) for v in inside), default=-1)
            if run.regular and last <= i and run.shape and _small(run):
                found.append(run)
            steps = []
    return found


def _small(run: _Run) -> bool:
    size = 1
    for length in run.shape or ():
        size *= length
    return 0 < size <= LARGEST


def _elementwise(step: Instruction) -> bool:
    return step.name in _ELEMENTWISE or (
        isinstance(step.function, np.ufunc) and step.function.signature is None
    )


def _joined(runs: list[_Run], outputs: set[Value]) -> list[Instruction]:
    """One chain for several parameters."""
    first = runs[0]
    shapes = [run.shape or () for run in runs]
    size = sum(int(np.prod(shape)) for shape in shapes)
    line = first.steps[0].line
    made: list[Instruction] = []
    lines: dict[Value, Any] = {}
    splits: dict[tuple[Value, ...], Joint] = {}

    def value(name: str) -> Value:
        return Value((size,), first.dtype, name)

    for k, x in enumerate(first.outside):
        parts = tuple([run.outside[k] for run in runs])
        joint = splits[parts] = Joint(shapes)
        lines[x] = value(_called(x, "all"))
        made.append(Instruction("join", joint.join, parts, {}, (lines[x],), line=line))
    ends: list[Instruction] = []
    for i, step in enumerate(first.steps):
        result = value("")
        lines[step.result] = result
        made.append(
            Instruction(
                step.name,
                step.function,
                _with(step.operands, lines),
                step.parameters,
                (result,),
                line=line,
            )
        )
        parts = tuple([run.steps[i].result for run in runs])
        if any(part in outputs for part in parts):
            # What is split now is joined in the next run of the program: the same joint does both.
            joint = _joint_of(first, i, splits, runs, shapes)
            ends.append(Instruction("split", joint.split, (result,), {}, parts, True, line=line))
    return made + ends


def _joint_of(
    first: _Run,
    i: int,
    splits: dict[tuple[Value, ...], Joint],
    runs: list[_Run],
    shapes: list[tuple[int, ...]],
) -> Joint:
    """The joint by which a result comes in again: that of the operand which it takes the place of.

    The parameter's own result comes last. Another is some state's, which the same instruction
    takes.
    """
    taken = [x for x in first.steps[i].operands if isinstance(x, Value) and x in first.outside]
    for x in taken:
        parts = tuple([run.outside[first.outside.index(x)] for run in runs])
        joint = splits.get(parts)
        if joint is not None and not joint.taken:
            joint.taken = True
            return joint
    return Joint(shapes)


def _with(operands: tuple[Any, ...], lines: dict[Value, Any]) -> tuple[Any, ...]:
    return tuple([lines.get(x, x) if isinstance(x, Value) else x for x in operands])


def _called(x: Value, fallback: str) -> str:
    """All parameters' ``exp_avg`` is ``all.exp_avg``."""
    short = x.name.rpartition(".")[2]
    return f"all.{short}" if short else fallback
