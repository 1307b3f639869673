"""Scans while a function is recorded: their step is recorded once, as the body of a loop.

Every step is recorded, and compared with the one before. The instructions of the last are cut from
the trace; what depends neither on the state nor on members stays before the loop. The sweep of the
step is the body of a loop in the other direction, which reads what the first one keeps of each
step. What a loop can't do raises `UnrollError`: the function is recorded again, without loops.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.compiler.capture.errors import UnrollError
from wengert.compiler.capture.traced import Traced, device_of
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.passes.dead import dead
from wengert.compiler.passes.loops import Loop
from wengert.compiler.passes.simplify import simplify
from wengert.compiler.program import Instruction, Program, Value
from wengert.interpreters.lifted import Lifted
from wengert.tape.grad_mode import recording
from wengert.tape.hooks import Hooked, has_hooks
from wengert.tape.node import Leaf, Node, Output, Several, tick, walk
from wengert.tape.observers import Observer, observed_by
from wengert.tape.record import inexact
from wengert.tape.sweep import sweep
from wengert.tape.tensor import Tensor, with_node

__all__ = ["record_loop"]


def record_loop(
    trace: Any, step: Any, state: Sequence[Tensor], xs: Sequence[Tensor], count: int
) -> tuple[list[Tensor], list[Tensor]] | None:
    """The last state and the stacked results of a scan; None if it is to be unrolled."""
    arrays: list[Any] = [x._array for x in (*state, *xs)]
    if count == 1 or trace._operands is not None:  # within another's step it is unrolled
        return None
    if any(isinstance(x, Lifted) and getattr(x, "trace", None) is not trace for x in arrays):
        return None
    arrays = [x if isinstance(x, Lifted) else trace.constant(x, beside=True) for x in arrays]
    if {backend_of(x.inner).name for x in arrays} not in ({"numpy"}, {"jax"}):
        return None
    return _Scan(trace, [*state, *xs], arrays, len(state), count).run(step)


class _Entry(Leaf):
    """The node of what a step gets, at which its sweep ends."""

    __slots__ = ()

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        raise UnrollError


class _Twin(Output):
    """A last state that others depend on, too: of its cotangent this one has a part."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "__class__" or (name == "watch" and value is not None):
            raise UnrollError  # hooks, or a gradient that is kept
        super().__setattr__(name, value)

    def __hash__(self) -> int:
        raise UnrollError  # it is a target, by which a sweep keeps the whole


class _Writes(Observer):
    """Refuses changes in place, which may be of what is outside."""

    def assigned(self, tensor: Any, result: Any) -> None:
        raise UnrollError

    replaced: Any = assigned


