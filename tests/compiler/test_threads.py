"""Compiled functions in many threads, and calls that are interrupted."""

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import wengert as wg
from wengert.compiler import compiled as functions
from wengert.compiler.capture.errors import TraceError


def value(x):
    return [leaf.tolist() for leaf in wg.func.tree_leaves(x)]


@pytest.mark.parametrize("name", ["record", "check"])
def test_programs_run_while_another_thread_records_or_checks(name, monkeypatch):
    """A call that finds its program needs nobody; one that has to record waits, for a while."""
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    monkeypatch.setattr(functions, "PATIENCE", 0.05)
    double, other = wg.compile(lambda x: x * 2.0), wg.compile(lambda x: x * 3.0)
    slow, x = wg.compile(lambda x: x * 4.0), wg.ones(2)
    for _ in range(3):
        double(x)
    if name == "check":
        slow(x)
    reached, opened = threading.Event(), threading.Event()
    function = getattr(functions, name)

    def stops(*args, **kwargs):
        found = function(*args, **kwargs)
        if not reached.is_set():
            reached.set()
            assert opened.wait(20)
        return found

    monkeypatch.setattr(functions, name, stops)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(slow, x)
        assert reached.wait(20)
        assert double(x).tolist() == [2.0, 2.0]
        assert other(x).tolist() == [3.0, 3.0]
        opened.set()
        assert held.result().tolist() == [4.0, 4.0]
    assert "ran eagerly" not in str(double.report)
    assert "1 call ran eagerly: another thread records or checks" in str(other.report)
    assert other(x).tolist() == [3.0, 3.0]
    assert other.report.recordings == 1


@pytest.mark.parametrize("other", [False, True], ids=["its own", "another"])
def test_a_call_waits_for_a_thread_that_records_its_tensor(other, monkeypatch):
    """The Tensor holds a traced array meanwhile, by which a call is none inside a trace."""
    reached, record = threading.Event(), functions.record

    def slowly(function, *rest):
        def run(x):
            reached.set()
            time.sleep(0.1)
            return function(x)

        return record(run, *rest)

    monkeypatch.setattr(functions, "record", slowly)
    first, x = wg.compile(lambda x: x * 2.0), wg.ones(2)
    second = wg.compile(lambda x: x * 2.0) if other else first
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(first, x)
        assert reached.wait(20)
        assert second(x).tolist() == [2.0, 2.0]
        assert held.result().tolist() == [2.0, 2.0]
    assert [f.report.recordings for f in (first, second)] == [1, 1]
    assert "eagerly" not in f"{first.report}{second.report}"


def test_a_call_beside_one_that_runs_its_program_runs_eagerly():
    """Buffers are of one call. An interrupt leaves the program to the next one."""
    f = wg.compile(lambda x: wg.exp(x) * 2.0, check=0)
    expected = [f(wg.ones(2)).tolist() for _ in range(3)][-1]
    space = f._calls[0].__globals__
    program, space["running"][0] = space["step"], object()
    assert f(wg.ones(2)).tolist() == expected
    assert "1 call ran eagerly: the program runs in another call" in str(f.report)
    space["running"].clear()

    def interrupted(*inputs):
        raise KeyboardInterrupt

    space["step"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        f(wg.ones(2))
    space["step"] = program
    assert f(wg.ones(2)).tolist() == expected
    assert not space["running"]
    assert "2 calls" not in str(f.report)


def test_code_that_is_not_compiled_meets_an_error_and_no_number():
    """While a function is recorded, its Tensors and numbers are the recording's."""
    model = wg.nn.Linear(3, 2)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scale = np.ones(2)
    looks = (
        lambda: model(wg.ones(1, 3)),
        lambda: model.weight.detach().numpy(),
        lambda: float(optimizer.param_groups[0]["lr"]),
        lambda: scale.mean() + float(scale[0]),
    )

    def looked():
        found = []
        for look in looks:
            with suppress(TraceError):
                found.append(look())
        return found

    def step(x):
        optimizer.zero_grad()
        loss = wg.mean(model(x) ** 2 * wg.asarray(scale))
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(looked).result())
        loss.backward()
        optimizer.step()
        return loss

    seen = Unseen()
    step(wg.ones(4, 3))
    with pytest.raises(TraceError, match="another thread"):
        wg.compile(step)(wg.ones(4, 3))
    assert not seen.last
    step(wg.ones(4, 3))
    assert len(seen.last) == len(looks)


