"""Depth, leaks and threads: what a tape that lives as long as the process must stand."""

import gc
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim


@pytest.fixture
def no_collector():
    """Only reference counting frees memory inside."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_million_operations_record_differentiate_and_are_freed(no_collector):
    before = sys.getrecursionlimit()
    x = wg.tensor([1.0], dtype=wg.float64, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + x
    y.backward()
    assert x.grad.item() == 1_000_001.0
    assert sys.getrecursionlimit() == before
    del y
    assert len(wg.global_tape.of(x)) == 1


def train(steps, seed=0, width=8):
    rng = np.random.default_rng(seed)
    inputs = wg.asarray(rng.standard_normal((16, width)))
    targets = wg.asarray(rng.standard_normal((16, 1)))
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    start = np.random.default_rng(seed + 1)
    for parameter in model.parameters():
        parameter.array[...] = start.standard_normal(parameter.shape) / 4
    model.to(dtype=wg.float64)
    optimiser = optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimiser.step()
        yield model


def in_threads(work, *arguments):
    threads = [threading.Thread(target=work, args=given) for given in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_two_threads_train_two_models_as_each_would_alone():
    def outcome(seed):
        *_, model = train(200, seed)
        return [p.grad.numpy() for p in model.parameters()] + [
            p.detach().numpy() for p in model.parameters()
        ]

    alone = [outcome(0), outcome(1)]
    together = [None, None]
    barrier = threading.Barrier(2)

    def work(i):
        barrier.wait()
        together[i] = outcome(i)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_threads(work, (0,), (1,))
    finally:
        sys.setswitchinterval(interval)
    for a, b in zip(alone, together, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_many_threads_add_to_one_leaf():
    x = wg.zeros(1, dtype=wg.float64, requires_grad=True)

    def work():
        for _ in range(200):
            (x * 1.0).backward()

    in_threads(work, *[()] * 4)
    assert x.grad.item() == 800.0


def test_a_graph_crosses_threads():
    x = wg.tensor([3.0], requires_grad=True)
    made = []
    in_threads(lambda: made.append(x * x), ())
    made[0].backward()
    assert x.grad.item() == 6.0


def test_a_step_with_momentum_needs_memory_for_one_array_beside_what_stays() -> None:
    """The old momentum is freed before the next value of the parameter is made."""
    p = wg.ones((300, 300), dtype=wg.float32, requires_grad=True)
    p.grad = wg.ones_like(p)
    optimizer = wg.optim.SGD([p], momentum=0.9)
    tracemalloc.start()
    try:
        optimizer.step()
        optimizer.step()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        optimizer.step()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * 4 * p.size
