"""Compiled functions in many threads, under samplers, and in signals' handlers."""

import gc
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from wengert.compiler import checking, threads
from wengert.compiler.capture import recording
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.emission.glue import MISS
from wengert.compiler.refusals import failed
from wengert.func.trees import tree_flatten


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
    found, over = [], []

    def handler(number, frame):
        found.append(step(x).item())
        if not over:  # or an alarm after the test would end the process
            signal.setitimer(signal.ITIMER_REAL, 0.0005)  # not before: it has to come to its end

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    try:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert step(x).item() == expected
    finally:
        over.append(True)
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


# -- recording and checking beside other threads --------------------------------------------------


class Stop:
    """Stops a thread at a call of a function of the compiler, until `go` is called."""

    def __init__(self, monkeypatch, module, name):
        self.reached, self._go = threading.Event(), threading.Event()
        function, self.first = getattr(module, name), True

        def stops(*args, **kwargs):
            if self.first:
                self.first = False
                self.reached.set()
                assert self._go.wait(20)
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, stops)

    def go(self):
        self._go.set()


def beside(stop, first, second):
    """What two calls give of which the second begins in the midst of the first."""
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert stop.reached.wait(20)
        other = pool.submit(second)
        time.sleep(0.03)  # in which it would come to the Tensors if it did not wait
        stop.go()
        return one.result(), other.result()


def training():
    """A step of a model, and things that are done with the model beside it."""
    wg.manual_seed(3)
    model = wg.nn.Linear(3, 2)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = wg.zeros(2)
    x = wg.randn(4, 3)

    def step(x):
        optimizer.zero_grad()
        loss = wg.mean(model(x) ** 2)
        loss.backward()
        optimizer.step()
        return loss

    def count(x):
        with wg.no_grad():
            seen.copy_(seen + wg.sum(model(x) * 0.0 + 1.0))
        return seen * 1.0

    def branch(x):
        value = wg.sum(model(x) ** 2)
        return wg.grad(lambda z: wg.sum(model(z)))(x) if value > 0 else value

    def look(x):
        return wg.sum(model(x) ** 2) + wg.sum(seen)

    functions = {"step": step, "count": count, "branch": branch, "look": look}
    return functions, (model, optimizer, seen), x


def bits(*trees):
    return [np.array(x.detach().numpy()).tobytes() for x in tree_flatten(trees)[0]]


def left(state):
    model, _, seen = state
    return bits([*model.parameters()], [p.grad for p in model.parameters()], seen)


OTHERS = {
    "one that is refused": ("branch", lambda f, x: f(x), 0),
    "one that records": ("look", lambda f, x: f(x), 0),
    "one that is checked": ("look", lambda f, x: f(x), 1),
    "a replay": ("look", lambda f, x: f(x), 4),
    "a replay that changes state": ("count", lambda f, x: f(x), 4),
    "a replay by keywords": ("count", lambda f, x: f(x=x), 4),
    "a transform": ("look", lambda f, x: wg.jvp(f, (x,), (x,)), 4),
    "a second derivative": (
        "look",
        lambda f, x: wg.grad(lambda z: wg.sum(wg.grad(f)(z) ** 2))(x),
        4,
    ),
}


@pytest.mark.parametrize("does", ["records", "checks"])
@pytest.mark.parametrize("other", OTHERS)
def test_what_another_thread_does_beside_a_recording(other, does, monkeypatch):
    """It comes before or after it, and nothing of either is lost."""
    name, call, before = OTHERS[other]
    stops = (recording, "check_arguments") if does == "records" else (checking, "_seen")

    def run(compiled, order):
        functions, state, x = training()
        if compiled:
            functions = {key: wg.compile(f) for key, f in functions.items()}
        step, function = functions["step"], functions[name]
        # Transforms look at what they are given before they call anything that is compiled.
        y = x if "a transform" not in other and "derivative" not in other else x * 1.0
        for _ in range(before):
            call(function, y)
        for _ in range(2 if does == "checks" else 0):  # the optimiser makes its state first
            step(x)
        if compiled:
            stop = Stop(monkeypatch, *stops)
            found = beside(stop, lambda: step(x), lambda: call(function, y))
            assert not any("thread" in why for why in step.report._fallbacks)
        elif order:
            found = step(x), call(function, y)
        else:
            found = (call(function, y), step(x))[::-1]
        return bits(*found), left(state)

    assert run(True, None) in [run(False, True), run(False, False)]


