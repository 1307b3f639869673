"""Compiled functions: recorded once for each signature, and replayed from then on."""

import functools
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from wengert.backends import backend_of
from wengert.compiler.binding import MISS, Failed
from wengert.compiler.calls import Arguments, Call, signature_of
from wengert.compiler.capture.errors import CompileError, GraphError, TraceError, several
from wengert.compiler.capture.lines import describe, line_that_raised, raised_by_user
from wengert.compiler.capture.trace import PATIENCE
from wengert.compiler.capture.traced import Traced, current
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.changes import Before, BegunError, DrawError
from wengert.compiler.checking import check
from wengert.compiler.emission.exported import ExportedProgram
from wengert.compiler.recording import record
from wengert.compiler.replay import Replay
from wengert.compiler.report import Report, difference
from wengert.compiler.state import PROGRAMS, State, is_array
from wengert.compiler.walk import find_state
from wengert.interpreters.lifted import Lifted
from wengert.nn.module import Module
from wengert.ops.random import maps
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor

__all__ = ["Compiled", "Options", "eagerly"]

#: Held by the one thread that looks at a function's state, records or checks, or runs it eagerly.
_lock = threading.RLock()
#: Whether compiled functions run as they are in this thread or task.
_eager = ContextVar("wengert_eager", default=False)

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")


class Options(NamedTuple):
    """What `compile` was asked for."""

    static: frozenset[str]
    state: Any
    size: int
    torch_compile: bool | str
    strict: bool
    check: int | None
    loops: bool = True


