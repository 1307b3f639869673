"""Nothing is stale: whatever changes between two calls, a compiled function does what it says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.capture.changing import KINDS, PLACES, Held, agree, compiled_of


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_is_changed_is_seen(place: Callable[[Any], Held], kind: str) -> None:
    first, second, changes = KINDS[kind]
    for what, change in changes.items():
        thing = first()
        held = place(thing)
        run = compiled_of(held)
        assert run.report.recordings, f"{what}: {run.report}"
        change(thing)
        agree(run, held, what)
    held = place(first())
    run = compiled_of(held)
    assert run.report.recordings, run.report
    held.put(second())
    agree(run, held, "another of its kind")
    held.put(first())
    agree(run, held, "as it was")
    for other, (made, _, _) in KINDS.items():
        held.put(made())
        agree(run, held, f"a {other}")
    if held.take is not None:
        held.take()
        agree(run, held, "nothing")
        held.put(second())
        agree(run, held, "something again")


# -- what is not guarded ---------------------------------------------------------------------------


class Trainer:
    """What people write: a step that is compiled, in an object with much else in it."""

    def __init__(self) -> None:
        wg.manual_seed(0)
        self.model = wg.nn.Linear(3, 1)
        self.optimizer = wg.optim.SGD(self.model.parameters(), lr=0.1)
        self.epoch = 0
        self.losses: list[float] = []
        self.batches = iter([wg.ones(2, 3)] * 8)
        self.rng = np.random.default_rng(0)

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = wg.sum(self.model(x) ** 2)
        loss.backward()
        self.optimizer.step()
        return loss

    compiled = wg.compile(step)

    def train(self, step: Callable[[Any], Any]) -> list[float]:
        for x in self.batches:
            self.epoch += 1
            self.losses.append(step(x).item())
        return self.losses


def test_what_the_code_does_not_name_may_change() -> None:
    one, two = Trainer(), Trainer()
    assert one.train(one.step) == two.train(two.compiled)
    assert two.compiled.report.recordings <= 2, two.compiled.report
    assert "ran eagerly" not in str(two.compiled.report)


def test_models_and_optimisers_as_arguments() -> None:
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        loss = wg.sum(model(x) ** 2)
        loss.backward()
        optimizer.step()
        return loss

    def pairs() -> list[tuple[Any, Any]]:
        wg.manual_seed(1)
        models = [wg.nn.Linear(3, 2), wg.nn.Linear(3, 2), wg.nn.Linear(3, 4)]
        return [(model, wg.optim.Adam(model.parameters(), lr=0.1)) for model in models]

    run = wg.compile(step)
    for i in range(12):
        if not i:
            ones, twos = pairs(), pairs()
        if i == 8:
            for optimizer in (ones[0][1], twos[0][1]):
                optimizer.param_groups[0]["lr"] = 0.5
        x = wg.ones(2, 3) * i
        assert run(*ones[i % 3], x).tolist() == step(*twos[i % 3], x).tolist()
    assert run.report.recordings <= 5, run.report


class Owner:
    """Holds a raw array."""

    array: Any = None


@pytest.mark.parametrize(
    ("how", "recordings"),
    [
        (lambda owner, x: x * owner.array, 1),
        (lambda owner, x: x * np.sin(owner.array[:1]) + wg.asarray(owner.array), 1),
        (lambda owner, x: x * owner.array if owner.array[0] > 0 else x, 3),
        (lambda owner, x: x * float(owner.array.tolist()[1]), 3),
        (lambda owner, x: (np.negative(owner.array, out=owner.array), x * owner.array)[1], 0),
    ],
    ids=["an operand", "computed with", "a branch", "read", "written into"],
)
def test_raw_arrays_are_inputs_unless_they_are_read(how: Any, recordings: int) -> None:
    found = []
    for compiled in (False, True):
        owner = Owner()
        owner.array = np.asarray([1.0, 2.0, 3.0], dtype=np.float32)

        def function(x: Any, owner: Any = owner) -> Any:
            return how(owner, x)

        run = wg.compile(function) if compiled else function
        for i in range(8):
            if i == 3:
                owner.array += 1.0
            if i == 5:
                owner.array = owner.array * -3.0
            answer = run(wg.ones(3))
            found.append((answer.tolist(), owner.array.tolist()))
    assert found[:8] == found[8:]
    assert run.report.recordings == recordings, run.report


def test_a_hyper_parameter_that_comes_later() -> None:
    """Long after the calls that are recorded and checked."""

    class Times(wg.optim.SGD):
        def step(self, closure: Any = None) -> None:
            with wg.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p -= group.get("times", 1.0) * p.grad

    def training() -> tuple[wg.Tensor, wg.optim.Optimizer, Any]:
        w = wg.nn.Parameter(wg.ones(3))
        optimizer = Times([w], lr=0.1)

        def step(x: Any) -> None:
            optimizer.zero_grad()
            wg.sum(w * x).backward()
            optimizer.step()

        return w, optimizer, step

    (w, one, eager), (v, other, step) = training(), training()
    compiled = wg.compile(step)
    for turn in range(9):
        if turn == 6:
            one.param_groups[0]["times"] = other.param_groups[0]["times"] = 3.0
        for each in (eager, compiled):
            each(wg.asarray([0.0, 1.0, 2.0]))
        np.testing.assert_array_equal(v.detach().numpy(), w.detach().numpy())
