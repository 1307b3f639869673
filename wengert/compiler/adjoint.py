"""Derivatives of a compiled function's results: a replay is one operation on the caller's tape.

The operation's derivative rule is a compiled program, too. A program has no graph, so that higher
derivatives through it are an error.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Any

from wengert.backends import namespaces
from wengert.compiler.capture.recorded import Backward, Recording, SweepProgram
from wengert.compiler.capture.trace import is_draw, runs_once
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.passes import optimise
from wengert.compiler.program import Program, order_of
from wengert.tape.node import FREED, Node, Output, Several, tick
from wengert.tape.tensor import Tensor, with_node

__all__ = ["adjoints_of", "attach", "draws", "once"]


def draws(program: Program) -> bool:
    """Whether a program draws random numbers."""
    return any(is_draw(step.name) for step in program.instructions)


def once(program: Program) -> bool:
    """Whether a program has what runs once in a call."""
    return any(runs_once(step.name) for step in program.instructions)


class Adjoint:
    """The sweeps of results that the caller differentiates, as programs."""

    def __init__(self, behind: Backward, copies: Any, before: int) -> None:
        self.behind, self._copies, self._before = behind, copies, before

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


def adjoints_of(found: Recording, copies: Any) -> list[Adjoint]:
    """The sweeps of a recording, in topological order of the results."""
    before = accumulate([len(behind.sweeps) for behind in found.backward], initial=0)
    return [Adjoint(x, copies, at) for x, at in zip(found.backward, before, strict=False)]


def attach(
    adjoints: Sequence[Adjoint],
    answer: list[Any],
    kept: Sequence[Any],
    tensors: Sequence[Tensor],
) -> None:
    """Put results on the tape, in topological order."""
    start = 0
    for adjoint in adjoints:
        behind = adjoint.behind
        end = start + len(behind.kept)
        held = [(answer if ref.kind == "result" else tensors)[ref.index] for ref in behind.leaves]
        saved = tuple(kept[start:end])
        results = [answer[k]._array for k in behind.results]
        node = CompiledNode(tuple([x._node for x in held]), saved, results, adjoint)
        for i, k in enumerate(behind.results):
            answer[k] = with_node(results[i], Output(node, i))
        for k, first in behind.duplicates:
            answer[k] = answer[first]
        start = end


class CompiledNode(Several):
    """A replay as one operation on the tape. A sweep of any result frees what all results saved."""

    __slots__ = ("adjoint", "saved")

    adjoint: Adjoint

    def __init__(
        self,
        parents: tuple[Node | None, ...],
        saved: tuple[Any, ...],
        results: Sequence[Any],
        adjoint: Adjoint,
    ) -> None:
        self.number = tick()
        self.parents, self.adjoint, self.saved = parents, adjoint, saved
        self.watch = None
        self.shape = tuple([x.shape for x in results])
        self.dtype = tuple([x.dtype for x in results])

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        like = next(iter(g.items.values()))
        sweeps, given = self.adjoint.sweeps, tuple(sorted(g.items))
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        if namespaces[type(like)].records:
            raise RuntimeError(
                "the results of a compiled function can't be differentiated twice from outside: "
                "take the gradient inside the function that is compiled, or don't compile it"
            )
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
