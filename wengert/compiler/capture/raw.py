"""Raw arrays in a recording, of which Wengert's functions make Tensors.

Operators, ufuncs and indexing call the library's own. Shapes and dtypes can be asked for. All else
is refused.
"""

import operator
import sys
from typing import Any, Final

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.trace import copy_of, is_mask
from wengert.compiler.capture.traced import Traced, traced
from wengert.compiler.capture.traced_number import plain
from wengert.compiler.owners import package_of
from wengert.compiler.passes.forms import COPY, Method, getter
from wengert.func.trees import tree_leaves
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY
from wengert.tape.aliases import overlap
from wengert.tape.tensor import Tensor

__all__ = ["RawArray", "check_class", "share_memory"]

#: Attributes that depend on shape, dtype and device alone.
_STATIC: Final = frozenset({"itemsize", "nbytes", "ndim", "sharding", "size"})


class RawArray(Traced):
    """A traced array as the user's code sees it: `isinstance` says that it is the library's."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # A function of PyTorch's in C reads what has PyTorch's class as an array in memory.
        asker = package_of(sys._getframe(1).f_globals.get("__name__"))
        if asker not in ("abc", "wengert") and backend_of(self.inner).name == "torch":
            raise _refusal("the class of a raw array is asked for")
        return type(self.inner)

    def call(self, name: str, function: Any, *operands: Any, **parameters: Any) -> "RawArray":
        """Call and record a function of arrays."""
        self.trace.backends.add(backend_of(self.inner))
        answer = self.trace.call(f"raw.{name}", function, operands, parameters)
        if type(answer) is not Traced:
            raise _refusal(f"{name} of a raw array gives no array")
        return RawArray(answer.inner, answer.value, answer.trace)

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        of_numpy = np.generic | np.ndarray
        if not isinstance(self.inner, of_numpy) and any(isinstance(x, of_numpy) for x in inputs):
            raise _refusal(f"np.{ufunc.__name__} combines a raw array and one of NumPy")
        if method != "__call__" or keywords.get("out") is not None:
            raise _refusal(f"np.{ufunc.__name__} reduces a raw array, or writes into one")
        return self.call(ufunc.__name__, ufunc, *inputs, **keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        raise _refusal(f"np.{func.__name__} is called with a raw array")

    @classmethod
    def __torch_function__(cls, func: Any, *_: Any) -> Any:
        raise _refusal(f"torch.{func.__name__} is called with a raw array")

    def __getattr__(self, name: str) -> Any:
        if name in _STATIC:
            return getattr(self.inner, name)
        if name == "__array_priority__" or not hasattr(self.inner, name):
            raise AttributeError(f"{type(self.inner).__name__!r} object has no attribute {name!r}")
        if name in ("T", "mT"):
            return self.call(name, getter(name), self)
        if name == "item" and isinstance(self.inner, np.generic):  # as an operand of a Tensor's
            return lambda: self.trace.number("item", Method("item"), (self,))
        raise self._misuse(f"{name} is asked of a raw array")

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, key: Any) -> "RawArray":
        if any(map(is_mask, tree_leaves(key))):
            raise _refusal("a mask chooses elements of a raw array")
        return self.call("getitem", operator.getitem, self, plain(key))

    def __iter__(self) -> Any:
        return map(self.__getitem__, range(len(self)))

    def values(self, *_: Any) -> Any:
        raise self._misuse("elements of a raw array are read, written or copied")

    def _misuse(self, what: str) -> TraceError:
        return _refusal(what) if self.trace.here() else self.trace.stale_error((self,))

    __array__ = __bool__ = __complex__ = __contains__ = __float__ = __format__ = __hash__ = values  # type: ignore[assignment]
    __index__ = __int__ = __reduce__ = __reduce_ex__ = __repr__ = __round__ = __str__ = values
    __dlpack__ = __setitem__ = __delitem__ = __copy__ = __deepcopy__ = values


def _refusal(what: str) -> TraceError:
    return TraceError(
        f"{user_line()}: {what} inside a function that is compiled; write wg.asarray(x) first, "
        "and compute with that"
    )


def _operator(name: str, sign: str = "") -> Any:
    own, function = getattr(Traced, f"__{sign}{name}__", None), getattr(operator, f"__{name}__")

    def method(self: RawArray, *others: Any) -> Any:
        if own is not None and any(type(x) is Traced for x in others):  # a rule, of an operand
            return own(self, *others)
        if sign == "i":
            raise _refusal(f"Python's operator {name} writes into a raw array")
        if not others or not isinstance(others[0], Tensor):
            return self.call(name, function, *((*others, self) if sign else (self, *others)))
        if name == "mul" and isinstance(self.inner, np.ndarray):
            # As NumPy's operator does: a complex product depends on the operands' order.
            return others[0].__array_ufunc__(np.multiply, "__call__", self, *others)
        return NotImplemented

    return method


for _sign, _rows in {"": (*BINARY, *UNARY, *EQUALITY, *ORDER), "r": BINARY, "i": BINARY}.items():
    for _name, *_ in _rows:
        setattr(RawArray, f"__{_sign}{_name}__", _operator(_name, _sign))

namespaces[RawArray] = traced


def _in_kind(self: Traced, like: Any) -> Any:
    if not hasattr(like, "dtype"):
        raise TraceError(
            f"{user_line()}: what a transform answers to a Python number is a Python number, which "
            "differs from call to call, and the program would keep that of this one. Give it a "
            "Tensor"
        )
    found = RawArray(self.inner, self.value, self.trace)
    scalar, of_numpy = [isinstance(self.inner, x) for x in (np.generic, np.generic | np.ndarray)]
    if self.shape or not of_numpy:  # eager transforms answer with memory of their own
        return found.call("copy", COPY if of_numpy else copy_of, found)
    if scalar == isinstance(like, np.generic):
        return found
    return found.call("asarray", np.asarray, found) if scalar else found[()]


Traced.in_kind = _in_kind  # type: ignore[assignment,method-assign]


def check_class(x: Any, name: str) -> None:
    """Raise if an array's class is a subclass of `numpy.ndarray`, which can't be traced."""
    kind = type(x)
    if kind not in (np.ndarray, np.memmap) and issubclass(kind, np.ndarray):
        raise TraceError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, a subclass of numpy.ndarray, "
            "which can't be traced: pass np.asarray(x) instead"
        )


def share_memory(x: Any, y: Any) -> bool:
    """Whether two arrays of a library may overlap in memory, if the library tells."""
    if hasattr(x, "untyped_storage") and hasattr(y, "untyped_storage"):
        pair = x.untyped_storage(), y.untyped_storage()
        return bool(pair[0].data_ptr() == pair[1].data_ptr() and x.numel())
    return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and overlap(x, y)
