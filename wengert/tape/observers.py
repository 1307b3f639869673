"""Observers, which are told of operations, and of values that leave Tensors, as a program runs.

What makes an operation's result asks ``if observing``: a program that is not observed pays no more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Observer:
    """The base class of observers, whose methods do nothing.

    They are called in the thread that runs the operation. What they do themselves is not observed.
    """

    #: Whether it is told of what a `Function` does inside, too.
    looks_inside = False

    def operated(self, name: str, primitive: Any, inputs: list[Any], results: list[Any]) -> None:
        """An operation has run, recorded or not: its name in the standard, or the `Function`'s.

        ``primitive`` is None for a `Function`. Inputs and results are the Tensors alone.
        """

    def left(self, tensor: Any, way: str) -> None:
        """Values are about to leave a Tensor by a method, ``way``, or the method will raise."""

    def assigned(self, tensor: Any, result: Any) -> None:
        """A Tensor is about to take over a result's value and node, in place."""

    def replaced(self, module: Any, name: str) -> None:
        """A module is about to have another buffer of this name."""


#: The observers of all threads: while it is empty nothing of theirs is asked for.
observing: list[Observer] = []

_observers: ContextVar[tuple[Observer, ...]] = ContextVar("wengert_observers", default=())

#: The observers of this thread or task.
observers = _observers.get


def exchange(old: Observer | None, new: Observer | None) -> None:
    """Tell ``new`` first what this thread or task does from now on, and no longer ``old``."""
    told = list(observers())
    for held in (told, observing):
        if old in held:
            held.remove(old)
        if new is not None:
            held.insert(0, new)
    _observers.set(tuple(told))


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Tell an observer what this thread or task does in the ``with`` block."""
    exchange(None, observer)
    try:
        yield
    finally:
        exchange(observer, None)


@contextmanager
def inside_function() -> Iterator[None]:
    """Tell only observers that look inside of what is done in the ``with`` block."""
    token = _observers.set(tuple([one for one in observers() if one.looks_inside]))
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
