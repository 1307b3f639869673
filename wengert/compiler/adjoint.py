"""Derivatives of a compiled function's results: a replay is one operation on the caller's tape.

The operation's derivative rule is a compiled program, too. A program has no graph, so higher
derivatives can't be taken through it: for those the function itself runs again, with the same
arguments and state, or the sweep raises an error.
"""

from _thread import get_ident
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Any

from wengert.backends import namespaces
from wengert.compiler.calls import Layout, signature_of
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.recorded import Backward, End, Recording, SweepProgram
from wengert.compiler.capture.sweeps import unhooked
from wengert.compiler.capture.trace import is_draw, is_exchange, runs_once
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.passes import optimise
from wengert.compiler.program import Program, order_of
from wengert.compiler.state import State
from wengert.compiler.walk import find_state
from wengert.tape.grad_mode import enable_grad
from wengert.tape.node import FREED, AccumulateGrad, Node, Output, Several, tick
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, with_node

__all__ = ["Rerun", "adjoints_of", "attach", "draws", "once"]

_CHANGED = (
    "the results of a compiled function can't be differentiated twice from outside where {}; take "
    "the gradient inside the function that is compiled, or don't compile it"
)
#: The parts of a signature that must be unchanged when the function runs again.
_READ = ("an argument", "the state", "a Tensor of the state")


class Rerun:
    """Runs a function again for higher derivatives, since its program has no graph.

    It is for calls with one layout of arguments and one ``signature``, of which ``found`` is the
    recording.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        layout: Layout,
        signature: dict[str, Any],
        state: State,
        found: Recording,
        leaves: Sequence[Any],
        names: set[str],
    ) -> None:
        self._function, self._layout, self._signature = function, layout, signature
        self._names, self._obstacle = names, _obstacle(found, leaves)
        self._structure = found.answer

    def given(self, leaves: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """What a call saves for running the function again."""
        return () if self._obstacle else (leaves, tensors, [x._array for x in tensors])

    def flows(
        self, node: Node, behind: Backward, given: tuple[Any, ...], g: Any
    ) -> list[tuple[int, Any]]:
        """The cotangents of a replay's parents, computed by operations on the tape."""
        if self._obstacle:
            raise RuntimeError(_CHANGED.format(self._obstacle))
        leaves, tensors, arrays = given
        args, kwargs = self._layout.structure.unflatten(list(leaves))
        # This sweep ends at the parents; the caller's sweep continues from there.
        parents = [(i, x) for i, x in enumerate(node.parents) if x is not None]
        numbers = {x.number: i for i, x in parents if isinstance(x, AccumulateGrad)}
        ends = [(i, x, End(x, tick())) for i, x in parents if x.number not in numbers]
        since = tick()
        with enable_grad():
            moved = any(x._array is not array for x, array in zip(tensors, arrays, strict=True))
            if moved or not self._unchanged(leaves):
                raise RuntimeError(_CHANGED.format("what it reads has changed since"))
            answer = self._structure.flatten_up_to(self._function(*args, **kwargs))
        roots = [(answer[behind.results[i]]._node, x) for i, x in g.items.items()]
        for i, place, end in ends:
            ref = behind.leaves[i]
            if ref.kind == "result":
                place = answer[ref.index]._node
                end.number = place.number
            end.cut(place, [root for root, _ in roots], since)
            numbers[end.number] = i
        wanted = leading_to(set(numbers), [root for root, _ in roots])
        with unhooked(tensors):
            arrived = sweep(roots, keep=True, targets=numbers, wanted=wanted)
        for _, parent, end in ends:
            end.parents = (parent,)
        return [(numbers[end.number], x) for end, x in arrived.items() if x is not None]

    def _unchanged(self, leaves: Sequence[Any]) -> bool:
        """Whether the arguments and the state have the signature that was recorded."""
        layout = self._layout
        try:
            given = layout.given(leaves)
            state = find_state(self._function, given, self._names)
        except TraceError:
            return False
        now = signature_of(leaves, layout, state)
        return all(now[what] == self._signature[what] for what in _READ)


def draws(program: Program) -> bool:
    """Whether a program draws random numbers."""
    return any(is_draw(step.name) for step in program.instructions)


def once(program: Program) -> bool:
    """Whether a program has what runs once in a call."""
    return any(runs_once(step.name) for step in program.instructions)


