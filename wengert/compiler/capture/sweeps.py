"""Programs of the sweeps of a recorded call's results, which the caller differentiates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.compiler.capture.recorded import Backward, End, Outside, Ref
from wengert.compiler.capture.traced import inner_array
from wengert.compiler.messages import apart
from wengert.compiler.program import Program, Value, values_in
from wengert.tape.hooks import Hooked
from wengert.tape.node import AccumulateGrad
from wengert.tape.sweep import ancestors, sweep
from wengert.tape.tensor import Tensor

__all__ = ["programs"]


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
