"""Compiled functions: recorded once for each signature, and replayed from then on."""

import copy
import functools
import sys
import warnings
from _thread import get_ident
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from wengert.compiler.adjoint import Rerun
from wengert.compiler.capture.calls import (
    Arguments,
    Call,
    Layout,
    SharedError,
    signature_of,
    tensors_of,
)
from wengert.compiler.capture.errors import (
    ChangeError,
    CompileError,
    DecisionError,
    TraceError,
    several,
)
from wengert.compiler.capture.places import PROGRAMS, State, WalkOptions
from wengert.compiler.capture.recorded import Recording
from wengert.compiler.capture.recording import raised_inside, record_call, seldom_collected
from wengert.compiler.capture.snapshot import Snapshot
from wengert.compiler.capture.traced import current
from wengert.compiler.capture.walk import find_state
from wengert.compiler.capture.watch import Watch, functions_of
from wengert.compiler.checking import Checked, check
from wengert.compiler.emission.exported import ExportedProgram
from wengert.compiler.emission.glue import MISS
from wengert.compiler.exchanges import noted
from wengert.compiler.locating import located
from wengert.compiler.messages import needed
from wengert.compiler.refusals import (
    RECORDING,
    STEPS,
    Refusal,
    RefusedError,
    check_alone,
    failed,
    is_known,
    never,
    not_traceable,
    untraced,
    unused,
)
from wengert.compiler.replay import Replay
from wengert.compiler.report import Report, difference, summary
from wengert.compiler.restoring import restoring
from wengert.compiler.threads import eagerly, exclusive, inspecting
from wengert.nn.hooks import Hooked, changes
from wengert.nn.module import Module

__all__ = ["Compiled", "Options"]

#: Reasons why a call runs eagerly this time.
_TOGETHER = "other threads ran compiled functions all the time, so that it was not recorded now"
_WAITED = "another thread has recorded or checked for too long"
_NEW_STATE = "each call makes new state, which a replay would not make"
#: Refuses a call made by a running recording or check. It is not reported.
_WITHIN = Refusal(None, "")
#: The message for a bug of the compiler.
_BUG = "wg.compile itself, and not the function, has failed with {0}; please report it: {1}"

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")


