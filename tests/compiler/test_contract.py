"""The contract of `wengert.compile`, point by point, as `docs/compile.rst` has it."""

import itertools
import random
import threading
import time
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler.capture.errors import CompileError, TraceError

X = wg.asarray([1.0, 2.0, 3.0])


def value(x: Any) -> Any:
    return x.detach().numpy().tolist()


class Trainer:
    """A step with Python state of several kinds."""

    def __init__(self) -> None:
        self.weight = wg.nn.Parameter(wg.ones(3))
        self.optimizer = wg.optim.Adam([self.weight], lr=0.1)
        self.steps, self.losses, self.scale = 0, [], 2.0
        self.hidden: Any = (wg.zeros(3), wg.zeros(()))
        self.log: list[float] = []

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = wg.sum(self.weight * x) * self.scale
        loss.backward()
        self.optimizer.step()
        return loss


def test_python_runs_while_recording_and_in_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    calls = []

    @wg.compile
    def f(x: Any) -> Any:
        note()
        return x * 2

    def note() -> None:
        time.sleep(0)
        marks.append(0)

    marks = Marks()
    for i in range(5):
        assert value(f(X + i)) == value((X + i) * 2)
        calls.append(marks.count)
    assert calls == [2, 3, 3, 3, 3]


class Marks:
    """Counts where the compiler does not look: in a global that code does not name."""

    def __init__(self) -> None:
        globals()["MAR" + "KS"] = itertools.count()

    def append(self, x: int) -> None:
        next(globals()["MAR" + "KS"])

    @property
    def count(self) -> int:
        return int(repr(globals()["MAR" + "KS"])[6:-1])


def test_a_training_step_is_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    trainer = Trainer()
    step = wg.compile(trainer.step)
    for _ in range(4):
        step(X)
    assert step.report.recordings == 1
    assert step.report.checks == 1


def test_plain_values_of_the_state_are_compared() -> None:
    trainer = Trainer()
    step, eager = wg.compile(trainer.step), Trainer()
    for scale in (2.0, 2.0, 3.0, 3.0, 2.0):
        trainer.scale = eager.scale = scale
        assert value(step(X)) == value(eager.step(X))
    assert step.report.recordings == 2
    assert "self.scale was 2.0 and is 3.0 now" in str(step.report)


def test_what_the_code_does_not_name_is_not_compared() -> None:
    trainer = Trainer()
    step = wg.compile(trainer.step)
    for i in range(5):
        trainer.log.append(step(X).item())
        trainer.steps = i
    assert step.report.recordings == 1


@pytest.mark.parametrize("kind", [1, 1.0, True, 0.0, -0.0])
def test_values_that_are_equal_and_of_other_types_differ(kind: Any) -> None:
    held = {"n": 1 if kind == 1 else 0.0}
    f = wg.compile(lambda x: wg.asarray(repr(held["n"]) == "1") & (x > 0))
    f(X), f(X)
    held["n"] = kind
    assert value(f(X)) == [repr(kind) == "1"] * 3


