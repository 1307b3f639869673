"""Losses by formulas, and what layers tell and show."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.ops.spaces import irregular
from tests.project import stubs
from wengert import nn
from wengert.nn import functional as F

REDUCTIONS = ("none", "mean", "sum")
WEIGHTS = np.asarray([0.5, 2.0, 3.0])
X = irregular(4, 3)
LABELS = np.asarray([2, 0, 1, 2])


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"])
def test_shapes_that_differ_are_told_of_the_function(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} got an input of shape \(3,\) and a target"):
        getattr(F, name)(wg.ones(3), wg.ones((2, 3)))


def test_signatures_of_stored_options_are_those_of_the_functions() -> None:
    pytest.importorskip("ruff", reason="which lays the stub out")
    assert stubs.STORED.read_text(encoding="utf-8") == stubs.stored()


def test_modules_that_read_the_same_are_written_once() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Tanh(), nn.ReLU()])
    assert repr(layers) == "ModuleList(\n  (0): ReLU()\n  (1-2): 2 x Tanh()\n  (3): ReLU()\n)"


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weighted_losses_of_classes_by_their_formula(reduction: str) -> None:
    weight, kept = WEIGHTS, LABELS != 1
    w = weight[LABELS] * kept
    logs = X - np.log(np.sum(np.exp(X), axis=1, keepdims=True))
    losses = -w * logs[np.arange(4), LABELS]
    expected = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / w.sum()}[reduction]
    options: dict[str, Any] = {"ignore_index": 1, "reduction": reduction}
    with wg.use_backend("numpy"):
        for function, x in ((F.nll_loss, logs), (F.cross_entropy, X)):
            found = function(wg.asarray(x), wg.asarray(LABELS), wg.asarray(weight), **options)
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_what_helps_against_names_is_not_said_of_sizes() -> None:
    layer = nn.Linear(2, 3)
    state = nn.Linear(3, 3).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch for weight") as caught:
        layer.load_state_dict(state)
    assert "strict=False" not in str(caught.value)
    del state["bias"]
    with pytest.raises(RuntimeError, match="strict=False"):
        layer.load_state_dict(state)
