"""Scans while a function is recorded: their step is recorded once, as the body of a loop.

The instructions of the first step are cut from the trace. What depends neither on the state nor on
members stays before the loop. The sweep of the step is the body of a loop in the other direction,
which reads what the first one keeps of each step.

What a loop can't do raises `UnrollError`: the function is recorded again, without loops.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import UnrollError
from wengert.compiler.capture.traced import Traced, device_of
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.passes.dead import dead
from wengert.compiler.passes.loops import Loop
from wengert.compiler.passes.simplify import key, simplify
from wengert.compiler.program import Instruction, Program, Value
from wengert.interpreters.lifted import Lifted
from wengert.tape.grad_mode import recording
from wengert.tape.hooks import has_hooks
from wengert.tape.node import Leaf, Node, Output, Several, tick, walk
from wengert.tape.observers import Observer, observed_by
from wengert.tape.record import inexact
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, with_node

__all__ = ["looped"]

#: Steps from which a scan is a loop.
FEW = 4

Scanned = tuple[list[Tensor], list[Tensor]]


def looped(
    trace: Any, step: Any, state: Sequence[Tensor], xs: Sequence[Tensor], count: int
) -> Scanned | None:
    """The last state and the stacked results of a scan; None if it is to be unrolled."""
    arrays: list[Any] = [x._array for x in (*state, *xs)]
    for i, x in enumerate(arrays):
        if not isinstance(x, Lifted):
            arrays[i] = trace.lifted(x)
        elif getattr(x, "trace", None) is not trace:  # a transform's
            return None
    names = {backend_of(x.inner).name for x in arrays}
    if count < FEW or names not in ({"numpy"}, {"jax"}):
        return None
    return _Scan(trace, [*state, *xs], arrays, len(state), count).run(step)


class _Entry(Leaf):
    """The node of what a step gets, at which its sweep ends."""

    __slots__ = ()

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        raise UnrollError("what a step of a scan has computed is differentiated outside")


class _Writes(Observer):
    """The arrays of Tensors that a step changes in place; None for a module's buffer."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        self.found.append(tensor._array)

    def replaced(self, module: Any, name: str) -> None:
        self.found.append(None)


