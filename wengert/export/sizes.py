"""One program for all batch sizes, from programs recorded for several of them."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.capture.lines import describe
from wengert.compiler.emission.exported import ExportedProgram
from wengert.compiler.program import Instruction, Line, Value
from wengert.export.errors import ExportError

__all__ = ["Shapes", "Sized", "choose", "common"]

#: Shapes of arrays; None for a length that depends on the batch size.
Shapes = Mapping[Value, tuple[int | None, ...]]


class Sized(NamedTuple):
    """A number that depends on the batch size: a quotient of polynomials to a power.

    Their coefficients have the constant term first; the power is 1, 2 or a half.
    """

    above: tuple[Any, ...]
    below: tuple[Any, ...]
    power: float
    whole: bool

    def at(self, n: int) -> Any:
        """The number for a batch size."""
        above, below = (sum(c * n**k for k, c in enumerate(x)) for x in (self.above, self.below))
        return above // below if self.whole else (above / below) ** self.power


def choose(lengths: Container[int]) -> list[int]:
    """Return batch sizes that differ from all other lengths."""
    free = (n for n in count(5) if n not in lengths)
    return [*islice(free, 5), next(n for n in free if n > 60)]


def common(
    parts: Sequence[ExportedProgram], sizes: Sequence[int]
) -> tuple[ExportedProgram, Shapes]:
    """Return one program, in which differing numbers are `Sized`, and the arrays' shapes.

    Raises
    ------
    ExportError
        If the programs differ otherwise. It names the first line that does.
    """
    programs = [part.program for part in parts]
    matched = _Matched(parts, sizes)
    facts = [(part.refs, part.arguments, part.updates, len(part.program.outputs)) for part in parts]
    if any(fact != facts[0] for fact in facts):
        raise _differ("what the function reads or changes", None)
    matched.same([program.inputs for program in programs], None)
    made: list[Instruction] = []
    for steps in zip(*[program.instructions for program in programs], strict=False):
        step = steps[0]
        if any((x.name, x.several) != (step.name, step.several) for x in steps):
            raise _differ("which operation runs", step.line)
        operands = matched.join([x.operands for x in steps], step.line)
        parameters = matched.join([dict(x.parameters) for x in steps], step.line)
        matched.same([x.results for x in steps], step.line)
        made.append(replace(step, operands=operands, parameters=parameters))
    if any(len(program.instructions) != len(made) for program in programs):
        raise _differ("the number of operations", made[-1].line if made else None)
    outputs = matched.join([program.outputs for program in programs], None)
    steps = (*matched.filled, *made)
    constants = {x: array for x, array in programs[0].constants.items() if x in matched.known}
    for step in matched.filled:
        del constants[step.result]
    program = replace(programs[0], instructions=steps, outputs=outputs, constants=constants)
    return replace(parts[0], program=program), matched.shapes


class _Matched:
    """Matches the programs' values, and finds formulas for differing numbers."""

    def __init__(self, parts: Sequence[ExportedProgram], sizes: Sequence[int]) -> None:
        self.constants = [part.program.constants for part in parts]
        self.sizes = sizes
        self.known: dict[Value, tuple[Value, ...]] = {}
        self.shapes: dict[Value, tuple[int | None, ...]] = {}
        #: Calls that make constants whose shape, or number, depends on the batch size.
        self.filled: list[Instruction] = []

    def same(self, values: Sequence[tuple[Value, ...]], line: Line | None) -> None:
        """Note that values correspond."""
        if len({len(x) for x in values}) > 1:
            raise _differ("the number of results", line)
        for found in zip(*values, strict=True):
            kinds = {(str(x.dtype), x.shape is None or len(x.shape)) for x in found}
            if len(kinds) > 1:
                raise _differ("the dtype or the number of axes of an array", line)
            self._know(found)

    def _know(self, values: tuple[Value, ...]) -> None:
        self.known[values[0]] = values
        lengths = zip(*[x.shape or () for x in values], strict=True)
        self.shapes[values[0]] = tuple([n[0] if len(set(n)) == 1 else None for n in lengths])

    def join(self, given: Sequence[Any], line: Line | None) -> Any:
        """Return one operand for the corresponding operands of the programs."""
        x = given[0]
        if len({_form(y) for y in given}) > 1:
            raise _differ("what an operation is given", line)
        if isinstance(x, Value):
            return self._value(tuple(given), line)
        if isinstance(x, tuple | list):
            return type(x)([self.join(each, line) for each in zip(*given, strict=True)])
        if isinstance(x, dict):
            return {key: self.join([y[key] for y in given], line) for key in x}
        if isinstance(x, slice):
            ends = [(y.start, y.stop, y.step) for y in given]
            return slice(*self.join(ends, line))
        if all(y == x or (y != y and x != x) for y in given):
            return x
        made = _formula(given, self.sizes) if type(x) in (int, float) else None
        if made is None:
            raise _differ(f"a number ({given[0]!r}, {given[1]!r}, …)", line)
        return made

    def _value(self, given: tuple[Value, ...], line: Line | None) -> Value:
        if given[0] not in self.known:  # a constant
            arrays = [np.asarray(held[x]) for held, x in zip(self.constants, given, strict=True)]
            if not _equal(arrays):
                self.filled.append(self._filling(given, arrays, line))
            self._know(given)
        if self.known[given[0]] != given:
            raise _differ("what an operation is given", line)
        return given[0]

    def _filling(
        self, values: tuple[Value, ...], arrays: Sequence[Any], line: Line | None
    ) -> Instruction:
        """A call that makes a constant filled with one number."""
        if not all(x.size and _equal([x, np.full_like(x, x.flat[0])]) for x in arrays):
            raise _differ("an array that does not come from the arguments", line)
        shape, number = self.join([(x.shape, x.flat[0].item()) for x in arrays], line)
        return Instruction("full", np.full, (shape, number), {}, values[:1], line=line)


