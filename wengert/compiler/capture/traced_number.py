"""Traced Python numbers, which may differ from call to call."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.program import Value, mapped
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY

__all__ = ["SymbolicNumber", "TracedNumber", "with_operators"]


class SymbolicNumber:
    """A number with symbolic arithmetic of its own, which is a constant to programs."""

    def plain_number(self) -> Any:
        """The number of Python's own type."""
        raise NotImplementedError


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

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.number)

    @property
    def follows(self) -> type:
        """The number's own type."""
        return type(self.number)

    def regularise(self, arrays: list[Any], weak: bool) -> type:
        """Replace raw arrays beside this number by traced ones, in place."""
        return self.trace.regularise(arrays, weak)  # type: ignore[no-any-return]

    def pinned(self) -> Any:
        """The number itself; the program requires its value from now on."""
        return self.trace.pin(self)

    def present(self: Any) -> Any:
        """The number itself, to find NumPy's dtype for it.

        The dtype depends on whether int64 holds an integer, which the program then
        requires. A larger integer is pinned.
        """
        if type(self.number) is not int:
            return self.number
        if not self.trace.given(self):  # it depends on arrays: check in each run
            if _LOW <= self.number < _HIGH:
                self.trace.look(check_int64, (self,))
                return self.number
        elif _LOW <= self < _HIGH:
            return self.number
        return self.pinned()

    def through(self, function: Callable[..., Any], *given: Any) -> Any:
        """Apply `round` or a function of the module `math`, which is recorded."""
        return self.trace.number(function.__name__, function, (self, *given))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.number, name):
            raise AttributeError(f"a number has no attribute {name!r}")
        return getattr(self.pinned(), name)

    def conjugate(self) -> "TracedNumber":
        """The number itself, where it is real."""
        return self.pinned().conjugate() if type(self.number) is complex else self

    @property
    def real(self) -> "TracedNumber":
        """The number itself, where it is real."""
        return self.pinned().real if type(self.number) is complex else self

    # -- NumPy ---------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.pinned(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if any(_answers(x) for x in inputs):
            return NotImplemented
        given = plain(inputs)
        if any(hasattr(x, "dtype") and not x.shape and x.dtype.kind == "c" for x in given):
            raise TraceError(
                f"{user_line()}: NumPy's {ufunc.__name__} of a complex scalar and a number may "
                "differ from the operator, and a recording can't tell which of them is called"
            )
        return getattr(ufunc, method)(*given, **plain(keywords))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not all(issubclass(kind, TracedNumber | np.ndarray) for kind in types):
            return NotImplemented
        return func(*plain(args), **plain(kwargs))

    # -- conversions ---------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return self.trace.decide("ne", operator.ne, (self, 0))  # type: ignore[no-any-return]

    def __copy__(self) -> "TracedNumber":
        return self

    def __deepcopy__(self, memo: Any) -> "TracedNumber":
        return self

    def __reduce__(self) -> Any:
        return plain, (self.pinned(),)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


_LOW, _HIGH = -(1 << 63), 1 << 63


def check_int64(number: int) -> None:
    """Raise for an integer that int64 does not hold."""
    if not _LOW <= number < _HIGH:
        raise OverflowError(f"the integer {number} is too large for int64")


#: Types of numbers whose arithmetic is Python's own.
_PYTHONS = frozenset({TracedNumber, int, float, complex, bool})


def plain(x: Any) -> Any:
    """An argument of NumPy's with traced numbers pinned."""
    return mapped(lambda part: part.pinned() if type(part) is TracedNumber else part, x)


def _answers(x: Any) -> bool:
    """Whether an operand overrides NumPy's ufuncs, as a Tensor does."""
    own = getattr(type(x), "__array_ufunc__", None)
    return own not in (None, TracedNumber.__array_ufunc__, np.ndarray.__array_ufunc__)


def _arithmetic(name: str, function: Callable[..., Any], *, reflected: bool) -> Callable[..., Any]:
    def method(self: TracedNumber, other: Any, *modulus: Any) -> Any:
        if modulus or isinstance(other, np.generic):  # NumPy's scalars have a dtype
            self, *modulus = (plain(x) for x in (self, *modulus))  # type: ignore[assignment]
            pair = (other, self) if reflected else (self, other)
            return pow(*pair, *modulus) if modulus else function(*pair)
        if not isinstance(other, TracedNumber | int | float | complex):
            return NotImplemented
        if isinstance(other, SymbolicNumber):
            other = other.plain_number()
        pair = (other, self) if reflected else (self, other)
        if type(other) not in _PYTHONS:  # an `IntEnum`, say, which may have operators of its own
            return function(*plain(pair))
        if name == "pow" and not _keeps_type(*pair):
            return function(*plain(pair))
        return self.trace.number(name, function, pair)

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


def _sign(name: str, function: Callable[..., Any]) -> Callable[[TracedNumber], Any]:
    return lambda self: self.trace.number(name, function, (self,))


def _comparison(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: TracedNumber, other: Any) -> Any:
        if isinstance(other, np.generic):
            return function(self.pinned(), other)
        if not isinstance(other, TracedNumber | int | float | complex):
            return NotImplemented
        if isinstance(other, SymbolicNumber):
            other = other.plain_number()
        if type(other) not in _PYTHONS:
            return function(self.pinned(), other)
        return self.trace.decide(name, function, (self, other))

    return method


def _conversion(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given: function(self.pinned(), *given)


def _rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given: self.through(function, *given)


def with_operators(
    cls: type,
    binary: Callable[..., Any],
    comparison: Callable[..., Any],
    unary: Callable[..., Any],
    but: str = "",
) -> None:
    """Give a class Python's operators, by functions that make the methods."""
    for name, *_ in (x for x in BINARY if x[0] != but):
        function = getattr(operator, f"__{name}__")
        setattr(cls, f"__{name}__", binary(name, function, reflected=False))
        setattr(cls, f"__r{name}__", binary(name, function, reflected=True))
    for made, names in ((comparison, (*EQUALITY, *ORDER)), (unary, UNARY)):
        for name, _ in names:
            setattr(cls, f"__{name}__", made(name, getattr(operator, f"__{name}__")))


with_operators(TracedNumber, _arithmetic, _comparison, _sign, but="matmul")
for _function in (complex, float, int, hash, repr, format, operator.index):
    setattr(TracedNumber, f"__{_function.__name__}__", _conversion(_function))
for _rounded in (round, math.trunc, math.floor, math.ceil):
    setattr(TracedNumber, f"__{_rounded.__name__}__", _rounding(_rounded))
# An exponent or a base may be a Tensor, and `math.sqrt` asks for a float; the rest is above.
