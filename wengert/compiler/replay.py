"""Replays: recorded programs, compiled and bound to the objects that hold their state."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from wengert.backends import generators
from wengert.compiler.binding import MISS, Binding
from wengert.compiler.calls import Call, Layout
from wengert.compiler.capture.lines import describe
from wengert.compiler.capture.recorded import Recording
from wengert.compiler.capture.trace import effect_of
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.emission.exported import ExportedProgram, exported_program
from wengert.compiler.emission.finish import finish
from wengert.compiler.emission.saving import save
from wengert.compiler.passes import optimise
from wengert.compiler.passes.flatten import flatten
from wengert.compiler.program import Program, Value
from wengert.compiler.report import Report
from wengert.compiler.state import State, leads_on

__all__ = ["Replay"]

Function = Callable[..., tuple[Any, ...]]

_now: Callable[[], int] = count(1).__next__


class Replay:
    """A recorded program, bound to the objects that hold its state.

    Attributes
    ----------
    signature : dict
        Of the calls that it is for.
    objects : list of (str, object)
        The last call's arguments that hold state, with their names.
    used : int
        When it ran last, for the least recently used.
    left : int or None
        Calls until the next check; None for never.
    """

    def __init__(
        self,
        found: Recording,
        signature: dict[str, Any],
        layout: Layout,
        report: Report,
        torch_compile: bool | str = False,
    ) -> None:
        self.signature, self.recording, self.layout = signature, found, layout
        self._report, self._torch_compile = report, torch_compile
        #: Whether the program has buffers, so that one call at a time may run it.
        self.buffered = found.backend is not None and found.backend.name == "numpy"
        self._running: dict[int, Any] | None = {} if self.buffered else None
        self.used = _now()
        self.left: int | None = 0
        #: Functions that run the program on its last two states, such as two models.
        self.calls: list[Callable[..., Any]] = []

    # -- the program ---------------------------------------------------------------------------

    @cached_property
    def whole(self) -> Program:
        """The program after the passes for all libraries."""
        return optimise(self.recording.program)

    @cached_property
    def program(self) -> Program:
        """The program that is emitted; on NumPy updates of small parameters are joined."""
        return flatten(self.whole, self._becomes()) if self.buffered else self.whole

    def _becomes(self) -> dict[Value, Value]:
        """The outputs that are the next values of inputs, each with its input."""
        inputs = self.recording.inputs
        return {
            self.whole.outputs[effect.output]: inputs[effect.ref]
            for effect in self.recording.effects
            if effect.output is not None and effect.ref in inputs
            if not (effect.new or effect.same)
        }

    @cached_property
    def emission(self) -> Emitted:
        """The program as calls of the library."""
        return emit(self.program, self.recording.backend)

    @property
    def source(self) -> str:
        """The program as Python source."""
        return self.emission.source

    @cached_property
    def _function(self) -> Function:
        """The program as its library runs it."""
        function, backend = self.emission.function, self.recording.backend
        made = finish(self.program, function, backend, self._report, self._torch_compile)
        draws = "draws" in map(effect_of, {step.name for step in self.whole.instructions})
        return _undone(made) if draws else made

    def save(self, path: str | Path, name: str, state: State) -> None:
        """Write the program and the present state into files."""
        if state.structure() != self.signature["the state"]:
            raise RuntimeError(f"the state of {name} has changed since it ran: call it again first")
        save(path, name, self.whole, self.recording, state, self.layout.names)

    def export(self, name: str, state: State, *, unread: bool) -> ExportedProgram:
        """Return the program, as it was recorded, for export."""
        found, names = self.recording, self.layout.names
        return exported_program(name, found.program, found, state, names, unread=unread)

    # -- running -------------------------------------------------------------------------------

    def decides(self) -> str:
        """How a call with this signature differs that needs another program."""
        steps = self.recording.decided.program.instructions
        line = steps[-1].line if steps else None  # of the last comparison
        where = f"{describe(line)}: " if line else ""
        what = self.recording.fixed or "a number that decides the program"
        return f"{where}{what} has changed, and its value belongs to the program"

    def keep_objects(self, leaves: Sequence[Any]) -> None:
        """Keep the arguments that hold state."""
        self.objects = [(name, x) for name, x in self.layout.roots(leaves) if leads_on(x)]

    def bind(self, call: Call, state: State) -> Callable[..., Any]:
        """Bind the program to a state for the next calls."""
        self.keep_objects(call.leaves)
        self.used = _now()
        run = self._bind(call.leaves, state, self._function)
        run = run if self.left is None else self._count(run)
        self.calls = [run, *self.calls[:1]]
        return run

    def run_plainly(self, call: Call, state: State) -> Any:
        """Run the program by plain calls, for a check."""
        self.keep_objects(call.leaves)
        self.used = _now()
        function = self._function if self.buffered else self.emission.function
        return self._bind(call.leaves, state, function)(*call.leaves)

    def _bind(self, leaves: Sequence[Any], state: State, step: Function) -> Callable[..., Any]:
        alone = len(self.program.inputs) > len(self.recording.refs)
        made = Binding(self.recording, self.signature, step, self._running, alone=alone)
        return made.function(state, leaves)

    def _count(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that returns `MISS` when the next check is due."""

        def count_call(*leaves: Any) -> Any:
            if not self.left:
                return MISS
            answer = call(*leaves)
            if answer is not MISS:
                self.left -= 1
            return answer

        return count_call


def _undone(function: Function) -> Function:
    """A program that restores random generators if it fails."""

    def call(*inputs: Any) -> tuple[Any, ...]:
        before = generators.get_rng_state()
        try:
            return function(*inputs)
        except BaseException:
            generators.set_rng_state(before)
            raise

    return call