def _form(x: Any) -> Any:
    """The type of an operand, with its length or its keys."""
    form = frozenset(x) if isinstance(x, dict) else isinstance(x, tuple | list) and len(x)
    return type(x), form


def _equal(arrays: Sequence[Any]) -> bool:
    """Whether arrays have the same shape and the same bits."""
    x, *others = arrays
    return all(y.shape == x.shape and y.tobytes() == x.tobytes() for y in others)


def _formula(numbers: Sequence[Any], sizes: Sequence[int]) -> Sized | None:
    """Return a formula for numbers; there are more sizes than unknowns, which confirms it."""
    if type(numbers[0]) is int:
        terms = _parabola(numbers, sizes)
        below = math.lcm(*[term.denominator for term in terms])
        made = Sized(tuple([int(term * below) for term in terms]), (below,), 1, True)
        return made if [made.at(n) for n in sizes] == list(numbers) else None
    if not all(map(math.isfinite, numbers)):
        return None
    found = [*_quotients(numbers, sizes, 1)]
    for power in (2, 0.5):
        found += _quotients([abs(x) ** (1 / power) for x in numbers], sizes, power)
    found.append(Sized(tuple(map(float, _parabola(numbers, sizes))), (1.0,), 1, False))
    return next((made for made in found if _holds(made, numbers, sizes)), None)


def _holds(made: Sized, numbers: Sequence[float], sizes: Sequence[int]) -> bool:
    """Whether a formula has these values, up to rounding."""
    try:
        return np.allclose([made.at(n) for n in sizes], numbers, rtol=1e-13, atol=0)
    except ZeroDivisionError:
        return False


def _parabola(numbers: Sequence[float], sizes: Sequence[int]) -> tuple[Fraction, ...]:
    """The coefficients of the polynomial of degree 2 through the first three numbers."""
    (a, b, c), (x, y, z) = sizes[:3], map(Fraction, numbers[:3])
    first = (y - x) / (b - a)
    second = ((z - y) / (c - b) - first) / (c - a)
    return x - first * a + second * a * b, first - second * (a + b), second


def _quotients(numbers: Sequence[float], sizes: Sequence[int], power: float) -> Iterator[Sized]:
    """Quotients of linear functions, the simplest first, with rounding errors removed."""
    slope, offset = _line(numbers, sizes)
    yield Sized((offset, slope), (1.0,), power, False)
    if all(numbers):
        slope, offset = _line([1 / x for x in numbers], sizes)
        yield Sized((1.0,), (offset, slope), power, False)
    table = [(n, 1.0, -x) for n, x in zip(sizes, numbers, strict=True)]
    wanted = [x * n for n, x in zip(sizes, numbers, strict=True)]
    below = round(float(np.linalg.lstsq(table, wanted)[0][2]))
    slope, offset = _line([x * (n + below) for n, x in zip(sizes, numbers, strict=True)], sizes)
    yield Sized((offset, slope), (float(below), 1.0), power, False)


def _line(numbers: Sequence[float], sizes: Sequence[int]) -> tuple[float, float]:
    """The slope and offset of a line through the first and last number."""
    slope = (numbers[-1] - numbers[0]) / (sizes[-1] - sizes[0])
    offset = numbers[0] - slope * sizes[0]
    largest = max(map(abs, numbers))
    slope = 0.0 if abs(slope * sizes[-1]) <= 1e-13 * largest else slope
    return slope, 0.0 if abs(offset) <= 1e-13 * largest else offset


def _differ(what: str, line: Line | None) -> ExportError:
    """The error for a dependence on the batch size without a formula."""
    where = "" if line is None else f"{describe(line)}: "
    return ExportError(
        f"{where}{what} depends on the batch size in a way that no formula is known for; give "
        "batch_axes=None for a model of one batch size"
    )
