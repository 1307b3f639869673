"""Lowering: a backend's kernel becomes the library calls that it consists of.

A kernel checks shapes and dtypes and allocates temporaries in each call. A program knows the shapes
and dtypes, and has buffers for temporaries, so it records the kernel's NumPy calls instead. To find
these, the kernel runs on arrays that record their operations through NumPy's protocols. Other
libraries have no such protocols, so that their kernels are recorded as one call.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from wengert.backends import dtype_of, numpy, numpy_networks, numpy_reductions
from wengert.backends.backend import on_device
from wengert.backends.keys import cut
from wengert.backends.numpy_special import BLOCK
from wengert.backends.special import LIBRARY_FUNCTIONS, LibraryFunction
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.traced import Traced, current
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.facts import KERNELS, PLAIN
from wengert.compiler.passes.forms import (
    ARGMAX,
    ASTYPE,
    COPY,
    DOT,
    RESHAPE,
    TAKE,
    TRANSPOSE,
    VIEW,
    getter,
    put,
    set_part,
)
from wengert.compiler.program import is_literal
from wengert.nn.kernels import numpy_classification, numpy_normalisations

__all__ = ["lower"]

_SEQUENCES: Final = (tuple, list)


class _WholeError(Exception):
    """A kernel can't be lowered: it is recorded as one call."""


class _Number:
    """A traced number, as a kernel gets it.

    It compares unequal to all: kernels skip factors of 1, which change no bits. Only a complex
    infinity times 1 differs from itself; beside complex arrays the comparison is made and recorded.
    """

    def __init__(self, live: TracedNumber, beside: Sequence[Any]) -> None:
        self.live, self.beside = live, beside

    def __eq__(self, other: object) -> bool:
        complex_ = any(isinstance(x, Traced) and x.dtype.kind == "c" for x in self.beside)
        return complex_ and self.live == other

    __hash__ = object.__hash__


class _Array(NDArrayOperatorsMixin):
    """A traced array, as a kernel gets it. Writing into it assigns it a new value."""

    def __init__(self, traced: Traced, *, own: bool = False) -> None:
        self.traced = traced
        self.own = own  # whether it shares memory with nothing
        self.shape, self.dtype = traced.inner.shape, traced.inner.dtype

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: self.traced.inner.size)

    def __len__(self) -> int:
        return self.shape[0]  # type: ignore[no-any-return]

    def _refuse(self, *given: Any) -> Any:
        raise _WholeError

    __array__ = __bool__ = __float__ = __getitem__ = __index__ = __int__ = __iter__ = _refuse
    __setitem__ = _refuse

    # -- functions -----------------------------------------------------------------------------

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **keywords: Any
    ) -> Any:
        if method == "reduce":
            # Without defaults, which are None or False.
            given = {
                k: x for k, x in keywords.items() if k == "axis" or not (x is None or x is False)
            }
            made = _call(_REDUCTIONS[ufunc], ufunc.reduce, inputs, given)
        elif method == "__call__":
            made = _call(ufunc.__name__, ufunc, inputs, keywords, own=True)
        else:
            raise _WholeError
        return made if out is None else _write(out[0], made)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # Results of other functions may be views.
        return _call(func.__name__, func, args, kwargs, own=func is np.clip)

    # -- methods -------------------------------------------------------------------------------

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        if not copy and self.dtype == dtype:
            return self
        return _call("astype", ASTYPE, (self, np.dtype(dtype)), {}, own=True)

    def conjugate(self) -> Any:
        return np.conj(self) if self.dtype.kind == "c" else self

    def put(self, places: Any, values: Any) -> None:
        _write(self, _call("put", put, (self, places, values), {}))

    @property
    def mT(self) -> Any:
        self.own = False
        return _call("matrix_transpose", getter("mT"), (self,), {})


def _method(name: str, function: Callable[..., Any], *, own: bool) -> Callable[..., Any]:
    """A method, whose result has memory of its ``own`` or is a view."""

    def method(self: _Array, *operands: Any) -> Any:
        self.own &= own
        return _call(name, function, (self, *operands), {}, own=own)

    return method


for _name, _function in (("argmax", ARGMAX), ("copy", COPY), ("dot", DOT), ("take", TAKE)):
    setattr(_Array, _name, _method(_name, _function, own=True))
