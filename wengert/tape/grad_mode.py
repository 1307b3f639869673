"""Whether operations are recorded: a state of the running thread or task."""

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Self, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

#: The states of recording: True, and three that are false to hot paths. False is the user's
#: `no_grad`, by which results are constants in forward mode too; `UNRECORDED` is the engine's
#: `unrecorded`; `INFERENCE` is `inference_mode`.
UNRECORDED: Final = 0
INFERENCE: Final = None
_recording: ContextVar[bool | int | None] = ContextVar("wengert_recording", default=True)

#: Whether operations are recorded now, as a truth value: the C function that hot paths call.
recording = _recording.get


def tangents_flow() -> bool:
    """Whether results have tangents in forward mode now: not under `no_grad`, as constants."""
    state = _recording.get()
    return state is True or state is UNRECORDED


#: The reverse transforms whose functions run now, in any thread. A Tensor that is computed from the
#: arguments of one may not leave the tape: `wengert.tape.leaving`.
following: list[Any] = []


def set_recording(state: bool | int | None) -> None:
    """Set the state of this thread or task."""
    _recording.set(state)


def is_grad_enabled() -> bool:
    """Whether operations on Tensors that require grad are recorded now, in this thread or task.

    Examples
    --------
    >>> with wg.no_grad():
    ...     wg.is_grad_enabled()
    False
    """
    return bool(_recording.get())


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this thread or task.

    Examples
    --------
    >>> with wg.inference_mode():
    ...     wg.is_inference_mode_enabled()
    True
    """
    return _recording.get() is INFERENCE


class _Mode:
    """A context that sets the recording state, and a decorator that sets it for each call."""

    @overload
    def __new__(cls, mode: bool | None = None) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = None) -> Any:
        # Without parentheses, as in ``@wg.no_grad``, this is given the decorated function.
        return cls()(mode) if callable(mode) else super().__new__(cls)

    #: The state to enter, and whether it is entered within `inference_mode` too.
    _state: bool | int | None = False
    _prevails = False

    def __init__(self) -> None:
        self._before_each: list[bool | int | None] = []

    def _again(self) -> "_Mode":
        """A fresh copy, for one call of a decorated function."""
        return type(self)()

    def __enter__(self) -> None:
        before = _recording.get()
        try:
            if before is not INFERENCE or self._prevails:
                _recording.set(self._state)
            self._before_each.append(before)
        except BaseException:  # an interrupt, or no memory: no exit follows
            _recording.set(before)
            raise

    def __exit__(self, *exception: object) -> None:
        before = self._before_each[-1]
        try:
            _recording.set(before)
            del self._before_each[-1]
        except BaseException:
            _recording.set(before)
            raise

    def __call__(self, function: F) -> F:
        """Decorate a function or a generator function."""
        others = inspect.isclass, inspect.isasyncgenfunction, inspect.iscoroutinefunction
        if any(one(function) for one in others):
            raise TypeError("a mode decorates functions; use it as a context inside this one")
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                return _generate(function(*args, **kwargs), self._again)

        else:

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return function(*args, **kwargs)

        return call  # type: ignore[return-value]


def _generate(generator: Any, context: Callable[[], _Mode]) -> Any:
    """Run a generator with the mode on inside it, and off while its caller has control."""
    step, value = generator.send, None
    while True:
        try:
            with context():
                item = step(value)
        except StopIteration as stop:
            return stop.value
        try:
            step, value = generator.send, (yield item)
        except BaseException as error:  # thrown in, or to close it: the generator's to handle
            step, value = generator.throw, error


class no_grad(_Mode):
    """Record nothing: results do not require grad, whatever they are computed from.

    To every derivative they are constants, in forward mode as in reverse; and a Tensor that is
    changed in place keeps the derivative that it had. A context (``with wg.no_grad():``) and a
    decorator, with or without parentheses. The state belongs to the running thread or task.

    Examples
    --------
    >>> w = wg.tensor(3.0, requires_grad=True)
    >>> (w**2).backward()
    >>> with wg.no_grad():  # a step of gradient descent is not part of the function
    ...     w -= 0.1 * w.grad
    >>> w
    tensor(2.4000, requires_grad=True)
    """


class enable_grad(_Mode):
    """Record again inside `no_grad`: a context and a decorator. `inference_mode` prevails.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.no_grad():
    ...     with wg.enable_grad():
    ...         y = x * x
    >>> y.requires_grad
    True
    """

    _state = True


class set_grad_enabled(_Mode):
    """Switch recording on or off, at once and until a ``with`` block ends, or for good.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> training = False
    >>> with wg.set_grad_enabled(training):
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._state = bool(mode)
        self._before = _recording.get()
        if self._before is not INFERENCE:
            _recording.set(self._state)

    def _again(self) -> "set_grad_enabled":
        return set_grad_enabled(self._state is True)

    def __enter__(self) -> None:
        # The constructor has switched already: what a block restores is the state before that.
        _recording.set(self._before)
        super().__enter__()

    def __call__(self, function: F) -> F:
        _recording.set(self._before)
        return super().__call__(function)


class inference_mode(_Mode):
    """Record nothing, and let no `enable_grad` inside switch recording on.

    With ``mode=False`` it changes nothing, so that a flag can decide.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.inference_mode():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode, self._state = bool(mode), INFERENCE

    def _again(self) -> "inference_mode":
        return inference_mode(self._mode)

    def __enter__(self) -> None:
        if not self._mode:
            self._state = _recording.get()
        super().__enter__()


class record_always(_Mode):
    """Record a transform's function, whatever mode is on outside, also in inference mode."""

    _state, _prevails = True, True


class unrecorded(_Mode):
    """Record nothing, but push tangents on: for users' rules and hooks in a sweep.

    What they compute is a derivative that is not to be swept, but that a forward transform outside
    follows.
    """

    _state, _prevails = UNRECORDED, True
