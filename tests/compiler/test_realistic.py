"""Realistic training steps that are changed between calls: compiled as eagerly, to the bit.

A change is one that users make: a schedule, a frozen layer, a checkpoint. Each training has a
smaller last batch, too. Any compiler of this package has to run all steps as programs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike
from wengert import nn, optim

CALLS = 7
WIDTH, CLASSES, BATCH = 5, 3, 4


class Trainer:
    """A model, its optimiser, and the settings of a step."""

    def __init__(self, model: Any, optimizer: Callable[[Any], Any]) -> None:
        self.model, self.optimizer = model, optimizer(model.parameters())
        self.criterion: Any = nn.CrossEntropyLoss()
        self.weight, self.decay, self.clip = 1.0, 0.0, 0.0
        self.stage = "train"
        self.mask: Any = None
        self.offset = wg.zeros(WIDTH)
        self.average = [p.detach().clone() for p in model.parameters()]
        self.schedule: Any = None
        self.kept: Any = None

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        logits = self.model(x + self.offset)
        if self.mask is not None:
            logits = logits * self.mask
        loss = self.criterion(logits, y) * self.weight
        if self.decay:
            loss = loss + self.decay * sum((p**2).sum() for p in self.model.parameters())
        if self.stage == "look":
            return loss.detach(), logits.detach()
        loss.backward()
        if self.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        with wg.no_grad():
            for held, p in zip(self.average, self.model.parameters(), strict=True):
                held *= 0.9
                held += 0.1 * p.detach()
        return loss.detach(), logits.detach()

    def state(self) -> Any:
        """All that a step leaves."""
        parts = [*self.model.parameters(), *self.model.buffers(), *self.average]
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        return [x.detach().clone() for x in parts + grads], self.optimizer.state_dict()["state"]

    @property
    def group(self) -> Any:
        return self.optimizer.param_groups[0]

    @property
    def first(self) -> Any:
        """The first layer with a weight."""
        return next(x for x in self.model.modules() if isinstance(x, nn.Linear))


class Recurrent(nn.Module):
    """A GRU over the features as a sequence, and a linear layer on its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRU(1, 4, batch_first=True), nn.Linear(4, CLASSES)

    def forward(self, x: Any) -> Any:
        found, _ = self.cell(wg.expand_dims(x, axis=-1))
        return self.head(found[:, -1])


