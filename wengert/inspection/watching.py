"""Looking at what a program does with Tensors, while it does it.

While somebody watches, the functions by which results are put on the tape, or left off it, and the
methods by which values leave Tensors are replaced by others that also tell. When the last one has
stopped they are put back, so that programs that nobody watches pay nothing. What is told belongs to
the thread or task that watches.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import RLock
from types import FrameType
from typing import Any

from wengert.tape.function import Function
from wengert.tape.lines import is_own
from wengert.tape.primitive import Primitive, record
from wengert.tape.recording import observing
from wengert.tape.tensor import Tensor, untracked

__all__ = ["Watcher", "watching"]


class Watcher:
    """What is told of a program's operations. The methods do nothing, for subclasses to override.

    They are called in the thread that does what they are told of, and what they do themselves is
    told to nobody.
    """

    def operated(
        self, name: str, primitive: Primitive | None, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        """An operation has run, recorded or not.

        Parameters
        ----------
        name : str
            Its name in the standard, or of the `Function`.
        primitive : Primitive or None
            None for a `Function`, and for a fused operation that was not recorded.
        inputs, results : list of Tensor
            What it was called with, numbers and raw arrays left out, and what it gave.
        """

    def left(self, way: str, tensor: Tensor, answer: Any, error: Exception | None) -> None:
        """Values have left a Tensor, or should have and an error was raised.

        Parameters
        ----------
        way : str
            The method's name.
        tensor : Tensor
            Whose values.
        answer : Any
            What the method has returned, if there is no error.
        error : Exception or None
            What it has raised.
        """

    def refused(self, name: str, inputs: list[Tensor], error: Exception) -> None:
        """One of NumPy's functions was called with Tensors, and has no counterpart."""

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        """A Tensor is about to take over the value and the place of a result, in place."""


#: Somebody watches, and is told later.
_NOBODY = (Watcher(),)
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("wengert_watchers", default=())
_lock = RLock()
_count = 0
_undo: list[Callable[[], None]] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher what this thread or task does inside the ``with`` block."""
    global _count
    with _lock:
        if not _count:
            _install()
        _count += 1
    token = _watchers.set((*_watchers.get(), watcher))
    observing.append(watcher)  # so that compiled functions run as they are
    try:
        yield
    finally:
        observing.remove(watcher)
        _watchers.reset(token)
        with _lock:
            _count -= 1
            if not _count:
                _remove()


def _tell(method: str, *what: Any) -> None:
    watchers = _watchers.get()
    token = _watchers.set(())
    try:
        for watcher in watchers:
            getattr(watcher, method)(*what)
    finally:
        _watchers.reset(token)


# -- results -------------------------------------------------------------------------------------


def _recorded(plan: Any, parents: Any, saved: Any, out: Any) -> Tensor:
    result = record(plan, parents, saved, out)
    if _watchers.get():
        primitive = plan.primitive
        _tell("operated", primitive.name, primitive, _operands(sys._getframe(1)), [result])
    return result


def _unrecorded(array: Any) -> Tensor:
    result = untracked(array)
    if _watchers.get():
        frame = sys._getframe(1)
        primitive = frame.f_locals.get("primitive", frame.f_locals.get("self"))
        if isinstance(primitive, Primitive):
            _tell("operated", primitive.name, primitive, _operands(frame), [result])
        elif frame.f_code.co_name[0] != "<":  # one of several results: `_several` tells
            _tell("operated", frame.f_code.co_name, None, _operands(frame), [result])
    return result


def _several(
    method: Callable[..., tuple[Tensor, ...]],
) -> Callable[..., tuple[Tensor, ...]]:
    @wraps(method)
    def watched(self: Primitive, *what: Any) -> tuple[Tensor, ...]:
        results = method(self, *what)
        if _watchers.get():
            _tell("operated", self.name, self, _operands(sys._getframe(1)), list(results))
        return results

    return watched


def _operands(frame: FrameType) -> list[Tensor]:
    """The Tensors among a running function's arguments."""
    code = frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[: named + bool(code.co_flags & 4)]  # 4: it has *arguments
    return _tensors([frame.f_locals.get(name) for name in names])


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(_tensors(value))
    return found


def _applied(apply: Callable[..., Any]) -> Any:
    @wraps(apply)
    def watched(cls: type[Function], *args: Any, **kwargs: Any) -> Any:
        if not _watchers.get():
            return apply(cls, *args, **kwargs)
        token = _watchers.set(())  # what a Function does inside is not on the tape, on purpose
        try:
            answer = apply(cls, *args, **kwargs)
        finally:
            _watchers.reset(token)
        _tell(
            "operated", cls.__name__, None, _tensors([*args, *kwargs.values()]), _tensors([answer])
        )
        return answer

    return classmethod(watched)