for _name, _function in (("reshape", RESHAPE), ("transpose", TRANSPOSE), ("view", VIEW)):
    _row = "permute_dims" if _function is TRANSPOSE else _name
    setattr(_Array, _name, _method(_row, _function, own=False))


#: The names of the ufuncs' reductions.
_REDUCTIONS: Final = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


def _call(
    name: str, function: Any, operands: Any, keywords: Mapping[str, Any], *, own: bool = False
) -> Any:
    """Record a call that a kernel makes, and return its result."""
    trace: Any = current()
    given = {name: _unwrap(x) for name, x in keywords.items()} if keywords else keywords
    answer = trace.call(name, function, tuple([_unwrap(x) for x in operands]), given)
    if answer is None:  # it has written into an array
        raise _WholeError
    return _wrap(answer, own=own)


def _unwrap(x: Any) -> Any:
    """A kernel's operand as a traced value."""
    kind = type(x)
    if kind is _Array:
        return x.traced
    if kind is _Number:
        return x.live
    return kind(map(_unwrap, x)) if kind in _SEQUENCES and not is_literal(x) else x


def _wrap(x: Any, beside: Sequence[Any] = (), *, own: bool = False) -> Any:
    """A traced value as a kernel's operand ``beside`` others."""
    kind = type(x)
    if kind is TracedNumber:
        return _Number(x, beside)
    if issubclass(kind, Traced):
        return _Array(x, own=own)
    if kind in _SEQUENCES and not is_literal(x):
        return kind([_wrap(part, own=own) for part in x])
    return x


def _write(out: Any, made: _Array) -> Any:
    """Assign an array of the kernel's a new value, as a call with ``out`` does."""
    if not isinstance(out, _Array):
        raise _WholeError
    before = out.traced
    if isinstance(before.inner, np.generic):
        raise TypeError("return arrays must be of ArrayType")  # NumPy's error
    # NumPy rounds complex products differently when it writes into an operand.
    if not (out.own and before.value.alike(made.traced.value)) or before.dtype.kind == "c":
        raise _WholeError
    out.traced = made.traced
    return out


# -- kernels in pieces -----------------------------------------------------------------------------


def _as_one(
    function: Callable[..., Any], *, raises: bool = False, own: bool = False
) -> Callable[..., Any]:
    """A helper of kernels that looks at values or rows, and so is recorded as one call."""

    def call(*operands: Any, out: Any = None) -> Any:
        trace: Any = current()
        name = function.__name__
        given = _unwrap(operands)
        answer = trace.call(name, function, given, {}, pure=not raises)
        if isinstance(answer, int | float):
            answer = trace.number(name, function, given)
        made = _wrap(answer, own=own)
        return made if out is None else _write(out, made)

    return call


