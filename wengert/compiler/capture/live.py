"""Python numbers that may differ from one run of a program to the next."""

import operator
from collections.abc import Callable
from typing import Any

from wengert.compiler.program import Value

__all__ = ["LiveNumber"]


class LiveNumber:
    """A Python number that may differ from call to call, such as a learning rate.

    Arithmetic is recorded. Where its value decides something, in a comparison, as an index or as a
    length, the program is for that value alone: the trace pins it.
    """

    __slots__ = ("number", "trace", "value")

    #: Makes NumPy leave ``array * number`` to the reflected operator.
    __array_ufunc__ = None

    def __init__(self, number: Any, value: Value, trace: Any) -> None:
        self.number = number
        self.value = value
        self.trace = trace

    @property
    def follows(self) -> type:
        """The type of the number."""
        return type(self.number)

    def regularise(self, arrays: list[Any], weak: bool) -> type:
        """Make raw arrays beside this number, which do not know it, traced ones, in place."""
        return self.trace.regularise(arrays, weak)  # type: ignore[no-any-return]

    def _pinned(self) -> Any:
        return self.trace.pin(self)

    def conjugate(self) -> "LiveNumber":
        """The number itself, which is real."""
        return self

    def __bool__(self) -> bool:
        return bool(self._pinned())

    def __int__(self) -> int:
        return int(self._pinned())

    def __float__(self) -> float:
        return float(self._pinned())

    def __complex__(self) -> complex:
        return complex(self._pinned())

    def __index__(self) -> int:
        return operator.index(self._pinned())

    def __hash__(self) -> int:
        return hash(self._pinned())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._pinned(), digits)

    def __repr__(self) -> str:
        return repr(self._pinned())

    def __format__(self, spec: str) -> str:
        return format(self._pinned(), spec)


def _arithmetic(name: str, function: Callable[..., Any], *, reflected: bool) -> Callable[..., Any]:
    def method(self: LiveNumber, other: Any) -> Any:
        if not isinstance(other, LiveNumber | int | float | complex):
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        return self.trace.number(name, function, pair)

    return method


def _sign(name: str, function: Callable[..., Any]) -> Callable[[LiveNumber], Any]:
    return lambda self: self.trace.number(name, function, (self,))


def _comparison(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: LiveNumber, other: Any) -> Any:
        if isinstance(other, LiveNumber):
            other = other._pinned()
        elif not isinstance(other, int | float | complex):
            return NotImplemented
        return function(self._pinned(), other)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _function = getattr(operator, _name)
    setattr(LiveNumber, f"__{_name}__", _arithmetic(_name, _function, reflected=False))
    setattr(LiveNumber, f"__r{_name}__", _arithmetic(_name, _function, reflected=True))
for _name in ("neg", "pos", "abs"):
    setattr(LiveNumber, f"__{_name}__", _sign(_name, getattr(operator, _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(LiveNumber, f"__{_name}__", _comparison(getattr(operator, _name)))
# An exponent or a base may be a Tensor, and `math.sqrt` asks for a float; the rest is above.