class Convolutional(nn.Module):
    """A convolution along the features, pooled, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.head = nn.Conv1d(1, 3, 3, padding=1), nn.Linear(3, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.head(wg.mean(nn.functional.relu(self.convolution(x[:, None])), axis=-1))


def layered(*between: Any) -> Any:
    return nn.Sequential(nn.Linear(WIDTH, 6), *between, nn.Linear(6, CLASSES))


TRAININGS: dict[str, Callable[[], Trainer]] = {
    "SGD": lambda: Trainer(layered(nn.Tanh()), lambda p: optim.SGD(p, lr=0.1)),
    "momentum, batch norm": lambda: Trainer(
        layered(nn.BatchNorm1d(6), nn.ReLU()),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    ),
    "Adam, dropout": lambda: Trainer(
        layered(nn.ReLU(), nn.Dropout(0.3)), lambda p: optim.Adam(p, lr=0.01)
    ),
    "AdamW, layer norm": lambda: Trainer(
        layered(nn.LayerNorm(6), nn.GELU()), lambda p: optim.AdamW(p, lr=0.01, amsgrad=True)
    ),
    "RMSprop, GRU": lambda: Trainer(Recurrent(), lambda p: optim.RMSprop(p, lr=0.01)),
    "Adagrad, convolution": lambda: Trainer(Convolutional(), lambda p: optim.Adagrad(p, lr=0.05)),
}

Change = Callable[[Trainer, int], None]
CHANGES: dict[str, Change] = {}


def change(function: Change) -> Change:
    CHANGES[function.__name__.replace("_", " ")] = function
    return function


@change
def a_rate_of_each_call(t: Trainer, call: int) -> None:
    t.group["lr"] = 0.1 / (call + 1)


@change
def a_schedule_outside(t: Trainer, call: int) -> None:
    if t.schedule is None:
        t.schedule = optim.lr_scheduler.CosineAnnealingLR(t.optimizer, 10)
    t.schedule.step()


@change
def evaluation_between(t: Trainer, call: int) -> None:
    t.stage = "look" if call % 3 == 2 else "train"
    t.model.train(t.stage == "train")


@change
def a_frozen_layer(t: Trainer, call: int) -> None:
    for p in t.first.parameters():
        p.requires_grad_(call not in (3, 4))


@change
def a_checkpoint_that_comes_back(t: Trainer, call: int) -> None:
    if call == 2:
        held = t.model.state_dict(), t.optimizer.state_dict()
        t.kept = wg.func.tree_map(lambda x: x.clone() if isinstance(x, wg.Tensor) else x, held)
    if call == 5:
        t.model.load_state_dict(t.kept[0])
        t.optimizer.load_state_dict(t.kept[1])


@change
def weights_that_shrink_in_place(t: Trainer, call: int) -> None:
    with wg.no_grad():
        for p in t.model.parameters():
            p *= 0.99


@change
def a_weight_that_is_pruned(t: Trainer, call: int) -> None:
    if call > 3:
        with wg.no_grad():
            t.first.weight[0, :] = 0.0


@change
def a_layer_that_is_replaced(t: Trainer, call: int) -> None:
    if call == 4:
        fresh = nn.Linear(t.first.in_features, t.first.out_features)
        t.first.weight, t.first.bias = fresh.weight, fresh.bias
        t.optimizer = type(t.optimizer)(t.model.parameters(), lr=0.02)


@change
def weight_decay_that_is_switched_on(t: Trainer, call: int) -> None:
    t.decay = 0.01 * (call > 2)


@change
def gradients_that_are_clipped(t: Trainer, call: int) -> None:
    t.clip = (0.0, 0.5, 0.1)[call // 3]


@change
def another_loss(t: Trainer, call: int) -> None:
    if call == 3:
        t.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)


@change
def a_weight_of_the_loss(t: Trainer, call: int) -> None:
    t.weight = 1.0 + 0.5 * call


@change
def a_mask_that_comes_and_goes(t: Trainer, call: int) -> None:
    t.mask = wg.asarray([1.0, 0.0, 1.0]) if 2 <= call < 5 else None


@change
def data_that_are_shifted(t: Trainer, call: int) -> None:
    t.offset = wg.full((WIDTH,), 0.1 * call)


@change
def a_seed_of_each_call(t: Trainer, call: int) -> None:
    wg.manual_seed(call // 2)


@change
def gradients_that_are_set(t: Trainer, call: int) -> None:
    for p in t.model.parameters():
        p.grad = None if call % 2 else wg.ones_like(p)


@change
def a_second_group(t: Trainer, call: int) -> None:
    if call == 3:
        extra = nn.Parameter(wg.ones(WIDTH))
        t.optimizer.add_param_group({"params": [extra], "lr": 0.5})
        t.offset = extra


@change
def an_average_that_is_taken_over(t: Trainer, call: int) -> None:
    if call == 4:
        with wg.no_grad():
            for held, p in zip(t.average, t.model.parameters(), strict=True):
                p.copy_(held)


@change
def a_view_that_is_held(t: Trainer, call: int) -> None:
    """The memory that somebody looks at keeps its numbers."""
    t.kept = [*(t.kept or []), t.first.weight.detach()[0]]
    if call == CALLS - 1:
        t.offset = t.offset + sum(x.sum() for x in t.kept)


@change
def nothing(t: Trainer, call: int) -> None:
    pass


def batches() -> list[tuple[Any, Any]]:
    """Batches, of which the last is smaller."""
    rng = np.random.default_rng(1)
    sizes = [BATCH] * (CALLS - 1) + [BATCH - 2]
    return [
        (
            wg.asarray(rng.normal(size=(n, WIDTH)).astype(np.float32)),
            wg.asarray(rng.integers(0, CLASSES, n)),
        )
        for n in sizes
    ]


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_step_that_is_changed_between_calls(name: str, training: str) -> None:
    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        trainer = TRAININGS[training]()
        seen: list[int] = []

        def state() -> Any:
            found = trainer.state()
            seen.append(len(seen))
            CHANGES[name](trainer, len(seen))
            return found

        return trainer.step, state

    function = alike(make, batches())
    assert function.source
