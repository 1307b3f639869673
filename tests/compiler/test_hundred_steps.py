"""A hundred training steps as people write them, changed between calls: as eagerly, to the bit.

All but a few compile as they stand. Those are refused, with the place and the way out.
"""

import dataclasses
import enum
import functools
import itertools
import random
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike
from tests.compiler.training_models import Models
from tests.compiler.training_steps import Bench, F, Made, Optimizers, step
from wengert import nn
from wengert.compiler import CompileError

CALLS = 6
SCALE = 1.0
THRESHOLDS = [0.5, 0.25]
#: What the errors say.
REFUSED = {
    "counter": "changes .*count.* from 1 to 2.*Return it",
    "list_of_losses": "changes the length of .*log.* from 1 to 2.*outside",
    "deque_of_losses": "changes .*last.* outside",
    "item_for_a_log": r"line \d+ .*loss.item\(\).*Return the Tensor, and read it outside",
    "branch_on_the_loss": r"line \d+ .*if loss > 1.0.*where",
    "augmentation_by_random": "draws from random.*wg.random",
    "augmentation_by_numpy": "draws from .*rng.*wg.random",
    "iterator_of_batches": "batches is a cycle, .*pass what",
    "numpy_buffer_filled_inside": r"line \d+ .*noise\[0\].*(read-only|in place|written)",
    "clock": "differs",
}


def rescale(value: float) -> None:
    globals()["SCALE"] = value


class Data(Bench):
    """Steps with data that change."""

    def noise_on_data(self) -> Made:
        return lambda x, y: self.train(x + 0.1 * wg.randn(*x.shape), y), None

    @step
    def mixup(self, x: Any, y: Any) -> Any:
        order = wg.argsort(wg.rand(4))
        share = wg.rand(())
        out = self.model(share * x + (1 - share) * x[order])
        loss = share * F.cross_entropy(out, y) + (1 - share) * F.cross_entropy(out, y[order])
        return self.update(loss)

    def augmentation_outside(self) -> Made:
        shift = wg.zeros(5)
        numpy = np.random.default_rng(0)

        def change(i: int) -> None:
            shift.copy_(wg.asarray(numpy.normal(size=5).astype(np.float32)))

        return lambda x, y: self.train(x + shift, y), change

    def numpy_buffer_refilled(self) -> Made:
        noise = np.zeros((4, 5), np.float32)
        numpy = np.random.default_rng(0)

        def change(i: int) -> None:
            noise[...] = numpy.normal(size=noise.shape)

        return lambda x, y: self.train(x + wg.asarray(noise), y), change

    def numpy_buffer_replaced(self) -> Made:
        self.noise = np.zeros((4, 5), np.float32)  # type: ignore[attr-defined]
        change = lambda i: setattr(self, "noise", np.full((4, 5), i, np.float32))
        return lambda x, y: self.train(x + wg.asarray(self.noise), y), change  # type: ignore[attr-defined]

    def labels_smoothed(self) -> Made:
        smoothing = SimpleNamespace(value=0.1)
        loss = lambda x, y: F.cross_entropy(self.model(x), y, label_smoothing=smoothing.value)
        return lambda x, y: self.update(loss(x, y)), lambda i: setattr(smoothing, "value", 0.05 * i)

    def one_hot_labels(self) -> Made:
        return lambda x, y: self.update(
            F.mse_loss(self.model(x), F.one_hot(y, 3).astype(wg.float32))
        ), None

    @step
    def masked_tokens(self, x: Any, y: Any) -> Any:
        keep = wg.rand(4, 5) > 0.3
        return self.train(wg.where(keep, x, 0.0), y)

    def batch_as_a_dict(self) -> Made:
        train = lambda batch: self.train(batch["x"], batch["y"])
        return lambda x, y: train({"x": x, "y": y}), None

    def batch_as_a_named_tuple(self) -> Made:
        class Batch(NamedTuple):
            x: Any
            y: Any

        train = lambda batch: self.train(batch.x, batch.y)
        return lambda x, y: train(Batch(x, y)), None

    def keywords_and_defaults(self) -> Made:
        def train(x: Any, *, y: Any, scale: float = 1.0, **others: Any) -> Any:
            return self.update(F.cross_entropy(self.model(x) * scale, y))

        return lambda x, y: train(x, y=y, scale=0.5), None

    def crop_of_another_length(self) -> Made:
        width = SimpleNamespace(n=4)
        return lambda x, y: self.train(x[: width.n], y[: width.n]), lambda i: setattr(
            width, "n", 2 + i % 3
        )


