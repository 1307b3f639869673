"""Compiled functions in many threads, under samplers, and in signals' handlers."""

import gc
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import wengert as wg


def test_gradients_in_many_threads():
    """Programs and their adjoints have memory of their own, which no two calls share."""
    wg.manual_seed(0)
    weights = [wg.randn(24, 24, requires_grad=True) for _ in range(3)]

    @wg.compile
    def loss(x):
        for weight in weights:
            x = wg.tanh(x @ weight) * wg.exp(-x * x)
        return wg.sum(x**2)

    inputs = [wg.randn(24, 24) for _ in range(8)]
    expected = []
    for x in inputs:
        value = loss.__wrapped__(x)
        expected.append((value.item(), wg.autograd.grad(value, weights)))

    def work(i):
        wrong = 0
        for _ in range(60):
            value = loss(inputs[i])
            found = wg.autograd.grad(value, weights)
            same = value.item() == expected[i][0]
            for a, b in zip(found, expected[i][1], strict=True):
                same = same and np.array_equal(a.numpy(), b.numpy())
            wrong += not same
        return wrong

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, range(8))) == 0
    finally:
        sys.setswitchinterval(before)
    assert loss.report.recordings == 1


def test_a_handler_that_calls_what_it_interrupts():
    weight = wg.randn(60, 60)
    step = wg.compile(lambda x: wg.sum(wg.tanh(x @ weight) * wg.exp(x)))
    x = wg.randn(60, 60)
    expected = [step(x).item() for _ in range(3)][-1]
    found = []

    def handler(number, frame):
        found.append(step(x).item())

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert step(x).item() == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found
    assert set(found) == {expected}


def test_recording_while_another_thread_samples_frames():
    """It keeps what is local to functions that have returned alive for a while."""
    held, stop = [], threading.Event()

    def sample():
        while not stop.is_set():
            held[:] = [sys._current_frames()]
            time.sleep(0.003)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        for i in range(30):

            def function(x, i=i):
                y = wg.exp(x * 2.0)
                z = wg.sin(y) + i
                return wg.sum(z)

            wg.compile(function, strict=True)(wg.ones(400))
    finally:
        stop.set()
        thread.join()
        held.clear()


def test_recordings_leave_nothing_for_the_collector():
    model = wg.nn.Linear(3, 3)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    def compiled():
        def step(x):
            optimizer.zero_grad()
            loss = wg.sum(model(x))
            loss.backward()
            optimizer.step()
            return loss

        return wg.compile(step)

    x = wg.ones(2, 3)
    first = compiled()
    for _ in range(4):
        first(x)
    del first
    gc.collect()
    gc.disable()
    try:
        run = compiled()
        for _ in range(4):
            run(x)
        del run
        assert gc.collect() == 0
    finally:
        gc.enable()
