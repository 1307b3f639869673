"""Schedules beside PyTorch's, how they are combined, and what is refused."""

import inspect
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import walk
from wengert import nn, optim
from wengert.optim import lr_scheduler


class Slower:
    """A function of the step with a number of its own."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, epoch: int) -> float:
        return 1 / (1 + self.rate * epoch)


Scheduler = tuple[str, dict[str, Any]]
CASES: list[Scheduler] = [
    ("LambdaLR", {"lr_lambda": lambda t: 0.95**t}),
    ("LambdaLR", {"lr_lambda": [Slower(0.1), Slower(0.3)]}),
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 1, "gamma": 0.9}),
    ("MultiStepLR", {"milestones": [3, 20, 20, 41], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 30}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 40}),
    ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.001}),
    ("CosineAnnealingLR", {"T_max": 100}),
    ("CosineAnnealingWarmRestarts", {"T_0": 5}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 3, "eta_min": 0.002}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 60}),
    ("OneCycleLR", {"max_lr": [0.5, 1.0], "epochs": 20, "steps_per_epoch": 4, "pct_start": 0.5}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 70, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 61, "cycle_momentum": False}),
    ("ReduceLROnPlateau", {"patience": 3}),
    ("ReduceLROnPlateau", {"mode": "max", "patience": 1, "threshold_mode": "abs", "factor": 0.5}),
    ("ReduceLROnPlateau", {"mode": "max", "patience": 2, "cooldown": 3, "min_lr": [0.01, 0.02]}),
    ("ReduceLROnPlateau", {"patience": 0, "threshold_mode": "abs", "threshold": 0.3, "eps": 0.01}),
]
IDS = [f"{name}{i}" for i, (name, _) in enumerate(CASES)]
COMBINED = {
    "sequence": lambda lib, o: lib.SequentialLR(
        o,
        [
            lib.LinearLR(o, 0.1, total_iters=5),
            lib.CosineAnnealingLR(o, 20),
            lib.StepLR(o, 4, gamma=0.5),
        ],
        [5, 30],
    ),
    "restarts": lambda lib, o: lib.SequentialLR(
        o, [lib.ExponentialLR(o, 0.9), lib.CosineAnnealingWarmRestarts(o, 6)], [10]
    ),
    "warming up": lambda lib, o: lib.SequentialLR(
        o,
        [
            lib.ConstantLR(o, 0.5, total_iters=50),
            lib.ExponentialLR(o, 0.9),
        ],
        [12],
    ),
    "cycle first": lambda lib, o: lib.SequentialLR(
        o, [lib.OneCycleLR(o, 0.5, 20, cycle_momentum=False), lib.ExponentialLR(o, 0.9)], [10]
    ),
    "cycle after warming up": lambda lib, o: lib.SequentialLR(
        o, [lib.LinearLR(o, 0.1, total_iters=5), lib.OneCycleLR(o, [0.5, 1.0], 60)], [5]
    ),
}


def made(lib: Any, weight: Any, name: str) -> Any:
    """An optimiser of two groups, of either library."""
    weights = [weight() for _ in range(2)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimiser = getattr(lib, name)(
        [{"params": [weights[0]]}, {"params": [weights[1]], "lr": 0.05}], lr=0.1, **options
    )
    for each in weights:
        each.grad = each.detach() * 0
    return optimiser


def ours(name: str = "SGD") -> Any:
    return made(optim, lambda: nn.Parameter(wg.ones(2)), name)


def theirs(torch: Any, name: str = "SGD") -> Any:
    return made(torch.optim, lambda: torch.ones(2, requires_grad=True), name)


def figure(epoch: int) -> float:
    return round(2 + math.cos(0.7 * epoch) + epoch % 5, 1)


def advance(optimiser: Any, scheduler: Any, epochs: Any) -> list[list[float]]:
    rates = []
    for epoch in epochs:
        optimiser.step()
        if "ReduceLROnPlateau" in type(scheduler).__name__:
            scheduler.step(figure(epoch))
        else:
            scheduler.step()
        momenta = [g.get("momentum", g.get("betas")) for g in optimiser.param_groups]
        flat = np.ravel(momenta).tolist()
        rates.append([*[g["lr"] for g in optimiser.param_groups], *flat])
        assert list(scheduler.get_last_lr()) == rates[-1][:2]
    return rates


def make(lib: Any, optimiser: Any, case: Any) -> Any:
    if isinstance(case, str):
        return COMBINED[case](lib, optimiser)
    name, options = case
    return getattr(lib, name)(optimiser, **options)


ALL = [pytest.param(case, id=name) for case, name in zip(CASES, IDS, strict=True)]
ALL += [pytest.param(name, id=name) for name in COMBINED]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("case", ALL)
def test_sixty_epochs_have_pytorchs_rates(case: Any, kind: str) -> None:
    torch = pytest.importorskip("torch")
    optimisers = ours(kind), theirs(torch, kind)
    libraries = lr_scheduler, torch.optim.lr_scheduler
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        schedulers = [make(*each, case) for each in zip(libraries, optimisers, strict=True)]
        for mine, yours in zip(optimisers[0].param_groups, optimisers[1].param_groups, strict=True):
            assert mine["lr"] == pytest.approx(yours["lr"], rel=1e-12)
        found, expected = (
            advance(*pair, range(60)) for pair in zip(optimisers, schedulers, strict=True)
        )
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)
    for group, other in zip(optimisers[0].param_groups, optimisers[1].param_groups, strict=True):
        kernels = {"foreach", "fused", "capturable", "differentiable", "maximize"}
        limits = {"max_lr", "min_lr", "base_momentum", "max_momentum"}  # here the schedule has them
        assert group.keys() == other.keys() - kernels - limits


GIVEN: list[tuple[str, dict[str, Any], list[float]]] = [
    ("StepLR", {"step_size": 3}, [5, 0]),
    ("MultiStepLR", {"milestones": [2, 4]}, [3, 9]),
    ("ConstantLR", {}, [3, 9]),
    ("LinearLR", {}, [3, 9]),
    ("ExponentialLR", {"gamma": 0.5}, [3, 0]),
    ("CosineAnnealingLR", {"T_max": 5}, [3, 9]),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}, [0.5, 7.25, 2]),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2}, [0.5, 7.25, 30.5]),
    ("LambdaLR", {"lr_lambda": lambda t: 1 / (t + 1)}, [3, 1]),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options", "epochs"), GIVEN)
def test_a_given_epoch(name: str, options: dict[str, Any], epochs: list[float]) -> None:
    torch = pytest.importorskip("torch")
    optimisers = ours(), theirs(torch)
    libraries = lr_scheduler, torch.optim.lr_scheduler
    for optimiser in optimisers:
        optimiser.step()
    pairs = zip(libraries, optimisers, strict=True)
    schedulers = [getattr(lib, name)(o, **options) for lib, o in pairs]
    for epoch in epochs:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            for scheduler in schedulers:
                scheduler.step(epoch)
        found, expected = (each.get_last_lr() for each in schedulers)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_two_schedules_of_factors_multiply() -> None:
    def make(optimiser: Any) -> Any:
        return [
            lr_scheduler.LinearLR(optimiser, 0.25, total_iters=4),
            lr_scheduler.CosineAnnealingLR(optimiser, 10),
        ]

    optimiser = ours()
    pair = make(optimiser)
    for t in range(1, 8):
        optimiser.step()
        for each in pair:
            each.step()
        expected = 0.1 * (0.25 + 0.75 * min(t, 4) / 4) * (1 + math.cos(math.pi * t / 10)) / 2
        assert optimiser.param_groups[0]["lr"] == pytest.approx(expected, rel=1e-14)
        assert pair[0].get_last_lr() == pair[1].get_last_lr()
    other = ours()
    again = make(other)
    for mine, theirs in zip((*again[::-1], other), (*pair[::-1], optimiser), strict=True):
        mine.load_state_dict(theirs.state_dict())
    for each in (*pair, *again):
        each.step()
    assert again[0].get_last_lr() == pair[0].get_last_lr()


WITH_OTHERS = {
    "least": lambda o: lr_scheduler.CosineAnnealingLR(o, 10, eta_min=0.01),
    "cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.3, 10),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", WITH_OTHERS)
def test_schedules_that_do_not_multiply_are_refused(name: str) -> None:
    makers = [lambda o: lr_scheduler.StepLR(o, 1), WITH_OTHERS[name]]
    for order in (makers, makers[::-1]):
        optimiser = ours()
        pair = [make(optimiser) for make in order]
        rates = [group["lr"] for group in optimiser.param_groups]
        optimiser.step()
        with pytest.raises(RuntimeError, match="SequentialLR"):
            pair[0].step()  # a cycle that is made later takes the place of a schedule before it
        assert [group["lr"] for group in optimiser.param_groups] == rates
        assert pair[0].last_epoch == 0


def test_a_schedule_within_another_is_not_stepped() -> None:
    optimiser = ours()
    parts = [lr_scheduler.ConstantLR(optimiser), lr_scheduler.StepLR(optimiser, 1)]
    scheduler = lr_scheduler.SequentialLR(optimiser, parts, [2])
    optimiser.step()
    with pytest.raises(
        RuntimeError, match=r"ConstantLR goes with no other schedule here.*taken its place"
    ):
        parts[0].step()
    scheduler.step()


#: Calls with an optimiser of one group, and what their errors say.
REFUSED = r"""
LambdaLR(o, [abs, abs]) | ^lr_lambda must .*2 values
LambdaLR(o, 0.5) | not callable
CosineAnnealingWarmRestarts(o, 0) | T_0.*got 0
CosineAnnealingWarmRestarts(o, 1, 0) | T_mult
CosineAnnealingWarmRestarts(o, 5.5) | positive integer T_0, but got 5.5
CosineAnnealingWarmRestarts(o, 5, 1.5) | positive integer T_mult
OneCycleLR(o, 1.0) | either total_steps OR
OneCycleLR(o, 1.0, 0) | total_steps, but got 0
OneCycleLR(o, 1.0, 9.5) | positive integer total_steps
OneCycleLR(o, 1.0, None, 2, 0) | got 0
OneCycleLR(o, 1.0, 9, pct_start=2.0) | pct_start
OneCycleLR(o, 1.0, 10, pct_start=0.1) | a phase none
OneCycleLR(o, 1.0, 9, anneal_strategy="x") | not .x
OneCycleLR(o, [1.0, 1.0], 9) | ^max_lr must have
OneCycleLR(o, 1.0, 9, div_factor=0.0) | positive div_factor
OneCycleLR(o, 1.0, 9, final_div_factor=0.0) | positive final_div_factor
ReduceLROnPlateau(o, "x") | not 'x' and 'rel'
ReduceLROnPlateau(o, factor=1.0) | Factor
ReduceLROnPlateau(o, threshold_mode="x") | not 'min' and 'x'
ReduceLROnPlateau(o, min_lr=[1, 1]) | min_lr .*2 values
SequentialLR(o, [ReduceLROnPlateau(o)], []) | functions of the step, .*another ReduceLROnPlateau
SequentialLR(o, [StepLR(ours(), 1)], []) | same optimizer, .*another StepLR
SequentialLR(o, [StepLR(o, 1)], [3]) | a milestone between two schedulers, .* 1 for 1
CosineAnnealingWarmRestarts(o, 1).step(-1) | negative
LinearLR(o, total_iters=0) | positive total_iters
LinearLR(o, 0.0) | positive start_factor
LinearLR(o, 1.5) | start_factor from 0 to 1
LinearLR(o, end_factor=-0.5) | end_factor from 0 to 1
ConstantLR(o, 1.5) | factor from 0 to 1
StepLR(o, 0) | positive step_size, but got 0
CosineAnnealingLR(o, 0) | positive T_max, but got 0
"""


def test_bad_input() -> None:
    def check(name: str, call: str, says: str) -> None:
        optimiser = optim.SGD([nn.Parameter(wg.ones(1))], lr=1.0, momentum=0.9)
        with pytest.raises((TypeError, ValueError), match=says):
            eval(call, {**vars(lr_scheduler), "o": optimiser, "ours": ours})
        (group,) = optimiser.param_groups
        assert group["lr"] == 1 and group["momentum"] == 0.9
        assert "initial_lr" not in group or not re.search("positive|from 0", says)

    rows = [line.split(" | ") for line in REFUSED.strip().splitlines()]
    walk([(call.partition("(")[0], call, says) for call, says in rows], check, whole=True)


def test_schedules_of_other_initial_rates_are_not_joined() -> None:
    """PyTorch's keep the rates that they began with, and some of the first go by new ones."""
    optimiser = ours()
    first = lr_scheduler.LambdaLR(optimiser, lambda step: 0.9**step)
    cycle = lr_scheduler.OneCycleLR(optimiser, [0.5, 1.0], 9)
    for order in ([first, cycle], [cycle, first]):
        with pytest.raises(ValueError, match=r"LambdaLR was made for .*\[0\.1, 0\.05\].*0\.02"):
            lr_scheduler.SequentialLR(optimiser, order, [3])
    first.base_lrs = [0.5, 0.25]
    assert lr_scheduler.SequentialLR(optimiser, [first, cycle], [3]).rates(1) == [0.45, 0.225]


