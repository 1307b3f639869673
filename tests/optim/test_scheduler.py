"""Schedules as objects: their states, rates that users change, groups that are added."""

import copy
import json
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.optim.test_lr_scheduler import (
    ALL,
    CASES,
    COMBINED,
    IDS,
    advance,
    figure,
    make,
    ours,
    theirs,
)
from wengert import nn, optim
from wengert.optim import lr_scheduler


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("case", ALL)
@pytest.mark.filterwarnings("ignore:wg.compile has recorded")
def test_a_compiled_step_steps_the_schedule_too(case: Any, kind: str) -> None:
    courses = []
    for compiles in (False, True):
        optimiser = ours(kind)
        scheduler = make(lr_scheduler, optimiser, case)
        weights = [group["params"][0] for group in optimiser.param_groups]

        def step(
            x: Any, *given: Any, optimiser: Any = optimiser, scheduler: Any = scheduler
        ) -> Any:
            optimiser.zero_grad()
            loss = wg.sum(weights[0] * x + weights[1] ** 2)  # noqa: B023
            loss.backward()
            optimiser.step()
            scheduler.step(*given)
            return loss

        call: Any = wg.compile(step, cache_size=40) if compiles else step
        course = []
        for epoch in range(30):
            given = (figure(epoch),) if "plateau" in type(scheduler).__name__.lower() else ()
            loss = call(wg.asarray([0.5, 1.0 + epoch % 3]), *given)
            rates = scheduler.get_last_lr()
            groups = [
                {k: v for k, v in group.items() if k != "params"}
                for group in optimiser.param_groups
            ]
            course.append((loss.tolist(), *[w.tolist() for w in weights], rates, repr(groups)))
        courses.append((course, repr(scheduler.state_dict())))
        if compiles and not case[0].startswith("ReduceLROnPlateau"):
            assert "eagerly" not in str(call.report), call.report
    assert courses[0] == courses[1]


@pytest.mark.whole
@pytest.mark.parametrize("case", ALL)
def test_a_state_that_does_not_fit_changes_nothing(case: Any) -> None:
    scheduler = make(lr_scheduler, ours(), case)
    before, saved = repr(scheduler.state_dict()), scheduler.state_dict()
    wrongs: Any = ({}, {"_last_lr": [0.1]}, {**saved, "last_epochs": 7}, None)
    if "ReduceLROnPlateau" in case:
        wrongs = (*wrongs, {**saved, "_last_lr": [0.1]})
    for wrong in wrongs:
        with pytest.raises((TypeError, ValueError), match="state"):
            scheduler.load_state_dict(wrong)
        assert repr(scheduler.state_dict()) == before


#: Ways to take a run up again.
TAKEN_UP = (
    *("optimiser, schedule", "schedule, optimiser"),
    *("optimiser before the schedule is made", "no optimiser"),
)


def goes_on(case: Any, way: str, done: int) -> bool:
    """Whether a run that was stopped has the rates of one that was not."""
    optimiser = ours()
    scheduler = make(lr_scheduler, optimiser, case)
    advance(optimiser, scheduler, range(done))
    plain = json.loads(json.dumps(scheduler.state_dict()))
    states = copy.deepcopy((optimiser.state_dict(), plain))
    expected = advance(optimiser, scheduler, range(done, 50))
    other = ours()
    if way == "optimiser before the schedule is made":
        other.load_state_dict(states[0])
    again = make(lr_scheduler, other, case)
    if way == "optimiser, schedule":
        other.load_state_dict(states[0])
    again.load_state_dict(states[1])
    if way == "schedule, optimiser":
        other.load_state_dict(states[0])
    return expected == advance(other, again, range(done, 50))


