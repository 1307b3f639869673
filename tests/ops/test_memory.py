"""What operations save, and that it is let go: by reference counting alone, and by the sweep."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.table import TABLE
from tests.ops.cases import apply, check_examples, function, inexact_results, leaves
from wengert.tape.hooks import Packed
from wengert.tape.node import AccumulateGrad, Output
from wengert.tape.sweep import ancestors
from wengert.testing.problem import values

TRACKED = [name for name, entry in sorted(TABLE.items()) if entry.tracked and entry.order]


def operations(results):
    """The nodes that results were recorded as, without leaves and the several results of one."""
    nodes = ancestors(r._node for r in results if r._node is not None)
    return [n for n in nodes if not isinstance(n, Output | AccumulateGrad)]


def recorded(name, case):
    entry = TABLE[name]
    inputs = leaves(case)
    return inputs, inexact_results(apply(function(name, entry), case, inputs))


def arrays_saved(results):
    """The arrays that the nodes of results have saved, also those in tuples."""
    flat = [value for node in operations(results) for value in node.saved]
    while any(isinstance(value, tuple) for value in flat):
        flat = [x for value in flat for x in (value if isinstance(value, tuple) else (value,))]
    return [x for x in flat if hasattr(x, "dtype") and hasattr(x, "shape")]


def graphs_are_freed_without_the_garbage_collector(name, case):
    """Also those of gradients, which hold on to the graph that they were computed from."""
    gc.disable()
    inputs, results = recorded(name, case)
    tracked = [r for r in results if r._node is not None]
    if not tracked:
        return
    seeds = [wg.ones_like(r) for r in tracked]
    gradients = wg.autograd.grad(tracked, inputs, seeds, create_graph=True, allow_unused=True)
    roots = [*tracked, *(g for g in gradients if g is not None)]
    watched = [weakref.ref(node) for node in operations(roots)]
    del results, tracked, roots, gradients
    assert not [node() for node in watched if node() is not None]


def a_sweep_releases_what_was_saved(name, case):
    _, results = recorded(name, case)
    tracked = [r for r in results if r._node is not None]
    if not tracked:
        return
    nodes = operations(tracked)
    wg.autograd.backward(tracked, [wg.ones_like(r) for r in tracked])
    assert all(node.saved is None for node in nodes)
    if any(node.operation == name for node in nodes):
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            wg.autograd.backward(tracked, [wg.ones_like(r) for r in tracked])


def saved_values_that_are_packed_give_the_same_gradients(name, case):
    """What a hook is shown of one value or several comes back to where it was."""
    packed = []

    def pack(tensor):
        packed.append(values(tensor))
        return len(packed) - 1, tensor.backend.name

    def unpack(known):
        at, backend = known
        return wg.from_numpy(packed[at]).to_backend(backend)

    state, found = wg.get_rng_state(), []
    for context in (nullcontext(), wg.autograd.graph.saved_tensors_hooks(pack, unpack)):
        wg.set_rng_state(state)
        with context:
            inputs, results = recorded(name, case)
        tracked = [r for r in results if r._node is not None]
        if not isinstance(context, nullcontext):
            assert all(isinstance(x, Packed) for x in arrays_saved(tracked))
        if tracked:
            seeds = [wg.ones_like(r) for r in tracked]
            found.append(wg.autograd.grad(tracked, inputs, seeds, materialize_grads=True))
    for plain, again in zip(*found, strict=True) if found else ():
        np.testing.assert_array_equal(values(plain), values(again))


CHECKS = (
    graphs_are_freed_without_the_garbage_collector,
    a_sweep_releases_what_was_saved,
    saved_values_that_are_packed_give_the_same_gradients,
)


@pytest.mark.parametrize("name", TRACKED)
def test_what_is_saved_and_let_go(name):
    entry = TABLE[name]

    def check(case):
        enabled = gc.isenabled()
        try:
            for each in CHECKS:
                each(name, case)
                if enabled:
                    gc.enable()
        finally:
            if enabled:
                gc.enable()

    check_examples(3, check, getattr(entry, entry.kinds()[0]))
