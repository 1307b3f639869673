"""The intermediate representation: a Wengert list of calls of an array library's functions."""

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
    "mapped",
    "order_of",
    "substitute",
    "values_in",
]

_number: Callable[[], int] = count(1).__next__

#: Types of operands in which there are no values.
_SCALARS = frozenset({int, float, str, bool, type(None), slice, type(Ellipsis)})


class Line(NamedTuple):
    """Where in the user's program an instruction comes from.

    Attributes
    ----------
    file : str
        Path of the source file.
    number : int
        The line in it.
    stage : {"forward", "backward", "update"}
        Whether it computes what the line says, the adjoint of that, or an optimiser's update.
    """

    file: str
    number: int
    stage: str = "forward"


class Value:
    """What an instruction computes, or a program is given: an array or a Python number.

    Values are compared by identity; each is computed once.

    Attributes
    ----------
    shape : tuple of int or None
        None for a Python number.
    dtype : object
        The library's own data type, or the type of the number.
    name : str
        How a reader would call it, or "". Names need not be unique.
    number : int
        Values that were made later have larger numbers.
    order : tuple of int or None
        How the elements lie in memory, as `order_of` says.
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
        size = 1
        for length in self.shape or ():
            size *= length
        return size

    def __repr__(self) -> str:
        return f"%{self.number}"


def order_of(array: Any) -> tuple[int, ...] | None:
    """How an array's elements lie in memory: the strides, or None where that is in C's order.

    A library's exponentials and sums may round otherwise on a transposed or reversed view than on
    a copy of it, and NumPy's results follow the order of their operands. Libraries that tell
    nothing of it are taken to keep to C's order.
    """
    flags = getattr(array, "flags", None)
    if flags is not None:
        return None if flags.c_contiguous else array.strides
    if hasattr(array, "is_contiguous") and not array.is_contiguous():
        return tuple(array.stride())
    return None


@dataclass(eq=False, slots=True)  # frozen ones take four times as long to make
class Instruction:
    """One call: ``results = function(*operands, **parameters)``. Nobody changes it.

    Attributes
    ----------
    name : str
        Of a function of the backend's namespace, such as ``"add"``, ``"linalg.qr"``; of Python's
        arithmetic, such as ``"number.add"`` for ``operator.add``; ``"draw"`` for a function that
        draws random numbers in host memory.
    function : callable
        What is called.
    operands : tuple
        `Value` objects, Python numbers, None, and (nested) tuples and lists of these.
    parameters : dict
        The keywords, likewise.
    results : tuple of Value
        One, unless ``several``.
    several : bool
        Whether the function gives a sequence of results, or none.
    pure : bool
        Whether it can be left out, or done once instead of twice: random draws can't.
    line : Line or None
        The user's line.
    out : Value or None
        The value into whose memory the result is written, as the pass that assigns buffers says.
    """

    name: str
    function: Callable[..., Any]
    operands: tuple[Any, ...]
    parameters: Mapping[str, Any]
    results: tuple[Value, ...]
    several: bool = False
    pure: bool = True
    line: Line | None = None
    out: Value | None = None
    #: What `wengert.compiler.passes.forms.form` has found, for each pass asks several times.
    form: Any = field(default=None, init=False, repr=False)
    _used: tuple[Value, ...] | None = field(default=None, init=False, repr=False)

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    def parts(self, answer: Any) -> tuple[Any, ...]:
        """What the function gives, result by result."""
        if not self.several:
            return (answer,)
        return tuple(answer) if self.results else ()

    def run(self, known: Mapping[Value, Any]) -> tuple[Any, ...]:
        """Call the function with the values that are known, where its arrays are."""
        operands = substitute(self.operands, known)
        parameters = {name: substitute(x, known) for name, x in self.parameters.items()}
        function = placed_by(operands, self.function)
        return self.parts(function(*operands, **parameters))

    def used(self) -> tuple[Value, ...]:
        """The values that it takes, in order, as often as it takes them."""
        if self._used is None:  # each pass asks several times
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
        """The same call of other values, where ``values`` has one for a value."""
        if values.keys().isdisjoint(self.used()):
            return self
        operands = tuple([substitute(x, values) for x in self.operands])
        parameters = self.parameters
        if parameters:
            parameters = {name: substitute(x, values) for name, x in parameters.items()}
        return self._like(operands, parameters, self.out)

    def writing(self, out: Value) -> "Instruction":
        """The same call, whose result is written into the memory of ``out``."""
        return self._like(self.operands, self.parameters, out)

    def _like(
        self, operands: tuple[Any, ...], parameters: Mapping[str, Any], out: Value | None
    ) -> "Instruction":
        # `dataclasses.replace` takes three times as long.
        made = (self.name, self.function, operands, parameters, self.results)
        return Instruction(*made, self.several, self.pure, self.line, out)


@dataclass(frozen=True, eq=False)
class Program:
    """A straight-line program: what it is given, its instructions in order, what it gives.

    Attributes
    ----------
    inputs : tuple of Value
        Arguments in order: arrays and Python numbers.
    instructions : tuple of Instruction
        Each takes inputs, constants and results of earlier ones.
    outputs : tuple
        Values, or Python constants.
    constants : dict of Value to array
        Arrays that are the same in each run. Nobody writes into them.
    buffers : tuple of Value
        Memory that it keeps from run to run: instructions write into it.
    views : tuple of Instruction
        Views of buffers, which are taken beforehand.
    """

    inputs: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[Any, ...]
    constants: Mapping[Value, Any] = field(default_factory=dict)
    buffers: tuple[Value, ...] = ()
    views: tuple[Instruction, ...] = ()

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Interpret the program: what every emitted form of it is compared with."""
        if len(arguments) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} inputs, not {len(arguments)}")
        known: dict[Value, Any] = dict(self.constants)
        known.update(zip(self.inputs, arguments, strict=True))
        for step in self.instructions:
            known.update(zip(step.results, step.run(known), strict=True))
        return substitute(self.outputs, known)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        """The Wengert list."""
        lines = [f"inputs {', '.join(map(repr, self.inputs))}"]
        lines += [f"{value!r} = constant {value.shape} {value.dtype}" for value in self.constants]
        for step in self.instructions:
            taken = [repr(x) for x in step.operands]
            taken += [f"{name}={x!r}" for name, x in step.parameters.items()]
            gives = ", ".join(map(repr, step.results))
            lines.append(f"{gives} = {step.name}({', '.join(taken)})")
        return "\n".join([*lines, f"outputs {', '.join(map(repr, self.outputs))}"])


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


def mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """An operand with a function called on each part that is no sequence or dict."""
    if isinstance(x, tuple | list):
        parts = [mapped(function, part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: mapped(function, part) for key, part in x.items()}
    return function(x)


def substitute(x: Any, values: Mapping[Value, Any]) -> Any:
    """An operand with its values replaced, where ``values`` has something for them."""
    kind = type(x)
    if kind is Value:
        return values.get(x, x)
    if kind in _SCALARS or is_literal(x):
        return x
    return mapped(lambda part: values.get(part, part) if isinstance(part, Value) else part, x)