CHANGES = {
    "trainer.steps": "trainer.steps += 1",
    "trainer.losses": "trainer.losses.append(1)",
    "held['a']": "held['a'] = 3",
    "counter": "global counter; counter += 1",
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_python_values_are_errors_that_name_the_place(name: str) -> None:
    space = {"trainer": Trainer(), "held": {"a": 1}, "counter": 0}
    exec(f"def f(x):\n    {CHANGES[name]}\n    return x * 2", space)
    with pytest.raises(CompileError, match=r"(Return|make it a Tensor)") as raised:
        wg.compile(space["f"])(X)
    assert name in str(raised.value)


def test_a_tuple_of_tensors_is_replaced() -> None:
    class Net:
        def __init__(self) -> None:
            self.hidden = (wg.zeros(3), wg.zeros(()))

        def run(self, x: Any) -> Any:
            h, n = self.hidden
            h = wg.tanh(h + x)
            self.hidden = (h, n + 1)
            return h

    one, other = Net(), Net()
    run = wg.compile(one.run)
    for i in range(5):
        assert value(run(X * i)) == value(other.run(X * i))
        assert value(one.hidden[1]) == i + 1
    assert run.report.recordings == 2  # NumPy makes scalars of 0-d arrays


class Carried:
    pair = (wg.zeros(2), wg.ones(2))


def test_a_tuple_of_tensors_in_a_class_is_replaced() -> None:
    @wg.compile
    def step(x: Any) -> Any:
        first, second = Carried.pair
        Carried.pair = (second + x, first * 2.0)
        return wg.sum(second)

    Carried.pair = (wg.zeros(2), wg.ones(2))
    assert [step(wg.ones(2)).item() for _ in range(4)] == [2.0, 0.0, 8.0, 4.0]
    assert step.report.recordings == 1


@pytest.mark.parametrize(
    "draw",
    [
        random.random,
        np.random.random,
        lambda: generator.normal(),
    ],
)
def test_numbers_that_are_not_wengerts_are_errors(draw: Any) -> None:
    f = wg.compile(lambda x: x * draw())
    with pytest.raises(CompileError, match="draws from"):
        f(X)


generator = np.random.default_rng(0)


def test_a_value_that_escapes_is_an_error() -> None:
    class Hole:
        """An object written so that no attribute is seen."""

        __slots__ = ("held",)

        def __call__(self, x: Any) -> None:
            object.__setattr__(self, "he" + "ld", x)

    hole = Hole()

    def f(x: Any) -> Any:
        y = x * 2
        hole(y)
        return y + 1

    with pytest.raises(TraceError, match="escapes into an object or a closure"):
        wg.compile(f)(X)
    with pytest.raises(TraceError, match="which has ended"):
        print(hole.held * 2)


def test_the_check_tells_what_no_comparison_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALE", "2")
    import os

    f = wg.compile(lambda x: x * float(os.environ["SCALE"]))
    f(X)
    monkeypatch.setenv("SCALE", "3")
    with pytest.raises(CompileError, match="differs from the function"):
        f(X)
    assert value(f(X)) == value(X * 3)


def test_not_strict_runs_as_it_is_and_warns_once() -> None:
    @wg.compile(strict=False)
    def f(x: Any) -> Any:
        return x if wg.sum(x) > 0 else -x

    call = lambda: f(-X)
    with pytest.warns(RuntimeWarning, match=r"test_contract\.py, line") as told:
        assert value(call()) == value(X)
    assert told[0].lineno == call.__code__.co_firstlineno
    assert value(f(X)) == value(X)


def test_arrays_can_not_be_written_while_recorded() -> None:
    buffer = np.zeros(3, np.float32)
    view = buffer[:]

    def f(x: Any) -> Any:
        view[:] = 1
        y = x * wg.asarray(buffer)
        view[:] = 5
        return y

    with pytest.raises(CompileError, match=r"read-only|written|changed in place"):
        wg.compile(f)(X)
    assert buffer.flags.writeable
    assert buffer.tolist() == [0, 0, 0]


def test_an_array_of_the_state_is_read_in_each_call() -> None:
    buffer = np.zeros(3, np.float32)
    f = wg.compile(lambda x: x * wg.asarray(buffer) + buffer)
    for i in range(4):
        buffer[:] = i
        assert value(f(X)) == value(X * i + i)
    assert f.report.recordings == 1


def test_tensors_that_become_one_are_told() -> None:
    held = {"a": wg.ones(3), "b": wg.ones(3)}

    def f(x: Any) -> Any:
        held["a"].mul_(x)
        return held["b"] * 1

    g = wg.compile(f)
    g(X), g(X)
    held["b"] = held["a"]
    assert value(g(X)) == value(X**3)


def test_a_function_that_raises_leaves_what_it_has_done() -> None:
    held = wg.zeros(3)

    def f(x: Any, n: int) -> Any:
        held.add_(x)
        if n:
            raise ValueError("no")
        return held * 1

    g = wg.compile(f)
    for n in (0, 1, 0, 1, 0):
        if n:
            with pytest.raises(ValueError, match="no"):
                g(X, n)
        else:
            g(X, n)
    assert value(held) == value(X * 5)


def test_too_large_a_state_names_its_branch() -> None:
    held = {"data": [float(i) for i in range(20_000)]}
    with pytest.raises(CompileError, match=r"held\['data'\]"):
        wg.compile(lambda x: x * held["data"][0])(X)


def test_what_is_not_looked_into_is_reported() -> None:
    lock = threading.Lock()

    class Held:
        def __init__(self) -> None:
            self.source = threading.Lock()

    held = Held()
    f = wg.compile(lambda x: x * 2 if held.source and lock else x)
    f(X)
    assert "not looked into: held.source" in str(f.report)
