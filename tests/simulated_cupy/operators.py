"""The operators of ``cupy.ndarray``."""

from typing import Any

import cupy
import numpy as np


class Operators:
    """What an array of CuPy's does with Python's operators."""

    __slots__ = ()
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]


def _leaves_to(x: Operators, y: Any) -> bool:
    """Whether an operator is the other operand's, as CuPy decides it."""
    if hasattr(y, "__array_ufunc__"):
        return y.__array_ufunc__ is None
    return getattr(y, "__array_priority__", 0) > x.__array_priority__


def _operator(name: str) -> Any:
    function = getattr(np, name)

    def method(self: Operators, other: Any) -> Any:
        if isinstance(other, Operators):
            return getattr(cupy, name)(self, other)
        return NotImplemented if _leaves_to(self, other) else function(self, other)

    def reflected(self: Operators, other: Any) -> Any:
        return NotImplemented if _leaves_to(self, other) else function(other, self)

    def in_place(self: Operators, other: Any) -> Any:
        return getattr(cupy, name)(self, other, self)

    return method, reflected, in_place


_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "matmul": "matmul",
    "lshift": "left_shift", "rshift": "right_shift", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "divmod": "divmod",
}  # fmt: skip


def _compared(name: str, short: str) -> Any:
    method = _operator(name)[0]

    def compared(self: Operators, other: Any) -> Any:
        if short in ("eq", "ne") and (other is None or type(other).__eq__ is object.__eq__):
            return (cupy.zeros if short == "eq" else cupy.ones)(self.shape, dtype=np.bool_)
        return method(self, other)

    return compared


for _short, _name in _COMPARISONS.items():
    setattr(Operators, f"__{_short}__", _compared(_name, _short))
for _short, _name in _BINARY.items():
    for _prefix, _made in zip(("", "r", "i"), _operator(_name), strict=True):
        setattr(Operators, f"__{_prefix}{_short}__", _made)
for _short, _name in {
    "neg": "negative",
    "pos": "positive",
    "abs": "absolute",
    "invert": "invert",
}.items():
    setattr(Operators, f"__{_short}__", lambda self, _name=_name: getattr(cupy, _name)(self))
