"""Observers, which are told of operations, and of values that leave Tensors, as a program runs.

What makes an operation's result asks ``if observing``: a program that is not observed pays no more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from wengert.tape.primitive import Primitive
    from wengert.tape.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Observer:
    """The base class of observers, whose methods do nothing.

    They are called in the thread that runs the operation. What they do themselves is not observed.
    """

    #: Whether it follows values off the tape, too; otherwise it looks at nodes alone. If it does,
    #: it is told in place of warnings, and is not told of what a `Function` does inside.
    follows_values = True

    def operated(
        self,
        name: str,
        primitive: "Primitive | None",
        inputs: "list[Tensor]",
        results: "list[Tensor]",
    ) -> None:
        """An operation has run, recorded or not: its name in the standard, or the `Function`'s.

        ``primitive`` is None for a `Function`. Of what it was called with there are the Tensors
        alone.
        """

    def left(self, way: str, tensor: "Tensor", answer: Any, error: Exception | None) -> None:
        """Values have left a Tensor by a method, ``way``, which returned ``answer``, or raised."""

    def refused(self, name: str, inputs: "list[Tensor]", error: Exception) -> None:
        """One of NumPy's functions was called with Tensors, and has no counterpart."""

    def assigned(self, tensor: "Tensor", result: "Tensor") -> None:
        """A Tensor is about to take over a result's value and node, in place."""

    def replaced(self, module: Any, name: str) -> None:
        """A module is about to have another buffer of this name."""


#: The observers of all threads: while it is empty nothing of theirs is asked for.
observing: list[Observer] = []

_observers: ContextVar[tuple[Observer, ...]] = ContextVar("wengert_observers", default=())

#: The observers of this thread or task.
observers = _observers.get


def begin(observer: Observer, instead_of: Observer | None = None) -> None:
    """Tell an observer what this thread or task does from now on, in place of another if given."""
    observing.append(observer)
    _observers.set((*(one for one in observers() if one is not instead_of), observer))


def end(observer: Observer, before: Observer | None = None) -> None:
    """Stop telling an observer, and tell the one again whose place it took."""
    if observer in observing:
        observing.remove(observer)
    others = [one for one in observers() if one is not observer]
    _observers.set(tuple(others if before is None else [*others, before]))


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Tell an observer what this thread or task does in the ``with`` block."""
    begin(observer)
    try:
        yield
    finally:
        end(observer)


def followers() -> tuple[Observer, ...]:
    """The observers of this thread or task that follow values."""
    return tuple([one for one in observers() if one.follows_values])


@contextmanager
def unfollowed(instead: tuple[Observer, ...] = ()) -> Iterator[None]:
    """Tell no observer that follows values what is done in the ``with`` block."""
    others = [one for one in observers() if not one.follows_values]
    token = _observers.set((*others, *instead))
    try:
        yield
    finally:
        _observers.reset(token)


def tell(event: str, *what: Any) -> None:
    """Call a method of each observer of this thread or task."""
    told = observers()
    if told:
        token = _observers.set(())
        try:
            for observer in told:
                getattr(observer, event)(*what)
        finally:
            _observers.reset(token)


#: Takes the followers' place while a method runs: they are told when it has ended.
_SILENT = (Observer(),)


def way_out(method: F) -> F:
    """Decorate a method of Tensors whose result is off the tape: observers are told of it."""
    way = method.__name__

    def told(tensor: "Tensor", args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = error = None
        try:
            with unfollowed(_SILENT):  # for one method may call another
                answer = method(tensor, *args, **kwargs)
        except Exception as raised:
            error = raised
            raise
        finally:
            tell("left", way, tensor, answer, error)
        return answer

    if method.__code__.co_argcount == 1 and not method.__code__.co_kwonlyargcount:  # most of them

        @wraps(method)
        def call(self: "Tensor") -> Any:
            if observing and followers():
                return told(self, (), {})
            return method(self)

    else:

        @wraps(method)
        def call(self: "Tensor", *args: Any, **kwargs: Any) -> Any:
            if observing and followers():
                return told(self, args, kwargs)
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]