def test_a_function_is_not_recorded_while_another_runs_as_it_is(monkeypatch):
    """It waits for a moment, runs as it is too, and is recorded later."""
    monkeypatch.setattr(threads, "PAUSE", 0.01)
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    weight = wg.randn(3, requires_grad=True)
    begun, go = threading.Event(), threading.Event()

    @wg.compile
    def waits(x):  # an event can't be compared: it is refused
        begun.set()
        assert go.wait(20)
        return x * weight

    scale = wg.compile(lambda x: wg.sum(x * weight), strict=True)
    x = wg.randn(3)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(waits, x)
        assert begun.wait(20)
        expected = wg.sum(x * weight).item()
        assert [scale(x).item() for _ in range(8)] == [expected] * 8
        assert scale.report.recordings == 0
        assert "8 calls ran eagerly: other threads" in str(scale.report)
        go.set()
        assert bits(other.result()) == bits(x * weight)
    for _ in range(10):
        assert scale(x).item() == expected
    assert (scale.report.recordings, scale.report.checks) == (1, 1)
    assert sum(scale.report._fallbacks.values()) <= 16  # it was looked at the 1st, 2nd, 4th, …


def test_programs_run_before_or_after_a_recording(monkeypatch):
    """One in flight is waited for, and none begins until the recording is over."""
    monkeypatch.setattr(threads, "PAUSE", 0.01)
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    functions, (_, _, seen), x = training()
    count = wg.compile(functions["count"])
    for _ in range(4):
        count(x)
    pool = count._replays[0].pool
    look = wg.compile(functions["look"])
    copy = pool.take()  # as a call does
    with monkeypatch.context() as running:
        running.setattr(threads, "_lost", lambda programs: False)
        look(x)
    assert look.report.recordings == 0
    pool.give(copy)
    stop = Stop(monkeypatch, recording, "check_arguments")
    with ThreadPoolExecutor(1) as others:
        recorded = others.submit(look, x)
        assert stop.reached.wait(20)
        with pytest.raises(IndexError):
            pool.take()
        assert pool.another() is None
        assert [call(x) for call in count._calls] == [MISS]
        stop.go()
        recorded.result()
    assert look.report.recordings == 1
    before = seen.tolist()
    assert all(call(x) is not MISS for call in count._calls)
    assert seen.tolist() == [n + 8.0 for n in before]


def test_a_function_that_runs_as_it_is_may_call_one_that_is_recorded(monkeypatch):
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    weight = wg.randn(3)
    inner = wg.compile(lambda x: x * weight)

    @wg.compile
    def outer(x):
        return inner(x) if wg.sum(x) > 0 else inner(-x)

    for scale in (1.0, -1.0, 1.0, -1.0):
        x = wg.ones(3) * scale
        assert bits(outer(x)) == bits(weight * 1.0)
    assert inner.report.recordings == 1
    assert inner.report.checks == 1


def test_a_recording_that_waits_for_a_thread_that_waits_for_it(monkeypatch):
    """The wait comes to an end, and the function runs as it is."""
    monkeypatch.setattr(threads, "PATIENCE", 0.05)
    weight = wg.randn(3)
    inner = wg.compile(lambda: weight * 2.0)
    function = recording.check_arguments

    def in_a_thread(*args):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(inner).result()
        return function(*args)

    monkeypatch.setattr(recording, "check_arguments", in_a_thread)
    outer = wg.compile(lambda x: wg.sum(x * weight))
    x = wg.ones(3)
    assert bits(outer(x)) == bits(wg.sum(x * weight))
    assert "in another thread" in str(outer.report)
    assert bits(inner()) == bits(weight * 2.0)
    assert "too long" in str(inner.report)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_others_have_their_turn(error):
    weight = wg.randn(3)

    def fails(x, how):
        if how == "fails":
            raise error("the user's")
        return x * weight

    def branches(x, how):
        if wg.sum(x) > 0 and how == "fails":
            raise error("the user's")
        return x * weight

    for function in (fails, branches):
        f = wg.compile(function)
        for how in ("", "fails", "", "fails"):
            if how:
                with pytest.raises(error, match="the user's"):
                    f(wg.ones(3), how)
            else:
                f(wg.ones(3), how)
            assert not threads._owner
            assert not threads._eager
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(threads._lock.acquire, timeout=0).result()
                pool.submit(threads._lock.release)


def test_code_that_is_not_compiled_meets_an_error_and_no_number(monkeypatch):
    functions, (model, optimizer, _), x = training()

    def looked():
        found = []
        for look in (
            lambda: model(wg.ones(1, 3)),
            lambda: model.weight.numpy(),
            lambda: model.weight.sum().item(),
            lambda: optimizer.param_groups[0]["lr"] * 2.0,
            lambda: float(optimizer.param_groups[0]["lr"]),
            lambda: x + 1.0,
        ):
            try:
                found.append(look())
            except Exception as error:
                found.append(type(error))
        return found

    compiled = wg.compile(functions["step"])
    compiled(x)
    stop = Stop(monkeypatch, recording, "check_arguments")
    _, found = beside(stop, lambda: compiled(x), looked)
    assert found == [TraceError] * 6


