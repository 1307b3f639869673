"""Tracing: records the array operations of one run of a function.

While a function is traced, Tensors hold `Traced` arrays. Rules, optimisers and kernels run against
a namespace whose functions call the library's own and record the call: in the forward pass, the
sweep and the update. Values are computed, too, so that a trace is also one eager run.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from wengert.backends import Backend, Selection, backend_of, dtype_of, generators, selection
from wengert.backends.backend import composite_of, composites, function_of, on_device
from wengert.backends.registry import local_selection
from wengert.compiler.capture.draws import Draws
from wengert.compiler.capture.errors import TraceError, UnrollError, trace_errors
from wengert.compiler.capture.lines import describe, running_line, user_line
from wengert.compiler.capture.looping import record_loop
from wengert.compiler.capture.lowering import lower
from wengert.compiler.capture.traced import Traced, device_of, running, traced, tracing
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.facts import KERNELS, PLAIN, facts_of
from wengert.compiler.passes.dead import dead
from wengert.compiler.program import (
    Instruction,
    Line,
    Program,
    Value,
    is_literal,
    map_parts,
    order_of,
)
from wengert.func.scanning import looping
from wengert.interpreters.lifted import Lifted, bottom, new_level
from wengert.tape.anomaly import detecting
from wengert.tape.node import tick
from wengert.tape.observers import observing
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.promotion import common_dtype, number_type

__all__ = ["PATIENCE", "Trace", "copy_of", "effect_of", "is_mask"]

#: Functions of an array's shape and dtype, by the function of a shape and dtype that equals it.
_LIKE = {name + "_like": name for name in ("empty", "full", "ones", "zeros")}

#: Seconds for which a thread waits for the end of another's recording.
PATIENCE = 10.0
_SEQUENCES = (tuple, list)
_NO_PARAMETERS: Mapping[str, Any] = {}
#: Types of operands that stand in instructions unchanged.
_PLAIN = frozenset({int, float, str, bool, type(None)})
_NUMBERS = frozenset({TracedNumber, int, float, bool, complex})


class Trace:
    """One run of a function that is recorded."""

    def __init__(self, loops: bool = False) -> None:
        self.level, self.loops = new_level(), loops
        self.open = True
        self._outside: list[tuple[Any, Any]] = []  # context variables and their values before
        self.inputs: dict[Value, None] = {}  # in their order
        self.instructions: list[Instruction] = []
        self.constants: dict[Value, Any] = {}  # arrays that are no inputs
        self._locked: dict[int, np.ndarray[Any, Any]] = {}
        #: Input numbers whose value is fixed for the program, with the user's line that fixed it.
        self.pinned: dict[Value, str] = {}
        #: Comparisons of numbers on which control flow depends, with their outcomes.
        self.decided: dict[tuple[Any, ...], tuple[Instruction, bool]] = {}
        #: Constants that were operands, which a Tensor may hold that the walk has missed.
        self.beside: set[Value] = set()
        self.backends: set[Backend] = set()
        #: All trace errors, also those that the function has caught.
        self.refused: list[TraceError] = []
        #: Other threads that were there before, and whether one of them has met a value.
        self.others = {*threading.enumerate()} - {threading.current_thread()}
        self.met = False
        self.draws = Draws()
        self.failed = ""  # the last failed call, for an error
        self._operands: list[Any] | None = None  # those that are noted
        #: Values of the steps of scans, which only the loops have.
        self.hidden: set[Value] = set()
        self._held: dict[int, Value] = {}  # constants by identity; `constants` keeps them alive
        self._ticks: list[int] = []  # the tape's clock at each instruction
        self._adjoints: dict[Line, Line] = {}  # a line as one of stage "backward"
        self._here: Line | None = None  # the user's line of the running `apply`
        self.numbers: dict[Value, Any] = {}  # values of traced numbers in this run
        self._arithmetic: dict[Any, Value] = {}  # results by functions and operands
        self._sources: dict[Value, frozenset[Value]] = {}  # the inputs that numbers depend on

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record this thread or task in the ``with`` block, and close the trace."""
        chosen = selection()
        inside: dict[Any, Any] = {
            running: self,
            local_selection: Selection(tracing(chosen.backend), chosen.device, chosen.reason),
            trace_errors: self.refused,
            generators.follower: self.draws,
            looping: partial(record_loop, self) if self.loops else None,
        }
        self._outside = [(variable, variable.get()) for variable in inside]
        try:
            for variable, x in inside.items():
                variable.set(x)
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Stop recording. It may be called twice, as after an interrupt."""
        self.open = False
        for variable, x in self._outside:
            variable.set(x)

    def input(self, x: Any, name: str = "", kind: type[Traced] = Traced) -> Any:
        """A raw array or a number as an input of the program."""
        value = Value.like(x, name)
        self.inputs[value] = None
        if value.shape is None:
            self._sources[value] = frozenset({value})
            self.numbers[value] = x
            return TracedNumber(x, value, self)
        return kind(x, value, self)

    def constant(self, array: Any, *, beside: bool = False) -> "Traced":
        """A raw array as a constant of the program; ``beside`` others a Tensor may hold it."""
        value = self._constant(array)
        if beside:
            self.beside.add(value)
        return Traced(array, value, self)

    def _constant(self, array: Any) -> Value:
        value = self._held.get(id(array))
        if value is None:
            value = self._held[id(array)] = Value.like(array)
            self.constants[value] = array
            self.lock(array)
        return value

    def lock(self, array: Any) -> bool:
        """Forbid writing into a NumPy array and what it is a view of, if NumPy could undo that.

        It could not for another library's memory. Returns whether the array is locked.
        """
        if isinstance(array, np.ndarray):
            own = self.lock(array.base) or array.flags.owndata
            if own and array.flags.writeable:
                array.flags.writeable = False
                self._locked[id(array)] = array
        return id(array) in self._locked

    def unlock(self) -> None:
        """Allow all of it again, first of arrays that own their memory."""
        for array in self._locked.values():
            array.flags.writeable = True
        self._locked.clear()

    def apply(
        self, backend: Backend, name: str, operands: Sequence[Any], parameters: Mapping[str, Any]
    ) -> Any:
        """Call and record a function of a backend's namespace, or the calls it is composed of."""
        if self._here is not None:
            return self._apply(backend, name, operands, parameters)
        for x in operands:
            kind = type(x)
            if kind is not Traced and kind not in _PLAIN:
                given = x if isinstance(x, _SEQUENCES) else (x,)
                raw = [y for y in given if _is_array(y) and not isinstance(y, Lifted)]
                self.beside.update(map(self._constant, raw))
        try:
            self._here = running_line(self._adjoint)
            return self._apply(backend, name, operands, parameters)
        finally:
            self._here = None

    def _apply(
        self, backend: Backend, name: str, operands: Sequence[Any], parameters: Mapping[str, Any]
    ) -> Any:
        self.backends.add(backend)
        in_order = name in _LIKE and order_of(bottom(operands[0])) is None
        if in_order and "device" not in parameters:
            # A call without the array keeps it from being live.
            like, *operands = operands
            given = parameters.get("dtype")
            parameters = {
                "dtype": like.dtype if given is None else given,
                "device": backend.beside(bottom(like), alike=True),
            }
            name, operands = _LIKE[name], [tuple(like.shape), *operands]
        row = PRIMITIVES.get(name)
        if row is not None:
            self._check_shape(name, facts_of(row).dynamic is True)
        answer = lower(self, backend, name, operands, parameters)
        if answer is not NotImplemented:
            return answer
        function = attrgetter(name)(backend.namespace)
        forward, part = composite_of(function), function_of(function)
        facts = KERNELS.get(part, PLAIN)
        if facts.covers is not None:
            if facts.covers(*operands, **parameters):
                function = on_device(backend, facts.kernel)
            else:
                forward = composites[name]
        whole = name == "zeta" or (row is not None and row.effect is not None)  # zeta is SciPy's
        if row is not None and row.variadic == "indices" and any(map(is_mask, operands[1:])):
            whole = True  # the places that a mask selects depend on values
            self._check_shape("indexing with a mask", facts_of(row).dynamic == "masks")
        if forward is not None and not whole:
            return forward(traced, *operands, **parameters)
        return self.call(
            name, function, operands, parameters, pure=row is None or row.effect in (None, "moves")
        )

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        operands: Sequence[Any],
        parameters: Mapping[str, Any],
        *,
        pure: bool = True,
    ) -> Any:
        """Call a function on the inner arrays, and record it."""
        if not self.here():
            raise self.stale_error(operands)
        if not pure and effect_of(name) == "draws":
            self.draws.count()
        operands = tuple(operands)
        try:
            given = [x.inner if type(x) is Traced else _inner(x) for x in operands]
            if parameters:
                answer = function(*given, **{k: _inner(x) for k, x in parameters.items()})
            else:
                answer = function(*given)
        except Exception as error:
            # A dtype error does not depend on values: the engine casts, and calls again.
            dtypes = {x.dtype for x in operands if isinstance(x, Traced)}
            if not isinstance(error, TypeError) and (len(dtypes) < 2 or _by_values(name, error)):
                self._note_failure(name, error)
            raise
        if isinstance(answer, _SEQUENCES):
            if not all(map(_is_array, answer)):
                return answer
            results = tuple(map(Value.like, answer))
            self._add(name, function_of(function), operands, parameters, results, answer, pure)
            made: Any = map(Traced, answer, results, repeat(self))
            return type(answer)(*made) if hasattr(answer, "_fields") else type(answer)(made)
        if not _is_array(answer):
            return answer  # a dtype, a truth value about dtypes
        value = Value.like(answer)
        self._add(name, function_of(function), operands, parameters, (value,), answer, pure)
        return Traced(answer, value, self)

    @contextmanager
    def noting(self) -> Iterator[list[Any]]:
        """Note the operands of what is recorded in the ``with`` block."""
        before, self._operands = self._operands, []
        try:
            yield self._operands
        finally:
            if before is not None:
                before.append(self._operands)
            self._operands = before

    def look(self, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        """Record a check: a function that raises for some values, and returns nothing."""
        self._compute(function.__name__, function, operands)
        self._add("look", function, tuple(operands), _NO_PARAMETERS, (), (), False)

    def back(self, count: int, failed: str) -> None:
        """Remove the instructions since a position, where the last failed call was another."""
        self.failed = failed
        del self.instructions[count:], self._ticks[count:]
        self._arithmetic.clear()

    def number(self, name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Compute and record arithmetic of Python numbers, once of equal operands."""
        key: Any = None
        if self._operands is None and all(type(x) in _NUMBERS for x in operands):
            parts = [x.value if type(x) is TracedNumber else (type(x), repr(x)) for x in operands]
            key = (function, *parts)
        known = self._arithmetic.get(key)
        if known is not None and self.here():
            return TracedNumber(self.numbers[known], known, self)
        answer = self._compute(name, function, operands)
        value = Value.like(answer)
        if key is not None:  # not in a scan, whose steps are compared
            self._arithmetic[key] = value
        self.numbers[value] = answer
        self._sources[value] = frozenset().union(
            *[
                self._sources[x.value] if isinstance(x, TracedNumber) else {value}  # of an array
                for x in operands
                if isinstance(x, TracedNumber | Traced)
            ]
        )
        self._add(f"number.{name}", function, tuple(operands), {}, (value,), answer, True)
        return TracedNumber(answer, value, self)

    def _compute(self, name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        if not self.here():
            raise self.stale_error(operands)
        try:
            return function(*map(_inner, operands))
        except Exception as error:  # a shift by a negative number, say, which is a ValueError
            self._note_failure(name, error)
            raise

    def _note_failure(self, name: str, error: Exception) -> None:
        """Note a failure that depends on values: a function that catches it can't be recorded."""
        self.failed = (
            f"{user_line()}: {name} raised {type(error).__name__}, which the function has caught; "
            "whether it does depends on values, which differ from call to call"
        )

    def _add(
        self,
        name: str,
        function: Callable[..., Any],
        operands: tuple[Any, ...],
        parameters: Mapping[str, Any],
        results: tuple[Value, ...],
        answer: Any,
        pure: bool,
    ) -> None:
        if observing and detecting() is not None:
            raise TraceError(
                f"{user_line()}: anomaly detection is on inside a function that is compiled, and "
                "a replay would detect nothing; switch it on around the call"
            )
        if self._operands is not None:
            self._operands.append((operands, parameters))
        value = self.value
        given = tuple(
            [x.value if type(x) is Traced and x.trace is self else value(x) for x in operands]
        )
        if parameters:
            parameters = {k: self.value(x) for k, x in parameters.items()}
        line, several = self._here or running_line(self._adjoint), isinstance(answer, _SEQUENCES)
        self.instructions.append(
            Instruction(name, function, given, parameters, results, several, pure, line)
        )
        self._ticks.append(tick())

    def regularise(self, arrays: list[Any], weak: bool) -> type:
        """Replace raw arrays beside a traced number by traced ones, in place."""
        for i, x in enumerate(arrays):
            if hasattr(x, "dtype") and not isinstance(x, Lifted):
                arrays[i] = self.constant(x, beside=True)
        like = next((x for x in arrays if isinstance(x, Lifted)), None)
        if like is None:
            raise TypeError("there is no array among the operands")
        dtypes = [dtype_of(x.dtype) for x in arrays if hasattr(x, "dtype")]
        for i, x in enumerate(arrays):
            whole = type(x) is TracedNumber and type(x.number) is int and self.is_given(x)
            if whole and common_dtype(dtypes, [int]).kind.endswith("integer"):
                arrays[i] = x.pin()  # libraries may wrap an integer that is too large
        if not weak:
            for i, x in enumerate(arrays):
                if isinstance(x, TracedNumber | int | float | complex):
                    dtype = common_dtype(dtypes, [number_type(x)])
                    arrays[i] = traced.asarray(x, dtype=dtype, device=device_of(like))
        return type(like)

    def pin(self, number: "TracedNumber") -> Any:
        """The value of a number, which is from now on fixed for the program."""
        sources = self._inputs_of((number,))
        if not self.pinned.keys() >= sources:
            self.pinned = dict.fromkeys(sources, user_line()) | self.pinned
        return number.number

    def decide(self, name: str, function: Callable[..., Any], operands: tuple[Any, ...]) -> bool:
        """The outcome of a comparison, which the program requires from now on."""
        key = (name, *(values := self.value(operands)))
        if key in self.decided and self.here():
            return self.decided[key][1]
        sources = self._inputs_of(operands)
        answer: bool = self._compute(name, function, operands)
        if not self.pinned.keys() >= sources:
            result, line = Value(None, bool), running_line()
            step = Instruction(f"number.{name}", function, values, {}, (result,), line=line)
            self.decided[key] = step, answer
        return answer

    def _inputs_of(self, operands: tuple[Any, ...]) -> frozenset[Value]:
        """The inputs that numbers depend on; raise if they depend on arrays' values."""
        if not self.here():
            raise self.stale_error(operands)
        numbers = [x for x in operands if isinstance(x, TracedNumber)]
        sources = frozenset[Value]().union(*[self._sources[x.value] for x in numbers])
        if not all(self.is_given(x) for x in numbers):
            raise TraceError(
                f"{user_line()}: the values of a raw array are read inside a function that is "
                "compiled; they differ from call to call, and what is decided by them would not"
            )
        return sources

    def decisions(self) -> tuple[Program, tuple[bool, ...]]:
        """The program of the comparisons that decide control flow, and their outcomes."""
        pinned = {value for value, x in self._sources.items() if self.pinned.keys() >= x}
        found = [each for each in self.decided.values() if not pinned.issuperset(each[0].uses())]
        steps = [step for step in self.instructions if step.name.startswith("number.")]
        steps += [step for step, _ in found]
        outputs = tuple([step.result for step, _ in found])
        cut = dead(Program(tuple(self.inputs), tuple(steps), outputs))
        read = cut.read()
        cut = replace(cut, inputs=tuple([value for value in self.inputs if value in read]))
        return cut, tuple([outcome for _, outcome in found])

    def is_given(self, number: TracedNumber) -> bool:
        """Whether a number depends on inputs alone, and not on arrays."""
        return self.inputs.keys() >= self._sources[number.value]

    def value(self, x: Any) -> Any:
        """An operand of an instruction."""
        kind = type(x)
        if kind in _PLAIN:
            return x
        if kind is TracedNumber:
            return x.value
        if issubclass(kind, Traced):
            if x.trace is not self:
                raise x.trace.stale_error((x,))
            return x.value
        if isinstance(x, _SEQUENCES):
            return x if is_literal(x) else map_parts(self.value, x)
        if hasattr(x, "dtype") and hasattr(x, "shape") and not isinstance(x, type):
            return self._constant(x)
        return x

    def _adjoint(self, node: Any) -> Line | None:
        """The line whose adjoint a node computes, with stage "backward"."""
        at = bisect_left(self._ticks, node.number) - 1
        recorded = self.instructions[at].line if at >= 0 else None
        if recorded is None:
            return None
        found = self._adjoints.get(recorded)
        if found is None:
            found = self._adjoints[recorded] = recorded._replace(stage="backward")
        return found

    def program(self, outputs: Sequence[Any]) -> Program:
        """The recorded program with these outputs."""
        given = tuple([self.value(x) for x in outputs])
        made = Program(tuple(self.inputs), tuple(self.instructions), given, dict(self.constants))
        if self.hidden and (len(self.backends) > 1 or not self.hidden.isdisjoint(made.read())):
            raise UnrollError("a step's value is used outside, or loops are of several libraries")
        return made

    def made_at(self, value: Value) -> str:
        """The user's line that made a value, for an error."""
        for step in self.instructions:
            if value in step.results and step.line is not None:
                return describe(step.line)
        return "an argument or state of the compiled function"

    def here(self) -> bool:
        """Whether the trace is running in this thread or task."""
        return self.open and running.get() is self

    def stale_error(self, operands: Sequence[Any]) -> TraceError:
        """The error for a value of another thread's or a closed trace."""
        found = [x for x in operands if isinstance(x, Traced | TracedNumber)]
        x = next((x for x in found if not x.trace.open), found[0])
        error = TraceError(
            f"{user_line()}: a value is used here that belongs to the trace of a compiled "
            "function, which has ended, or runs in another thread or task; it was made at "
            f"{x.trace.made_at(x.value)}. Return it from the compiled function, or compute with it "
            "in the function's own thread"
        )
        if threading.current_thread() in x.trace.others:
            x.trace.met, until = True, time.monotonic() + PATIENCE
            while x.trace.open and time.monotonic() < until:
                time.sleep(0.001)
        if x.trace.open:
            x.trace.refused.append(error)  # which the other thread may keep to itself
        return error

    def _check_shape(self, what: str, dynamic: bool) -> None:
        if dynamic:
            raise TraceError(
                f"{user_line()}: the shape of what {what} gives depends on values, which differ "
                "from call to call; a compiled function needs shapes that do not. Use wg.where, "
                "or a product with the mask, or leave this part outside wg.compile"
            )


def effect_of(name: str) -> str | None:
    """What instructions of a name do besides: "draws" of random numbers, "exchanges" and others."""
    row = PRIMITIVES.get(name)
    drawn = "draws" if name == "draw" else None
    return drawn if row is None else row.effect


def is_mask(x: Any) -> bool:
    """Whether this is a traced array of truth values."""
    return isinstance(x, Traced) and dtype_of(x.dtype).name == "bool"


def copy_of(x: Any) -> Any:
    """A copy of an array of any library; numbers, also NumPy's, as they are."""
    if isinstance(x, np.generic) or not hasattr(x, "dtype"):
        return x
    return backend_of(x).namespace.asarray(x, copy=True)


def _inner(x: Any) -> Any:
    """An operand with traced values replaced by inner arrays and numbers."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if issubclass(kind, Traced):
        return x.inner
    if kind is TracedNumber:
        return x.number
    return map_parts(_inner, x) if isinstance(x, _SEQUENCES) and not is_literal(x) else x


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape")


def _by_values(name: str, error: Exception) -> bool:
    """Whether a call with operands of several dtypes failed because of values."""
    told = isinstance(error, IndexError | ArithmeticError | np.linalg.LinAlgError)
    return told or bool(facts_of(PRIMITIVES.get(name)).raises)
