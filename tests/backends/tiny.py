"""An array library that nobody told Wengert about: it conforms, and does nothing more.

Its arrays refuse those of other libraries, have neither ``__array__`` nor ``__array_ufunc__``, and
its dtypes print in a way of their own.
"""

import sys
from collections.abc import Callable
from typing import Any

import array_api_compat.numpy as compat
import numpy as np

__array_api_version__ = "2024.12"


class DType:
    def __init__(self, name: str) -> None:
        self.numpy = np.dtype(name)

    def __repr__(self) -> str:
        return f"<tiny type: {self.numpy.name!r}>"


NAMES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
]
DTYPES = {np.dtype(name): DType(name) for name in NAMES}


class Array:
    __array_ufunc__ = None

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return sys.modules[__name__]

    @property
    def dtype(self) -> DType:
        return DTYPES[self._values.dtype]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    @property
    def device(self) -> str:
        return "tiny"

    def to_device(self, device: str, /, *, stream: Any = None) -> "Array":
        return self

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._values.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._values.__dlpack_device__()

    def __getitem__(self, key: Any) -> "Array":
        return Array(self._values[_bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_bare(key)] = _bare(value)


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Array, *others: Any) -> Any:
        if not all(isinstance(other, Array | int | float | complex) for other in others):
            return NotImplemented
        return _wrapped(getattr(self._values, name)(*_bare(others)))

    return method


for _name in ["add", "sub", "mul", "truediv", "and", "or"]:
    for _prefix in ("", "r"):
        setattr(Array, f"__{_prefix}{_name}__", _operator(f"__{_prefix}{_name}__"))
for _name in ["lt", "le", "gt", "ge", "eq", "ne", "neg", "invert"]:
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


def _bare(value: Any) -> Any:
    if isinstance(value, Array):
        return value._values
    if isinstance(value, DType):
        return value.numpy
    if isinstance(value, tuple | list):
        return type(value)(_bare(item) for item in value)
    if isinstance(value, np.ndarray | np.generic):
        raise TypeError("tiny knows no NumPy arrays")
    return value


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return DTYPES[value]
    if isinstance(value, np.ndarray | np.generic):
        return Array(value)
    if isinstance(value, tuple | list):
        return type(value)(_wrapped(item) for item in value)
    return value


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device", None)
        bare = {name: _bare(value) for name, value in kwargs.items()}
        return _wrapped(function(*_bare(args), **bare))

    return call


#: What it has of the standard.
FUNCTIONS = """
    abs add astype broadcast_to concat conj cos divide empty equal exp expand_dims full
    greater isdtype less log matmul matrix_transpose max mean multiply negative not_equal
    ones permute_dims pow real reshape result_type sin sqrt square squeeze stack subtract
    sum tanh tril where zeros zeros_like ones_like
"""
for _name in FUNCTIONS.split():
    globals()[_name] = _function(getattr(compat, _name))
for _name in NAMES:
    globals()[_name] = DTYPES[np.dtype(_name)]


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    # The standard has buffers taken; NumPy's arrays come in through that door alone.
    return Array(np.array(_bare(obj) if isinstance(obj, Array) else memoryview(obj), _bare(dtype)))