def eagerly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, in which compiled functions run as they are."""
    before = _eager.get()
    try:
        _eager.set(True)
        return function(*args, **kwargs)
    finally:
        _eager.set(before)


@contextmanager
def _turn() -> Iterator[bool]:
    """Wait until no other thread records; whether that has come."""
    mine = _lock.acquire(timeout=PATIENCE)
    try:
        yield mine
    finally:
        if mine:
            _lock.release()


class Programs(dict["Compiled[Any, Any]", "Compiled[Any, Any]"]):
    """The compiled methods of one object. A copy of the object starts with none."""

    __slots__ = ("owner",)

    def __init__(self, owner: object) -> None:
        super().__init__()
        self.owner = id(owner)

    def __reduce__(self) -> Any:
        return dict, ()


class Compiled(Generic[P, R]):
    """A function with its recorded programs; `wengert.compile` makes it.

    Attributes
    ----------
    source : str
        The program that ran last, as Python source: plain calls of the array library.
    report : Report
        What was recorded and why, and what was not looked into.
    """

    __slots__ = (  # its ``__dict__`` has the user's attributes
        *("_called", "_function", "_options", "_arguments", "_replays", "_calls", "_names"),
        *("_refused", "_begun", "report", "__dict__", "__weakref__", "__wrapped__"),
    )

    def __init__(self, function: Callable[P, R], options: Options) -> None:
        called: Any = function if isinstance(function, Module) else None
        if called is not None:
            function = called.forward if "_hooks" in vars(called) else called.__call__
        functools.update_wrapper(self, function)
        self._called, self._function, self._options = called, function, options
        self._arguments = Arguments(function, options.static)
        self._replays: list[Replay] = []
        self._calls: list[Callable[..., Any]] = []
        self._names: set[str] = set()  # in the code that the function leads to
        self._refused: dict[Any, str] = {}  # kinds of arguments, and why they are not recorded
        self._begun = False  # whether a call has run that optimisers may have begun with
        self.report = Report(getattr(function, "__qualname__", repr(function)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs:
            for call in self._calls:
                answer = call(*args)
                if answer is not MISS:
                    if type(answer) is Failed:
                        return self._fail(answer.error, args, kwargs)  # type: ignore[no-any-return]
                    return answer  # type: ignore[no-any-return]
        return self._slow(args, kwargs)  # type: ignore[no-any-return]

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "Compiled[P, R]": ...
    @overload
    def __get__(
        self: "Compiled[Concatenate[T, Q], R]", instance: T, owner: type | None = None
    ) -> "Compiled[Q, R]": ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A compiled method: each object has programs of its own."""
        if instance is None:
            return self
        if not hasattr(instance, "__dict__"):
            raise TypeError(
                f"objects of {type(instance).__name__} have no __dict__ for programs; compile a "
                "method of the object: wg.compile(x.method)"
            )
        known = vars(instance).get(PROGRAMS)
        if type(known) is not Programs or known.owner != id(instance):  # of what it is a copy of
            known = Programs(instance)
            kind = type if isinstance(instance, type) else object
            if current() is None:  # otherwise a function changes its state that is recorded
                kind.__setattr__(instance, PROGRAMS, known)
        bound = known.get(self)
        if bound is None:
            bound = known[self] = Compiled(self._function.__get__(instance, owner), self._options)
            bound.__dict__ = self.__dict__  # as bound methods have their function's attributes
        return bound

    def __reduce__(self) -> Any:
        """Pickle and copy as its function: by its name in a module, or with its state."""
        given, name = self._original(), self.report.name
        home = getattr(given, "__module__", "__main__")
        found: Any = None if home == "__main__" else sys.modules.get(home)
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Compiled, (given, self._options))

    def _original(self) -> Any:
        """What was compiled: a module or a function."""
        return self._function if self._called is None else self._called

    @property
    def source(self) -> str:
        """The program that ran last, as Python source."""
        return self._last().source

    def save(self, path: str | Path) -> None:
        """Write the program that ran last as a Python file that runs without Wengert.

        The file defines a function of the name of this one. It takes raw arrays where this one
        takes Tensors, one for each leaf, and no static values. It runs the program on the state as
        of now (parameters, what an optimiser keeps, hyper-parameters) and updates that state, the
        dict ``state`` of the file. CuPy's arrays are made on its current device when the file is
        imported.

        Parameters
        ----------
        path : path
            The Python file. Arrays are written into an ``.npz`` file of the same name.

        Raises
        ------
        RuntimeError
            If nothing has run yet, or the state's structure has changed since.
        ValueError
            If the program changes its arguments, is for one value of a number that changes,
            returns an object of a user's class, replaces a tuple of the state, has collectives, or
            draws random numbers.
        """
        replay = self._last()
        name = getattr(self._function, "__name__", "step")
        replay.save(path, name, self._state(replay.objects))

    def eagerly(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return eagerly(self._function, *args, **kwargs)  # type: ignore[no-any-return]

    def strictly(self) -> "Compiled[P, R]":
        """The same function without a limit on programs, unchecked, and without loops."""
        options = self._options._replace(size=sys.maxsize, torch_compile=False, loops=False)
        return Compiled(self._original(), options._replace(strict=True, check=0))

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, State]:
        """Return a call's flattened arguments, and the state that the function leads to."""
        call = Call(args, kwargs, self._arguments)
        return call, self._state(call.layout.roots(call.leaves))

    def record_call(self, args: tuple[Any, ...]) -> bool:
        """Record a call, which is not run; return whether it begins nothing that is kept."""
        with _lock:
            call, state = self.look(args, {})
            try:
                signature = signature_of(call.leaves, call.layout, state)
                self._record(call, state, signature, "export", exports=True)
            except BegunError:
                return False
            return True

    def export(self) -> ExportedProgram:
        """Return the program that ran last for export, with all state that it changes."""
        replay = self._last()
        return replay.export(self.report.name, self._state(replay.objects), unread=True)

    def _last(self) -> Replay:
        if not self._replays:
            why = [*self._refused.values(), "call it first, with the arguments to record it for"][0]
            raise RuntimeError(f"{self.report.name} has no program: {why}")
        return max(self._replays, key=lambda replay: replay.used)

    def __repr__(self) -> str:
        return f"<compiled {self.report.name}: {several(len(self._replays), 'program')}>"

    # -- finding and making programs -----------------------------------------------------------

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if current() is not None or _eager.get():  # another function is recorded, or checked
            return self._function(*args, **kwargs)
        if self._called is not None:  # hooks may have been added or removed
            self._function = self._called.__call__
        if kwargs:
            args, kwargs = self._arguments.positional(args, kwargs)
        call = Call(args, kwargs, self._arguments)
        with _turn() as mine:  # before it looks at Tensors, which another thread may record
            late = "another thread records or checks for too long"
            if reason := self._outside(call) if mine else late:
                self.report.fell_back(reason)
                return self.eagerly(*call.args, **call.kwargs)
            try:
                answer = self._find(call)
            except TraceError as error:
                if self._options.strict and not isinstance(error, GraphError):
                    raise
                self._refuse(call, str(error))
                return self.eagerly(*call.args, **call.kwargs)
        if type(answer) is Failed:
            return self._fail(answer.error, call.args, call.kwargs)
        return answer

    def _outside(self, call: Call) -> str:
        """Why a call runs as it is: it is no call of programs, or was refused before."""
        if observing:
            return "anomaly detection, hooks on saved values or graph_breaks() look on"
        for leaf in call.leaves:
            array = leaf._array if isinstance(leaf, Tensor) else leaf
            if isinstance(array, Traced | TracedNumber):  # of a trace that has ended
                raise array.trace.stale_error((array,))
            if isinstance(array, Lifted):
                return f"the call is inside a transform ({type(array).__name__})"
        if maps.get():
            return "the call is inside vmap"
        return self._refused.get(call.kinds, "")

    def _fail(self, error: Exception | None, args: Any, kwargs: Any) -> Any:
        """Run the function where its program has raised: it raises, too, or handles the error."""
        if error is not None and raised_by_user(error):  # by a signal's handler
            raise error
        why = f"raised {type(error).__name__}" if error else "runs in another call"
        self.report.fell_back(f"the program {why}")
        with _turn():
            return self.eagerly(*args, **kwargs)

    def _find(self, call: Call) -> Any:
        """Run a call by a program that is found or recorded; one thread at a time does so."""
        for replay in list(self._replays):
            if call.layout == replay.layout:
                for run in replay.calls:
                    answer = run(*call.leaves)
                    if answer is not MISS:
                        return answer
        state = self._state(call.layout.roots(call.leaves))
        signature = signature_of(call.leaves, call.layout, state)
        for replay in list(self._replays):
            if signature == replay.signature:
                run = self._compare if replay.left == 0 else self._bind
                answer = run(replay, call, state)
                if answer is not MISS:
                    return answer
        return self._new(call, state, signature)

    def _state(self, given: Iterable[tuple[str, Any]]) -> State:
        """The state that a call with these arguments leads to."""
        state = find_state(self._original(), given, self._names, self._options.state)
        self._arguments.typed |= "type" in self._names
        return state

    def _bind(self, replay: Replay, call: Call, state: State) -> Any:
        """Run a program, and bind it to the call's objects for later calls."""
        others = [run for run in self._calls if run not in replay.calls]
        run = replay.bind(call, state)
        self._calls = [*replay.calls, *others] if replay.layout.plain else others
        return run(*call.leaves)

    def _compare(self, replay: Replay, call: Call, state: State) -> Any:
        """Run a call by the program and by the function, and compare the two."""
        self._drop(replay)  # until the check has passed
        self._replays.append(replay)  # the check is due in the next call if this one fails
        run = lambda: self._function(*call.args, **call.kwargs)
        found = eagerly(check, replay, run, call, state)
        if found is None:
            return MISS
        if isinstance(found, Failed):
            return found
        self.report.checks += 1
        answer, differences = found
        if differences:
            self._replays.remove(replay)
            steps = replay.recording.program.instructions
            scan = next((describe(x.line) for x in steps if x.name == "scan" and x.line), "")
            why = (
                f"the program of {self.report.name} differs from the function: "
                f"{'; '.join(differences[:3])}. It computes with what was there when it was "
                "recorded: pass what changes as an argument, or keep it in a Tensor. "
                + (f"Its scan is a loop of equal steps ({scan}). " if scan else "")
                + "The program is dropped, and what the function itself has done stays"
            )
            if not scan or self._options.strict:
                raise CompileError(why)
            self._refuse(call, why)
            return answer
        replay.left = None if self._options.check is None else self._options.check - 1
        return answer

    def _drop(self, replay: Replay) -> None:
        self._replays.remove(replay)
        self._calls = [call for call in self._calls if call not in replay.calls]

    def _new(self, call: Call, state: State, signature: dict[str, Any]) -> Any:
        """Record a program; the function itself runs the call."""
        why = self._why(signature)
        try:
            if state.starting and not self._begun:
                self._begun = True
                raise BegunError
            trace = self._record(call, state, signature, why)
            for pause in (0.0, 0.01, 0.1):  # another thread raises its error, or profiles this one
                if trace() is not None:
                    gc.collect()
                    time.sleep(pause)
            met = getattr(trace(), "met", False)
            if trace() is not None:
                self._replays.pop()
                if met:
                    raise BegunError("another thread has met a Tensor of a recording that is lost")
                raise TraceError(
                    "a Tensor or a number of the compiled function escapes into an object or a "
                    "closure, where a replay would not put it; return it"
                )
        except BegunError as why:
            made = "a call ran as it is, in which an optimizer made its state"
            self.report.note(str(why) or made)
        return self.eagerly(*call.args, **call.kwargs)

    def _refuse(self, call: Call, why: str) -> None:
        """Note that calls like this one run as they are, and warn once."""
        self._refused[call.kinds] = why
        if self.report.fell_back(why):
            text = f"{self.report.name} runs as it is, and not compiled: {why}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    def _record(
        self, call: Call, state: State, signature: dict[str, Any], why: str, exports: bool = False
    ) -> Any:
        """Add a program; return what gives the trace as long as something holds a traced value."""
        self._check_alone(state, call)
        # Another thread may draw random numbers meanwhile; the function draws each time.
        tries = 4 if threading.active_count() > 1 else 1
        try:
            for left in reversed(range(tries)):
                with suppress(*[DrawError] * (left > 0)):
                    given = (state, call.layout, call.leaves)
                    found, trace = record(self._function, *given, self._options.loops)
                    break
        except (TraceError, BegunError):
            raise
        except Exception as error:
            before = Before(state, call.leaves)
            self.eagerly(*call.args, **call.kwargs)  # it raises, too
            before.restore()
            arrays = "NumPy arrays can't be written then: use wg.asarray. "
            raise TraceError(
                f"{line_that_raised(error)}: the compiled function raises {type(error).__name__} "
                f"({error}) while it is recorded, and not as it is. "
                f"{'' if 'Traced' in str(error) else arrays}A float among the arguments, and a "
                "number of an optimizer, have arithmetic alone. Give other code wg.asarray of it, "
                "as in wg.sin(wg.asarray(x)), or name the argument in static_argnames"
            ) from error
        if found.tracked and not exports:
            raise GraphError(
                "its result requires grad, and a program has no graph. Differentiate inside the "
                "compiled function, return x.detach(), or call it in wg.no_grad()"
            )
        replay = Replay(found, signature, call.layout, self.report, self._options.torch_compile)
        replay.keep_objects(call.leaves)
        self.report.add(found, why, state.unseen)
        if self._options.check == 0:
            replay.left = None
        self._replays.append(replay)
        if len(self._replays) > self._options.size:
            self._forget(why)
        return trace

    def _check_alone(self, state: State, call: Call) -> None:
        """Raise if arrays' functions exchange data with processes that may not run them again.

        Raise, too, if the code may ask for the class of a raw array that is traced, or for errors
        of NumPy's.
        """
        if not self._names.isdisjoint({"errstate", "seterr"}):
            raise TraceError(
                "the code of the compiled function says what NumPy does about errors, which a "
                "replay would not do; put np.errstate around the call"
            )
        if self._arguments.typed and (state.own or any(map(is_array, call.leaves))):
            raise TraceError(
                "the code of the compiled function asks for the type of something, and gets NumPy "
                "arrays, whose class is another while it is recorded; use isinstance, or pass a "
                "Tensor"
            )
        tensors = [each.tensor for each in state.tensors]
        for x in (*call.leaves, *tensors, *[place.get() for place in state.arrays]):
            array = x._array if isinstance(x, Tensor) else x
            if is_array(array) and backend_of(array).exchanging:
                raise TraceError(
                    f"functions on arrays of {backend_of(array).name} exchange data between "
                    "processes, and recording or checking would run them once more on this one"
                )

    def _forget(self, why: str) -> None:
        self._drop(min(self._replays, key=lambda replay: replay.used))
        self.report.dropped += 1
        warnings.warn(
            f"wg.compile has recorded {self.report.name} {self.report.recordings} times, and keeps "
            f"{several(self._options.size, 'program')}: {why}. Make what differs the same in each "
            "call, pass it as a Tensor, or give wg.compile a larger cache_size",
            RuntimeWarning,
            stacklevel=7,
        )

    def _why(self, signature: dict[str, Any]) -> str:
        """How a call differs from the one before."""
        if not self._replays:
            if self.report.recordings:
                return "a call after those whose programs were not kept"
            return "the call after an optimizer's first" if self._begun else "the first call"
        before = max(self._replays, key=lambda replay: replay.used)
        return difference(before.signature, signature) or before.decides()
