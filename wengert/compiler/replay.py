"""Running a recorded program: what it is given, and where what it gives goes."""

from _thread import get_ident
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

from wengert.backends import generators, namespaces
from wengert.compiler.again import Again
from wengert.compiler.capture.effects import Ref
from wengert.compiler.capture.lines import described
from wengert.compiler.capture.places import State, same
from wengert.compiler.capture.recorded import Backward, Recording, Way
from wengert.compiler.capture.trace import DRAWS
from wengert.compiler.capture.walk import is_leaf
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.emission.finish import finish
from wengert.compiler.emission.glue import MISS, Glue
from wengert.compiler.emission.saving import save
from wengert.compiler.passes import optimise
from wengert.compiler.passes.flatten import flatten
from wengert.compiler.program import Program, Value
from wengert.compiler.report import Report
from wengert.compiler.turns import Pool, pools
from wengert.func.trees import TreeDef
from wengert.tape.node import FREED, Node, Output, Several, tick
from wengert.tape.tensor import Tensor, placed

__all__ = ["Adjoint", "Replay", "draws", "tensors_of"]

Function = Callable[..., tuple[Any, ...]]

_now: Callable[[], int] = count(1).__next__


class Replay:
    """A recorded program, bound to the objects that hold its state.

    Attributes
    ----------
    signature : dict
        Of the calls that it is for.
    objects : list of (str, object)
        The arguments of its last call that are no arrays or numbers, with their names.
    used : int
        When it ran last, by a clock of its own.
    checked : bool
        Whether a call has been run by the function, too, and compared.
    left : int or None
        How many calls there may be until one is checked; None if none will be.
    call : callable
        Runs the program, or answers `MISS` to a call that it is not for, or that is to be checked.
    """

    def __init__(
        self,
        found: Recording,
        signature: dict[str, Any],
        structure: TreeDef,
        names: Sequence[str],
        static: Sequence[bool],
        report: Report,
        torch_compile: bool | str = False,
    ) -> None:
        self.signature, self.recording, self.report = signature, found, report
        self.names, self.static = names, static
        self._torch_compile = torch_compile
        self.used = _now()
        self.left: int | None = 0
        self.checked = False
        self._emitted: Emitted | None = None
        self._pool: Pool | None = None
        self.structure = structure
        self.adjoints = list[Adjoint]()
        for each in found.backward:
            before = sum([len(other.behind.ways) for other in self.adjoints])
            self.adjoints.append(Adjoint(each, self._copies, before))
        #: Puts results that are differentiated outside on the tape.
        self.attach = partial(_attach, self.adjoints)
        #: Whether all arguments are leaves, given by position.
        args, kwargs = structure.children
        self.plain = not kwargs.children and all(child.cls is None for child in args.children)
        #: The program bound to the objects of its last calls, such as one model and another.
        #: Each with what the function reaches there, by identity.
        self.bound: list[tuple[Callable[..., Any], frozenset[int]]] = []

    @property
    def calls(self) -> list[Callable[..., Any]]:
        """What runs the program for the objects of its last calls."""
        return [call for call, _ in self.bound]

    # -- the program ---------------------------------------------------------------------------

    @cached_property
    def whole(self) -> Program:
        """What the passes for every library have made of it."""
        return optimise(self.recording.program)

    @cached_property
    def program(self) -> Program:
        """What is emitted: on NumPy each call costs as much as it computes."""
        numpy = self.recording.backend is not None and self.recording.backend.name == "numpy"
        return flatten(self.whole, self._becomes()) if numpy else self.whole

    def _becomes(self) -> dict[Value, Value]:
        """The outputs that are the next values of inputs, and these."""
        inputs = dict(zip(self.recording.refs, self.whole.inputs, strict=True))
        return {
            self.whole.outputs[effect.output]: inputs[effect.ref]
            for effect in self.recording.effects
            if effect.output is not None and effect.ref in inputs
        }

    @property
    def emitted(self) -> Emitted:
        """The program as calls of the library."""
        if self._emitted is None:
            self._emitted = emit(self.program, self.recording.backend)
        return self._emitted

    @property
    def source(self) -> str:
        """The program as Python source, and those of its derivatives outside."""
        parts = [self.emitted.source]
        return "\n\n".join([*parts, *(x for each in self.adjoints for x in each.sources)])

    @cached_property
    def _copies(self) -> "Copies":
        return Copies(self.recording.backend, self.report, self._torch_compile)

    @property
    def pool(self) -> Pool:
        """What runs it."""
        if self._pool is None:
            again = partial(flatten, self.whole, self._becomes())
            self._pool = self._copies.pool(self.program, self.emitted.function, again)
            pools.add(self._pool)
        return self._pool

    def save(self, path: str | Path, name: str, state: State) -> None:
        """Write the program, and the state that there is now, into files."""
        if state.structure() != self.signature["the state"]:
            raise RuntimeError(f"the state of {name} has changed since it ran: call it again first")
        save(path, name, self.whole, self.recording, state, self.names)

    # -- running -------------------------------------------------------------------------------

    def fits(self, signature: dict[str, Any], state: State, leaves: Sequence[Any]) -> bool:
        """Whether the program is for a call of this signature."""
        if any(value != signature[what] for what, value in self.signature.items()):
            return False
        number = partial(number_at, state=state, leaves=leaves)
        decided = self.recording.decided
        if not decided.fits([number(ref) for ref in decided.refs]):
            return False
        if not all(same(number(ref), x) for ref, x in self.recording.pinned.items()):
            return False
        return all((t := ref()) is None or t._array is x for ref, x in self.recording.captured)

    def endless(self, others: Sequence["Replay"]) -> str:
        """Where numbers that calls change decide, if that is all in which programs differ."""
        found = self.recording
        changed = {x.ref for x in found.effects if x.ref.kind == "number"}
        alike = all(each.signature == self.signature for each in others)
        if not alike or changed.isdisjoint(found.decided.refs):
            return ""
        line = found.decided.program.instructions[-1].line  # of the last comparison
        return (
            f"{described(line) if line else 'a comparison'}: what the compiled function does "
            f"depends on numbers that each call changes, and {len(others) - 1} programs for them "
            "are not enough. Decide outside"
        )

    def given(self, leaves: Sequence[Any]) -> None:
        """Keep what of the arguments is state."""
        pairs = zip(self.names, leaves, strict=True)
        self.objects = [(name, x) for name, x in pairs if not is_leaf(name, x)]

    def run(self, leaves: Sequence[Any], state: State) -> Any:
        """Run the program for a call that it fits, on this state, and be ready for the next."""
        call = self._bound(leaves, state, self.pool)
        self.given(leaves)
        self.used = _now()
        call = call if self.left is None else self._counted(call)
        self.bound = [(call, frozenset(state.called)), *self.bound[:1]]
        return call(*leaves)

    def tried(self, leaves: Sequence[Any], state: State) -> tuple[Any, tuple[Any, ...]]:
        """What the program gives by plain calls, and what it has been given, for a check."""
        inputs: list[tuple[Any, ...]] = []
        function = self.pool if self._copies.needed else self.emitted.function

        def spied(*given: Any) -> tuple[Any, ...]:
            inputs.append(given)
            return function(*given)

        self.used = _now()
        answer = self._bound(leaves, state, Pool(spied, lambda: spied))(*leaves)
        return answer, inputs[0] if inputs else ()

    def guards(self, leaves: Sequence[Any], state: State) -> tuple[int, Callable[..., Any]]:
        """How many things a call looks at, and a function that does that alone."""
        glue = self._glue(self.pool)
        source, function = glue.function(state, leaves, runs=False)
        return source.count("if "), function

    def _bound(self, leaves: Sequence[Any], state: State, pool: Pool) -> Callable[..., Any]:
        return self._glue(pool).function(state, leaves)[1]

    def _glue(self, pool: Pool) -> Glue:
        return Glue(self.recording, self.signature, pool, self.attach)

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that leaves those to be checked to others."""

        def counted(*leaves: Any) -> Any:
            if not self.left:
                return MISS
            answer = call(*leaves)
            if answer is not MISS:
                self.left -= 1
            return answer

        return counted


def _same(program: Program) -> Program:
    return program


def draws(program: Program) -> bool:
    """Whether a program draws random numbers."""
    return any(step.name in DRAWS for step in program.instructions)


def _undrawn(function: Function) -> Function:
    """A program of which nothing has been drawn if it fails."""

    def call(*inputs: Any) -> tuple[Any, ...]:
        before = generators.get_rng_state()
        try:
            return function(*inputs)
        except BaseException:
            generators.set_rng_state(before)
            raise

    return call


class Copies:
    """Makes what runs programs of one library.

    Attributes
    ----------
    needed : bool
        Whether programs have memory of their own, so that each call at a time needs a copy.
    """

    def __init__(self, backend: Any, report: Report, torch_compile: bool | str) -> None:
        self.backend, self._report, self._torch_compile = backend, report, torch_compile
        self.needed = backend is not None and backend.name == "numpy"

    def pool(self, program: Program, function: Function, again: Callable[[], Program]) -> Pool:
        """What runs a program; copies are made of what ``again`` gives."""
        first = self._finished(program, function)

        def another() -> Function:
            if not self.needed:
                return first
            copy = again()
            return self._finished(copy, emit(copy, self.backend).function)

        return Pool(first, another)

    def _finished(self, program: Program, function: Function) -> Function:
        made = finish(program, function, self.backend, self._report, self._torch_compile)
        return _undrawn(made) if draws(program) else made


class Adjoint:
    """The sweeps of results that are differentiated outside, as programs.

    Attributes
    ----------
    again : Again
        What runs the function where such a sweep is recorded itself.
    """

    again: Again

    def __init__(self, behind: Backward, copies: Copies, before: int) -> None:
        self.behind, self._copies, self._before = behind, copies, before

    @cached_property
    def _emitted(self) -> list[tuple[Way, Program, Emitted]]:
        found = []
        for i, way in enumerate(self.behind.ways, self._before):
            program, name = optimise(way.program), f"adjoint_{i}" if i else "adjoint"
            found.append((way, program, emit(program, self._copies.backend, name=name)))
        return found

    @property
    def sources(self) -> list[str]:
        """Each as Python source."""
        return [emitted.source for _, _, emitted in self._emitted]

    @cached_property
    def ways(self) -> dict[tuple[int, ...], tuple[Way, Pool]]:
        """By which results are differentiated, what does it."""
        return {
            way.results: (
                way,
                self._copies.pool(program, emitted.function, partial(_same, program)),
            )
            for way, program, emitted in self._emitted
        }

    def attach(
        self,
        answer: list[Any],
        kept: Sequence[Any],
        tensors: Sequence[Tensor],
        leaves: Sequence[Any],
    ) -> None:
        """Put its results on the tape, after those that they are computed from."""
        behind = self.behind
        parents = tuple(
            [
                (answer if ref.kind == "result" else tensors)[ref.index]._node
                for ref in behind.leaves
            ]
        )
        results = [answer[k]._array for k in behind.results]
        saved = (*kept, self.again.given(leaves, tensors))
        node = CompiledNode(parents, saved, results, self)
        for i, k in enumerate(behind.results):
            answer[k] = placed(answer[k]._array, Output(node, i))
        for k, first in behind.again:
            answer[k] = answer[first]


def _attach(
    adjoints: Sequence[Adjoint],
    answer: list[Any],
    kept: Sequence[Any],
    tensors: Sequence[Tensor],
    leaves: Sequence[Any],
) -> None:
    start = 0
    for each in adjoints:
        end = start + len(each.behind.kept)
        each.attach(answer, kept[start:end], tensors, leaves)
        start = end


class CompiledNode(Several):
    """A replay as one operation on the tape: its rule is a program, too.

    A sweep lets go what the function's own operations would: results that have no operation in
    common can be differentiated one after the other.
    """

    __slots__ = ("_kept", "_open", "_swept", "adjoint")

    adjoint: Adjoint

    def __init__(
        self,
        parents: tuple[Node | None, ...],
        saved: tuple[Any, ...],
        results: Sequence[Any],
        adjoint: Adjoint,
    ) -> None:
        self.number = tick()
        self.parents, self.adjoint, self._kept = parents, adjoint, saved
        self._open, self._swept = set(range(len(results))), dict[int, tuple[int, ...]]()
        self.watch = None
        self.shape = tuple([x.shape for x in results])
        self.dtype = tuple([x.dtype for x in results])

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """What sweeps need that are still to come; None after the last."""
        return self._kept if self._open else None

    @saved.setter
    def saved(self, value: tuple[Any, ...] | None) -> None:
        behind = self.adjoint.behind
        for i in self._swept.pop(get_ident()):
            self._open -= behind.joined[i]
        needed = {
            at for way in behind.ways if self._open.issuperset(way.results) for at in way.kept
        }
        *kept, given = self._kept
        kept = [x if at in needed else None for at, x in enumerate(kept)]
        self._kept = (*kept, given if self._open else ())

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        like = next(iter(g.items.values()))
        ways, given = self.adjoint.ways, tuple(sorted(g.items))
        saved = self._kept
        if not self._open.issuperset(given):
            raise RuntimeError(FREED)
        self._swept[get_ident()] = given
        if not namespaces[type(like)].plain:
            return self.adjoint.again.flows(self, saved[-1], g)
        # Nothing flows from results that are not differentiated, not even zeros.
        found: dict[int, Any] = {}
        for results in [given] if given in ways else [(i,) for i in given]:
            way, pool = ways[results]
            made = pool(*[saved[i] for i in way.kept], *[g.items[i] for i in results])
            for i, x in zip(way.leaves, made, strict=True):
                found[i] = namespaces[type(x)].add(found[i], x) if i in found else x
        return [
            (i, x)
            for i, x in sorted(found.items(), key=itemgetter(0))
            if (parent := self.parents[i]) is not None
            and (wanted is None or parent.number in wanted)
        ]

    def name(self) -> str:
        return "CompiledBackward0"

    @property
    def operation(self) -> str:
        return "compiled"


def number_at(ref: Ref, state: State, leaves: Sequence[Any]) -> Any:
    """A number of the state, or among the arguments."""
    return state.numbers[ref.index].get() if ref.kind == "number" else leaves[ref.index]


def tensors_of(leaves: Sequence[Any], state: State) -> list[Tensor]:
    """The Tensors that references count: those of the state, then those among the leaves."""
    tensors = [at.tensor for at in state.tensors]
    known = {id(tensor) for tensor in tensors}
    for leaf in leaves:
        if isinstance(leaf, Tensor) and id(leaf) not in known:
            known.add(id(leaf))
            tensors.append(leaf)
    return tensors