@pytest.mark.whole
@pytest.mark.parametrize("way", TAKEN_UP)
def test_a_stopped_run_goes_on_with_its_rates(way: str) -> None:
    named = [*zip(CASES, IDS, strict=True), *zip(COMBINED, COMBINED, strict=True)]
    assert not [
        name for case, name in named if not all(goes_on(case, way, done) for done in (1, 12, 33))
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("case", ALL)
def test_pytorchs_step_is_loaded(case: Any) -> None:
    torch = pytest.importorskip("torch")
    first, second = theirs(torch), ours()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        scheduler = make(torch.optim.lr_scheduler, first, case)
        other = make(lr_scheduler, second, case)
        advance(first, scheduler, range(23))
        advance(second, other, range(2))
        second.load_state_dict(first.state_dict())
        theirs_state = scheduler.state_dict()
        other.load_state_dict({name: theirs_state[name] for name in other.state_dict()})
        expected = advance(first, scheduler, range(23, 50))
        np.testing.assert_allclose(advance(second, other, range(23, 50)), expected, rtol=1e-10)


def test_a_scheduler_of_ones_own() -> None:
    class Halved(lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            return [rate / (1 + self.last_epoch) for rate in self.base_lrs]

    optimiser = ours()
    optimiser.step()
    scheduler = Halved(optimiser)
    scheduler.step()
    assert scheduler.get_last_lr() == [0.05, 0.025]
    with pytest.raises(NotImplementedError, match="defines neither lr_factor nor get_lr"):
        lr_scheduler.LRScheduler(optimiser)
    scheduler.step()  # the optimiser is as it was

    class Third(lr_scheduler.LRScheduler):
        def lr_factor(self, step: int) -> float:
            return 1 / 3

    class Higher(lr_scheduler.CosineAnnealingLR):
        def get_lr(self) -> list[float]:
            return [rate + 1 for rate in super().get_lr()]

    optimiser = ours()
    assert Third(optimiser).get_last_lr() == [0.1 / 3, 0.05 / 3]
    scheduler = Higher(ours(), 10)
    assert scheduler.get_last_lr() == scheduler.rates(0) == [1.1, 1.05]
    assert not scheduler._multiplies and scheduler.last_epoch == 0


def test_a_rate_that_is_a_rounding_below_zero_is_loaded() -> None:
    """PyTorch's schedules may end there."""
    optimiser = ours()
    scheduler = lr_scheduler.LinearLR(optimiser, 1 / 3, 0.0, 5)
    advance(optimiser, scheduler, range(5))
    assert scheduler.get_last_lr() == [0.0, 0.0]
    state = optimiser.state_dict()
    for group in state["param_groups"]:
        group["lr"] = -1e-18
    other = ours()
    other.load_state_dict(state)
    assert [group["lr"] for group in other.param_groups] == [-1e-18, -1e-18]
    state["param_groups"][0]["initial_lr"] = -0.1
    with pytest.raises(ValueError, match=r"Invalid learning rate: -0\.1"):
        other.load_state_dict(state)


def test_going_on_from_an_epoch() -> None:
    optimiser = ours()
    with pytest.raises(KeyError, match=r"initial_lr.*param_groups\[0\]"):
        lr_scheduler.ExponentialLR(optimiser, 0.5, last_epoch=3)
    first = lr_scheduler.ExponentialLR(optimiser, 0.5)
    advance(optimiser, first, range(4))
    other = ours()
    other.load_state_dict(optimiser.state_dict())
    second = lr_scheduler.ExponentialLR(other, 0.5, last_epoch=3)
    assert second.last_epoch == first.last_epoch == 4
    assert second.get_last_lr() == first.get_last_lr()
    assert second.base_lrs == (0.1, 0.05)
    assert advance(other, second, range(3)) == advance(optimiser, first, range(3))


# -- who sets the rates ----------------------------------------------------------------------------


def after(steps: int, make: Any = lambda o: lr_scheduler.StepLR(o, 1, 0.5)) -> tuple[Any, Any]:
    optimiser = ours()
    scheduler = make(optimiser)
    advance(optimiser, scheduler, range(steps))
    return optimiser, scheduler


def test_a_rate_that_the_user_has_set_is_not_overwritten() -> None:
    optimiser, scheduler = after(2)
    optimiser.param_groups[1]["lr"] = 0.3
    match = r"StepLR has set the rate of group 1 to 0.0125 in step 2, and it is 0.3 now.*base_lrs"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=match):
            scheduler.step()
    assert [group["lr"] for group in optimiser.param_groups] == [0.025, 0.3]
    assert scheduler.last_epoch == 2
    scheduler.base_lrs = (0.1, 1.2)
    assert optimiser.param_groups[1]["lr"] == 0.3
    scheduler.step()
    assert [group["lr"] for group in optimiser.param_groups] == [0.0125, 0.15]


def test_a_rate_that_was_changed_before_the_schedule_is_not_overwritten() -> None:
    optimiser, _ = after(2)
    optimiser.param_groups[0]["lr"] = 1.0
    scheduler = lr_scheduler.CosineAnnealingLR(optimiser, 5)
    assert optimiser.param_groups[0]["lr"] == 1.0
    with pytest.raises(RuntimeError, match=r"set the rate of group 0 .*it is 1.0 now"):
        scheduler.step()


def test_an_optimiser_that_is_loaded_without_its_schedule_is_told() -> None:
    optimiser, _ = after(3)
    other, again = after(0)
    other.load_state_dict(optimiser.state_dict())
    with pytest.raises(RuntimeError, match=r"to 0.1 in step 0, and it is 0.0125.*load the sched"):
        again.step()


def test_initial_rates_are_the_loaded_optimisers() -> None:
    optimiser, scheduler = after(0)
    scheduler.base_lrs = (0.8, 0.4)
    advance(optimiser, scheduler, range(2))
    for first in (0, 1):
        other, again = after(0)
        pairs = [(other, optimiser), (again, scheduler)]
        for mine, held in pairs[:: 1 if first else -1]:
            mine.load_state_dict(held.state_dict())
        again.step()
        assert again.get_last_lr() == [0.1, 0.05]


def test_a_group_that_is_added_needs_its_initial_rate() -> None:
    optimiser, scheduler = after(2)
    optimiser.add_param_group({"params": nn.Parameter(wg.ones(1)), "lr": 0.2, "initial_lr": 0.8})
    scheduler.step()
    assert scheduler.get_last_lr() == [0.0125, 0.00625, 0.1]
    optimiser.add_param_group({"params": nn.Parameter(wg.ones(1)), "lr": 0.2})
    with pytest.raises(KeyError, match=r"param_groups\[3\].*'initial_lr'"):
        scheduler.step()


def test_a_group_more_for_a_plateau() -> None:
    for least in (0.01, [0.01, 0.02]):
        optimiser = ours()
        scheduler = lr_scheduler.ReduceLROnPlateau(optimiser, patience=0, min_lr=least)
        optimiser.add_param_group({"params": nn.Parameter(wg.ones(1))})
        if least == 0.01:
            scheduler.step(wg.asarray(1.0))
            scheduler.step(2.0)
            assert scheduler.get_last_lr() == pytest.approx([0.01, 0.01, 0.01])
        else:
            with pytest.raises(ValueError, match="min_lr has 2 values, param_groups has 3"):
                scheduler.step(1.0)
            assert scheduler.last_epoch == 0


def test_a_group_is_added_later() -> None:
    def optimiser(*make: Any) -> list[Any]:
        made = optim.SGD([nn.Parameter(wg.ones(1))], lr=1.0)
        schedules = [one(made) for one in make]
        made.step()
        group = {"params": [nn.Parameter(wg.ones(1))], "lr": 0.5, "initial_lr": 0.5}
        made.add_param_group(group)
        return schedules

    def halves(optimizer: Any) -> Any:
        return lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)

    def decays(optimizer: Any) -> Any:
        return lr_scheduler.ExponentialLR(optimizer, gamma=0.5)

    (alone,) = optimiser(halves)
    alone.step()
    assert alone.get_last_lr() == [0.5, 0.25]
    one, _other = optimiser(halves, decays)
    with pytest.raises(RuntimeError, match="lacks a group that was added"):
        one.step()
    assert halves(one.optimizer).optimizer is one.optimizer  # no error until its step
    one.base_lrs = one.base_lrs
    one.step()
    assert one.get_last_lr() == [0.5, 0.25]
    for given in (1.0, [1.0]):
        (cycle,) = optimiser(
            lambda o, m=given: lr_scheduler.OneCycleLR(o, m, total_steps=4, cycle_momentum=False)
        )
        if given == 1.0:
            cycle.step()
            assert len({*cycle.get_last_lr()}) == 1
        else:
            with pytest.raises(ValueError, match="same length as"):
                cycle.step()
