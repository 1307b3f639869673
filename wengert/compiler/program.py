"""The intermediate representation: a Wengert list of calls of an array library's functions."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from wengert.backends.registry import placed_by

__all__ = [
    "Instruction",
    "Line",
    "Program",
    "Value",
    "is_literal",
    "map_parts",
    "order_of",
    "substitute",
    "values_in",
]

_number: Callable[[], int] = count(1).__next__

#: Types of operands in which there are no values.
_SCALARS = frozenset({int, float, str, bool, type(None), slice, type(Ellipsis)})


class Line(NamedTuple):
    """The line of the user's code that an instruction comes from."""

    file: str
    number: int
    #: Whether it computes the line's value, the adjoint of that ("backward"), or an "update".
    stage: str = "forward"


class Value:
    """An array or Python number in a program: an input, a constant, or an instruction's result.

    Programs are in SSA form: each value is assigned once. Values are compared by identity.
    The shape of a Python number is None, and its dtype is its type. Names are readable, or "", and
    need not be unique. The order is as of `order_of`.
    """

    __slots__ = ("dtype", "name", "number", "order", "shape")

    def __init__(
        self,
        shape: tuple[int, ...] | None,
        dtype: Any,
        name: str = "",
        order: tuple[int, ...] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.name = name
        self.number = _number()
        self.order = order

    @classmethod
    def like(cls, x: Any, name: str = "") -> "Value":
        """A value of an array's shape and dtype, or of a number's type."""
        dtype = getattr(x, "dtype", None)
        if dtype is None:
            return cls(None, type(x), name)
        return cls(tuple(x.shape), dtype, name, order_of(x))

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape or ())

    def alike(self, other: "Value") -> bool:
        """Whether another value has the same shape, dtype and memory layout."""
        mine, its = (self.shape, self.order), (other.shape, other.order)
        return bool(mine == its and self.dtype == other.dtype)

    def __repr__(self) -> str:
        return f"%{self.number}"


def order_of(array: Any) -> tuple[int, ...] | None:
    """An array's memory layout: its strides, or None for C order.

    It matters because exponentials and sums may round differently on a transposed or reversed view
    than on a copy, and because NumPy's results take their operands' layout. Libraries that do not
    tell the layout are assumed to use C order.
    """
    flags = getattr(array, "flags", None)
    if flags is not None:
        return None if flags.c_contiguous else array.strides
    if hasattr(array, "is_contiguous") and not array.is_contiguous():
        return tuple(array.stride())
    return None


