"""Traced arrays, their namespace, and the backend that makes them.

Every function of a traced array goes to the running trace, which calls the library's function and
records the call.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from wengert.backends import DTYPES, Backend, DType, Selection, backend_of, namespaces
from wengert.backends.backend import Kernel, on_device
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import reader, user_line
from wengert.compiler.program import Value
from wengert.interpreters.lifted import Lifted, add_operators, bottom, lifted, namespace_of_raw
from wengert.interpreters.namespaces import differentiable, namespace
from wengert.tape.primitive import Primitive

if TYPE_CHECKING:
    from wengert.compiler.capture.trace import Trace

__all__ = [
    "Traced",
    "TracingBackend",
    "current",
    "device_of",
    "inner_array",
    "running",
    "traced",
    "tracing",
]

#: The trace that is running in this thread or task.
running: ContextVar["Trace | None"] = ContextVar("wengert_trace", default=None)
current = running.get

#: Functions of data types alone.
_OF_DTYPES = frozenset({"can_cast", "finfo", "iinfo", "isdtype"})


class Traced(Lifted):
    """A raw array of a run that is traced, which records its operations as those of ``value``."""

    __slots__ = ("__weakref__", "trace", "value")

    followed = False

    trace: "Trace"
    value: Value

    def __init__(self, inner: Any, value: Value, trace: "Trace") -> None:
        self.inner = inner
        self.level = trace.level
        self.value = value
        self.trace = trace

    @classmethod
    def interpret(
        cls, level: int, primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]
    ) -> Any:
        like = next(x for x in inputs if isinstance(x, Traced) and x.level == level)
        return like.trace.apply(backend_of(like.inner), primitive.name, inputs, parameters)

    # In C, which a profile hook does not see.
    shape = property(attrgetter("inner.shape"))
    dtype = property(attrgetter("inner.dtype"))

    def constant(self, value: Any) -> "Traced":
        return self.trace.constant(value, beside=True)

    def truth(self) -> Any:
        """The only element as a bool that each run computes."""
        return self.trace.number("bool", bool, (self,))

    def look(self, function: Callable[..., None], *settings: Any) -> None:
        """Record a check: a function that raises for some values."""
        self.trace.look(function, (self, *settings))

    def refusal(self, where: str, done: str, instead: str) -> Exception:
        if not self.trace.here():
            return self.trace.stale_error((self,))
        return TraceError(
            f"{where}a Tensor inside a function that is compiled {done}: its values differ from "
            "call to call, and the program would keep those of this one. Return the Tensor, and "
            f"read it outside. {instead}"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.values()

    def values(self) -> Any:
        if not self.trace.here():
            raise self.trace.stale_error((self,))
        asked = reader()
        if asked == "__bool__":
            raise TraceError(
                f"{user_line()}: a branch on the values of a Tensor, which differ from call to "
                "call: a program has no branches. Use wg.where, or leave the branch outside "
                "wg.compile"
            )
        raise TraceError(
            f"{user_line()}: the values of a Tensor are read ({asked}) inside a function that is "
            "compiled; they differ from call to call, and what is computed from them in Python "
            "would not. Return the Tensor and read it outside"
        )

    def __repr__(self) -> str:
        return f"Traced({self.value!r}, shape={tuple(self.shape)}, dtype={self.dtype})"


def inner_array(x: Any) -> Any:
    """The raw array inside a traced one; anything else as it is."""
    return x.inner if isinstance(x, Traced) else x


# -- namespaces ------------------------------------------------------------------------------------


def _backend(operands: Sequence[Any], parameters: Mapping[str, Any]) -> Backend:
    """The backend whose function is called: that of the first array."""
    beside = parameters.get("device")
    if isinstance(beside, Selection):
        return beside.backend
    for x in operands:
        if type(x) is Traced:
            return backend_of(x.inner)
        if isinstance(x, tuple | list):
            x = next((part for part in x if hasattr(part, "dtype")), None)
        if hasattr(x, "dtype") and hasattr(x, "shape"):
            return backend_of(bottom(x))
    raise TypeError("there is no array among the operands")


def _running(operands: Sequence[Any] = ()) -> "Trace":
    """The running trace; raise for operands of one that has ended."""
    trace = current()
    stale = [x for x in operands if isinstance(x, Traced)] if trace is None else []
    if stale:
        raise stale[0].trace.stale_error(stale)
    assert trace is not None, "there is no trace"
    return trace


def _attribute(backend: Backend | None, name: str) -> Any:
    """An attribute of the namespace; a function becomes one that records its calls."""
    if backend is not None:
        found = attrgetter(name)(backend.namespace)
        if not callable(found) or isinstance(found, type):
            return found
    elif name in DTYPES:
        return DTYPES[name]  # the library is not known yet
    elif name in _OF_DTYPES:
        return getattr(differentiable, name)

    def call(*operands: Any, **parameters: Any) -> Any:
        trace, dtypes = _running(operands), False
        for x in operands:
            kind = type(x)
            if kind is DType:
                dtypes = True
            elif kind is not Traced and isinstance(x, Lifted) and not isinstance(x, Traced):
                return attrgetter(name)(lifted)(*operands, **parameters)  # a transform's
        library = backend
        if library is None:
            library = _backend(operands, parameters)
            if dtypes:
                raw = library.raw_dtype
                operands = tuple([raw(x) if type(x) is DType else x for x in operands])
        if parameters:
            for key, x in parameters.items():
                if type(x) is DType and backend is None:
                    parameters[key] = library.raw_dtype(x)
                elif type(x) is Selection:
                    parameters[key] = x.device
        return trace.apply(library, name, operands, parameters)

    call.__name__ = name
    return call


def device_of(x: Any) -> Selection:
    """The backend and device of new arrays beside a traced one."""
    array = bottom(x)
    backend = backend_of(array)
    return Selection(backend, backend.beside(array), "it is another array's")


#: The namespace of traced arrays.
traced = namespace_of_raw(
    f"{__name__}.namespace", partial(_attribute, None), device_of, lambda array: False
)
namespaces[Traced] = traced
add_operators(Traced, traced)


def _of_library(name: str) -> Any:
    """A library's function that records its calls."""

    def call(*operands: Any, **parameters: Any) -> Any:
        backend = _backend(operands, parameters)
        function = on_device(backend, getattr(backend.xp, name))
        return _running().call(name, function, operands, parameters)

    return call


vars(traced)["library"] = namespace(f"{__name__}.library", _of_library)


_TRACED_HERE = frozenset(
    {"_backend", "alongside", "draw", "from_numpy", "name", "namespace", "__class__", "__dict__"}
)


class TracingBackend(Backend):
    """A backend whose creation functions are recorded; selected while a trace runs."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name
        self.namespace = namespace(f"{__name__}.{backend.name}", partial(_attribute, backend))

    def __getattribute__(self, name: str) -> Any:
        if name in _TRACED_HERE:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_backend"), name)

    def alongside(self, other: Backend) -> Backend:
        return self if other is self._backend else tracing(other)

    def from_numpy(self, array: Any, device: Any = None) -> Any:
        return _running().constant(self._backend.from_numpy(array, device))

    def draw(self, function: Kernel, arguments: tuple[Any, ...], device: Any = None) -> Any:
        given = (function, arguments, device)
        return _running().call("draw", self._backend.draw, given, {}, pure=False)


@cache
def tracing(backend: Backend) -> TracingBackend:
    """The recording backend of another."""
    return TracingBackend(backend)