def _choose(
    function: Callable[..., Any], looks: Callable[..., Any], reduce: Callable[..., Any]
) -> Callable[..., Any]:
    """A reduction that may depend on the memory layout: one call if so, else the ufunc's."""
    whole = _as_one(function)

    def call(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        looked = looks(x, axis, keepdims) is not None
        return whole(x, axis, keepdims) if looked else reduce(x, axis=axis, keepdims=keepdims)

    return call


def _rebuilt(module: ModuleType, helpers: Mapping[str, Any]) -> dict[str, Any]:
    """A module's functions, rebuilt to call ``helpers`` in place of its own functions."""
    names = {**vars(module), **helpers}
    for name, x in vars(module).items():
        if isinstance(x, FunctionType) and x.__module__ == module.__name__ and name not in helpers:
            names[name] = FunctionType(x.__code__, names, name, x.__defaults__, x.__closure__)
            names[name].__kwdefaults__ = x.__kwdefaults__
    return names


def _scalar(value: Any, dtype: Any) -> Any:
    return value if isinstance(value, _Number) else numpy_networks.scalar(value, dtype)


def _run(function: Callable[..., Any], *operands: Any) -> Any:
    return function(*operands)


def _ones(length: int, dtype: Any) -> Any:
    trace: Any = current()  # in which the kernel runs
    return _Array(trace.constant(numpy_networks.ones(length, dtype)))


@cache
def _in_pieces(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy kernel rebuilt with recording helpers; other functions unchanged."""
    home = _kernels().get(kernel.__module__, {})
    found: Callable[..., Any] = home.get(getattr(kernel, "__name__", ""), kernel)
    return found


@cache
def _kernels() -> dict[str, dict[str, Any]]:
    """The modules of kernels, rebuilt in order of dependence."""
    helpers: dict[str, Any] = {"scalar": _scalar, "ones": _ones, "call_silently": _run}
    for function, facts in KERNELS.items():
        if facts.looks or facts.of_rows:
            helpers[function.__name__] = _as_one(function, raises=facts.raises, own=facts.of_rows)
        elif facts.chooses is not None and facts.reduction is not None:
            helpers[function.__name__] = _choose(function, facts.chooses, facts.reduction)
    made: dict[str, dict[str, Any]] = {}
    for module in (
        numpy_networks, numpy_reductions, numpy_normalisations, numpy_classification, numpy
    ):  # fmt: skip
        taken = {
            name: made[x.__module__][name]
            for name, x in vars(module).items()
            if isinstance(x, FunctionType) and x.__module__ in made
        }
        made[module.__name__] = _rebuilt(module, taken | helpers)
    return made


def _pieces(
    trace: Any,
    kernel: Callable[..., Any],
    name: str,
    operands: Sequence[Any],
    parameters: Mapping[str, Any],
) -> Any:
    """Record the calls of a kernel; NotImplemented if it can't be lowered."""
    before = len(trace.instructions), trace.failed
    given = {k: _wrap(x, operands) for k, x in parameters.items()}
    try:
        made = _in_pieces(kernel)(*[_wrap(x, operands) for x in operands], **given)
    except TraceError:
        raise
    except Exception:  # recorded as one call, the kernel raises the same error, or none
        made = None
    answer = _unwrap(made)
    parts = answer if isinstance(answer, tuple) else (answer,)
    if not all(isinstance(x, Traced) for x in parts):
        trace.back(*before)
        return NotImplemented
    if len(trace.instructions) == before[0] + 1:  # one call for the kernel
        trace.instructions[-1].name = name
    return answer


def _place(trace: Any, x: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Record an array of zeros with ``x`` at a key without arrays."""
    blank = trace.call("blank", np.zeros, (shape, x.dtype), {})
    return trace.call("set_part", set_part, (blank, x), {"key": key})


# -- every library ---------------------------------------------------------------------------------


def _special(
    trace: Any,
    backend: Any,
    function: LibraryFunction,
    name: str,
    operands: Sequence[Any],
    parameters: Mapping[str, Any],
) -> Any:
    """Record a library's special function, between casts for half precision."""
    dtype, kind = operands[0].dtype, dtype_of(operands[0].dtype)
    if any(x.dtype != dtype for x in operands) or not kind.inexact:
        return NotImplemented
    if kind.complex and not function.takes_complex:
        return NotImplemented
    if kind.narrow:
        single = backend.xp.float32
        operands = [trace.apply(backend, "astype", (x, single), {}) for x in operands]
    many = function.large and kind.name == "float32" and operands[0].inner.size > BLOCK
    called = on_device(backend, (function.large if many else None) or function.load())
    out = trace.call(name, called, operands, parameters)
    return out if out.dtype == dtype else trace.apply(backend, "astype", (out, dtype), {})


def lower(
    trace: Any, backend: Any, name: str, operands: Sequence[Any], parameters: Mapping[str, Any]
) -> Any:
    """Record the calls that replace a backend's function; NotImplemented if none do."""
    if name == "scatter_add" and len(operands) == 1 and backend.name == "numpy":
        return _place(trace, operands[0], **parameters)
    kernel = backend.kernels.get(name)
    if (function := LIBRARY_FUNCTIONS.get(kernel)) is not None:
        return _special(trace, backend, function, name, operands, parameters)
    has_pieces = kernel is not None and KERNELS.get(kernel, PLAIN).covers is None
    if has_pieces and backend.name == "numpy":
        return _pieces(trace, kernel, name, operands, parameters)
    if name == "cut":
        return trace.call("getitem", cut, operands, parameters)
    return NotImplemented