@dataclasses.dataclass
class Config:
    weight: float = 1.0
    kind: str = "mean"
    sizes: tuple[int, ...] = (4, 2)


class Kind(enum.Enum):
    MEAN = "mean"
    SUM = "sum"


class Surroundings(Bench):
    """Steps with Python around them."""

    def dataclass_of_settings(self) -> Made:
        config = Config()
        loss = lambda x, y: F.cross_entropy(self.model(x), y, reduction=config.kind) * config.weight

        def change(i: int) -> None:
            config.weight, config.kind = 1.0 / (i + 1), "sum" if i == 2 else "mean"

        return lambda x, y: self.update(loss(x, y)), change

    def dict_of_settings(self) -> Made:
        config = {"weight": 1.0, "loss": {"smoothing": 0.0}}

        def train(x: Any, y: Any) -> Any:
            smoothing = config["loss"]["smoothing"]  # type: ignore[index]
            loss = F.cross_entropy(self.model(x), y, label_smoothing=smoothing)
            return self.update(loss * config["weight"])

        def change(i: int) -> None:
            config["weight"] = 1.0 / (i + 1)
            config["loss"]["smoothing"] = 0.1 * (i > 2)  # type: ignore[index]

        return train, change

    def enum_of_settings(self) -> Made:
        held = SimpleNamespace(kind=Kind.MEAN)

        def train(x: Any, y: Any) -> Any:
            reduce = wg.mean if held.kind is Kind.MEAN else wg.sum
            return self.update(reduce(F.cross_entropy(self.model(x), y, reduction="none")))

        return train, lambda i: setattr(held, "kind", Kind.SUM if i == 2 else Kind.MEAN)

    def global_that_changes(self) -> Made:
        rescale(1.0)
        return lambda x, y: self.update(
            F.cross_entropy(self.model(x), y) * SCALE
        ), lambda i: rescale(1.0 + i)

    def global_list_that_changes(self) -> Made:
        THRESHOLDS[:] = [0.5, 0.25]
        train = lambda x, y: self.train(wg.where(x > THRESHOLDS[0], x, 0.1 * x), y)
        return train, lambda i: THRESHOLDS.insert(0, 0.1 * i)

    def helper_with_globals_of_its_own(self) -> Made:
        rescale(2.0)

        def helper(x: Any) -> Any:
            return x * SCALE

        return lambda x, y: self.train(helper(x), y), lambda i: rescale(2.0 if i < 2 else 3.0)

    def partial_function(self) -> Made:
        loss = functools.partial(F.cross_entropy, label_smoothing=0.1)
        return lambda x, y: self.update(loss(self.model(x), y)), None

    def partial_that_is_replaced(self) -> Made:
        held = SimpleNamespace(loss=functools.partial(F.cross_entropy, label_smoothing=0.1))
        new = functools.partial(F.cross_entropy, label_smoothing=0.2)
        change = lambda i: setattr(held, "loss", new) if i == 2 else None
        return lambda x, y: self.update(held.loss(self.model(x), y)), change

    def lambdas_in_a_list(self) -> Made:
        losses = [F.cross_entropy, lambda out, y: 0.1 * (out**2).mean()]
        train = lambda x, y: self.update(sum(loss(self.model(x), y) for loss in losses))
        return train, lambda i: losses.append(lambda out, y: out.mean() ** 2) if i == 2 else None

    def loss_chosen_by_a_key(self) -> Made:
        losses = {"a": nn.CrossEntropyLoss(), "b": nn.CrossEntropyLoss(label_smoothing=0.3)}
        held = SimpleNamespace(key="a")
        train = lambda x, y: self.update(losses[held.key](self.model(x), y))
        return train, lambda i: setattr(held, "key", "ab"[i % 2])

    def class_with_methods(self) -> Made:
        bench = self

        class Trainer:
            weight = 1.0

            def loss(self, x: Any, y: Any) -> Any:
                return F.cross_entropy(bench.model(x), y) * self.weight

            def step(self, x: Any, y: Any) -> Any:
                return bench.update(self.loss(x, y))

        trainer = Trainer()
        return trainer.step, lambda i: setattr(trainer, "weight", 1.0 / (i + 1))

    def trainer_with_slots(self) -> Made:
        bench = self

        class Trainer:
            __slots__ = ("weight",)

            def step(self, x: Any, y: Any) -> Any:
                return bench.update(F.cross_entropy(bench.model(x), y) * self.weight)

        trainer = Trainer()
        trainer.weight = 1.0
        return trainer.step, lambda i: setattr(trainer, "weight", 1.0 / (i + 1))

    def callable_object(self) -> Made:
        bench = self

        class Step:
            def __call__(self, x: Any, y: Any) -> Any:
                return bench.train(x, y)

        return Step(), None

    def stages_of_a_curriculum(self) -> Made:
        stages = [slice(0, 2), slice(0, 3), slice(0, 4)]
        held = SimpleNamespace(stage=0)
        train = lambda x, y: self.train(x[stages[held.stage]], y[stages[held.stage]])
        return train, lambda i: setattr(held, "stage", min(i // 2, 2))

    def early_stopping(self) -> Made:
        held = SimpleNamespace(best=10.0, left=2)
        return self.train, lambda i: held.__dict__.update(best=0.1 * i, left=2 - i)

    def nested_containers(self) -> Made:
        tree = OrderedDict(a=[wg.ones(5)], b=defaultdict(list, c=[wg.zeros(5)]))
        self.more = [tree["a"][0]]

        def train(x: Any, y: Any) -> Any:
            tree["a"][0].mul_(0.9)
            return self.train(x * tree["a"][0] + tree["b"]["c"][0], y)  # type: ignore[call-overload]

        return train, None

    def recursion_over_layers(self) -> Made:
        def run(layers: Any, x: Any) -> Any:
            return run(layers[1:], layers[0](x)) if layers else x

        return lambda x, y: self.update(F.cross_entropy(run(list(self.model), x), y)), None

    def decorated_helper(self) -> Made:
        def doubled(f: Any) -> Any:
            @functools.wraps(f)
            def call(*args: Any) -> Any:
                return 2 * f(*args)

            return call

        @doubled
        def loss(x: Any, y: Any) -> Any:
            return F.cross_entropy(self.model(x), y)

        return lambda x, y: self.update(loss(x, y)), None

    @step
    def generator_expression(self, x: Any, y: Any) -> Any:
        outs = (layer(x) for layer in [self.model, lambda x: x[:, :3]])
        return self.update(F.cross_entropy(functools.reduce(lambda a, b: a + b, outs), y))

    @step
    def assertions_on_shapes(self, x: Any, y: Any) -> Any:
        assert x.shape[1] == 5 and x.ndim == 2, "features"
        n, _ = x.shape
        return self.update(F.cross_entropy(self.model(x), y) * (n / 4))

    def metrics_that_are_returned(self) -> Made:
        log: list[Any] = []

        def train(x: Any, y: Any) -> Any:
            out = self.model(x)
            loss = self.update(F.cross_entropy(out, y))
            return {"loss": loss.detach(), "right": (out.argmax(axis=1) == y).sum(), "size": len(x)}

        return train, lambda i: log.append(i)

    def metrics_in_a_tensor(self) -> Made:
        total = wg.zeros(())
        self.more = [total]

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            total.add_(loss.detach())

        return train, lambda i: total.zero_() if i == 3 else None

    def branch_on_a_flag(self) -> Made:
        held = SimpleNamespace(noisy=False)
        train = lambda x, y: self.train(x + 0.1 * wg.randn(*x.shape) if held.noisy else x, y)
        return train, lambda i: setattr(held, "noisy", bool(i % 2))

    @step
    def bad_batches_skipped_by_selection(self, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(self.model(x), y)
        return self.update(wg.where(loss < 1.0, loss, 0.0))

    def gradients_that_are_set(self) -> Made:
        def change(i: int) -> None:
            for p in self.model.parameters():
                p.grad = None if i % 2 else wg.ones_like(p)

        def train(x: Any, y: Any) -> Any:
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

        return train, change

    def seed_of_each_call(self) -> Made:
        train = lambda x, y: self.train(x + 0.1 * wg.randn(*x.shape), y)
        return train, lambda i: wg.manual_seed(i // 2)

    def view_of_a_weight_that_is_held(self) -> Made:
        """The memory that somebody looks at keeps its numbers."""
        change = lambda i: self.more.append(self.model[0].weight.detach()[0])
        return self.train, change

    def number_of_an_object(self) -> Made:
        class Axis:
            value = 0

            def __index__(self) -> int:
                return self.value

        axis = Axis()
        train = lambda x, y: self.train(x - wg.mean(x, axis=axis, keepdims=True), y)
        return train, lambda i: setattr(axis, "value", i % 2)


class Refused(Bench):
    """Steps with Python that a replay would not run."""

    def counter(self) -> Made:
        held = SimpleNamespace(count=0)

        def train(x: Any, y: Any) -> Any:
            held.count += 1
            return self.train(x, y)

        return train, None

    def list_of_losses(self) -> Made:
        log: list[Any] = []

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            log.append(loss.detach())
            return loss

        return train, None

    def deque_of_losses(self) -> Made:
        last: deque[Any] = deque(maxlen=3)

        def train(x: Any, y: Any) -> Any:
            loss = self.train(x, y)
            last.append(loss.detach())
            return loss

        return train, None

    @step
    def item_for_a_log(self, x: Any, y: Any) -> Any:
        loss = self.train(x, y)
        return loss.item()

    @step
    def branch_on_the_loss(self, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(self.model(x), y)
        if loss > 1.0:
            loss = loss * 0.5
        return self.update(loss)

    def augmentation_by_random(self) -> Made:
        return lambda x, y: self.train(x * random.uniform(0.9, 1.1), y), None

    def augmentation_by_numpy(self) -> Made:
        rng = np.random.default_rng(0)
        return lambda x, y: self.train(
            x + wg.asarray(rng.normal(size=5).astype(np.float32)), y
        ), None

    def iterator_of_batches(self) -> Made:
        batches = itertools.cycle([1.0, 2.0])
        return lambda x, y: self.train(x * next(batches), y), None

    def numpy_buffer_filled_inside(self) -> Made:
        noise = np.zeros((4, 5), np.float32)

        def train(x: Any, y: Any) -> Any:
            noise[0] = 1.0
            return self.train(x + wg.asarray(noise), y)

        return train, None

    def clock(self) -> Made:
        return lambda x, y: self.train(x * (time.perf_counter() % 1.0), y), None


STEPS = {
    name.replace("_", " "): (kind, name)
    for kind in (Optimizers, Models, Data, Surroundings)
    for name in vars(kind)
    if name[0] != "_"
}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    return [
        (
            wg.asarray(rng.normal(size=(4, 5)).astype(np.float32)),
            wg.asarray(rng.integers(0, 3, 4)),
        )
        for _ in range(CALLS)
    ]


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_the_eager_ones(name: str) -> None:
    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        kind, method = STEPS[name]
        bench: Any = kind()
        function, change = getattr(bench, method)()
        calls = itertools.count()

        def state() -> Any:
            found = bench.state()
            if change is not None:
                change(next(calls))
            return found

        return function, state

    function = alike(make, batches())
    assert function.source


@pytest.mark.parametrize("name", REFUSED)
def test_steps_are_refused_with_the_way_out(name: str) -> None:
    bench = Refused()
    function, _ = getattr(bench, name)()
    compiled = wg.compile(function)
    with suppress(CompileError):
        compiled(*next(iter(batches())))  # with which the optimiser begins
    before = bench.state()

    def run() -> None:
        for x, y in batches():
            compiled(x, y)

    with pytest.raises(CompileError, match=f"(?s){REFUSED[name]}"):
        run()
    if name != "clock":  # which the check of the first replay finds
        for x, y in zip(*map(wg.func.tree_leaves, (before, bench.state())), strict=True):
            assert np.array_equal(x.numpy(), y.numpy())


def test_there_are_a_hundred() -> None:
    assert len(STEPS) >= 100
    assert REFUSED.keys() == {name for name in vars(Refused) if name[0] != "_"}