class _Scan:
    """A scan that is recorded: its state and members are counted together, the state first.

    ``entries`` are the nodes of what a step gets, ``outer`` by number those of what it closes over,
    ``varying`` the values that differ from step to step. ``known`` has what has been an operand: of
    each run of the loop, or else of one step. ``tracked`` has the states that are, before each step
    and at the end, and ``form`` what each step does.
    """

    def __init__(
        self, trace: Any, given: list[Tensor], arrays: list[Traced], n: int, count: int
    ) -> None:
        self.form: Any = None
        self.trace, self.given, self.arrays, self.n, self.count = trace, given, arrays, n, count
        self.inputs = [
            self._new(x.inner if i < n else x.inner[0, ...], "state" if i < n else "x")
            for i, x in enumerate(arrays)
        ]
        self.varying, self.known = {x.value for x in self.inputs}, dict[Value, Any]()
        self.since, self.visited = tick(), dict[Any, dict[int, Node]]()
        self.entries: dict[int, Node] = {
            i: _Entry((), (), x.shape, x.dtype)
            for i, x in enumerate(self.inputs)
            if recording() and inexact(x) and (i < n or given[i]._node is not None)
        }
        self.tracked = [{i for i in self.entries if i < n and given[i]._node is not None}]

    def _new(self, array: Any, name: str) -> Traced:
        return Traced(array, Value.like(array, name), self.trace)

    def _as_traced(self, array: Any) -> Traced:
        """A result of the step, or of its sweep."""
        if isinstance(array, Lifted) and getattr(array, "trace", None) is not self.trace:
            raise UnrollError
        return array if isinstance(array, Traced) else self.trace.constant(array, beside=True)

    def run(self, step: Any) -> tuple[list[Tensor], list[Tensor]]:
        """Record the step, and the loop."""
        n, trace, start = self.n, self.trace, len(self.trace.instructions)
        first, contents, entries = len(trace.constants), dict[Any, Any](), self.entries
        given = [*[x.value for x in self.inputs], *[x.number for x in entries.values()]]
        for t in range(self.count):  # what another step does otherwise, as by a counter, is no loop
            trace.hidden.update(*[x.results for x in trace.instructions[start:]])
            del trace.instructions[start:], trace._ticks[start:]
            self.entries = {i: x for i, x in entries.items() if i >= n or i in self.tracked[t]}
            tensors = [with_node(x, self.entries.get(i)) for i, x in enumerate(self.inputs)]
            with observed_by(_Writes()), trace.noting() as operands:
                after, ys = step(tensors[:n], tensors[n:])
            results = [*after, *ys]
            self.outs = [self._as_traced(x._array) for x in results]
            self.nodes = [x._node if recording() and inexact(x._array) else None for x in results]
            self.tracked.append({i for i, x in enumerate(self.nodes[:n]) if x})
            inside = list(walk(self.nodes, self.since))
            every = [*self.nodes, *[p for x in inside for p in x.parents]]
            self.outer = {x.number: x for x in every if x and x.number < self.since}
            if any(x.watch or isinstance(x, Hooked) for x in inside):
                raise UnrollError
            contents |= {x: _form(y, {}) for x, y in [*trace.constants.items()][first:]}
            first = len(trace.constants)
            known = contents | {x: ("given", i) for i, x in enumerate(given)}
            calls = _calls(trace.instructions[start:], known), _form(self.outs, known)
            if t:
                same = self.tracked[t] == self.tracked[t - 1]
                tape = self._tape(t - 1, dict(known), same)
                if (calls, tape) != self.form:
                    raise UnrollError
            if not t or not same or self.tracked[t] != self.tracked[t + 1]:
                tape = self._tape(t, known, self.tracked[t] == self.tracked[t + 1])
            self.form = calls, tape
        if any(not x <= y for x, y in pairwise(self.tracked)):
            raise UnrollError
        steps = self._cut(start, [operands, self.outs])
        own = {*self.varying}
        rows = {x.value: y for x, y in zip(self.inputs[n:], self.arrays[n:], strict=True)}
        self.known |= rows
        kept = [x.value for x, y in zip(self.inputs[:n], self.given, strict=False) if y._node]
        if not recording() and any(x.value in kept for x in self.outs):
            raise UnrollError  # what is passed on has its node
        if any(map(has_hooks, [*entries.values(), *self.outer.values()])):
            raise UnrollError
        live = {i: x.number for i, x in enumerate(self.nodes) if x}
        with np.errstate(all="ignore"):  # perhaps of results that are not differentiated
            reads = self.backward(live, 0, self.count)[3] if live else []
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
            ends = {*self.outer, *[x.number for x in self.entries.values()]}
            for i, number in live.items():
                met = self._visit(self.count - 1, live.keys() - {i})
                twin = i < n and number in ends.union(met)
                tensors[i] = with_node(found[i], (_Twin if twin else Output)(node, i))
        for i, x in enumerate(after):  # Tensors that are one, or from before, are so afterwards
            before = x._node is None or x._node.number < self.since
            old = before and self.outs[i].value not in trace.hidden
            tensors[i] = x if old else tensors[next(j for j, y in enumerate(after) if y is x)]
        return tensors[:n], tensors[n:]

    def _leading(self, t: int, roots: Iterable[int]) -> dict[int, Node]:
        """The nodes between some results of a step and what it tracks, by their numbers."""
        ends = {x.number for i, x in self.entries.items() if i >= self.n or i in self.tracked[t]}
        found, leading = dict[int, list[Any]](), dict[int, Node]()
        nodes, stack = dict[int, Node](), [self.nodes[i] for i in roots]
        while stack:
            if (node := stack.pop()) is not None and node.number not in nodes:
                nodes[node.number] = node
                found[node.number] = [*node.parents] if node.number >= self.since else []
                stack += found[node.number]
        for number, parents in sorted(found.items()):
            led = [x for x in parents if x is not None and x.number in leading]
            if led or number in ends or number < self.since:
                leading[number] = nodes[number]
        return leading

    def _tape(self, t: int, known: dict[Any, Any], full: bool) -> list[Any]:
        """What this step records of what the step ``t`` tracks, in a form that equals another's."""
        found, form = self._leading(t, range(len(self.nodes))), list[Any]()
        for number, node in found.items():
            if number >= self.since:
                parents = [
                    known.get(x.number, x) if x and x.number in found else None
                    for x in node.parents
                ]
                # What other nodes save depends on what is tracked.
                saved = node.saved if type(node) is not Node or full else ()
                form.append((type(node), node.operation, parents, _form(saved, known)))
                known.setdefault(number, ("node", len(form)))
        return [form, *[known.get(x.number, x) for x in self.nodes if x]]

    def reach(self, given: Iterable[int], lo: int, hi: int) -> tuple[list[set[int]], set[int]]:
        """The results that have cotangents in each of some steps, last first, and states before."""
        seeds, every = list[set[int]](), {*given}
        states, ys = {i for i in every if i < self.n}, {i for i in every if i >= self.n}
        for t in reversed(range(lo, hi)):
            seeds.append(states | ys)
            found = self._visit(t, seeds[-1])
            states = {i for i in self.tracked[t] if self.entries[i].number in found}
        return seeds, states

    def exact(self, given: Iterable[int], hi: int) -> bool:
        """Whether all steps before ``hi`` run the rules of the same nodes.

        A loop begins with zeros for a cotangent that there is not, which a rule might make NaN.
        """
        each, _ = self.reach(given, 0, hi)
        every = set[int]().union(*each)
        steps = zip(reversed(range(hi)), each, strict=True)
        return all(self._visit(t, x).keys() == self._visit(t, every).keys() for t, x in steps)

    def _visit(self, t: int, roots: set[int]) -> dict[int, Node]:
        """`_leading`, found once."""
        key = frozenset(self.tracked[t]), frozenset(roots)
        if key not in self.visited:
            self.visited[key] = self._leading(t, roots)
        return self.visited[key]

    def backward(
        self, given: Iterable[int], lo: int, hi: int
    ) -> tuple[Loop, list[int], Any, Any, list[int | None]]:
        """The loop of the sweep of some steps from cotangents of some results.

        With the results whose cotangents it takes, those of these that are next states, what it
        reads, and the parents whose cotangents it gives, or None.
        """
        n, start = self.n, len(self.trace.instructions)
        each, passed = self.reach(given, lo, hi)
        state = {i for i in passed.union(*each[1:]) if i < n}
        # Those of results first, as in a sweep of all steps: there they are stacked last.
        used = set[int]().union(*each)
        seeds = sorted(used | state, key=lambda i: (i < n, i))
        wanted = self._leading(self.count - 1, used)
        carried, outer = [i for i in seeds if i < n], [i for i in self.outer if i in wanted]
        # Cotangents are added in the order of a sweep of all steps. There a result that is the next
        # state has its own before those of the later step: so they are seeds of that step.
        later = state & used
        twins = {i: j for i in seeds for j in later if i >= n and self.nodes[i] is self.nodes[j]}
        g = {i: self._new(self.outs[i].inner, "g") for i in seeds}
        with self.trace.noting() as operands:
            totals = {i: self._new(self.zeros(self.outer[i]).inner, "total") for i in outer}
            roots: list[Any] = [(self.outer[i], totals[i]) for i in outer]
            roots += [(self.entries[j], g[i]) for i, j in twins.items()]
            roots += [(self.nodes[i], g[i]) for i in seeds if i in used and i not in twins]
            roots = [(x, y) for x, y in roots if x and x.number in wanted]
            ends = {*self.outer, *[x.number for x in self.entries.values()]}
            how: Any = {"targets": ends, "wanted": wanted, "stop_at_targets": True}
            arrived = sweep(roots, keep=True, **how)
            flows = {node.number: self._as_traced(x) for node, x in arrived.items()}
            into = {i: flows.get(x.number) for i, x in self.entries.items()}
            members = [i for i, x in into.items() if i >= n and x is not None]
            back: Any = [self.zeros(g[i]) if (x := into.get(i)) is None else x for i in carried]
            back += [*[flows[i] for i in outer], *[into[i] for i in members]]
        own = {*self.varying}
        taken = [*[g[i] for i in carried], *totals.values(), *[g[i] for i in seeds if i >= n]]
        inputs = [x.value for x in taken]
        self.varying.update(inputs)
        steps = self._cut(start, [operands, back])
        body, reads = self._body(inputs, steps, [x.value for x in back], own)
        rows = len(seeds) - len(carried) + sum(x in own for x in reads)
        loop = Loop(body, len(carried) + len(outer), rows, hi - lo, reverse=True)
        places = {number: i for i, number in enumerate(self.outer, len(self.given))}
        found = [i if i in passed else None for i in carried]
        return loop, seeds, twins, reads, [*found, *[places[i] for i in outer], *members]

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
            varies = not self.varying.isdisjoint(step.uses())
            if not step.pure or (varies and step.name.startswith("number.")):
                raise UnrollError
            if varies:
                self.varying.update(step.results)
            else:
                kept.append((step, at))
            if varies or not step.uses():
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
        given = g.items
        if any(getattr(x, "trace", None) is not scan.trace for x in given.values()):
            raise UnrollError  # differentiated twice, or inside a transform
        hi, state = scan.count, {i: x for i, x in given.items() if i < scan.n}
        totals, members = dict[int, Any](), dict[int, Any]()
        parts = list[tuple[int, int]]()
        while hi and (state or given.keys() - {*range(scan.n)}):
            ys = {i: x[:hi, ...] for i, x in given.items() if i >= scan.n}
            # The last step is one by itself if a cotangent arrives from later steps alone.
            lo = 0 if scan.exact([*state, *ys], hi) else hi - 1
            if lo and hi < scan.count - 2:
                raise UnrollError
            state = self._part(lo, hi, state, ys, totals, members)
            parts, hi = [(lo, hi), *parts], lo
        parts = [(0, hi), *parts] if hi else parts
        for i, rows in members.items():  # zeros of the parts that give it none
            like = scan.arrays[i].inner
            each = [rows[j] if j in rows else scan.zeros(like[j:k, ...]) for j, k in parts]
            members[i] = namespaces[Traced].concat(each, axis=0) if each[1:] else each[0]
        found = {**state, **totals, **members} if not hi else {**totals, **members}
        return [
            (i, x)
            for i, x in found.items()
            if (parent := self.parents[i]) and (wanted is None or parent.number in wanted)
        ]

    def _part(
        self, lo: int, hi: int, state: dict[int, Any], ys: Any, totals: Any, members: Any
    ) -> dict[int, Any]:
        """The sweep of some steps; the cotangents of the states before them."""
        (scan, found), xp = self.values(), namespaces[Traced]
        loop, seeds, twins, reads, places = scan.backward([*state, *ys], lo, hi)
        if not scan.lost.isdisjoint(reads) or not scan.known.keys() >= {*reads}:
            raise UnrollError
        whole = lo == 0 and hi == scan.count
        g = {i: x if whole else x[lo:hi, ...] for i, x in ys.items()}
        g = {i: g[i] if i in g else state[i] if i in state else scan.zeros(found[i]) for i in seeds}
        for i, j in twins.items():
            g[i], last = xp.concat((xp.zeros_like(g[i][:1]), g[i][:-1]), axis=0), g[i][-1]
            g[j] = xp.add(g[j], last)
        before = [g.pop(i) for i in seeds if i < scan.n]
        outer = [i for i in places if i is not None and i >= len(scan.given)]
        before += [totals[i] if i in totals else scan.zeros(self.parents[i]) for i in outer]
        read = [scan.known[x] for x in reads]
        rows = loop.rows - len(g)
        read = [x if whole or i >= rows else x[lo:hi, ...] for i, x in enumerate(read)]
        after = scan.trace.call("scan", loop, [*before, *g.values(), *read], {})
        states = dict[int, Any]()
        for i, x in zip(places, after, strict=True):
            if i is None:
                continue
            if i < scan.n:
                states[i] = x
            elif i in totals or i >= len(scan.given):
                totals[i] = x
            else:
                members.setdefault(i, {})[lo] = x
        return states


