"""Raw arrays that the user's code computes with, whose operations are recorded.

Operators, methods, attributes, and NumPy's protocols call the library's functions, so that results
and their types are the library's. Reading values and changes in place are refused.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.trace import is_mask
from wengert.compiler.capture.traced import Traced, inner_array, traced
from wengert.compiler.capture.traced_number import TracedNumber, with_operators
from wengert.compiler.passes.forms import Method, getter
from wengert.compiler.program import mapped
from wengert.ops.operators import BINARY
from wengert.tape.aliases import overlap
from wengert.tape.tensor import Tensor

__all__ = ["RawArray", "check_class", "shared"]

#: Attributes that depend on shape and dtype alone.
_STATIC: Final = frozenset({"itemsize", "nbytes", "ndim", "sharding", "size", "strides"})
#: Attributes that are arrays.
_PARTS: Final = frozenset({"H", "T", "imag", "mH", "mT", "real"})
#: Functions and methods without side effects, whose results' shapes and dtypes depend on the
#: operands' shapes and dtypes alone. Others are computed on Tensors.
_PURE: Final = frozenset(
    """
abs all any argmax argmin argsort astype atleast_1d atleast_2d broadcast_to clip clone concatenate
conj conjugate copy cumsum diff dot einsum exp expand_dims flatten flip float fliplr flipud hstack
isfinite isnan log matmul max maximum mean min minimum moveaxis nan_to_num ones_like outer pad
permute prod ravel repeat reshape roll rot90 round sign split sqrt square squeeze stack std sum
swapaxes take tanh tensordot tile transpose tril triu unsqueeze var view vstack where zeros_like
""".split()  # noqa: SIM905 -- a page of names is none to read
)
#: NumPy's own array classes.
_NUMPYS: Final = (np.ndarray, np.memmap)
_METHODS_OF_UFUNCS: Final = frozenset({"__call__", "accumulate", "outer", "reduce"})


class RawArray(Traced):
    """A traced array as the user's code sees it: `isinstance` says that it is the library's."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.inner)

    def call(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any], **parameters: Any
    ) -> Any:
        """Call a function on the inner arrays, and record it."""
        if parameters.get("out") is not None:
            raise _refused(f"{name} writes into an array")
        operands, parameters = mapped(_plain, tuple(operands)), mapped(_plain, parameters)
        self.trace.backends.add(backend_of(self.inner))
        answer = self.trace.call(f"raw.{name}", function, operands, parameters)
        found = _wrapped(answer)
        if found is None:
            raise _refused(f"{name} of a raw array gives no array")
        return found

    # -- the library's protocols -----------------------------------------------------------------

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        if method not in _METHODS_OF_UFUNCS:
            raise _refused(f"np.{ufunc.__name__}.{method} writes into an array")
        plain = method == "__call__"
        function = ufunc if plain else getattr(ufunc, method)
        return self.call(ufunc.__name__ if plain else method, function, inputs, **keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        return self._function(func, args, kwargs)

    def _function(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        if name in ("ndim", "shape", "size"):
            return func(*mapped(inner_array, args), **mapped(inner_array, kwargs))
        by_values = (name == "where" and len(args) == 1) or (
            name == "repeat" and any(isinstance(x, Traced) for x in (*args[1:], *kwargs.values()))
        )
        if name not in _PURE or by_values:
            raise _refused(f"{name} is called with a raw array")
        return self.call(name, func, args, **kwargs)

    # -- attributes and methods ------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        inner = self.inner
        if name in _STATIC:
            return getattr(inner, name)
        if name == "__array_priority__" or not hasattr(inner, name):
            raise AttributeError(f"{type(inner).__name__!r} object has no attribute {name!r}")
        if name in _PARTS:
            return self.call(name, getter(name), (self,))
        if name.startswith("__"):
            self._read()
        if name == "item":
            return self._item
        if name not in _PURE or not callable(getattr(inner, name)):
            raise _refused(f"{name} is asked of a raw array")

        def method(*operands: Any, **parameters: Any) -> Any:
            if name == "repeat" and any(isinstance(x, Traced) for x in operands):
                raise _refused("repeat gives a shape that depends on values")
            return self.call(name, Method(name), (self, *operands), **parameters)

        return method

    def _item(self, *place: Any) -> Any:
        """An element as a traced number."""
        return self.trace.number("item", Method("item"), (self, *place))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("inner", "level", "trace", "value"):
            raise _refused(f"{name} of a raw array is set")
        object.__setattr__(self, name, value)

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if any(map(is_mask, parts)):
            raise _refused("the shape of what a mask chooses depends on values")
        return self.call("getitem", operator.getitem, (self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise _refused("a raw array is changed in place")

    __delitem__ = __setitem__

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Any:
        if not self.shape:
            return iter(self.inner)
        return (self[i] for i in range(len(self.inner)))

    def __copy__(self) -> Any:
        return self.copy() if hasattr(self.inner, "copy") else self.clone()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    # -- what is asked of values -----------------------------------------------------------------

    def _read(self, *_: Any) -> Any:
        raise _refused("the values of a raw array are read")

    __array__ = __bool__ = __complex__ = __contains__ = __float__ = __format__ = __hash__ = _read  # type: ignore[assignment]
    __index__ = __int__ = __reduce__ = __reduce_ex__ = __repr__ = __round__ = __str__ = _read
    __dlpack__ = _read

    def values(self) -> Any:
        self._read()


def _refused(what: str) -> TraceError:
    return TraceError(
        f"{user_line()}: {what} inside a function that is compiled, which a replay could not "
        "repeat. Use functions of the library that make new arrays, or a Tensor"
    )


def _plain(x: Any) -> Any:
    """An operand with the traced numbers in slices pinned: instructions can't have these."""
    if type(x) is not slice:
        return x
    return slice(*[p.pinned() if type(p) is TracedNumber else p for p in (x.start, x.stop, x.step)])


def _wrapped(x: Any) -> Any:
    """A call's result for the user's code; None if it is no array."""
    if type(x) is Traced:
        return RawArray(x.inner, x.value, x.trace)
    if not isinstance(x, tuple | list):
        return None
    parts = [_wrapped(part) for part in x]
    if any(part is None for part in parts):
        return None
    return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)


def _binary(name: str, function: Callable[..., Any], *, reflected: bool) -> Callable[..., Any]:
    def method(self: RawArray, other: Any) -> Any:
        if isinstance(other, Tensor):
            if name == "mul" and isinstance(self.inner, np.ndarray):
                # As NumPy's operator does: a complex product depends on the operands' order.
                return other.__array_ufunc__(np.multiply, "__call__", self, other)
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        return self.call(name, function, pair)

    return method


def _in_place(self: RawArray, other: Any) -> Any:
    if isinstance(self.inner, np.generic) or backend_of(self.inner).immutable:
        return NotImplemented  # Python then assigns a new object
    raise _refused("a raw array is changed in place")


with_operators(
    RawArray,
    _binary,
    partial(_binary, reflected=False),
    lambda name, function: lambda self: self.call(name, function, (self,)),
)
for _name, *_ in BINARY:
    setattr(RawArray, f"__i{_name}__", _in_place)
for _name, _reflected in (("__divmod__", False), ("__rdivmod__", True)):
    setattr(RawArray, _name, _binary("divmod", divmod, reflected=_reflected))

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
        # Eager transforms answer with memory of their own.
        return found.__copy__() if {"copy", "clone"}.intersection(dir(self.inner)) else found
    if scalar == isinstance(like, np.generic):
        return found
    return found.call("asarray", np.asarray, (found,)) if scalar else found[()]


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
