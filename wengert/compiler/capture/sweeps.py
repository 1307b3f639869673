"""Programs of the sweeps of a recorded call's results, which the caller differentiates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.compiler.capture.recorded import Backward, End, Outside, Ref, SweepProgram
from wengert.compiler.capture.trace import Trace
from wengert.compiler.capture.traced import inner_array
from wengert.compiler.messages import apart
from wengert.compiler.program import Program, values_in
from wengert.tape.hooks import Hooked
from wengert.tape.node import AccumulateGrad, Node
from wengert.tape.sweep import ancestors, sweep
from wengert.tape.tensor import Tensor

__all__ = ["programs", "unhooked"]


def programs(
    call: Any, leaves: Sequence[Any], kinds: Sequence[tuple[str, Any]]
) -> tuple[Program, tuple[Backward, ...]]:
    """The call's program, and the programs of the sweeps of results that require grad."""
    trace = call.trace
    roots = [
        k
        for k, (leaf, (kind, what)) in enumerate(zip(leaves, kinds, strict=True))
        if kind == "tensor" and leaf._node is not None and what not in call.over
    ]
    if not roots:
        return trace.program(call.outputs), ()
    first: dict[int, int] = {}
    duplicates = [(k, at) for k in roots if (at := first.setdefault(id(leaves[k]), k)) != k]
    given, start = len(trace.inputs), len(trace.instructions)
    # The arrays that the sweeps need are alive now.
    alive = [x for ref in trace.arrays if (x := ref()) is not None]
    samples = {x.value: x.inner for x in alive} | trace.numbers
    del alive
    owners = {
        t._node.number: Ref("tensor", i)
        for i, t in enumerate(call.tensors)
        if isinstance(t._node, AccumulateGrad | Outside)
    }
    found, outputs = list[Backward](), list(call.outputs)
    with apart(), unhooked(call.tensors):
        for results in _stages({k: leaves[k]._node for k in first.values()}):
            every = tuple(range(len(results)))
            chosen = [every, *[(k,) for k in every if len(every) > 1]]
            sweeps = [
                _sweep(trace, [leaves[results[k]] for k in some], set(owners)) for some in chosen
            ]
            needed = [x.inputs[: -len(some)] for some, (x, _) in zip(chosen, sweeps, strict=True)]
            kept = list(dict.fromkeys(value for values in needed for value in values))
            refs = list(dict.fromkeys(owners[n] for _, numbers in sweeps for n in numbers))
            programs = [
                SweepProgram(
                    program,
                    some,
                    tuple([refs.index(owners[number]) for number in numbers]),
                    tuple([kept.index(value) for value in values]),
                )
                for some, values, (program, numbers) in zip(chosen, needed, sweeps, strict=True)
            ]
            places = tuple(range(len(outputs), len(outputs) + len(kept)))
            same = tuple([(k, at) for k, at in duplicates if at in results])
            found.append(Backward(results, same, tuple(refs), places, tuple(programs)))
            outputs += kept
            owners |= {leaves[k]._node.number: Ref("result", k) for k in results}
    for node in ancestors([leaves[k]._node for k in first.values()]):
        if not isinstance(node, AccumulateGrad):
            node.saved = None
    whole, kept = trace.program(call.outputs), outputs[len(call.outputs) :]
    forward = Program(
        whole.inputs[:given], whole.instructions[:start], (*whole.outputs, *kept), whole.constants
    )
    call.kept = [samples[value] for value in kept]
    return forward, tuple(found)


def _stages(results: dict[int, Node]) -> Iterator[tuple[int, ...]]:
    """The results by topological level.

    Where one result's graph leads to another result, it is cut there.
    """
    numbers = {node.number for node in results.values()}
    stage: dict[int, int] = {}
    for node in sorted(results.values(), key=lambda node: node.number):
        inner = [x.number for x in ancestors([node]) if x.number in numbers and x is not node]
        stage[node.number] = max([stage[number] + 1 for number in inner], default=0)
    for node in sorted(set(results.values()), key=lambda node: node.number):
        above = [x for x in results.values() if stage[x.number] > stage[node.number]]
        if above:
            End(node, node.number).cut(node, above)
    for level in sorted(set(stage.values())):
        yield tuple([k for k, node in results.items() if stage[node.number] == level])


@contextmanager
def unhooked(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Disable the hooks on leaves, which the caller's sweep will call."""
    hooked = [(x._node, x._node.extra) for x in tensors if isinstance(x._node, Hooked)]
    for node, _ in hooked:
        node.extra = None
    try:
        yield
    finally:
        for node, extra in hooked:
            node.extra = extra


def _sweep(trace: Trace, results: Sequence[Tensor], targets: set[int]) -> tuple[Program, list[int]]:
    """The program of some results' sweep, and the numbers of the leaves that it reaches."""
    given, start = len(trace.inputs), len(trace.instructions)
    cotangents = [trace.input(inner_array(x._array), "cotangent") for x in results]
    flows = [(x._node, g) for x, g in zip(results, cotangents, strict=True)]
    arrived = sweep(flows, keep=True, targets=targets)  # type: ignore[arg-type]
    gradients = [(node.number, g) for node, g in arrived.items() if g is not None]
    whole = trace.program([g for _, g in gradients])
    inputs, steps = whole.inputs[given:], whole.instructions[start:]
    made = {value for step in steps for value in step.results} | set(inputs)
    wanted = [*(v for step in steps for v in step.used()), *values_in(whole.outputs)]
    kept = dict.fromkeys(v for v in wanted if v not in made and v not in whole.constants)
    program = Program((*kept, *inputs), steps, whole.outputs, whole.constants)
    return program, [number for number, _ in gradients]
