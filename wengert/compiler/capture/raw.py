"""Raw arrays in a recording, of which Wengert's functions make Tensors.

Their shapes and dtypes can be asked for. All else is refused: computing with them, too.
"""

import operator
import sys
from typing import Any, Final

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.trace import copied
from wengert.compiler.capture.traced import Traced, traced
from wengert.compiler.owners import package_of
from wengert.compiler.passes.forms import COPY
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY
from wengert.tape.aliases import overlap
from wengert.tape.tensor import Tensor

__all__ = ["RawArray", "check_class", "shared"]

#: Attributes that depend on shape and dtype alone.
_STATIC: Final = frozenset({"itemsize", "nbytes", "ndim", "size"})
#: NumPy's own array classes.
_NUMPYS: Final = (np.ndarray, np.memmap)


class RawArray(Traced):
    """A traced array as the user's code sees it: `isinstance` says that it is the library's."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.inner)

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        raise _refused(f"np.{ufunc.__name__} is called with a raw array")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        raise _refused(f"np.{func.__name__} is called with a raw array")

    def __getattr__(self, name: str) -> Any:
        if name in _STATIC:
            return getattr(self.inner, name)
        if name == "__array_priority__" or not hasattr(self.inner, name):
            raise AttributeError(f"{type(self.inner).__name__!r} object has no attribute {name!r}")
        raise _refused(f"{name} is asked of a raw array")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("inner", "level", "trace", "value"):
            raise _refused(f"{name} of a raw array is set")
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.inner)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise _refused("a raw array is changed in place")

    __delitem__ = __setitem__

    def values(self, *_: Any) -> Any:
        raise _refused("elements of a raw array are read, or copied")

    __array__ = __bool__ = __complex__ = __contains__ = __float__ = __format__ = __hash__ = values  # type: ignore[assignment]
    __index__ = __int__ = __reduce__ = __reduce_ex__ = __repr__ = __round__ = __str__ = values
    __dlpack__ = __getitem__ = __iter__ = __copy__ = __deepcopy__ = values


def _refused(what: str) -> TraceError:
    return TraceError(
        f"{user_line()}: {what} inside a function that is compiled; write wg.asarray(x) first, "
        "and compute with that"
    )


def _operator(name: str) -> Any:
    own = getattr(Traced, f"__{name}__", None)

    def method(self: RawArray, *others: Any) -> Any:
        caller = sys._getframe(1).f_globals["__name__"]
        if own is not None and package_of(caller) == "wengert":  # a rule, of an operand
            return own(self, *others)
        if not others or not isinstance(others[0], Tensor) or name[0] == "i":
            raise _refused(f"Python's operator {name} computes with a raw array")
        if name == "mul" and isinstance(self.inner, np.ndarray):
            # As NumPy's operator does: a complex product depends on the operands' order.
            return others[0].__array_ufunc__(np.multiply, "__call__", self, *others)
        return NotImplemented

    return method


for _name in (
    *(sign + name for name, *_ in BINARY for sign in ("", "r", "i")),
    *(name for name, *_ in (*UNARY, *EQUALITY, *ORDER)),
):
    setattr(RawArray, f"__{_name}__", _operator(_name))

namespaces[RawArray] = traced


def _in_kind(self: Traced, like: Any) -> Any:
    if not hasattr(like, "dtype"):
        raise TraceError(
            f"{user_line()}: what a transform answers to a Python number is a Python number, which "
            "differs from call to call, and the program would keep that of this one. Give it a "
            "Tensor"
        )
    inner, found = self.inner, self
    self.trace.backends.add(backend_of(inner))
    scalar, of_numpy = isinstance(inner, np.generic), isinstance(inner, np.generic | np.ndarray)
    if self.shape or not of_numpy:  # eager transforms answer with memory of their own
        copy = COPY if of_numpy else copied
        found = self.trace.call("raw.copy", copy, (self,), {})
    elif scalar and not isinstance(like, np.generic):
        found = self.trace.call("raw.asarray", np.asarray, (self,), {})
    elif isinstance(like, np.generic) and not scalar:
        found = self.trace.call("raw.getitem", operator.getitem, (self, ()), {})
    return RawArray(found.inner, found.value, found.trace)


Traced.in_kind = _in_kind  # type: ignore[assignment,method-assign]


def check_class(x: Any, name: str) -> None:
    """Raise if an array's class is a subclass of `numpy.ndarray`, which can't be traced."""
    kind = type(x)
    if kind not in _NUMPYS and issubclass(kind, np.ndarray):
        raise TraceError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, a subclass of numpy.ndarray, "
            "which can't be traced: pass np.asarray(x) instead"
        )


def shared(x: Any, y: Any) -> bool:
    """Whether two arrays of a library may overlap in memory, if the library tells."""
    if hasattr(x, "untyped_storage") and hasattr(y, "untyped_storage"):
        pair = x.untyped_storage(), y.untyped_storage()
        return bool(pair[0].data_ptr() == pair[1].data_ptr() and x.numel())
    return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and overlap(x, y)