def _calls(steps: Iterable[Instruction], known: dict[Any, Any]) -> list[Any]:
    """Instructions in a form that equals that of others; ``known`` gets their results."""
    found = list[Any]()
    for step in steps:
        parts = step.name, step.function, step.operands, step.parameters, step.several
        found.append([_form(x, known) for x in parts])
        known.update({x: ("result", len(found), i) for i, x in enumerate(step.results)})
    return found


def _form(x: Any, known: dict[Any, Any]) -> Any:
    """What equals this of another step, and of no other value."""
    if isinstance(x, Traced | TracedNumber):
        x = x.value
    if isinstance(x, Value | Node):
        return known.get(x if isinstance(x, Value) else x.number, x)
    if isinstance(x, dict):
        return {k: _form(y, known) for k, y in x.items()}
    if isinstance(x, tuple | list):
        return type(x), [_form(y, known) for y in x]
    if isinstance(x, int | float | complex):
        return type(x), repr(x)
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return type(x), x.shape, str(x.dtype), np.asarray(x).tobytes()
    return x


def _traced_in(x: Any) -> Iterator[Any]:
    """The traced values in operands."""
    if isinstance(x, Traced | TracedNumber):
        yield x
    elif isinstance(x, tuple | list | dict):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _traced_in(part)