class Options(NamedTuple):
    """What `compile` was asked for."""

    static: frozenset[str]
    size: int
    torch_compile: bool | str
    strict: bool
    check: int | None


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
        What was recorded, what ran how often, and what fell back to what.
    """

    def __init__(self, function: Callable[P, R], options: "Options") -> None:
        called: Any = function if isinstance(function, Module) else None
        if called is not None:
            function = called.forward if isinstance(called, Hooked) else called.__call__
        functools.update_wrapper(self, function)
        self._called, self._function, self._options = called, function, options
        self._arguments = Arguments(function, options.static)
        self._replays: list[Replay] = []
        self._calls: list[Callable[..., Any]] = []
        self._refusals: list[Refusal] = []
        self._other: Refusal | None = None  # of calls whose kind has neither program nor refusal
        self._walk = WalkOptions()
        self._shared: dict[int, Any] = {}  # argument containers that are also reached otherwise
        self._slotted: dict[int, Programs] = {}  # of the last objects without a dict
        self._lone: Any = None  # the signature of the last call whose program was not kept
        self._never = never(function)
        self._said: set[str] = set()  # warnings that were given
        self._busy = 0  # the thread that is recording or checking
        self.report = Report(getattr(function, "__qualname__", repr(function)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs:
            try:
                for call in self._calls:
                    answer = call(*args)
                    if answer is not MISS:
                        return answer  # type: ignore[no-any-return]
            except Exception as error:
                return self._eagerly(failed(error), args, kwargs)  # type: ignore[no-any-return]
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
        held = getattr(instance, "__dict__", None)
        held = held if isinstance(held, dict) else None  # a class's, for `classmethod`, is a view
        known = self._slotted.get(id(instance)) if held is None else held.get(PROGRAMS)
        if type(known) is not Programs or known.owner != id(
            instance
        ):  # a copied ``__dict__`` has the original's
            known = Programs(instance)
            if held is not None:
                held[PROGRAMS] = known
            else:
                self._slotted[id(instance)] = known
                if len(self._slotted) > self._options.size:
                    del self._slotted[next(iter(self._slotted))]
        bound = known.get(self)
        if bound is None:
            bound = known[self] = Compiled(self._function.__get__(instance, owner), self._options)
        return bound

    def __reduce__(self) -> Any:
        """Pickle as its public name, or as a new compiled function without programs."""
        name = getattr(self._function, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self._function, "__module__", None) or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Compiled, (self._given(), self._options))

    def __copy__(self) -> "Compiled[P, R]":
        return Compiled(self._given(), self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Compiled[P, R]":
        return Compiled(copy.deepcopy(self._given(), memo), self._options)

    def _given(self) -> Any:
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
        dict ``state`` of the file. Random numbers continue as they would here. CuPy's arrays
        are made on its current device when the file is imported.

        Parameters
        ----------
        path : path
            The Python file. Arrays are written into an ``.npz`` file of the same name.

        Raises
        ------
        RuntimeError
            If nothing has run yet, or the state's structure has changed since.
        ValueError
            If the program changes its arguments, is for one value of a number that changes, or
            returns an object of a user's class.
        """
        replay = self._last()
        name = getattr(self._function, "__name__", "step")
        with eagerly():
            replay.save(path, name, self._state(replay.layout, replay.objects))

    def eagerly(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        with eagerly():
            return self._function(*args, **kwargs)

    def strictly(self) -> "Compiled[P, R]":
        """The same function with ``strict=True``, without a limit on programs, and unchecked."""
        options = self._options._replace(size=sys.maxsize, torch_compile=False)
        options = options._replace(strict=True, check=0)
        return Compiled(self._given(), options)

    def looked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, State]:
        """Return a call's flattened arguments, and the state that the function reaches."""
        call = Call(args, kwargs, self._arguments, self._shared)
        return call, self._state(call.layout, call.layout.given(call.leaves))

    def exported(self) -> ExportedProgram | None:
        """Return the program that ran last for export, with all state that it changes.

        None if there is no program, because each call has made new state.
        """
        if not self._replays:
            return None
        replay = self._last()
        state = self._state(replay.layout, replay.objects)
        return replay.exported(self.report.name, state, unread=True)

    def _last(self) -> Replay:
        if not self._replays:
            raise RuntimeError(
                f"{self.report.name} has no program yet: call it first, with the arguments to "
                "record it for"
            )
        return max(self._replays, key=lambda replay: replay.used)

    def __repr__(self) -> str:
        return f"<compiled {self.report.name}: {several(len(self._replays), 'program')}>"

    # -- finding and making programs -----------------------------------------------------------

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if current() is not None:  # another trace records this function's calls
            return self._function(*args, **kwargs)
        if self._called is not None:  # hooks may have been added or removed
            self._function = self._called.__call__
        if kwargs:
            args, kwargs = self._arguments.positional(args, kwargs)
        with noted(self.report.name) if needed() else nullcontext():
            while True:
                try:
                    return self._found(Call(args, kwargs, self._arguments, self._shared))
                except SharedError as error:
                    self._shared = {id(x): x for x in error.args}
                except RefusedError as error:
                    refusal = error.refusal
                    break
            if refusal is not _WITHIN:
                return self._eagerly(refusal, args, kwargs)
            return self.eagerly(*args, **kwargs)

    def _eagerly(self, refusal: Refusal, args: Any, kwargs: Any) -> Any:
        """Run a call eagerly, and report why."""
        self.report.fell_back(refusal.reason)
        try:
            answer = self.eagerly(*args, **kwargs)
        except BaseException:
            if refusal.failed and refusal in self._refusals:
                self._refusals.remove(refusal)  # the function itself raises: no bug of the compiler
            raise
        refusal.version = changes[0]
        if refusal.failed:
            self._complain(refusal.reason)
        return answer

    def _complain(self, failed: str) -> None:
        """Report a bug of the compiler."""
        text = _BUG.format(self.report.name, failed)
        if self._options.strict:
            raise CompileError(f"{text}. What the function itself has done stays")
        if text not in self._said:
            self._said.add(text)
            warnings.warn(f"{text}. The call ran eagerly", RuntimeWarning, stacklevel=5)

    def _found(self, call: Call) -> Any:
        """Run a call by a program that is found or recorded."""
        reason = self._never or not_traceable(call.leaves)
        if reason and reason is not RECORDING:
            if self._never and self._options.strict:
                raise TraceError(reason)
            raise RefusedError(Refusal(None, reason))
        if self._busy == get_ident():
            raise RefusedError(_WITHIN)
        answer = self._replayed(call)
        if answer is not MISS:
            return answer
        with inspecting() as mine:
            if not mine:
                raise RefusedError(Refusal(None, _WAITED))
            self._busy = get_ident()
            try:
                return seldom_collected(lambda: self._looked(call))
            finally:
                self._busy = 0

    def _replayed(self, call: Call) -> Any:
        """Run a call by a program that is bound to its objects; `MISS` if there is none."""
        try:
            for replay in list(self._replays):
                if call.layout == replay.layout:
                    for run, reached in replay.bound:
                        if call.apart and not reached.isdisjoint(map(id, call.apart)):
                            continue
                        answer = run(*call.given(replay.containers))
                        if answer is not MISS:
                            return answer
        except Exception as error:
            raise RefusedError(failed(error)) from None
        return MISS

    def _looked(self, call: Call) -> Any:
        """Run a call after comparing the state; only one thread at a time does so."""
        # Another thread may have recorded the program while this one waited.
        answer = self._replayed(call)
        if answer is not MISS:
            return answer
        if reason := not_traceable(call.leaves):
            raise RefusedError(Refusal(None, reason))
        refusal = next((each for each in self._refusals if each.arguments == call.arguments), None)
        if refusal is not None and refusal.stands():
            raise RefusedError(refusal)
        other = None if refusal or is_known(call.arguments, self._replays) else self._other
        if other is not None and other.stands():
            raise RefusedError(other)
        if self._replays:
            answer = self._run(call, refusal, mine=False)
            if answer is not MISS:
                return answer
        with exclusive() as mine:  # compare again: other threads may have changed the state
            if not mine:
                raise RefusedError(self._remembered(Refusal(call.arguments, _TOGETHER)))
            answer = self._run(call, refusal, mine=True)
        if refusal is not None and refusal.signature is None and refusal in self._refusals:
            self._refusals.remove(refusal)
        return answer

    def _run(self, call: Call, refusal: Refusal | None, *, mine: bool) -> Any:
        """Run a call by a program that fits the state, or record one.

        Returns `MISS` if the thread has to be exclusive for that (``mine``), and is not.
        """
        try:
            state = self._state(call.layout, call.layout.given(call.leaves))
            check_alone(state, call.leaves)
            signature = signature_of(call.leaves, call.layout, state)
        except Exception as error:
            raise self._refused(call, None, error) from None
        call.check(state.called)
        if refusal is not None and refusal.signature == signature:
            raise RefusedError(refusal)
        for replay in list(self._replays):
            if replay.fits(signature, state, call.leaves):
                if replay.left == 0 and not mine:
                    return MISS
                run = self._checked if replay.left == 0 else self._bound
                answer = run(replay, call, state)
                if answer is not MISS:
                    return answer
        if not mine:
            return MISS
        why = self._why(signature)
        waits = refusal is None or not refusal.over
        full = len(self._replays) >= self._options.size and not self._options.strict
        if full and waits and (found := unused(call.arguments, self._replays, self.report, why)):
            self._other = Refusal(None, found.reason, wait=STEPS)
            raise RefusedError(self._remembered(found))
        changed = self._walk.changed
        try:
            answer = self._record(call, state, signature, why)
        except ChangeError as error:
            if error.names <= changed:
                raise self._refused(call, signature, error) from None
            changed |= error.names
        except Exception as error:
            if not any(place.of_user for place in state.arrays):
                raise self._refused(call, signature, error) from None
        else:
            if len(self._replays) > self._options.size:
                self._forget(why)
            return answer
        # Outside `except`, where the error keeps what the recording has made.
        if changed != self._walk.changed:
            self._walk = self._walk._replace(changed=changed)
            return self._run(call, refusal, mine=True)
        # The code may read values of raw arrays. Then a program is for these values.
        self._walk = self._walk._replace(by_contents=True)
        try:
            return self._run(call, None, mine=True)
        except RefusedError as error:
            self._walk = self._walk._replace(by_contents=False)
            error.refusal.signature = signature
            raise

    def _state(self, layout: Layout, given: Iterable[tuple[str, Any]]) -> State:
        """The state that a call with these arguments reaches."""
        # The call of a module with hooks is Wengert's, so that the walk begins at the module.
        root = self._called if isinstance(self._called, Hooked) else self._function
        return find_state(root, given, layout.structure, options=self._walk)

    def _bound(self, replay: Replay, call: Call, state: State) -> Any:
        """Run a program, and bind it to the call's objects for later calls."""
        others = [run for run in self._calls if run not in replay.calls]
        try:
            answer = replay.run(call, state)
        except Exception as error:
            raise RefusedError(failed(error)) from None
        quick = replay.layout.plain and not replay.noted
        self._calls = [*replay.calls, *others] if quick else others
        return answer

    def _checked(self, replay: Replay, call: Call, state: State) -> Any:
        """Run a call by the program and by the function, and compare the two."""
        watch = Watch(functions_of(state.objects, self._function), stop=False)

        def run() -> Any:
            with nullcontext() if replay.checked else watch.on():
                return self._function(*call.args, **call.kwargs)

        self._drop(replay)  # until the check has passed
        found = check(replay, run, call, state)
        if found is None:
            return MISS
        if found.raised:
            why = f"the function raised {summary(found.raised)}, which its program does not"
            self._remembered(Refusal(call.arguments, why, replay.signature))
            self.report.fell_back(why)
            raise found.raised
        if found.failed:
            self._replays.append(replay)
            self.report.fell_back(found.failed.reason)
            if found.failed.failed:
                self._complain(found.failed.reason)
            return found.answer
        self.report.checks += 1
        if watch.met:
            self._remembered(Refusal(call.arguments, watch.met, replay.signature))
            self.report.fell_back(watch.met)
            return found.answer
        if found.differences:
            raise self._wrong(replay, call, found, state)
        self._replays.append(replay)
        replay.checked = True
        replay.left = None if self._options.check is None else self._options.check - 1
        return found.answer

    def _wrong(self, replay: Replay, call: Call, found: Checked, state: State) -> CompileError:
        """Make the error for a wrong program, and refuse calls like this one from now on."""
        where = self._located(replay, call, found, state)
        error = CompileError(
            f"the program of {self.report.name} is wrong: {'; '.join(found.differences)}. The "
            f"first line that differs: {where}. The program is dropped, and what the function "
            "itself has done stays; calls like this one run eagerly from now on"
        )
        why = f"the program was wrong: {where}"
        self._remembered(Refusal(call.arguments, why, replay.signature))
        return error

    def _located(self, replay: Replay, call: Call, found: Checked, state: State) -> str:
        """The first line of a program that differs. The state is as before."""
        after = Snapshot.of(state, call.leaves, contents=True)

        def locate() -> str:
            try:
                found.before.restore()
                samples: dict[Any, Any] = {}
                now = self._state(call.layout, call.layout.given(call.leaves))
                recorded = record_call(
                    *(self._function, now, call.layout, call.leaves),
                    lambda answer, found, kept: found,
                    samples,
                )
                program, inputs, start = replay.recording.program, found.inputs, found.before.rewind
                where = located(program, replay.emitted, inputs, recorded.program, samples, start)
            except Exception as error:
                where = f"unknown, because the function can't be recorded again ({error})"
            after.restore()
            return where

        return restoring(locate, after.restore)

    def _drop(self, replay: Replay) -> None:
        self._replays.remove(replay)
        self._calls = [call for call in self._calls if call not in replay.calls]

    def _refused(self, call: Call, signature: Any, error: Exception) -> RefusedError:
        """Refuse calls like this one from now on; raise if `strict`."""
        error = untraced(error)
        known, short = isinstance(error, TraceError), isinstance(error, MemoryError)
        if self._options.strict:
            if known or short or raised_inside(error):
                raise error
            raise CompileError(_BUG.format(self.report.name, summary(error))) from error
        reason = str(error) if known else summary(error)
        by_value = isinstance(error, DecisionError)  # another value may be recorded
        signature = None if by_value else signature
        refusal = Refusal(call.arguments, reason, signature, failed=not (known or short))
        return RefusedError(self._remembered(refusal))

    def _remembered(self, refusal: Refusal) -> Refusal:
        for before in self._refusals:
            if before.arguments == refusal.arguments:
                refusal.after(before)
                self._refusals.remove(before)
                break
        self._refusals = [*self._refusals[-self._options.size :], refusal]
        return refusal

    def _record(self, call: Call, state: State, signature: dict[str, Any], why: str) -> Any:
        function, options = self._function, self._options
        # Otherwise the first check watches for calls that a replay could not make.
        watch = options.check == 0 or options.strict
        layout, leaves = call.layout, call.leaves

        def made(answer: Any, found: Recording, kept: Any) -> tuple[Any, Recording, Replay]:
            rerun = Rerun(function, layout, signature, state, found, leaves)
            how = options.torch_compile
            replay = Replay(found, signature, layout, rerun, self.report, how)
            replay.given(leaves)
            if replay.adjoints:
                replay.attach(answer, kept, tensors_of(leaves, state), leaves)
            return answer, found, replay

        self._other = None
        answer, found, replay = record_call(function, state, layout, leaves, made, watch=watch)
        self.report.recorded(found, why)
        if options.check == 0:
            replay.left = None
        if found.repeatable:
            self._replays.append(replay)
        elif not options.strict and self._is_usual(call, signature):
            self._remembered(Refusal(call.arguments, _NEW_STATE, signature))
        for i, (kind, what) in enumerate(found.leaves):
            if kind == "argument":
                answer[i] = call.apart[what]
        return found.answer.unflatten(answer)

    def _is_usual(self, call: Call, signature: Any) -> bool:
        """Whether a call that made new state has the last one's signature, before and after it."""
        before, self._lone = self._lone, signature
        if signature != before:
            return False
        try:
            state = self._state(call.layout, call.layout.given(call.leaves))
            return bool(signature_of(call.leaves, call.layout, state) == signature)
        except Exception:  # the function has run
            return False

    def _forget(self, why: str) -> None:
        self._drop(min(self._replays, key=lambda replay: replay.used))
        self.report.dropped += 1
        warnings.warn(
            f"wg.compile has recorded {self.report.name} {self.report.recordings} times, and keeps "
            f"{several(self._options.size, 'program')}: {why}. Make what differs the same in each "
            "call, or give wg.compile a larger cache_size",
            RuntimeWarning,
            stacklevel=11,
        )

    def _why(self, signature: dict[str, Any]) -> str:
        """How a call differs from the one before."""
        if not self._replays:
            first = not self.report.recordings
            return "the first call" if first else "a call after those whose programs were not kept"
        before = max(self._replays, key=lambda replay: replay.used)
        return difference(before.signature, signature) or before.decides()