def test_all_kinds_of_calls_in_many_threads():
    """One model, and functions that are recorded, checked, refused and replayed at any time."""
    wg.manual_seed(0)
    model = wg.nn.Sequential(wg.nn.Linear(4, 4), wg.nn.Tanh(), wg.nn.Linear(4, 3))
    x = wg.randn(5, 4)

    def value(x, n):
        return wg.mean(model(x) ** 2) * n

    def branching(x, n):
        found = wg.mean(model(x) ** 2)
        return found * n if found > 0 else found

    def gradients(x, n):
        return wg.autograd.grad(wg.sum(model(x) ** 2) * n, list(model.parameters()))

    functions = [value, branching, gradients]
    expected = {(f, n): bits(f(x[:n], 2.0)) for f in functions for n in (5, 3)}

    def work(seed):
        draw = random.Random(seed)
        for _ in range(15):
            i, n = draw.randrange(len(compiled)), draw.choice((5, 3))
            f = compiled[i]
            found = f(x[:n], n=2.0) if draw.random() < 0.5 else f(x[:n], 2.0)
            if bits(found) != expected[functions[i % 3], n]:
                return i, n
        return None

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(4):
            compiled = [wg.compile(f, check=check) for check in (None, 0, 1) for f in functions]
            with ThreadPoolExecutor(6) as pool:
                assert [*pool.map(work, range(6))] == [None] * 6
    finally:
        sys.setswitchinterval(before)
    assert not threads._eager
    for f in compiled[::3]:
        assert 1 <= f.report.recordings <= 2


def test_who_waits_to_look_holds_nobody_up(monkeypatch):
    """A function that runs eagerly calls a compiled one, while another thread records."""
    monkeypatch.setattr(threads, "PAUSE", 2.0)
    started, inner, outer = threading.Event(), wg.compile(wg.sin), wg.compile(wg.cos)

    @wg.compile
    def eager(x):
        started.set()
        while not threads._owner:
            time.sleep(1e-3)
        return inner(x)

    x = wg.ones(2)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(eager, x)
        assert started.wait(10)
        assert outer(x).tolist() == wg.cos(x).tolist()
        assert found.result().tolist() == wg.sin(x).tolist()
    assert "Event" in str(eager.report)
    for compiled in (inner, outer):
        assert compiled.report.recordings == 1
        assert not compiled.report._fallbacks


class Watchdog:
    def bark(self, number, frame):
        raise TimeoutError

    def howl(self, *given):
        self.bark(*given)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there is no such signal")
@pytest.mark.parametrize("name", ["bark", "howl"])
def test_what_a_handler_raises_while_a_program_runs_is_raised(name):
    """The function is not run again: the time may be up."""
    w = wg.asarray([1.0, 2.0], requires_grad=True)

    def step(x):
        w.grad = None
        loss = wg.sum(w / x)
        loss.backward()
        with wg.no_grad():
            w.sub_(w.grad)
        return loss

    def divided(*_):
        if armed:
            armed.clear()
            signal.raise_signal(signal.SIGUSR1)

    run, armed, one, zero = wg.compile(step, check=0), [], wg.ones(2), wg.zeros(2)
    before = signal.signal(signal.SIGUSR1, getattr(Watchdog(), name))
    try:
        with np.errstate(divide="call", invalid="call", call=divided):
            for _ in range(3):
                run(one)
            held = w.tolist()
            armed.append(True)
            with pytest.raises(TimeoutError):
                run(zero)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not armed
    assert w.tolist() == held
    assert "eagerly" not in str(run.report)
    assert run(one).tolist() == sum(held)


def test_what_a_handler_raises_beside_the_program_is_raised():
    """On the way into a program or out of it, where the function has run once already."""

    def handler(number, frame):
        raise TimeoutError("the time is up")

    def interrupted():
        handler(signal.SIGINT, sys._getframe())

    with pytest.raises(TimeoutError) as caught:
        interrupted()
    with pytest.raises(TimeoutError, match="the time is up"):
        failed(caught.value)
    with pytest.raises(ZeroDivisionError) as other:
        1 / 0  # noqa: B018
    assert failed(other.value).failed


def test_a_copy_that_an_interrupt_has_lost_keeps_no_function_from_being_recorded():
    def made():
        return wg.compile(lambda x: wg.sin(x) * 2)

    x, first = wg.ones(3), made()
    for _ in range(3):
        first(x)
    first._replays[0].pool.take()
    others = threading.get_ident() + 1  # a thread that has ended
    threads._eager[others] = 1
    second = made()
    for _ in range(3):
        assert same_bits(second(x).numpy(), first(x).numpy())
    assert "1 time," in str(second.report)
    assert "eagerly" not in str(second.report)