class _Scan:
    """A scan that is recorded: its state and members are counted together, the state first.

    Attributes
    ----------
    entries, outer : dict of int to Node
        The nodes of what a step gets, and by number those of what it closes over.
    varying : set of Value
        What differs from step to step.
    known : dict of Value to array
        What has been an operand: of each run of the loop, or else of one step.
    """

    def __init__(
        self, trace: Any, given: list[Tensor], arrays: list[Traced], n: int, count: int
    ) -> None:
        self.trace, self.given, self.arrays, self.n, self.count = trace, given, arrays, n, count
        self.inputs = [
            self._new(*((x.inner, "state") if i < n else (x.inner[0, ...], "x")))
            for i, x in enumerate(arrays)
        ]
        self.varying, self.known = {x.value for x in self.inputs}, dict[Value, Any]()
        self.since, self.outer = tick(), dict[int, Node]()
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
            raise UnrollError("a step of a scan is inside a transform")
        return array if isinstance(array, Traced) else self.trace.lifted(array)

    def run(self, step: Any) -> Scanned:
        """Record the step, and the loop."""
        n, trace = self.n, self.trace
        # Twice: where another step does something else, as by a counter, they are no loop.
        start, other = len(trace.instructions), [self._new(x.inner, "") for x in self.inputs]
        _, _, again = self._called(step, other)
        trace.hidden.update(*[x.results for x in trace.instructions[start:]])
        del trace.instructions[start:], trace._ticks[start:]
        results, operands, form = self._called(step, self.inputs)
        if form != again:
            raise UnrollError("steps of a scan differ")
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
        count = len(results)
        self.known |= dict(zip(kept, found[count:], strict=True))
        self.lost = own.difference(reads)
        tensors = [with_node(x, None) for x in found[:count]]
        if live:
            node = _LoopNode(self, found[:count])
            for i in live:
                tensors[i] = with_node(found[i], Output(node, i))
        return tensors[:n], tensors[n:]

    def _called(self, step: Any, inputs: Sequence[Traced]) -> tuple[list[Tensor], list[Any], Any]:
        """The results of a step, the operands in it, and what its program is equal by."""
        trace, writes, start = self.trace, _Writes(), len(self.trace.instructions)
        tensors = [with_node(x, self.entries.get(i)) for i, x in enumerate(inputs)]
        with observed_by(writes), trace.noting() as operands:
            after, ys = step(tensors[: self.n], tensors[self.n :])
        steps = trace.instructions[start:]
        inside = {x.value for x in inputs}.union(*[x.results for x in steps])
        if any(not isinstance(x, Traced) or x.value not in inside for x in writes.found):
            raise UnrollError("a step of a scan changes what is outside")
        self.outs = [self._traced(x._array) for x in (*after, *ys)]
        ends = [tuple([x.value for x in each]) for each in (inputs, self.outs)]
        made = Program(ends[0], tuple(steps), ends[1], trace.constants)
        return [*after, *ys], operands, _canonical(made)

    def _live(self) -> list[int]:
        """The results that depend, after some steps, on what is tracked outside."""
        nodes = [x for x in self.nodes if x is not None]
        inside = [*nodes, *[p for x in walk(nodes, self.since) for p in x.parents if p is not None]]
        self.outer = {x.number: x for x in inside if x.number < self.since}
        if any(x.watch for x in walk(nodes, self.since)) or any(
            map(has_hooks, [*self.entries.values(), *self.outer.values()])
        ):
            raise UnrollError("a gradient in a step of a scan is kept, or has a hook")
        live = {i for i in self.entries if self.given[i]._node is not None}
        while True:
            self.ends = {self.entries[i].number for i in live} | {*self.outer}
            found = [i for i, x in enumerate(self.nodes) if x and leading_to(self.ends, [x])]
            if live.issuperset(more := self.entries.keys() & {i for i in found if i < self.n}):
                return found
            live |= more

    def backward(self, given: Iterable[int]) -> tuple[Loop, list[int], Any, Any, list[int]]:
        """The loop of the sweep from cotangents of some results.

        It takes those of the results that are listed, and totals of what is closed over; then what
        it reads. The results that are next states are second. It gives the cotangents of the
        parents that are listed last.
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
        twins = {
            i: j
            for i in seeds
            for j in carried
            if i >= n and self.nodes[i] is self.nodes[j] and self.entries[j].number in wanted
        }
        g = {i: self._new(self.outs[i].inner, "g") for i in seeds}
        with self.trace.noting() as operands:
            totals = {i: self._new(self.zeros(x).inner, "total") for i, x in self.outer.items()}
            roots = [(self.outer[i], totals[i]) for i in outer]
            roots += [(self.entries[j], g[i]) for i, j in twins.items()]
            roots += [(self.nodes[i], g[i]) for i in seeds if i not in twins]
            arrived = sweep(
                [(x, y) for x, y in roots if x and x.number in wanted],
                keep=True,
                targets=self.ends,
                wanted=wanted,
                stop_at_targets=True,
            )
            flows = {node.number: self._traced(x) for node, x in arrived.items()}
            ends = {i: flows.get(x.number) for i, x in self.entries.items()}
            members = [i for i, x in ends.items() if i >= n and x is not None]
            back: list[Any] = [
                self.zeros(self.inputs[i]) if ends[i] is None else ends[i] for i in carried
            ]
            back += [*[flows[i] for i in outer], *[ends[i] for i in members]]
        taken = [*[g[i] for i in carried], *[totals[i] for i in outer]]
        taken += [g[i] for i in seeds if i >= n]
        own = {*self.varying}
        self.varying.update([x.value for x in taken])
        steps = self._cut(start, [operands, back])
        inputs = [x.value for x in taken]
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

        Those without operands are in both: they may be constants. Others keep their ticks.
        """
        trace, inside, kept = self.trace, list[Instruction](), list[tuple[Instruction, int]]()
        for step, at in zip(trace.instructions[start:], trace._ticks[start:], strict=True):
            varies = not self.varying.isdisjoint(step.used())
            if not step.pure or (varies and step.name.startswith("number.")):
                raise UnrollError(f"a step of a scan calls {step.name}")
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
        self,
        inputs: Sequence[Value],
        steps: Sequence[Instruction],
        outputs: Sequence[Value],
        own: Iterable[Value] = (),
    ) -> tuple[Program, list[Value]]:
        """A simplified program, and what it reads beside its inputs: last, and ``own`` first."""
        constants = self.trace.constants
        program = Program(tuple(inputs), tuple(steps), tuple(outputs), dict(constants))
        program = dead(simplify(program), errors=True)
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
        given, trace = g.items, scan.trace
        if any(getattr(x, "trace", None) is not trace for x in given.values()):
            raise UnrollError("a scan is differentiated twice, or inside a transform")
        loop, seeds, twins, reads, places = scan.backward(given)
        if not scan.lost.isdisjoint(reads):
            raise UnrollError("a sweep reads what a loop has not kept")

        g = {i: given[i] if i in given else scan.zeros(found[i]) for i in seeds}
        for i, j in twins.items():
            xp, x = namespaces[Traced], g[i]
            g[i] = xp.concat((xp.zeros_like(x[:1, ...]), x[:-1, ...]), axis=0)
            g[j] = xp.add(g[j], x[-1, ...])
        state = [g.pop(i) for i in seeds if i < scan.n]
        totals = [scan.zeros(self.parents[i]) for i in places if i >= len(scan.given)]
        operands = [*state, *totals, *g.values(), *[scan.known[x] for x in reads]]
        answer = trace.call("scan", loop, operands, {})
        return [
            (i, x)
            for i, x in zip(places, answer, strict=True)
            if (parent := self.parents[i]) and (wanted is None or parent.number in wanted)
        ]

    def name(self) -> str:
        return "ScanBackward0"


def _traced_in(x: Any) -> Iterator[Any]:
    """The traced values in operands."""
    if isinstance(x, Traced | TracedNumber):
        yield x
    elif isinstance(x, tuple | list | dict):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _traced_in(part)


def _canonical(program: Program) -> Any:
    """Equal for programs that do the same: values are numbered, and constants are their bytes."""
    steps = program.instructions
    inside = [*program.inputs, *[x for step in steps for x in step.results]]
    names: Any = {x: ("value", i) for i, x in enumerate(inside)}
    for x in program.read() & program.constants.keys():
        array = np.asarray(program.constants[x])
        names[x] = "constant", str(array.dtype), array.shape, array.tobytes()
    found = [
        (_canonical(f.body), f.count, f.reverse) if isinstance(f := step.function, Loop) else f
        for step in steps
    ]
    keys = [key(replace(step.with_values(names), function=sum)) for step in steps]
    return found, keys, [names.get(x, x) for x in program.outputs]
