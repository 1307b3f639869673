"""Trainings of ordinary networks: compiled and eager, they are the same to the bit."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.nn import functional

STEPS = 200


class Attention(wg.nn.Module):
    """Masked attention of several heads, between layer norms and residual connections."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = wg.nn.LayerNorm(width), wg.nn.LayerNorm(width)
        self.qkv, self.out = wg.nn.Linear(width, 3 * width), wg.nn.Linear(width, width)
        self.wide = wg.nn.Sequential(
            wg.nn.Linear(width, 2 * width), wg.nn.GELU(), wg.nn.Linear(2 * width, width)
        )

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = wg.unstack(wg.permute_dims(parts, (2, 0, 3, 1, 4)))
        scores = q @ k.mT / math.sqrt(width // self.heads)
        later = wg.triu(wg.ones((length, length)), k=1) > 0
        weights = wg.special.softmax(wg.where(later, -math.inf, scores), axis=-1)
        x = x + self.out(wg.permute_dims(weights @ v, (0, 2, 1, 3)).reshape(batch, length, width))
        return x + self.wide(self.after(x))


class Perceptron(wg.nn.Module):
    """Six layers with layer norm, GELU and dropout."""

    def __init__(self) -> None:
        super().__init__()
        widths = [7, 12, 12, 12, 12, 12, 3]
        self.linear = wg.nn.ModuleList([wg.nn.Linear(a, b) for a, b in pairwise(widths)])
        self.norms = wg.nn.ModuleList([wg.nn.LayerNorm(width) for width in widths[1:-1]])
        self.dropout = wg.nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        for linear, norm in zip(self.linear, self.norms, strict=False):
            x = self.dropout(functional.gelu(norm(linear(x))))
        return self.linear[-1](x)


class Recurrent(wg.nn.Module):
    """A cell that is called for each step, of which the last hidden state is read."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.cell, self.read = wg.nn.LSTMCell(inputs, width), wg.nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        state = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return self.read(state[0])


Step = Callable[..., Any]


def attention() -> tuple[Step, list[tuple[Any, Any]]]:
    model = wg.nn.Sequential(Attention(8, 2), wg.nn.Linear(8, 4))
    optimizer = wg.optim.Adam(model.parameters(), lr=3e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).reshape(-1, 4), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(1)
    x = rng.normal(size=(STEPS, 3, 5, 8)).astype(np.float32)
    return step, list(zip(x, np.argmax(np.cumsum(x, axis=2)[..., :4], axis=-1), strict=True))


def perceptron() -> tuple[Step, list[tuple[Any, Any]]]:
    model = Perceptron()
    optimizer = wg.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        norm = wg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, norm

    rng = np.random.default_rng(2)
    x = rng.normal(size=(STEPS, 8, 7)).astype(np.float32)
    return step, list(zip(x, np.sin(x[..., :3] * x[..., 3:6]), strict=True))


def lstm() -> tuple[Step, list[tuple[Any, Any]]]:
    model = Recurrent(2, 6)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x)[:, 0] - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(3)
    x = rng.normal(size=(STEPS, 4, 30, 2)).astype(np.float32)
    return step, list(zip(x, np.tanh(x[..., 0].sum(axis=-1) / 5), strict=True))


TRAININGS = {"attention": attention, "perceptron": perceptron, "lstm": lstm}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_a_training(name: str) -> None:
    found = []
    for compiled in (False, True):
        wg.manual_seed(0)
        function, data = TRAININGS[name]()
        step: Any = wg.compile(function) if compiled else function
        found.append([_bits(step(wg.asarray(x), wg.asarray(y))) for x, y in data])
    assert found[0] == found[1], step.report
    assert step.report.recordings <= 2, step.report


def _bits(answer: Any) -> list[bytes]:
    """What is returned, as bytes."""
    arrays = [np.asarray(getattr(x, "_array", x)) for x in wg.func.tree_leaves(answer)]
    assert all(np.isfinite(x).all() for x in arrays)
    return [x.tobytes() for x in arrays]
