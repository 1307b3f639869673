"""Replays: recorded programs, compiled and bound to the objects that hold their state."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any

from wengert.backends import generators
from wengert.compiler import messages
from wengert.compiler.adjoint import Adjoint, attach
from wengert.compiler.binding import MISS, Binding
from wengert.compiler.calls import Call, Layout
from wengert.compiler.capture.lines import described
from wengert.compiler.capture.recorded import Recording, Ref
from wengert.compiler.capture.trace import is_draw, is_exchange
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.emission.exported import ExportedProgram, exported_program
from wengert.compiler.emission.finish import finish
from wengert.compiler.emission.saving import save
from wengert.compiler.passes import optimise
from wengert.compiler.passes.flatten import flatten
from wengert.compiler.program import Program, Value
from wengert.compiler.report import Report
from wengert.compiler.state import State, leads_on, same

__all__ = ["Replay"]

Function = Callable[..., tuple[Any, ...]]

_now: Callable[[], int] = count(1).__next__


class Pool:
    """Copies of a program, each with buffers of its own, which one call at a time uses.

    Calls overlap in threads, and where a signal handler calls the function that it interrupted.
    """

    def __init__(self, first: Function, another: Callable[[], Function]) -> None:
        free = [first]
        self.take, self.give, self.another = free.pop, free.append, another

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        try:
            function = self.take()
        except IndexError:
            function = self.another()
        try:
            return function(*inputs)
        finally:
            self.give(function)


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
        self._copies = Copies(found.backend, report, torch_compile)
        self.used = _now()
        self.left: int | None = 0
        self.adjoints = [Adjoint(x, self._copies, i) for i, x in enumerate(found.backward)]
        #: Functions that run the program on its last two states, such as two models.
        self.calls: list[Callable[..., Any]] = []

    @cached_property
    def noted(self) -> bool:
        """Whether it has what runs once in a call, which `wengert.compiler.exchanges` notes."""
        return _any(self.recording.program, is_exchange)

    # -- the program ---------------------------------------------------------------------------

    @cached_property
    def whole(self) -> Program:
        """The program after the passes for all libraries."""
        return optimise(self.recording.program)

    @cached_property
    def program(self) -> Program:
        """The program that is emitted; on NumPy updates of small parameters are joined."""
        return flatten(self.whole, self._becomes()) if self._copies.needed else self.whole

    def _becomes(self) -> dict[Value, Value]:
        """The outputs that are the next values of inputs, each with its input."""
        inputs = self.recording.inputs
        return {
            self.whole.outputs[effect.output]: inputs[effect.ref]
            for effect in self.recording.effects
            if effect.output is not None and effect.ref in inputs and not effect.new
        }

    @cached_property
    def emitted(self) -> Emitted:
        """The program as calls of the library."""
        return emit(self.program, self.recording.backend)

    @property
    def source(self) -> str:
        """The program and its results' sweeps as Python source."""
        return "\n\n".join([x.source for x in [self.emitted, *[y.emitted for y in self.adjoints]]])

    @cached_property
    def pool(self) -> Pool:
        """The copies of the program."""
        remake = partial(flatten, self.whole, self._becomes()) if self._copies.needed else None
        return self._copies.pool(self.program, self.emitted.function, remake)

    def save(self, path: str | Path, name: str, state: State) -> None:
        """Write the program and the present state into files."""
        self._check(name, state)
        save(path, name, self.whole, self.recording, state, self.layout.names)

    def exported(self, name: str, state: State, *, unread: bool) -> ExportedProgram:
        """Return the program, as it was recorded, for export."""
        found, names = self.recording, self.layout.names
        return exported_program(name, found.program, found, state, names, unread=unread)

    def _check(self, name: str, state: State) -> None:
        if state.structure() != self.signature["the state"]:
            raise RuntimeError(f"the state of {name} has changed since it ran: call it again first")

    # -- running -------------------------------------------------------------------------------

    def fits(self, signature: dict[str, Any], state: State, leaves: Sequence[Any]) -> bool:
        """Whether the program is for a call with this signature and these numbers."""
        found = self.recording
        if signature != self.signature:
            return False

        def number(ref: Ref) -> Any:
            return state.place(*ref).get() if ref.kind == "number" else leaves[ref.index]

        decided = found.decided
        if not decided.fits([number(ref) for ref in decided.refs]):
            return False
        return all(same(number(ref), x) for ref, x in found.pinned.items())

    def decides(self) -> str:
        """How a call with this signature differs that needs another program."""
        steps = self.recording.decided.program.instructions
        line = steps[-1].line if steps else None  # of the last comparison
        where = f"{described(line)}: " if line else ""
        what = self.recording.fixed or "a number that decides the program"
        return f"{where}{what} has changed, and its value belongs to the program"

    def given(self, leaves: Sequence[Any]) -> None:
        """Keep the arguments that hold state."""
        self.objects = [(name, x) for name, x in self.layout.given(leaves) if leads_on(x)]

    def bind(self, call: Call, state: State) -> Callable[..., Any]:
        """Bind the program to a state for the next calls."""
        run = self._bound(call.leaves, state, self.pool)
        self.given(call.leaves)
        self.used = _now()
        run = run if self.left is None else self._counted(run)
        self.calls = [run, *self.calls[:1]]
        return run

    def tried(self, call: Call, state: State) -> Any:
        """Run the program by plain calls, for a check."""
        function = self.pool if self._copies.needed else self.emitted.function
        self.used = _now()
        run = self._bound(call.leaves, state, Pool(function, lambda: function))
        return run(*call.leaves)

    def _bound(self, leaves: Sequence[Any], state: State, pool: Pool) -> Callable[..., Any]:
        alone = len(self.program.inputs) > len(self.recording.refs)
        made = Binding(
            self.recording, self.signature, pool, partial(attach, self.adjoints), alone=alone
        )
        return made.function(state, leaves)

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that returns `MISS` when the next check is due."""

        def counted(*leaves: Any) -> Any:
            if not self.left:
                return MISS
            answer = call(*leaves)
            if answer is not MISS:
                self.left -= 1
            return answer

        return counted


def _any(program: Program, what: Callable[[str], bool]) -> bool:
    """Whether a program has an instruction of some kind."""
    return any(what(step.name) for step in program.instructions)


def _undone(function: Function) -> Function:
    """A program that restores, if it fails, random generators and the place among collectives."""

    def call(*inputs: Any) -> tuple[Any, ...]:
        before, at = generators.get_rng_state(), messages.position()
        try:
            return function(*inputs)
        except BaseException:
            generators.set_rng_state(before)
            messages.rewind(at)
            raise

    return call


class Copies:
    """Makes the pools that run programs of one library.

    Attributes
    ----------
    needed : bool
        Whether programs have buffers, so that calls at the same time need copies.
    """

    def __init__(self, backend: Any, report: Report, torch_compile: bool | str) -> None:
        self.backend, self._report, self._torch_compile = backend, report, torch_compile
        self.needed = backend is not None and backend.name == "numpy"

    def pool(
        self, program: Program, function: Function, remake: Callable[[], Program] | None = None
    ) -> Pool:
        """The pool of a program; ``remake`` makes programs for copies that can't share it."""
        first = self._finished(program, function)

        def another() -> Function:
            if not self.needed:
                return first
            copy = program if remake is None else remake()
            return self._finished(copy, emit(copy, self.backend).function)

        return Pool(first, another)

    def _finished(self, program: Program, function: Function) -> Function:
        made = finish(program, function, self.backend, self._report, self._torch_compile)
        return _undone(made) if _any(program, is_draw) or _any(program, is_exchange) else made
