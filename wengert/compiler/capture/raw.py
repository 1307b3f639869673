"""Raw arrays that the user's code gets, of which `wengert.asarray` makes Tensors.

Arithmetic, ufuncs and indexing call the library's functions, so that results and their types are
the library's. All else is refused.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.trace import copied, is_mask
from wengert.compiler.capture.traced import Traced, traced
from wengert.compiler.capture.traced_number import plain, with_operators
from wengert.compiler.passes.forms import COPY, Method, getter
from wengert.compiler.program import mapped
from wengert.ops.operators import BINARY
from wengert.tape.aliases import overlap
from wengert.tape.tensor import Tensor

__all__ = ["RawArray", "check_class", "shared"]

#: Attributes that depend on shape and dtype alone.
_STATIC: Final = frozenset({"itemsize", "nbytes", "ndim", "size"})
#: Attributes that are arrays.
_PARTS: Final = frozenset({"T", "imag", "mT", "real"})
#: NumPy's own array classes.
_NUMPYS: Final = (np.ndarray, np.memmap)


class RawArray(Traced):
    """A traced array as the user's code sees it: `isinstance` says that it is the library's."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.inner)

    def call(
        self, name: str, function: Callable[..., Any], *operands: Any, **parameters: Any
    ) -> "RawArray":
        """Call a function of arrays on the inner ones, and record it."""
        self.trace.backends.add(backend_of(self.inner))
        answer = self.trace.call(f"raw.{name}", function, operands, parameters)
        if type(answer) is not Traced:
            raise _refused(f"{name} of a raw array gives no array")
        return RawArray(answer.inner, answer.value, answer.trace)

    # -- the library's protocols -----------------------------------------------------------------

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        if method != "__call__" or keywords.get("out") is not None:
            raise _refused(f"np.{ufunc.__name__} of a raw array reduces it or writes into one")
        return self.call(ufunc.__name__, ufunc, *inputs, **keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        raise _refused(f"np.{func.__name__} is called with a raw array")

    # -- attributes and items --------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        inner = self.inner
        if name in _STATIC:
            return getattr(inner, name)
        if name == "__array_priority__" or not hasattr(inner, name):
            raise AttributeError(f"{type(inner).__name__!r} object has no attribute {name!r}")
        if name in _PARTS:
            return self.call(name, getter(name), self)
        if name == "item" and isinstance(inner, np.generic):  # as an operand of a Tensor's
            return lambda: self.trace.number("item", Method("item"), (self,))
        raise _refused(f"{name} is asked of a raw array")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("inner", "level", "trace", "value"):
            raise _refused(f"{name} of a raw array is set")
        object.__setattr__(self, name, value)

    def __getitem__(self, key: Any) -> Any:
        if any(map(is_mask, key if isinstance(key, tuple) else (key,))):
            raise _refused("the shape of what a mask chooses depends on values")
        return self.call("getitem", operator.getitem, self, mapped(_pinned, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise _refused("a raw array is changed in place")

    __delitem__ = __setitem__

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self.inner)))

    def __copy__(self, memo: Any = None) -> Any:
        return self.call("copy", COPY if isinstance(self.inner, np.ndarray) else copied, self)

    __deepcopy__ = __copy__

    # -- what is asked of values -----------------------------------------------------------------

    def values(self, *_: Any) -> Any:
        raise _refused("the values of a raw array are read")

    __array__ = __bool__ = __complex__ = __contains__ = __float__ = __format__ = __hash__ = values  # type: ignore[assignment]
    __index__ = __int__ = __reduce__ = __reduce_ex__ = __repr__ = __round__ = __str__ = values
    __dlpack__ = values


def _refused(what: str) -> TraceError:
    return TraceError(
        f"{user_line()}: {what} inside a function that is compiled, which a replay could not "
        "repeat. Make it a Tensor by wg.asarray(...), and compute with that"
    )


def _pinned(x: Any) -> Any:
    """A part of a key with the traced numbers in slices pinned: instructions can't have these."""
    return slice(*plain((x.start, x.stop, x.step))) if type(x) is slice else x


def _binary(name: str, function: Callable[..., Any], *, reflected: bool) -> Callable[..., Any]:
    def method(self: RawArray, other: Any) -> Any:
        if isinstance(other, Tensor):
            if name == "mul" and isinstance(self.inner, np.ndarray):
                # As NumPy's operator does: a complex product depends on the operands' order.
                return other.__array_ufunc__(np.multiply, "__call__", self, other)
            return NotImplemented
        return self.call(name, function, *((other, self) if reflected else (self, other)))

    return method


def _in_place(self: RawArray, other: Any) -> Any:
    if isinstance(self.inner, np.generic) or backend_of(self.inner).immutable:
        return NotImplemented  # Python then assigns a new object
    raise _refused("a raw array is changed in place")


with_operators(
    RawArray,
    _binary,
    partial(_binary, reflected=False),
    lambda name, function: lambda self: self.call(name, function, self),
)
for _name, *_ in BINARY:
    setattr(RawArray, f"__i{_name}__", _in_place)

namespaces[RawArray] = traced


def _in_kind(self: Traced, like: Any) -> Any:
    if not hasattr(like, "dtype"):
        raise TraceError(
            f"{user_line()}: what a transform answers to a Python number is a Python number, which "
            "differs from call to call, and the program would keep that of this one. Give it a "
            "Tensor"
        )
    found = RawArray(self.inner, self.value, self.trace)
    scalar = isinstance(self.inner, np.generic)
    if not (scalar or isinstance(self.inner, np.ndarray)) or self.shape:
        return found.__copy__()  # eager transforms answer with memory of their own
    if scalar == isinstance(like, np.generic):
        return found
    return found.call("asarray", np.asarray, found) if scalar else found[()]


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
