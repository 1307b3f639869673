"""Loss modules hand their options on to the functions, and layers tell what does not fit."""

import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.ops.spaces import irregular, pairs
from tests.project import stubs
from wengert import nn
from wengert.nn import functional as F

REDUCTIONS = ("none", "mean", "sum")
WEIGHTS = (None, np.asarray([0.5, 2.0, 3.0]))
X = irregular(4, 3)
P = np.asarray([[0.2, 0.7, 0.1], [0.9, 0.4, 0.6], [0.3, 0.8, 0.5], [0.15, 0.35, 0.95]])
LABELS = np.asarray([2, 0, 1, 2])

#: Of each module its function, an input, a target and the values of its options.
LOSSES: dict[str, tuple[Any, Any, Any, dict[str, tuple[Any, ...]]]] = {
    "MSELoss": (F.mse_loss, X, P, {}),
    "L1Loss": (F.l1_loss, X, P, {}),
    "HuberLoss": (F.huber_loss, X, P, {"delta": (0.3, 1.0)}),
    "SmoothL1Loss": (F.smooth_l1_loss, X, P, {"beta": (0.3, 1.0)}),
    "BCELoss": (F.binary_cross_entropy, P, 1 - P, {"weight": WEIGHTS}),
    "BCEWithLogitsLoss": (
        F.binary_cross_entropy_with_logits,
        X,
        P,
        {"weight": WEIGHTS, "pos_weight": WEIGHTS},
    ),
    "NLLLoss": (F.nll_loss, np.log(P), LABELS, {"weight": WEIGHTS, "ignore_index": (-100, 1)}),
    "CrossEntropyLoss": (
        F.cross_entropy,
        X,
        LABELS,
        {"weight": WEIGHTS, "ignore_index": (-100, 1), "label_smoothing": (0.0, 0.2)},
    ),
}
CALLS = [
    (name, options)
    for name, (*_, space) in LOSSES.items()
    for options in pairs({"reduction": REDUCTIONS, **space})
]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "options"), CALLS)
def test_a_loss_module_is_its_function_with_its_options(name: str, options: dict) -> None:
    function, *given, space = LOSSES[name]
    with wg.use_backend("numpy"):
        x, target = map(wg.asarray, given)
        given_options = {
            key: wg.asarray(value) if isinstance(value, np.ndarray) else value
            for key, value in options.items()
        }
        found = getattr(nn, name)(**given_options)(x, target)
        expected = function(x, target, **given_options)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        # Each option that is not the default matters here, so that none is forgotten.
        for key, values in {"reduction": REDUCTIONS, **space}.items():
            others = [value for value in values if value is not options[key]]
            results = [function(x, target, **{**given_options, key: _tensor(v)}) for v in others]
            assert all(not np.array_equal(r.numpy(), found.numpy()) for r in results)


def _tensor(value: Any) -> Any:
    return wg.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"])
def test_shapes_that_differ_are_told_of_the_function(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} got an input of shape \(3,\) and a target"):
        getattr(F, name)(wg.ones(3), wg.ones((2, 3)))


def test_signatures_of_stored_options_are_those_of_the_functions() -> None:
    pytest.importorskip("ruff", reason="which lays the stub out")
    assert stubs.STORED.read_text(encoding="utf-8") == stubs.stored()


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv_transpose3d"])
def test_gains_of_convolutions(name: str) -> None:
    assert nn.init.calculate_gain(name) == 1
    assert nn.init.calculate_gain("leaky_relu", 1.0) == pytest.approx(math.sqrt(2 / 2))
    with pytest.raises(ValueError, match="Unsupported nonlinearity conv4d"):
        nn.init.calculate_gain("conv4d")


def test_modules_that_read_the_same_are_written_once() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Tanh(), nn.ReLU()])
    assert repr(layers) == "ModuleList(\n  (0): ReLU()\n  (1-2): 2 x Tanh()\n  (3): ReLU()\n)"


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weighted_losses_of_classes_by_their_formula(reduction: str) -> None:
    weight, kept = WEIGHTS[1], LABELS != 1
    assert weight is not None
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