def test_a_thread_that_reads_a_tensor_does_not_fail_a_recording():
    weight = wg.ones(3)
    errors, done = [], threading.Event()

    def read():
        while not (errors or done.is_set()):
            try:
                weight.detach().numpy()
            except TraceError as error:
                errors.append(error)
                return

    def step(x):
        time.sleep(0.02)
        return x * weight

    thread = threading.Thread(target=read)
    thread.start()
    f = wg.compile(step)
    try:
        for _ in range(3):
            assert value(f(wg.ones(3))) == value(wg.ones(3))
            errors.clear()  # whose traceback holds the recording
    finally:
        done.set()
        thread.join()
    assert f.report.recordings == 2
    assert f.report.checks == 1
    assert "a recording that is lost" in str(f.report)


class Unseen:
    """Keeps what is appended where the compiler does not look."""

    __slots__ = ("last",)

    def append(self, x):
        object.__setattr__(self, "la" + "st", x)


def test_all_kinds_of_calls_in_many_threads():
    """Functions that are recorded, checked and replayed at any time; no two calls share memory."""
    wg.manual_seed(0)
    model = wg.nn.Sequential(wg.nn.Linear(24, 24), wg.nn.Tanh(), wg.nn.Linear(24, 24))
    x = wg.randn(24, 24)  # so large that programs have buffers

    def loss(x, n):
        return (wg.mean(model(x) ** 2) * n).detach()

    def gradients(x, n):
        return wg.autograd.grad(wg.sum(model(x) ** 2) * n, list(model.parameters()))

    eager = [loss, gradients]
    expected = {(f, n): value(f(x[:n], 2.0)) for f in eager for n in (24, 12)}

    def work(seed):
        draw = random.Random(seed)
        for _ in range(15):
            i, n = draw.randrange(len(compiled)), draw.choice((24, 12))
            f = compiled[i]
            found = f(x[:n], n=2.0) if draw.random() < 0.5 else f(x[:n], 2.0)
            if value(found) != expected[eager[i % 2], n]:
                return i, n
        return None

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(4):
            compiled = [wg.compile(f, check=check) for check in (None, 0, 1) for f in eager]
            with ThreadPoolExecutor(6) as pool:
                assert [*pool.map(work, range(6))] == [None] * 6
    finally:
        sys.setswitchinterval(before)
    assert all(1 <= f.report.recordings <= 2 for f in compiled)


def test_draws_of_another_thread_are_not_the_function_s(monkeypatch):
    def draw():
        time.sleep(0.03)
        random.random()
        np.random.random()  # noqa: NPY002

    @wg.compile(check=1)
    def double(x):
        time.sleep(0.06)
        return 2 * x

    for _ in range(3):  # recorded, checked, replayed
        thread = threading.Thread(target=draw)
        thread.start()
        assert double(wg.tensor(1.5)).item() == 3.0
        thread.join()

    recorded = []
    record = functions.record
    monkeypatch.setattr(functions, "record", lambda *a: recorded.append(a) or record(*a))
    alone = threading.active_count() == 1
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    try:
        for tries in (1, 4):  # a thread beside the function may be what has drawn
            with pytest.raises(wg.compiler.CompileError, match="draws from random"):
                wg.compile(lambda x: x * random.random())(wg.tensor(1.5))
            assert len(recorded) == tries or not alone
            recorded.clear()
            if tries == 1:
                thread.start()
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("check", [None, 1])
@pytest.mark.parametrize("runs", [0, 1, 2, 3])
def test_an_interrupted_call_leaves_what_there_was(runs, check):
    model = wg.nn.Linear(3, 2)
    optimizer, armed = wg.optim.Adam(model.parameters()), []

    def step(x):
        optimizer.zero_grad()
        loss = wg.mean(model(x) ** 2)
        loss.backward()
        optimizer.step()
        if armed:
            raise KeyboardInterrupt
        return loss

    def state_now():
        kept = [y for x in optimizer.state.values() for y in x.values()]
        found = [*model.parameters(), *[x.grad for x in model.parameters()], *kept]
        return [np.asarray(getattr(x, "_array", x)).tolist() for x in found if x is not None]

    run = wg.compile(step, check=check)
    step(wg.ones(4, 3))  # with which the optimiser begins
    for _ in range(runs):
        run(wg.ones(4, 3))
    before = state_now()
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        run(wg.ones(4, 3))
    armed.clear()
    assert state_now() == before
    with ThreadPoolExecutor(1) as pool:  # others have their turn
        assert pool.submit(functions._lock.acquire, timeout=0).result()
        pool.submit(functions._lock.release).result()
    assert not functions._eager.get()
    run(wg.ones(4, 3))
    assert state_now() != before
