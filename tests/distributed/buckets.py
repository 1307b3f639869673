"""Gradients that are sent while the backward pass goes on, against those that are sent at once."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.distributed as wd
from tests.distributed.training import OPTIMISERS, model_of, say, training
from wengert import nn
from wengert.compiler import messages
from wengert.distributed import averaging
from wengert.distributed.carriers import Line


def overlapping() -> None:
    averaging.BUCKET = 200  # type: ignore[misc]  # bytes: three buckets
    for name in OPTIMISERS:
        training(name, "eager", overlap=True)
    training("Adam", "compiled", overlap=True)
    for case in (
        _once,
        _twice,
        _apart,
        _clipped,
        _written,
        _penalised,
        _recorded,
        _failing,
        _anew,
        _other,
        _compiled,
    ):
        compare(case)
    frozen_and_unused()
    order()
    ended()
    say("overlapping")


def loss_of(model: Any) -> Any:
    x = wg.asarray(np.random.default_rng(wd.rank).standard_normal((4, 5)))
    return wg.sum(model(x) ** 2)


def _once(model: Any) -> None:
    loss_of(model).backward()


def _twice(model: Any) -> None:
    _once(model)
    _once(model)


def _apart(model: Any) -> None:
    """Ranks that make several backward passes, and ranks that make none."""
    for _ in range(wd.rank):
        _once(model)


def _clipped(model: Any) -> None:
    _once(model)
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def _written(model: Any) -> None:
    """Gradients that change in their memory, past the Tensors that hold them."""
    _once(model)
    for x in model.parameters():
        x.grad.array[...] *= 0.5


def _penalised(model: Any) -> None:
    (g,) = wg.autograd.grad(loss_of(model), model[0].weight, create_graph=True)
    (loss_of(model) + wg.sum(g * g)).backward()


def _recorded(model: Any) -> None:
    """A gradient that can be differentiated itself."""
    loss_of(model).backward(create_graph=True)


def _failing(model: Any) -> None:
    """A backward pass that ends half-way, on one rank alone."""

    def fail(g: Any) -> None:
        raise ArithmeticError("half-way")

    if wd.rank == 0:
        handle = model[0].weight.register_hook(fail)
        with pytest.raises(ArithmeticError, match="half-way"):
            _once(model)
        handle.remove()
        model.zero_grad()
    _once(model)


def _anew(model: Any) -> None:
    """Gradients that are thrown away."""
    _once(model)
    model.zero_grad()
    wg.sum(model(wg.ones((1, 5)))).backward()


def _other(model: Any) -> None:
    """Collectives in between, one of them in the backward pass."""
    loss = wg.sum(wd.all_reduce(model(wg.ones((2, 5))) * (wd.rank + 1)))
    loss.backward()
    wd.mean(loss)


STEPS: dict[int, Any] = {}


def _compiled(model: Any) -> None:
    """A compiled backward pass, and an average outside."""
    if id(model) not in STEPS:
        STEPS[id(model)] = wg.compile(lambda x: wg.sum(model(x) ** 2).backward())
    STEPS[id(model)](wg.full((4, 5), wd.rank + 1.0))
    assert "eagerly" not in str(STEPS[id(model)].report)


def compare(run: Callable[[Any], None]) -> None:
    """Gradients that are sent in buckets, and those of a copy that are sent at once."""
    model = wd.replicate(model_of(7), overlap=True)
    plain = copy.deepcopy(model)
    found = averaging._OVERLAPS[model]
    # The last weights are of a rank that counts nothing, and has NaN, or no gradient.
    weighted = ((1, 1, 1, 1), (1, 2, 3, 4), (1, 2, 3, 4), (0, 2, 1, 1), (0, 2, 1, 1), (0, 2, 1, 1))
    for i, weights in enumerate(weighted):
        weight = weights[wd.rank]
        for each in (model, plain):
            each.zero_grad()
            run(each)
            if weight == 0 and i % 2:
                each.zero_grad()
            elif weight == 0:
                for x in each.parameters():
                    x.grad = None if x.grad is None else x.grad * float("nan")
            elif run is _apart and wd.rank == 0:
                weight = 0
            if run is _once and each is model:
                assert len(found._sent) == len(found.buckets) == 3
            wd.average(each, weight=weight)
        for x, y in zip(model.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12, atol=1e-300)
    assert wd.replicate(model) is model  # no buckets from now on
    _once(model)
    assert not found._sent and model not in averaging._OVERLAPS


def frozen_and_unused() -> None:
    """Parameters that come and go, and one that the loss does not depend on."""
    model = model_of(7)
    model[0].bias.requires_grad_(False)
    model = wd.replicate(model, overlap=True)
    for name in ("", "0.weight", "0.bias", "2.bias"):
        for key, x in model.named_parameters():
            if key == name:
                x.requires_grad_(not x.requires_grad)
        plain = copy.deepcopy(model)
        for _ in range(2):
            for each in (model, plain):
                each.zero_grad()
                _once(each)
                wd.average(each, weight=2)
            for x, y in zip(model.parameters(), plain.parameters(), strict=True):
                assert (x.grad is None) == (not x.requires_grad)
                if x.requires_grad:
                    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)
    model = wd.replicate(model_of(7), overlap=True)
    for _ in range(3):
        model.zero_grad()
        wg.sum(model[0](wg.ones((1, 5)))).backward()
        with pytest.raises(ValueError, match=r"2\.weight has no gradient on rank"):
            wd.average(model, weight=2)
    model[2].requires_grad_(False)
    wd.average(model, weight=2)
    np.testing.assert_allclose(model[0].bias.grad.numpy(), 1.0)


def order() -> None:
    """The order of the buckets is one, whatever that of the backward passes is."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 6), nn.Linear(5, 6)

        def forward(self, x: Any) -> Any:
            first, second = (self.a, self.b) if wd.rank % 2 else (self.b, self.a)
            return second(x * wg.sum(first(x)))

    wg.manual_seed(0)
    wg.set_default_dtype(wg.float64)
    model = wd.replicate(Two(), overlap=True)
    carrier: Any = messages.connected()
    start, begun, came = carrier.start, list[int](), list[str]()
    for name, x in model.named_parameters():
        x.register_post_accumulate_grad_hook(lambda x, name=name: came.append(name))

    def spied(name: str, x: Any, root: int, group: Any = None) -> Any:
        if group is not None:
            begun.append(x.size)
        return start(name, x, root, group)

    carrier.start = spied
    for _ in range(3):
        model.zero_grad()
        wg.sum(model(wg.ones((2, 5)))).backward()
        wd.average(model, weight=2)
    carrier.start = start
    assert begun == [6, 30, 6, 30] * 3
    assert len({*carrier.texts("buckets", str(begun))}) == 1
    assert len({*carrier.texts("passes", str(came))}) == min(wd.size, 2)


def ended() -> None:
    """The program may end between the backward pass and `average`, on some ranks."""
    model = wd.replicate(model_of(7), overlap=True)
    if wd.rank == 0:
        wg.sum(model[2](wg.ones((1, 6)))).backward()
    global unfinished  # which the end of the program meets
    unfinished = model
    complete = Line.complete

    def told(self: Line) -> None:
        complete(self)
        say("completed", len(self._going))

    Line.complete = told  # type: ignore[method-assign]
