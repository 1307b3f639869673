"""Training steps as people write them: of optimisers, rates and gradients."""

import copy
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert import nn, optim

F = nn.functional
#: A step, and what is done after each call, or None.
Made = tuple[Callable[..., Any], Callable[[int], Any] | None]


class Bench:
    """A small model, its optimiser, and room for what a step needs.

    Each method of a subclass gives a step, and what is done after each call, or None.
    """

    def __init__(self) -> None:
        self.model: Any = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
        self.optimizer: Any = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.more: list[Any] = []

    def update(self, loss: Any) -> Any:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def train(self, x: Any, y: Any) -> Any:
        return self.update(F.cross_entropy(self.model(x), y))

    def state(self) -> Any:
        found: list[Any] = [*self.model.parameters(), *self.model.buffers(), *self.more]
        found += [p.grad for p in self.model.parameters() if p.grad is not None]
        return [x.detach().clone() for x in found], self.optimizer.state_dict()["state"]


def step(method: Callable[..., Any]) -> Callable[[Any], Made]:
    """A method that is the step itself."""
    return lambda bench: (method.__get__(bench), None)


class Optimizers(Bench):
    """Steps with optimisers, rates and gradients."""

    def plain(self) -> Made:
        return self.train, None

    def rate_by_hand(self) -> Made:
        def change(i: int) -> None:
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5

        return self.train, change

    def warm_up_by_hand(self) -> Made:
        return self.train, lambda i: self.optimizer.param_groups[0].update(
            lr=0.1 * min(1.0, (i + 1) / 4)
        )

    def rate_as_an_argument(self) -> Made:
        def train(x: Any, y: Any, lr: float) -> Any:
            self.optimizer.param_groups[0]["lr"] = lr
            return self.train(x, y)

        return lambda x, y: (train(x, y, 0.1), train(x, y, 0.05)), None

    def schedule_outside(self) -> Made:
        schedule = optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)
        return self.train, lambda i: schedule.step()

    def schedule_inside(self) -> Made:
        schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            schedule.step()
            return loss

        return train, None

    def one_cycle_inside(self) -> Made:
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        schedule = optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=20)

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            schedule.step()
            return loss

        return train, None

    def schedule_by_a_lambda(self) -> Made:
        schedule = optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 0.9**step)
        return self.train, lambda i: schedule.step()

    def plateau_outside(self) -> Made:
        schedule = optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=0)
        return self.train, lambda i: schedule.step(1.0)

    def adam(self) -> Made:
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)
        return self.train, None

    def adam_with_new_betas(self) -> Made:
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)
        return self.train, lambda i: self.optimizer.param_groups[0].update(
            betas=(0.9 - 0.1 * i, 0.99)
        )

    def two_groups(self) -> Made:
        first, last = self.model[0], self.model[2]
        groups = [{"params": first.parameters()}, {"params": last.parameters(), "lr": 0.01}]
        self.optimizer = optim.AdamW(groups, lr=0.1)
        return self.train, lambda i: self.optimizer.param_groups[1].update(lr=0.01 * i)

    def no_decay_for_biases(self) -> Made:
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim < 2]
        self.optimizer = optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}])
        return self.train, None

    def group_added_midway(self) -> Made:
        self.optimizer = optim.SGD(self.model[2].parameters(), lr=0.1, momentum=0.9)

        def change(i: int) -> None:
            if i == 2:
                self.optimizer.add_param_group({"params": self.model[0].parameters(), "lr": 0.01})

        return self.train, change

    def two_optimizers(self) -> Made:
        other = optim.Adam(self.model[0].parameters(), lr=0.01)
        self.optimizer = optim.SGD(self.model[2].parameters(), lr=0.1)

        def train(x: Any, y: Any) -> Any:
            other.zero_grad()
            loss = self.train(x, y)
            other.step()
            return loss

        return train, None

    def optimizer_replaced_midway(self) -> Made:
        def change(i: int) -> None:
            if i == 2:
                self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)

        return self.train, change

    def optimizer_loaded_midway(self) -> Made:
        kept: list[Any] = []

        def change(i: int) -> None:
            if i == 1:
                kept.append(copy.deepcopy(self.optimizer.state_dict()))
            if i == 3:
                self.optimizer.load_state_dict(kept[0])

        return self.train, change

    @step
    def update_by_hand(self, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(self.model(x), y)
        self.model.zero_grad()
        loss.backward()
        with wg.no_grad():
            for p in self.model.parameters():
                p -= 0.1 * p.grad
        return loss

    def functional_update(self) -> Made:
        params = {"w": wg.randn(5, 3), "b": wg.zeros(3)}
        self.more = list(params.values())

        def loss(params: Any, x: Any, y: Any) -> Any:
            return F.cross_entropy(x @ params["w"] + params["b"], y)

        def train(x: Any, y: Any) -> Any:
            value, grads = wg.func.value_and_grad(loss)(params, x, y)
            with wg.no_grad():
                for name, p in params.items():
                    p -= 0.1 * grads[name]
            return value

        return train, None

    def weights_averaged(self) -> Made:
        averaged = optim.swa_utils.AveragedModel(self.model)
        self.more = list(averaged.parameters())

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            averaged.update_parameters(self.model)
            return loss

        return train, None

    def average_by_hand(self) -> Made:
        self.more = [p.detach().clone() for p in self.model.parameters()]

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            with wg.no_grad():
                for kept, p in zip(self.more, self.model.parameters(), strict=True):
                    kept.mul_(0.9).add_(0.1 * p)
            return loss

        return train, None

    def target_network(self) -> Made:
        target = copy.deepcopy(self.model)
        self.more = list(target.parameters())

        def train(x: Any, y: Any) -> Any:
            with wg.no_grad():
                wanted = target(x)
            return self.update(F.mse_loss(self.model(x), wanted + 1.0))

        return train, lambda i: target.load_state_dict(self.model.state_dict()) if i == 2 else None

    @step
    def gradients_clipped(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return loss, norm

    @step
    def gradient_values_clipped(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        nn.utils.clip_grad_value_(self.model.parameters(), 0.01)
        self.optimizer.step()

    @step
    def gradients_added_up_inside(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        for i in range(2):
            half = slice(2 * i, 2 * i + 2)
            (F.cross_entropy(self.model(x[half]), y[half]) / 2).backward()
        self.optimizer.step()

    def gradients_added_up_over_calls(self) -> Made:
        def train(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(self.model(x), y) / 2
            loss.backward()
            return loss

        def change(i: int) -> None:
            if i % 2:
                self.optimizer.step()
                self.optimizer.zero_grad()

        return train, change

    def step_as_an_argument(self) -> Made:
        def train(x: Any, y: Any, last: bool) -> Any:
            loss = F.cross_entropy(self.model(x), y) / 2
            loss.backward()
            if last:
                self.optimizer.step()
                self.optimizer.zero_grad()
            return loss

        return lambda x, y: (train(x, y, False), train(x, y, True)), None

    def scaled_loss(self) -> Made:
        scaler = wg.amp.GradScaler(growth_interval=2)

        def train(x: Any, y: Any) -> Any:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            scaler.scale(loss).backward()
            scaler.step(self.optimizer)
            scaler.update()
            return loss

        return train, None

    def gradients_by_autograd_grad(self) -> Made:
        params = list(self.model.parameters())

        def train(x: Any, y: Any) -> Any:
            grads = wg.autograd.grad(F.cross_entropy(self.model(x), y), params)
            for p, g in zip(params, grads, strict=True):
                p.grad = g
            self.optimizer.step()

        return train, None

    @step
    def gradient_penalty(self, x: Any, y: Any) -> Any:
        x = x.detach().requires_grad_(True)
        out = self.model(x)
        (g,) = wg.autograd.grad(out.sum(), x, create_graph=True)
        return self.update(F.cross_entropy(out, y) + 0.1 * ((g**2).sum(axis=1) - 1).square().mean())

    @step
    def sharpness_aware(self, x: Any, y: Any) -> Any:
        loss = self.train(x, y)
        moves = [0.05 * p.grad for p in self.model.parameters()]
        with wg.no_grad():
            for p, move in zip(self.model.parameters(), moves, strict=True):
                p += move
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        with wg.no_grad():
            for p, move in zip(self.model.parameters(), moves, strict=True):
                p -= move
        self.optimizer.step()
        return loss

    @step
    def noise_on_gradients(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        for p in self.model.parameters():
            p.grad = p.grad + 0.01 * wg.randn(*p.shape)
        self.optimizer.step()

    def penalty_by_a_float(self) -> Made:
        def train(x: Any, y: Any, decay: float = 0.01) -> Any:
            penalty = sum((p**2).sum() for p in self.model.parameters())
            return self.update(F.cross_entropy(self.model(x), y) + decay * penalty)

        return train, None
