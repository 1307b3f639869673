"""Interrupted calls leave what there was before, or what the function leaves: no mixture."""

import gc
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import wengert as wg
from tests.compiler.interrupting import Interrupt, InterruptError
from wengert.compiler import compiled as functions

pytestmark = [
    pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer is at work already"),
    pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value"),
    pytest.mark.filterwarnings("ignore:.*runs as it is"),
]


class Mean(wg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", wg.zeros(5))

    def forward(self, x: Any) -> Any:
        with wg.no_grad():
            self.mean = self.mean * 0.9 + wg.mean(x, axis=0) * 0.1
        return x - self.mean


class Training:
    """A step with a buffer, random numbers, and an optimiser's state.

    Parameters
    ----------
    kind : {"plain", "large", "refused", "fails"}
        Whether the step can be compiled, with large parameters perhaps, reads a value, or fails
        where a program of it is run.
    """

    def __init__(self, kind: str) -> None:
        wg.manual_seed(0)
        last = 4000 if kind == "large" else 2
        layers = wg.nn.Linear(4, 5), Mean(), wg.nn.Dropout(0.5), wg.nn.Linear(5, last)
        self.model, self.kind = wg.nn.Sequential(*layers), kind
        self.optimizer = wg.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        y = self.model(x)
        if self.kind == "refused" and y[0, 0].item() > 1e9:
            y = y * 2
        loss = wg.sum(y * y)
        if self.kind == "fails":
            try:
                loss = loss + wg.sum(wg.linalg.inv(x[:2, :2]))
            except np.linalg.LinAlgError:
                loss = loss * 2
        loss.backward()
        self.optimizer.step()
        return loss

    def _places(self) -> Iterator[tuple[Any, str]]:
        for each in (*self.model.parameters(), *self.model.buffers()):
            yield each, "_array"
        for parameter in self.model.parameters():
            yield parameter, "grad"
        for state in self.optimizer.state.values():
            yield from ((state, name) for name in state)

    def left(self) -> list[Any]:
        """Copies of all that a step changes."""
        found = []
        for owner, name in self._places():
            x = owner[name] if isinstance(owner, dict) else getattr(owner, name)
            x = x if x is None or isinstance(x, int) else np.array(x)
            found.append((type(x), None if name == "grad" and x is None else x))
        return [*found, (dict, wg.get_rng_state())]

    def put(self, left: list[Any]) -> None:
        """Put such copies back, into the objects that there are."""
        *parts, (_, random) = left
        for (owner, name), (_, x) in zip(list(self._places()), parts, strict=True):
            x = x.copy() if isinstance(x, np.ndarray) else x
            if isinstance(owner, dict):
                owner[name] = x
            elif name == "grad":
                owner.grad = None if x is None else wg.asarray(x)
            else:
                setattr(owner, name, x)
        wg.set_rng_state(random)


def alike(one: list[Any], other: list[Any]) -> bool:
    return repr(one) == repr(other) and all(
        kind is other_kind and (not isinstance(x, np.ndarray) or x.tobytes() == y.tobytes())
        for (kind, x), (other_kind, y) in zip(one, other, strict=True)
    )


def batch(training: Training, i: int) -> Any:
    x = np.random.default_rng(i).normal(size=(6, 4)).astype("float32")
    if training.kind == "fails" and i > 3:
        x[:2, :2] = 0.0
    return wg.asarray(x)


#: What is called: what kind of training, its options, whether it was compiled before, and how many
#: of the places are tried.
CALLS = {
    "recording": ("plain", {}, False, 5),
    "recording what is refused": ("refused", {"strict": False}, False, 5),
    "check": ("plain", {"check": 1}, True, 10),
    "replay": ("plain", {"check": 0}, True, 40),
    "replay in place": ("large", {"check": 0}, True, 60),
    "refused call": ("refused", {"strict": False}, True, 10),
    "program that fails": ("fails", {"check": 0}, True, 100),
    "check of a program that fails": ("fails", {"check": 1}, True, 10),
}

#: Interrupts of a call, by the most of it above: CI's thorough run has more.
MANY = 5 if settings().max_examples > 20 else 1


@pytest.mark.sampled
@pytest.mark.parametrize("times", [0.4, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CALLS)
def test_interrupted_calls_leave_one_state_whole(
    name: str, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, options, before, most = CALLS[name]
    training = Training(kind)
    compiled = wg.compile(training.step, **options) if before else None
    for i in range(4):
        (compiled or training.step)(batch(training, i))
    if kind == "large":  # as in a program of one thread, where warnings are shown
        monkeypatch.setattr(sys, "_current_frames", dict.fromkeys([0]).copy)
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
    threshold = gc.get_threshold()
    start, x, following = training.left(), batch(training, 4), batch(training, 5)
    expected = [start]
    for each in (x, following, following):
        training.step(each)
        expected.append(training.left())
    gone = [(type(None), None) if at in _gradients(training) else y for at, y in enumerate(start)]

    def call(at: int) -> Interrupt:
        training.put(start)
        step = compiled or wg.compile(training.step, **options)
        weight = training.model[3].weight
        where = weight._array.ctypes.data
        with Interrupt(at) as interrupt:
            try:
                step(x)
            except InterruptError:
                left = training.left()
            else:
                left = training.left()
        reached = [i for i in range(2) if alike(left, expected[i])]
        assert reached or alike(left, gone), interrupt.where
        after = expected[reached[0] + 1] if reached else expected[1]
        if kind == "large" and reached == [1]:
            assert weight._array.ctypes.data == where
        assert gc.get_threshold() == threshold, interrupt.where
        assert not functions._eager.get(), interrupt.where
        assert not functions._lock._is_owned(), interrupt.where
        gc.collect()  # where the copy of a program is lost
        step(following if reached == [1] else x)
        assert alike(training.left(), after), interrupt.where
        return interrupt

    call(0)
    count = call(0).count
    assert count > 30
    for at in range(1, count + 1, math.ceil(count / (times * most))):
        if not call(at).where:  # the way is shorter now and then
            break


def _gradients(training: Training) -> list[int]:
    return [i for i, (_, name) in enumerate(training._places()) if name == "grad"]
