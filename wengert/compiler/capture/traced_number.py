"""Traced Python numbers, which may differ from call to call."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.program import Value, map_parts
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY

__all__ = ["TracedNumber", "plain"]


class TracedNumber:
    """A Python number that may differ from call to call, such as a learning rate.

    Arithmetic is recorded. The program requires the outcome of each comparison. Any
    other use, such as an index or a length, pins the number: the program requires this value.
    `isinstance` sees the number's own type.
    """

    __slots__ = ("number", "trace", "value")

    def __init__(self, number: Any, value: Value, trace: Any) -> None:
        self.number = number
        self.value = value
        self.trace = trace

    #: Then NumPy's arrays and scalars leave operators to this class, and its ufuncs refuse.
    __array_ufunc__ = None
    #: The number's own type.
    follows = property(lambda self: type(self.number))
    __class__ = follows

    def regularise(self, arrays: list[Any], weak: bool) -> type:
        """Replace raw arrays beside this number by traced ones, in place."""
        return self.trace.regularise(arrays, weak)  # type: ignore[no-any-return]

    def pin(self) -> Any:
        """The number itself; the program requires its value from now on."""
        return self.trace.pin(self)

    def present(self) -> Any:
        """The number itself, to find NumPy's dtype for it, which depends on an integer's size."""
        return self.pin() if type(self.number) is int else self.number

    def through(self, function: Callable[..., Any]) -> Any:
        """Apply a function of the module `math`, which is recorded."""
        return self.trace.number(function.__name__, function, (self,))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.number, name):
            raise AttributeError(f"a number has no attribute {name!r}")
        return getattr(self.pin(), name)

    def conjugate(self) -> "TracedNumber":
        """The number itself, where it is real; rules ask for it."""
        return self.pin().conjugate() if type(self.number) is complex else self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.pin(), dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not all(issubclass(kind, TracedNumber | np.ndarray) for kind in types):
            return NotImplemented
        return func(*plain(args), **plain(kwargs))

    def __bool__(self) -> bool:
        return self.trace.decide("ne", operator.ne, (self, 0))  # type: ignore[no-any-return]

    __divmod__ = lambda self, other: (self // other, self % other)
    __rdivmod__ = lambda self, other: (other // self, other % self)

    def __copy__(self, memo: Any = None) -> "TracedNumber":
        return self

    __deepcopy__ = __copy__


#: Types of numbers whose arithmetic is Python's own, and all operands that operators take.
_PYTHONS = frozenset({TracedNumber, int, float, complex, bool})
_OPERANDS = (TracedNumber, int, float, complex, np.generic, np.ndarray)


def plain(x: Any) -> Any:
    """An argument with traced numbers pinned."""
    return map_parts(_pin, x)


def _pin(x: Any) -> Any:
    if type(x) is slice:
        return slice(*plain((x.start, x.stop, x.step)))
    return x.pin() if type(x) is TracedNumber else x


def _binary(name: str, function: Callable[..., Any], *, reflected: bool) -> Callable[..., Any]:
    def method(self: TracedNumber, other: Any) -> Any:
        if not issubclass(type(other), _OPERANDS):  # a raw array answers itself
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        # NumPy's arrays and scalars and an `IntEnum`, say, have operators of their own.
        if type(other) not in _PYTHONS or (name == "pow" and not _keeps_type(*pair)):
            return function(*plain(pair))
        does = self.trace.decide if name in _COMPARISONS else self.trace.number
        return does(name, function, pair)

    return method


def _keeps_type(base: Any, exponent: Any) -> bool:
    """Whether a power's type is decided, by comparisons."""
    if isinstance(exponent, int):
        if isinstance(base, int):
            bool(exponent >= 0)  # a negative exponent gives a float
        return True
    if isinstance(exponent, complex) or isinstance(base, complex):
        return True
    # A root of a negative number is complex.
    return bool(base >= 0) or (type(exponent) is float and exponent.is_integer())


def _unary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: self.trace.number(name, function, (self,))


def _pinning(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given: function(self.pin(), *given)


_COMPARISONS = frozenset([name for name, _ in (*EQUALITY, *ORDER)])
for _name in [name for name, *_ in BINARY if name != "matmul"] + [*_COMPARISONS]:
    _function = getattr(operator, f"__{_name}__")
    setattr(TracedNumber, f"__{_name}__", _binary(_name, _function, reflected=False))
    if _name not in _COMPARISONS:
        setattr(TracedNumber, f"__r{_name}__", _binary(_name, _function, reflected=True))
for _name, _ in UNARY:
    setattr(TracedNumber, f"__{_name}__", _unary(_name, getattr(operator, f"__{_name}__")))
for _function in (
    *(complex, float, int, hash, repr, format, operator.index),
    *(round, math.trunc, math.floor, math.ceil),
):
    setattr(TracedNumber, f"__{_function.__name__}__", _pinning(_function))
