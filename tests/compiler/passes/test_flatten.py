"""Updates in one line, and the lines that steps write into."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike, batch, network
from wengert.compiler.passes.flatten import KEPT, FlatArrays

KEEPING = {
    "nothing": lambda line, parts: None,
    "the line": lambda line, parts: line,
    "a part": lambda line, parts: parts[1],
    "a view of a part": lambda line, parts: parts[0][0, 1:],
    "a view of a view": lambda line, parts: parts[0].reshape(-1)[::2].T,
    "memory": lambda line, parts: memoryview(parts[1]),
    "a broadcast": lambda line, parts: np.broadcast_to(parts[1], (5, 3)),
}


@pytest.mark.parametrize("kept", KEEPING)
def test_a_line_that_somebody_looks_at_is_not_written(kept):
    joint = FlatArrays([(2, 3), (3,)], np.float32, "lines")
    line = joint.memory()
    address = line.ctypes.data
    held = KEEPING[kept](line, joint.split(line))
    del line
    again = joint.memory()
    assert (again.ctypes.data == address) == (kept == "nothing")
    others = [again] + [joint.memory() for _ in range(2 * KEPT)]
    assert len({x.ctypes.data for x in others}) == len(others)
    del held


def trained(optimiser, **options):
    """A small model, and its step for one batch, compiled."""
    model, _, step = network(optimiser, wg.nn.Tanh())
    return model, wg.compile(partial(step, *batch()), **options)


@pytest.mark.parametrize("optimiser", ["SGD", "Adam"])
def test_what_a_step_has_left_stays(optimiser):
    """Parameters, gradients and views of them keep the values with which they were taken."""
    model, run = trained(optimiser)
    kept = []
    for i in range(12):
        run()
        weight = list(model.parameters())[2 * (i % 2)]
        taken = [weight.detach(), weight.grad, weight[0], weight.detach().numpy()[1:], weight.mT]
        kept.append([(t, np.array(getattr(t, "_array", t))) for t in taken[i % 5 :]])
    assert "flat_grad.memory()" in run.source and "flat_weight.join(" in run.source
    for taken in kept:
        for tensor, values in taken:
            np.testing.assert_array_equal(np.asarray(getattr(tensor, "_array", tensor)), values)


def decayed_by_hand():
    """A parameter is its own gradient, and another has one from outside: no updates of one kind."""
    p, q = (wg.nn.Parameter(wg.asarray([1.0, 2.0]) * k) for k in (1, 3))
    optimizer = wg.optim.SGD([p, q], lr=0.25)

    def step(x):
        p.grad, q.grad = p.detach(), x
        optimizer.step()

    return step, lambda: [p, q]


def of_means(looked_at):
    """Adadelta's step is in a mean that nothing else uses, and in the parameter."""
    params = [wg.nn.Parameter(wg.asarray([k, 2.0])) for k in (1.0, 2.0, 3.0)]
    optimizer = wg.optim.Adadelta(params)

    def step(x):
        for k, p in enumerate(params):
            p.grad = x * (k + 1)
        optimizer.step()
        return params[0].detach() * 2 if looked_at else None

    return step, lambda: [*params, *[x for each in optimizer.state.values() for x in each.values()]]


@pytest.mark.parametrize("looked_at", [None, False, True])
def test_updates_are_joined_where_they_are_alike(looked_at):
    calls = [(wg.asarray([0.5, 1.0 + i]),) for i in range(5)]
    make = decayed_by_hand if looked_at is None else lambda: of_means(looked_at)
    source = alike(make, calls).source
    if looked_at is not None:  # those of parameters that nothing looks at are joined
        assert source.count("np.divide(") == 1 + looked_at


def test_threads_that_train_one_model():
    """Steps of threads follow one another; each leaves arrays that nobody writes into again."""
    model, run = trained("SGD")
    for _ in range(3):
        run()
    wrong = []

    def train():
        for _ in range(100):
            run()
            taken = [p.detach()._array for p in model.parameters()]
            before = [np.array(t) for t in taken]
            run()
            wrong.extend(not np.array_equal(t, b) for t, b in zip(taken, before, strict=True))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: train(), range(3)))
    assert wrong and not any(wrong)


def test_memory_is_used_again():
    model, run = trained("SGD", check=0)
    seen = set()
    for _ in range(20):
        run()
        seen.add(model[0].weight._array.ctypes.data)
    assert len(seen) <= 6
