"""Training on several processes, against one that sees whole batches; and what programs share."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import wengert as wg
import wengert.distributed as wd
from wengert import nn, optim
from wengert.compiler import messages

#: The rows of the batches: even ones, an uneven one, and one with a row less than there are ranks.
SIZES = (8, 8, 7, 3)
OPTIMISERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.01),
}


@contextmanager
def counted(expected: int) -> Iterator[None]:
    """Require so many collectives."""
    carrier = messages.connection()
    assert carrier is not None
    before = carrier.number
    yield
    assert carrier.number - before == expected, f"{carrier.number - before} of {expected}"


def say(*what: Any) -> None:
    print(f"rank {wd.rank}:", *what, flush=True)


def model_of(seed: int) -> nn.Module:
    wg.manual_seed(seed)
    wg.set_default_dtype(wg.float64)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))


def batches(epochs: int = 2) -> list[tuple[Any, Any]]:
    draw = np.random.default_rng(3)
    return [
        (wg.asarray(draw.standard_normal((n, 5))), wg.asarray(draw.integers(0, 3, n)))
        for _ in range(epochs)
        for n in SIZES
    ]


def stepper(model: Any, optimiser: Any, together: bool) -> Callable[..., Any]:
    def step(x: Any, t: Any) -> Any:
        optimiser.zero_grad()
        if len(t):
            loss = nn.functional.cross_entropy(model(x), t)
            loss.backward()
        if together:
            wd.average(model, weight=len(t))
        optimiser.step()
        return loss.detach() if len(t) else wg.asarray(0.0)

    return step


def training(name: str, mode: str) -> None:
    """The weights of one process that sees whole batches."""
    model = wd.replicate(model_of(seed=wd.rank))
    alone = copy.deepcopy(model)
    step = stepper(model, OPTIMISERS[name](model.parameters()), together=True)
    plain = stepper(alone, OPTIMISERS[name](alone.parameters()), together=False)
    if mode == "compiled":
        step = wg.compile(step)
    whole = batches()
    for (x, t), (every, targets) in zip(wd.shard(whole), whole, strict=True):
        with counted(1):
            loss = step(x, t)
        expected = plain(every, targets)
        with counted(1):
            found = wd.mean(loss, weight=len(t))
        assert abs(found.item() - expected.item()) < 1e-10, (found, expected)
    for (at, x), y in zip(model.named_parameters(), alone.parameters(), strict=True):
        worst = float(np.max(np.abs(x.detach().numpy() - y.detach().numpy())))
        assert worst < 1e-10, (at, worst)
    if mode == "compiled":
        assert "all_reduce(" in step.source
        assert step.report.recordings and step.report.checks, step.report
        assert "eagerly" not in str(step.report), step.report
    say("same weights")


def training_compiled() -> None:
    training("Adam", "compiled")


def trainings() -> None:
    for name in OPTIMISERS:
        for mode in ("eager", "compiled"):
            training(name, mode)
            say(name, mode, "done")