def _obstacle(found: Recording, leaves: Sequence[Any]) -> str:
    """Why a second run of a function would not give the results of its program."""
    if found.effects:
        return "it changes state"
    if draws(found.program):
        return "it draws random numbers"
    if any(is_exchange(step.name) for step in found.program.instructions):
        return "it has collectives, which other processes may not run again"
    if once(found.program):
        return "it calls external functions, which run once"
    if any(hasattr(x, "dtype") and not isinstance(x, Tensor) for x in leaves):
        return "it takes raw arrays"
    others = {value for ref, value in found.inputs.items() if ref.kind not in ("tensor", "leaf")}
    if others and any(not others.isdisjoint(x.used()) for x in found.program.instructions):
        return "it reads gradients, or an optimizer"
    return ""


class Adjoint:
    """The sweeps of results that the caller differentiates, as programs."""

    def __init__(self, behind: Backward, rerun: Rerun, copies: Any, before: int) -> None:
        self.behind, self.rerun, self._copies, self._before = behind, rerun, copies, before

    @cached_property
    def _emitted(self) -> list[tuple[SweepProgram, Program, Emitted]]:
        found = []
        for i, swept in enumerate(self.behind.sweeps, self._before):
            program, name = optimise(swept.program), f"adjoint_{i}" if i else "adjoint"
            found.append((swept, program, emit(program, self._copies.backend, name=name)))
        return found

    @property
    def sources(self) -> list[str]:
        """The sweeps as Python source."""
        return [emitted.source for _, _, emitted in self._emitted]

    @cached_property
    def sweeps(self) -> dict[tuple[int, ...], tuple[SweepProgram, Any, list[Any] | None]]:
        """For each set of results: its sweep, the pool that runs it, and cotangents' orders.

        Only NumPy's programs have buffers, which fit one order of the cotangents in memory.
        """
        buffered = self._copies.backend is not None and self._copies.backend.name == "numpy"
        return {
            swept.results: (
                swept,
                self._copies.pool(program, emitted.function),
                [x.order for x in swept.program.inputs[len(swept.kept) :]] if buffered else None,
            )
            for swept, program, emitted in self._emitted
        }


def adjoints_of(found: Recording, rerun: Rerun, copies: Any) -> list[Adjoint]:
    """The sweeps of a recording, in topological order of the results."""
    before = accumulate([len(behind.sweeps) for behind in found.backward], initial=0)
    return [Adjoint(x, rerun, copies, at) for x, at in zip(found.backward, before, strict=False)]


def attach(
    adjoints: Sequence[Adjoint],
    answer: list[Any],
    kept: Sequence[Any],
    tensors: Sequence[Tensor],
    leaves: Sequence[Any],
) -> None:
    """Put results on the tape, in topological order."""
    start = 0
    for adjoint in adjoints:
        behind, rerun = adjoint.behind, adjoint.rerun
        end = start + len(behind.kept)
        held = [(answer if ref.kind == "result" else tensors)[ref.index] for ref in behind.leaves]
        saved = (*kept[start:end], rerun.given(leaves, tensors))
        results = [answer[k]._array for k in behind.results]
        node = CompiledNode(tuple([x._node for x in held]), saved, results, adjoint)
        for i, k in enumerate(behind.results):
            answer[k] = with_node(results[i], Output(node, i))
        for k, first in behind.duplicates:
            answer[k] = answer[first]
        start = end


class CompiledNode(Several):
    """A replay as one operation on the tape.

    The saved arrays are freed when all results have been differentiated.
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
        self.parents, self.adjoint = parents, adjoint
        self._kept: tuple[Any, ...] | None = saved
        self._open, self._swept = set(range(len(results))), dict[int, set[int]]()
        self.watch = None
        self.shape = tuple([x.shape for x in results])
        self.dtype = tuple([x.dtype for x in results])

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """What later sweeps need; None after the last."""
        return self._kept

    @saved.setter
    def saved(self, value: tuple[Any, ...] | None) -> None:
        self._open -= self._swept.pop(get_ident())
        if not self._open:
            self._kept = None

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        like = next(iter(g.items.values()))
        sweeps, given = self.adjoint.sweeps, tuple(sorted(g.items))
        saved = self._kept
        if saved is None or not self._open.issuperset(given):
            raise RuntimeError(FREED)
        self._swept[get_ident()] = {*given}
        if namespaces[type(like)].records:
            return self.adjoint.rerun.flows(self, self.adjoint.behind, saved[-1], g)
        # Results without a cotangent take no part: zeros would make gradients of zeros.
        found: dict[int, Any] = {}
        for results in [given] if given in sweeps else [(i,) for i in given]:
            swept, pool, orders = sweeps[results]
            run: Callable[..., Any] = pool
            cotangents = [g.items[i] for i in results]
            if orders is not None and list(map(order_of, cotangents)) != orders:
                run = swept.program  # interpreted: it has no buffers that fix an order
            made = run(*[saved[i] for i in swept.kept], *cotangents)
            for i, x in zip(swept.leaves, made, strict=True):
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
