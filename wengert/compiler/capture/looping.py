"""Scans while a function is recorded: their step is recorded once, as the body of a loop.

The instructions of the first step are cut from the trace; what depends neither on the state nor on
members stays before the loop. The sweep of the step is the body of a loop in the other direction,
which reads what the first one keeps of each step. What a loop can't do raises `UnrollError`: the
function is recorded again, without loops.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import UnrollError
from wengert.compiler.capture.traced import Traced, device_of
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.passes.dead import dead
from wengert.compiler.passes.loops import Loop
from wengert.compiler.passes.simplify import simplify
from wengert.compiler.program import Instruction, Program, Value, substitute
from wengert.interpreters.lifted import Lifted
from wengert.tape.grad_mode import recording
from wengert.tape.hooks import has_hooks
from wengert.tape.node import Leaf, Node, Output, Several, tick, walk
from wengert.tape.observers import Observer, observed_by
from wengert.tape.record import inexact
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, with_node

__all__ = ["looped"]


def looped(
    trace: Any, step: Any, state: Sequence[Tensor], xs: Sequence[Tensor], count: int
) -> tuple[list[Tensor], list[Tensor]] | None:
    """The last state and the stacked results of a scan; None if it is to be unrolled."""
    arrays: list[Any] = [x._array for x in (*state, *xs)]
    if any(isinstance(x, Lifted) and getattr(x, "trace", None) is not trace for x in arrays):
        return None
    arrays = [x if isinstance(x, Lifted) else trace.lifted(x) for x in arrays]
    if {backend_of(x.inner).name for x in arrays} not in ({"numpy"}, {"jax"}):
        return None
    return _Scan(trace, [*state, *xs], arrays, len(state), count).run(step)


class _Entry(Leaf):
    """The node of what a step gets, at which its sweep ends."""

    __slots__ = ()

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        raise UnrollError


class _Writes(Observer):
    """Refuses changes in place, which may be of what is outside."""

    def assigned(self, tensor: Any, result: Any) -> None:
        raise UnrollError

    replaced: Any = assigned


class _Scan:
    """A scan that is recorded: its state and members are counted together, the state first.

    ``entries`` are the nodes of what a step gets, ``outer`` by number those of what it closes over,
    ``varying`` the values that differ from step to step. ``known`` has what has been an operand: of
    each run of the loop, or else of one step.
    """

    def __init__(
        self, trace: Any, given: list[Tensor], arrays: list[Traced], n: int, count: int
    ) -> None:
        self.trace, self.given, self.arrays, self.n, self.count = trace, given, arrays, n, count
        self.inputs = [
            self._new(x.inner if i < n else x.inner[0, ...], "state" if i < n else "x")
            for i, x in enumerate(arrays)
        ]
        self.varying, self.known = {x.value for x in self.inputs}, dict[Value, Any]()
        self.since = tick()
        # A later step's state may be tracked where the first is not.
        self.entries: dict[int, Node] = {
            i: _Entry((), (), x.shape, x.dtype)
            for i, x in enumerate(self.inputs)
            if recording() and inexact(x) and (i < n or given[i]._node is not None)
        }

    def _new(self, array: Any, name: str) -> Traced:
        return Traced(array, Value.like(array, name), self.trace)

    def _traced(self, array: Any) -> Traced:
        """A result of the step, or of its sweep."""
        if isinstance(array, Lifted) and getattr(array, "trace", None) is not self.trace:
            raise UnrollError
        return array if isinstance(array, Traced) else self.trace.lifted(array)

    def run(self, step: Any) -> tuple[list[Tensor], list[Tensor]]:
        """Record the step, and the loop."""
        n, trace, start, forms = self.n, self.trace, len(self.trace.instructions), []
        before = len(trace.constants)
        for _ in range(2):  # what another step does otherwise, as by a counter, is no loop
            trace.hidden.update(*[x.results for x in trace.instructions[start:]])
            del trace.instructions[start:], trace._ticks[start:]
            tensors = [with_node(x, self.entries.get(i)) for i, x in enumerate(self.inputs)]
            with observed_by(_Writes()), trace.noting() as operands:
                after, ys = step(tensors[:n], tensors[n:])
            steps = trace.instructions[start:]
            inside: Any = dict.fromkeys([x for each in steps for x in each.results])
            made = [*trace.constants.items()][before:]
            inside |= {x: (x.shape, str(x.dtype), np.asarray(y).tobytes()) for x, y in made}
            forms.append([(x.name, substitute((x.operands, x.parameters), inside)) for x in steps])
        if forms[0] != forms[1]:
            raise UnrollError
        results = [*after, *ys]
        self.outs = [self._traced(x._array) for x in results]
        steps = self._cut(start, [operands, self.outs])
        own = {*self.varying}
        rows = {x.value: y for x, y in zip(self.inputs[n:], self.arrays[n:], strict=True)}
        self.known |= rows
        self.nodes = [x._node if recording() and inexact(x._array) else None for x in results]
        live = self._live()
        with np.errstate(all="ignore"):  # perhaps of results that are not differentiated
            reads = self.backward(live)[3] if live else []
        kept = [x for x in reads if x in own and x not in rows]
        outputs = [*[x.value for x in self.outs], *kept]
        body, others = self._body([x.value for x in self.inputs], steps, outputs)
        loop = Loop(body, n, len(rows), self.count)
        found = trace.call("scan", loop, [*self.arrays, *[self.known[x] for x in others]], {})
        self.known |= dict(zip(kept, found[len(results) :], strict=True))
        self.lost = own.difference(reads)
        tensors = [with_node(x, None) for x in found[: len(results)]]
        if live:
            node = _LoopNode(self, found[: len(results)])
            for i in live:
                tensors[i] = with_node(found[i], Output(node, i))
        return tensors[:n], tensors[n:]

    def _live(self) -> list[int]:
        """The results that depend, after some steps, on what is tracked outside."""
        nodes = [x for x in self.nodes if x is not None]
        inside = [*nodes, *[p for x in walk(nodes, self.since) for p in x.parents if p is not None]]
        self.outer = {x.number: x for x in inside if x.number < self.since}
        kept = any(x.watch for x in walk(nodes, self.since))
        if kept or any(map(has_hooks, [*self.entries.values(), *self.outer.values()])):
            raise UnrollError
        live = {i for i in self.entries if self.given[i]._node is not None}
        while True:
            self.ends = {self.entries[i].number for i in live} | {*self.outer}
            found = [i for i, x in enumerate(self.nodes) if x and leading_to(self.ends, [x])]
            if live.issuperset(more := self.entries.keys() & {i for i in found if i < self.n}):
                return found
            live |= more

    def backward(self, given: Iterable[int]) -> tuple[Loop, list[int], Any, Any, list[int]]:
        """The loop of the sweep from cotangents of some results.

        With the results whose cotangents it takes, those of these that are next states, what it
        reads, and the parents whose cotangents it gives.
        """
        n, start, state = self.n, len(self.trace.instructions), set[int]()
        while True:  # cotangents of the state come from later steps, too
            # Those of results first, as in a sweep of all steps: there they are stacked last.
            seeds = sorted({*given, *state}, key=lambda i: (i < n, i))
            roots: list[Any] = [self.nodes[i] for i in seeds]
            wanted = leading_to(self.ends, roots)
            more = {i for i, x in self.entries.items() if i < n and x.number in wanted}
            if state >= more:
                break
            state |= more
        carried, outer = [i for i in seeds if i < n], [i for i in self.outer if i in wanted]
        # Cotangents are added in the order of a sweep of all steps. There a result that is the next
        # state has its own before those of the later step: so they are seeds of that step.
        twins = {i: j for i in seeds for j in state if i >= n and self.nodes[i] is self.nodes[j]}
        g = {i: self._new(self.outs[i].inner, "g") for i in seeds}
        with self.trace.noting() as operands:
            totals = {i: self._new(self.zeros(self.outer[i]).inner, "total") for i in outer}
            roots = [(self.outer[i], totals[i]) for i in outer]
            roots += [(self.entries[j], g[i]) for i, j in twins.items()]
            roots += [(self.nodes[i], g[i]) for i in seeds if i not in twins]
            roots = [(x, y) for x, y in roots if x and x.number in wanted]
            how: Any = {"targets": self.ends, "wanted": wanted, "stop_at_targets": True}
            arrived = sweep(roots, keep=True, **how)
            flows = {node.number: self._traced(x) for node, x in arrived.items()}
            ends = {i: flows.get(x.number) for i, x in self.entries.items()}
            members = [i for i, x in ends.items() if i >= n and x is not None]
            back: Any = [self.zeros(g[i]) if ends[i] is None else ends[i] for i in carried]
            back += [*[flows[i] for i in outer], *[ends[i] for i in members]]
        own = {*self.varying}
        taken = [*[g[i] for i in carried], *totals.values(), *[g[i] for i in seeds if i >= n]]
        inputs = [x.value for x in taken]
        self.varying.update(inputs)
        steps = self._cut(start, [operands, back])
        body, reads = self._body(inputs, steps, [x.value for x in back], own)
        rows = len(seeds) - len(carried) + sum(x in own for x in reads)
        loop = Loop(body, len(carried) + len(outer), rows, self.count, reverse=True)
        places = {number: i for i, number in enumerate(self.outer, len(self.given))}
        return loop, seeds, twins, reads, [*carried, *[places[i] for i in outer], *members]

    def zeros(self, like: Any) -> Any:
        """Zeros of the shape and dtype of an array, or of a node's result."""
        place = device_of(self.arrays[0])
        return namespaces[Traced].zeros(like.shape, dtype=like.dtype, device=place)

    def _cut(self, start: int, operands: Any) -> list[Instruction]:
        """Take the instructions that vary out of the trace, since a position.

        Those without operands are in both: they may be constants.
        """
        trace, inside, kept = self.trace, list[Instruction](), list[tuple[Instruction, int]]()
        for step, at in zip(trace.instructions[start:], trace._ticks[start:], strict=True):
            varies = not self.varying.isdisjoint(step.used())
            if not step.pure or (varies and step.name.startswith("number.")):
                raise UnrollError
            if varies:
                self.varying.update(step.results)
            else:
                kept.append((step, at))
            if varies or not step.used():
                inside.append(step)
        trace.instructions[start:] = [step for step, _ in kept]
        trace._ticks[start:] = [at for _, at in kept]
        trace.hidden |= self.varying
        for x in _traced_in(operands):
            self.known.setdefault(x.value, x)
        return inside

    def _body(
        self, inputs: Sequence[Value], steps: Any, outputs: Any, own: Iterable[Value] = ()
    ) -> tuple[Program, list[Value]]:
        """A simplified program, and what it reads beside its inputs: last, and ``own`` first."""
        constants = dict(self.trace.constants)
        program = simplify(Program(tuple(inputs), tuple(steps), tuple(outputs), constants))
        program = dead(program, errors=True)
        made = {*inputs, *program.constants}.union(*[x.results for x in program.instructions])
        reads = sorted(program.read() - made, key=lambda x: (x not in own, x.number))
        inputs = (*inputs, *reads)
        return Program(inputs, program.instructions, program.outputs, program.constants), reads