def _assigning(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(method)
    def watched(self: Tensor, result: Tensor, *change: Any) -> Tensor:
        if _watchers.get():
            _tell("assigned", self, result)
        return method(self, result, *change)

    return watched


# -- what leaves Tensors -------------------------------------------------------------------------

#: Methods whose answer is off the tape.
LEAVING = (
    "__array__",
    "__bool__",
    "__complex__",
    "__deepcopy__",
    "__dlpack__",
    "__float__",
    "__index__",
    "__int__",
    "__reduce__",
    "detach",
    "item",
    "numpy",
    "tolist",
)
#: Methods that read values to show them: nothing flows back from a text.
SHOWING = ("__format__", "__repr__")


def _leaving(way: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def watched(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not _watchers.get():
            return method(self, *args, **kwargs)
        token = _watchers.set(_NOBODY)  # for one method may call another
        answer = error = None
        try:
            answer = method(self, *args, **kwargs)
        except Exception as raised:
            error = raised
            raise
        finally:
            _watchers.reset(token)
            _tell("left", way, self, answer, error)
        return answer

    return watched


def _showing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def watched(self: Tensor, *args: Any) -> Any:
        token = _watchers.set(())
        try:
            return method(self, *args)
        finally:
            _watchers.reset(token)

    return watched


def _taken(get: Callable[[Tensor], Any]) -> property:
    """The property ``array``, which the package itself reads all the time."""

    @wraps(get)
    def watched(self: Tensor) -> Any:
        answer = get(self)
        if _watchers.get() and not is_own(sys._getframe(1)):
            _tell("left", "array", self, answer, None)
        return answer

    return property(watched)


def _flagged(flag: property) -> property:
    """The property ``requires_grad``, which takes a leaf off the tape when it is set to False."""

    def set_flag(self: Tensor, value: bool) -> None:
        if _watchers.get() and not value:
            _tell("left", "requires_grad", self, None, None)
        flag.fset(self, value)  # type: ignore[misc]

    return property(flag.fget, set_flag, doc=flag.__doc__)


def _unless_watched(warn: Callable[[Tensor, str], None]) -> Callable[[Tensor, str], None]:
    """The warnings of Tensors, in whose place watchers are told more."""

    @wraps(warn)
    def watched(self: Tensor, text: str) -> None:
        if not _watchers.get():
            warn(self, text)

    return watched


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's protocols, ``__array_ufunc__`` and ``__array_function__``."""

    @wraps(method)
    def watched(self: Tensor, function: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, function, *args, **kwargs)
        except TypeError as error:
            if _watchers.get():
                _tell("refused", function.__name__, _tensors(args), error)
            raise

    return watched


# -- how they are replaced -----------------------------------------------------------------------


def _replace(owner: Any, name: str, value: Any) -> None:
    before = vars(owner)[name]
    _undo.append(lambda: setattr(owner, name, before))
    setattr(owner, name, value)


def _install() -> None:
    for module in _own_modules():
        # Whoever records operations does it by this function.
        if vars(module).get("record") is record:
            _replace(module, "record", _recorded)
            if vars(module).get("untracked") is untracked:
                _replace(module, "untracked", _unrecorded)
    _replace(Primitive, "_record_several", _several(vars(Primitive)["_record_several"]))
    _replace(Function, "apply", _applied(vars(Function)["apply"].__func__))
    _replace(Tensor, "_assign", _assigning(vars(Tensor)["_assign"]))
    _replace(Tensor, "array", _taken(vars(Tensor)["array"].fget))
    _replace(Tensor, "requires_grad", _flagged(vars(Tensor)["requires_grad"]))
    _replace(Tensor, "_warn", _unless_watched(vars(Tensor)["_warn"]))
    for way in LEAVING:
        _replace(Tensor, way, _leaving(way, vars(Tensor)[way]))
    for name in SHOWING:
        _replace(Tensor, name, _showing(vars(Tensor)[name]))
    for name in ("__array_function__", "__array_ufunc__"):
        _replace(Tensor, name, _refusing(getattr(Tensor, name)))


def _remove() -> None:
    while _undo:
        _undo.pop()()
    for module in _own_modules():  # those that were imported meanwhile
        for name, ours, theirs in (
            ("record", _recorded, record),
            ("untracked", _unrecorded, untracked),
        ):
            if vars(module).get(name) is ours:
                setattr(module, name, theirs)


def _own_modules() -> list[Any]:
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("wengert.") and name != __name__ and hasattr(module, "__name__")
    ]