@dataclass(eq=False, slots=True)  # a frozen one takes four times as long to make
class Instruction:
    """One call, ``results = function(*operands, **parameters)``; immutable by convention."""

    #: Of a function of the backend's namespace, such as "add", "linalg.qr"; of Python's arithmetic,
    #: such as "number.add"; "draw" for a function that draws random numbers in host memory.
    name: str
    function: Callable[..., Any]
    #: `Value` objects, Python numbers, None, and nested tuples and lists of these.
    operands: tuple[Any, ...]
    parameters: Mapping[str, Any]
    results: tuple[Value, ...]
    #: Whether the function returns a sequence of results, or none.
    several: bool = False
    #: Whether it may be eliminated or merged with an equal call. Random draws are not pure.
    pure: bool = True
    line: Line | None = None
    #: The value whose memory the result is written into; a pass sets it.
    out: Value | None = None
    #: Cache of `wengert.compiler.passes.forms.form`.
    form: Any = field(default=None, init=False, repr=False)
    _used: tuple[Value, ...] | None = field(default=None, init=False, repr=False)

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    def results_of(self, answer: Any) -> tuple[Any, ...]:
        """The function's return value as a tuple of results."""
        if not self.several:
            return (answer,)
        return tuple(answer) if self.results else ()

    def run(self, known: Mapping[Value, Any]) -> tuple[Any, ...]:
        """Call the function with known values, on the device of its operands."""
        operands = substitute(self.operands, known)
        parameters = {name: substitute(x, known) for name, x in self.parameters.items()}
        function = placed_by(operands, self.function)
        return self.results_of(function(*operands, **parameters))

    def uses(self) -> tuple[Value, ...]:
        """The values among the operands, in order, with repetitions."""
        if self._used is None:
            found: list[Value] = []
            for x in (*self.operands, *self.parameters.values()):
                kind = type(x)
                if kind is Value:
                    found.append(x)
                elif kind not in _SCALARS and not is_literal(x):
                    found.extend(values_in(x))
            self._used = tuple(found)
        return self._used

    def with_values(self, values: Mapping[Value, Any]) -> "Instruction":
        """The same call with the values that ``values`` maps replaced."""
        if values.keys().isdisjoint(self.uses()):
            return self
        operands = tuple([substitute(x, values) for x in self.operands])
        parameters = self.parameters
        if parameters:
            parameters = {name: substitute(x, values) for name, x in parameters.items()}
        return self._like(operands, parameters, self.out)

    def writing(self, out: Value) -> "Instruction":
        """The same call with its result written into the memory of ``out``."""
        made = self._like(self.operands, self.parameters, out)
        made.form, made._used = self.form, self._used
        return made

    def _like(
        self, operands: tuple[Any, ...], parameters: Mapping[str, Any], out: Value | None
    ) -> "Instruction":
        # `dataclasses.replace` takes three times as long.
        made = (self.name, self.function, operands, parameters, self.results)
        return Instruction(*made, self.several, self.pure, self.line, out)


@dataclass(frozen=True, eq=False)
class Program:
    """A straight-line program of inputs, instructions and outputs: values, or Python constants."""

    inputs: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[Any, ...]
    #: Arrays that are the same in each run, and never written into.
    constants: Mapping[Value, Any] = field(default_factory=dict)
    #: Memory that persists between runs, for instructions to write into.
    buffers: tuple[Value, ...] = ()
    #: Views of buffers, taken once before the first run.
    views: tuple[Instruction, ...] = ()

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Interpret the program: the reference for every emitted form of it."""
        if len(arguments) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} inputs, not {len(arguments)}")
        known: dict[Value, Any] = dict(self.constants)
        known.update(zip(self.inputs, arguments, strict=True))
        for step in self.instructions:
            known.update(zip(step.results, step.run(known), strict=True))
        return substitute(self.outputs, known)  # type: ignore[no-any-return]

    def read(self) -> set[Value]:
        """The values that instructions use, or that are outputs."""
        return {*self.uses(), *values_in(self.outputs)}

    def uses(self) -> Counter[Value]:
        """How often instructions use each value."""
        return Counter(value for step in self.instructions for value in step.uses())


def values_in(x: Any) -> Iterator[Value]:
    """The values in an operand: itself, or those in a sequence or slice."""
    if isinstance(x, Value):
        yield x
    elif isinstance(x, tuple | list):
        for part in x:
            yield from values_in(part)
    elif isinstance(x, dict):
        yield from values_in(tuple(x.values()))


def is_literal(x: Any) -> bool:
    """Whether an operand is a tuple of numbers, slices and the like, as keys and shapes are."""
    if type(x) is not tuple:
        return False
    for part in x:  # noqa: SIM110 -- a generator takes twice as long
        if type(part) not in _SCALARS:
            return False
    return True


def map_parts(function: Callable[[Any], Any], x: Any) -> Any:
    """An operand with a function applied to each part that is no sequence or dict."""
    if isinstance(x, tuple | list):
        parts = [map_parts(function, part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: map_parts(function, part) for key, part in x.items()}
    return function(x)


def substitute(x: Any, values: Mapping[Value, Any]) -> Any:
    """An operand with the values that ``values`` maps replaced."""
    kind = type(x)
    if kind is Value:
        return values.get(x, x)
    if kind in _SCALARS or is_literal(x):
        return x
    return map_parts(lambda part: values.get(part, part) if isinstance(part, Value) else part, x)
