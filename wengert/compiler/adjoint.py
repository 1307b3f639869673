"""Derivatives of a compiled function's results: each is one operation on the caller's tape.

The operation's derivative rule is a compiled program, too, of a sweep that is recorded. A program
has no graph, so that derivatives of derivatives belong inside the compiled function.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from wengert.backends import namespaces
from wengert.compiler.capture.recorded import Backward, End, Outside, Ref
from wengert.compiler.capture.traced import inner_array
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.messages import apart
from wengert.compiler.passes import optimise
from wengert.compiler.program import Program, Value, order_of, values_in
from wengert.tape.hooks import Hooked
from wengert.tape.node import AccumulateGrad, Node, is_lifted
from wengert.tape.sweep import ancestors, sweep
from wengert.tape.tensor import Tensor, with_node

__all__ = ["Adjoint", "attach", "programs"]


def programs(
    call: Any, leaves: Sequence[Any], kinds: Sequence[tuple[str, Any]]
) -> tuple[Program, tuple[Backward, ...]]:
    """The call's program, and the sweeps of results that require grad, in topological order."""
    trace, places = call.trace, dict[int, list[int]]()
    for k, (leaf, (kind, what)) in enumerate(zip(leaves, kinds, strict=True)):
        if kind == "tensor" and leaf._node is not None and what not in call.over:
            places.setdefault(id(leaf), []).append(k)
    if not places:
        return trace.program(call.outputs), ()
    given, start = len(trace.inputs), len(trace.instructions)
    owners = {
        t._node.number: Ref("tensor", i)
        for i, t in enumerate(call.tensors)
        if isinstance(t._node, AccumulateGrad | Outside)
    }
    results = sorted(places.values(), key=lambda at: leaves[at[0]]._node.number)
    nodes = [leaves[at[0]]._node for at in results]
    for i, node in enumerate(nodes):  # a sweep ends at other results
        End(node).cut(node, nodes[i + 1 :])
    found, kept = list[Backward](), dict[Value, int]()
    with apart(), _unhooked(call.tensors):
        for at, node in zip(results, nodes, strict=True):
            before, first = len(trace.inputs), len(trace.instructions)
            g = trace.input(inner_array(leaves[at[0]]._array), "cotangent")
            arrived = sweep([(node, g)], keep=True, targets=owners)
            whole = trace.program([x for x in arrived.values() if x is not None])
            steps = whole.instructions[first:]
            made = {value for step in steps for value in step.results} | {*whole.inputs[before:]}
            wanted = [*(v for step in steps for v in step.used()), *values_in(whole.outputs)]
            needed = dict.fromkeys(v for v in wanted if v not in made and v not in whole.constants)
            program = Program(
                (*needed, *whole.inputs[before:]), steps, whole.outputs, whole.constants
            )
            refs = tuple([owners[end.number] for end, x in arrived.items() if x is not None])
            saved = tuple([kept.setdefault(value, len(kept)) for value in needed])
            found.append(Backward(tuple(at), refs, saved, program))
            owners[node.number] = Ref("result", at[0])
    for node in ancestors(nodes):
        if not isinstance(node, AccumulateGrad):
            node.saved = None
    whole = trace.program(call.outputs)
    forward = Program(
        whole.inputs[:given], whole.instructions[:start], (*whole.outputs, *kept), whole.constants
    )
    return forward, tuple(found)


@contextmanager
def _unhooked(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Disable the hooks on leaves, which the caller's sweep will call."""
    hooked = [(x._node, x._node.extra) for x in tensors if isinstance(x._node, Hooked)]
    for node, _ in hooked:
        node.extra = None
    try:
        yield
    finally:
        for node, extra in hooked:
            node.extra = extra


class Adjoint:
    """The sweep of a result that the caller differentiates, as a program."""

    def __init__(self, behind: Backward, copies: Any, number: int) -> None:
        self.behind, self._copies = behind, copies
        self._name = f"adjoint_{number}" if number else "adjoint"

    @cached_property
    def _program(self) -> Program:
        return optimise(self.behind.program)

    @cached_property
    def emitted(self) -> Emitted:
        """The sweep as calls of the library."""
        return emit(self._program, self._copies.backend, name=self._name)

    @cached_property
    def _pool(self) -> Any:
        return self._copies.pool(self._program, self.emitted.function)

    def run(self, saved: Sequence[Any], g: Any) -> Sequence[Any]:
        """The gradients of the leaves, for the result's cotangent."""
        # Only NumPy's programs have buffers, which fit one order of the cotangent in memory.
        if self._copies.needed and order_of(g) != self.behind.program.inputs[-1].order:
            return self.behind.program(*saved, g)
        return self._pool(*saved, g)  # type: ignore[no-any-return]


def attach(
    adjoints: Sequence[Adjoint], answer: list[Any], kept: Sequence[Any], tensors: Sequence[Tensor]
) -> None:
    """Put results on the tape, in topological order."""
    for adjoint in adjoints:
        behind = adjoint.behind
        held = [(answer if x.kind == "result" else tensors)[x.index] for x in behind.leaves]
        array, saved = answer[behind.results[0]]._array, [kept[i] for i in behind.kept]
        node = CompiledNode(tuple([x._node for x in held]), saved, array.shape, array.dtype)
        node.adjoint = adjoint
        made = with_node(array, node)
        for k in behind.results:
            answer[k] = made


class CompiledNode(Node):
    """A result of a replay on the tape."""

    __slots__ = ("adjoint",)

    adjoint: Adjoint

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        saved = self.values()
        if is_lifted(g) or namespaces[type(g)].records:
            raise RuntimeError(
                "the results of a compiled function can be differentiated once from outside, and "
                "not twice, or by batches: differentiate inside the compiled function"
            )
        return [
            (i, x)
            for i, x in enumerate(self.adjoint.run(saved, g))
            if (parent := self.parents[i]) is not None
            and (wanted is None or parent.number in wanted)
        ]

    def name(self) -> str:
        return "CompiledBackward0"

    @property
    def operation(self) -> str:
        return "compiled"