class _LoopNode(Several):
    """A scan on the tape, whose rule is a loop."""

    __slots__ = ()

    operation = "scan"

    def __init__(self, scan: _Scan, found: Sequence[Any]) -> None:
        parents = (*[x._node for x in scan.given], *scan.outer.values())
        kinds = tuple([x.shape for x in found]), tuple([x.dtype for x in found])
        super().__init__(parents, (scan, found), *kinds)

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        scan, found = self.values()
        given, trace, xp = g.items, scan.trace, namespaces[Traced]
        if any(getattr(x, "trace", None) is not trace for x in given.values()):
            raise UnrollError  # differentiated twice, or inside a transform
        loop, seeds, twins, reads, places = scan.backward(given)
        if not scan.lost.isdisjoint(reads) or not scan.known.keys() >= {*reads}:
            raise UnrollError
        g = {i: given[i] if i in given else scan.zeros(found[i]) for i in seeds}
        for i, j in twins.items():
            g[i], last = xp.concat((xp.zeros_like(g[i][:1]), g[i][:-1]), axis=0), g[i][-1]
            g[j] = xp.add(g[j], last)
        state = [g.pop(i) for i in seeds if i < scan.n]
        totals = [scan.zeros(self.parents[i]) for i in places if i >= len(scan.given)]
        operands = [*state, *totals, *g.values(), *[scan.known[x] for x in reads]]
        return [
            (i, x)
            for i, x in zip(places, trace.call("scan", loop, operands, {}), strict=True)
            if (parent := self.parents[i]) and (wanted is None or parent.number in wanted)
        ]


def _traced_in(x: Any) -> Iterator[Any]:
    """The traced values in operands."""
    if isinstance(x, Traced | TracedNumber):
        yield x
    elif isinstance(x, tuple | list | dict):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _traced_in(part)