#: Rates of a first rate of 1 at steps, by hand.
RATES: list[tuple[str, dict[str, Any], dict[int, float]]] = [
    ("StepLR", {"step_size": 3}, {2: 1, 3: 0.1, 6: 0.01}),
    ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.5}, {1: 1, 2: 0.5, 5: 0.25}),
    ("ExponentialLR", {"gamma": 0.5}, {0: 1, 3: 0.125}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 3}, {0: 0.25, 2: 0.25, 3: 1}),
    ("LinearLR", {"start_factor": 0.5, "total_iters": 4}, {0: 0.5, 2: 0.75, 4: 1, 9: 1}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.2}, {0: 1, 2: 0.6, 4: 0.2, 6: 0.6, 8: 1}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}, {0: 1, 1: 0.5, 2: 1, 4: 0.5, 6: 1}),
    (
        "OneCycleLR",
        {"max_lr": 2, "total_steps": 11, "pct_start": 5 / 11, "div_factor": 4},
        {0: 0.5, 2: 1.25, 4: 2, 7: (2 + 5e-5) / 2, 10: 5e-5},
    ),
]


@pytest.mark.parametrize(("name", "options", "rates"), RATES)
def test_rates_at_steps_are_those_by_hand(
    name: str, options: dict[str, Any], rates: dict[int, float]
) -> None:
    scheduler = getattr(lr_scheduler, name)(
        optim.SGD([nn.Parameter(wg.ones(1))], 1.0, momentum=0.9), **options
    )
    found = {step: scheduler.rates(step)[0] for step in rates}
    assert found == pytest.approx(rates, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_two_schedules_are_two_objects(name: str, options: dict[str, Any]) -> None:
    """Those that are dataclasses would be equal by their options, and show all parameters."""
    one, two = (getattr(lr_scheduler, name)(ours(), **options) for _ in range(2))
    assert one != two and len({one, two}) == 2
    assert repr(one) == object.__repr__(one)


def test_names_that_are_nearly_right_are_told() -> None:
    with pytest.raises(AttributeError, match="did you mean 'StepLR'"):
        getattr(lr_scheduler, "StepRL")  # noqa: B009


def test_no_momentum_to_cycle() -> None:
    optimiser = optim.Adagrad([nn.Parameter(wg.ones(2))])
    with pytest.raises(ValueError, match="momentum or beta1"):
        lr_scheduler.OneCycleLR(optimiser, 1.0, 9)
    optimiser.state[optimiser.param_groups[0]["params"][0]] = {"step": 0}
    scheduler = lr_scheduler.OneCycleLR(optimiser, 1.0, 9, cycle_momentum=False)
    for _ in range(9):
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 10 times"):
        scheduler.step()


@pytest.mark.parametrize("case", CASES, ids=[name for name, _ in CASES])
def test_a_number_refuses_a_tensor_that_is_differentiated(case: Scheduler) -> None:
    """Also one that this epoch does not look at."""
    name, options = case
    make = getattr(lr_scheduler, name)
    given = {k: p.default for k, p in inspect.signature(make).parameters.items()} | options
    cycles = given.get("cycle_momentum", True)
    for parameter, value in given.items():
        one = value[0] if isinstance(value, list) else value
        if type(one) not in (int, float) or (parameter.endswith("_momentum") and not cycles):
            continue
        leaf = wg.tensor(float(one), requires_grad=True)
        for tracked in (leaf, [leaf, leaf]):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises((TypeError, ValueError, KeyError, UserWarning)):
                    make(ours(), **{**options, parameter: tracked})
