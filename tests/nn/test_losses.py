"""Losses and distances: by formulas on every backend, and where they are steep."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from tests.walking import refusals, refuse, walk
from wengert import nn
from wengert.nn import functional as F

RNG = np.random.default_rng(23)
A, B = RNG.normal(size=(2, 4, 3))
P, Q = RNG.dirichlet(np.ones(3), (2, 4))
VARIANCES = RNG.uniform(0.1, 2, (4, 3))


#: Modules: their inputs, how many of them PyTorch differentiates, their options, their formula.
LOSSES: dict[str, tuple[list[np.ndarray], int, dict[str, Any], Any]] = {
    "MSELoss": ([A, B], 2, {}, lambda x, y: (x - y) ** 2),
    "L1Loss": ([A, B], 2, {}, lambda x, y: abs(x - y)),
    "HuberLoss": (
        [A, B],
        2,
        {"delta": (1.0, 0.4)},
        lambda x, y, delta: np.where(
            abs(x - y) < delta, (x - y) ** 2 / 2, delta * (abs(x - y) - delta / 2)
        ),
    ),
    "SmoothL1Loss": (
        [A, B],
        2,
        {"beta": (0.0, 0.4, 1.0)},
        lambda x, y, beta: np.where(
            abs(x - y) < beta, (x - y) ** 2 / 2 / (beta or 1), abs(x - y) - beta / 2
        ),
    ),
    "KLDivLoss": (
        [np.log(P), Q],
        2,
        {"log_target": (False, True)},
        lambda x, y, log_target: np.exp(y) * (y - x) if log_target else y * (np.log(y) - x),
    ),
    "GaussianNLLLoss": (
        [A, B, VARIANCES],
        3,
        {"full": (False, True), "eps": (1e-6, 0.7)},
        lambda x, y, v, full, eps: (
            (np.log(np.maximum(v, eps)) + (x - y) ** 2 / np.maximum(v, eps)) / 2
            + full * np.log(2 * np.pi) / 2
        ),
    ),
    "CosineSimilarity": (
        [A, B],
        2,
        {"dim": (0, 1)},
        lambda x, y, dim: (x * y).sum(dim) / np.sqrt((x * x).sum(dim) * (y * y).sum(dim)),
    ),
}
CASES = [
    (name, dict(zip(space, values, strict=True)))
    for name, (_, _, space, _) in LOSSES.items()
    for values in itertools.product(*space.values())
]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "options"), CASES)
def test_values(backend: Any, name: str, options: dict[str, Any]) -> None:
    inputs, _, _, formula = LOSSES[name]
    x = [wg.asarray(a) for a in inputs]
    expected = formula(*inputs, **options)
    reduced = {"none": expected, "mean": expected.mean(), "sum": expected.sum()}
    if name == "KLDivLoss":
        reduced["batchmean"] = expected.sum() / 4
    if name == "CosineSimilarity":
        layer = nn.CosineSimilarity(**options)
        np.testing.assert_allclose(layer(*x).numpy(), expected, rtol=1e-9)
    else:
        for reduction, value in reduced.items():
            layer = getattr(nn, name)(**options, reduction=reduction)
            np.testing.assert_allclose(layer(*x).numpy(), value, rtol=1e-9)


@pytest.mark.parametrize("shape", [(4, 3), (4, 1), (4,)])
def test_variances_of_rows(shape: tuple[int, ...]) -> None:
    v = VARIANCES[:, :1]
    given = wg.asarray(np.broadcast_to(v, (4, 3)) if shape == (4, 3) else v.reshape(shape))
    found = F.gaussian_nll_loss(wg.asarray(A), wg.asarray(B), given, reduction="none")
    np.testing.assert_allclose(found.numpy(), (np.log(v) + (A - B) ** 2 / v) / 2, rtol=1e-12)


def test_a_variance_may_be_a_number_and_a_limited_one_has_a_derivative() -> None:
    x, y = wg.asarray(A), wg.asarray(B)
    found = F.gaussian_nll_loss(x, y, 0.5, reduction="none")
    np.testing.assert_allclose(found.numpy(), (np.log(0.5) + (A - B) ** 2 / 0.5) / 2, rtol=1e-12)
    var = wg.full((4, 3), 1e-9, dtype="float64").requires_grad_()
    F.gaussian_nll_loss(x, y, var, reduction="sum").backward()
    np.testing.assert_allclose(var.grad.numpy(), (1e6 - (A - B) ** 2 * 1e12) / 2, rtol=1e-9)


def test_special_points() -> None:
    zero = wg.zeros((2, 3), dtype="float64").requires_grad_()
    assert F.kl_div(zero, wg.zeros((2, 3)), reduction="sum").item() == 0
    similar = F.cosine_similarity(zero, wg.asarray(A[:2]))
    similar.sum().backward()
    assert similar.tolist() == [0, 0] and not np.isnan(zero.grad.numpy()).any()


def ones(*shape: int) -> Any:
    return wg.ones(shape)


#: Calls, their errors, and what these say.
REFUSED = r"""
F.kl_div(ones(2), ones(3)) | ValueError | kl_div got an input of shape
nn.KLDivLoss(reduction="batch") | ValueError | not a valid value for reduction
F.gaussian_nll_loss(ones(2), ones(2), -ones(2)) | ValueError | negative entry
F.gaussian_nll_loss(ones(2, 3), ones(2, 3), ones(3)) | ValueError | var is of incorrect size
F.gaussian_nll_loss(ones(), ones(), ones(1)) | ValueError | var is of incorrect size
F.binary_cross_entropy(ones(2, 1), ones(2, 1), weight=ones(2)) | ValueError |
    a weight .*of shape \(2,\)
F.binary_cross_entropy_with_logits(ones(2, 1), ones(2, 1), weight=ones(2)) | ValueError |
    a weight .*of shape \(2,\)
F.binary_cross_entropy_with_logits(ones(2, 1), ones(2, 1), pos_weight=ones(2)) | ValueError |
    a pos_weight .*of shape \(2,\)
"""


def test_what_does_not_fit_is_told() -> None:
    walk(refusals(REFUSED), refuse(ones=ones), whole=True)


@pytest.mark.filterwarnings("ignore:invalid value|divide by zero:RuntimeWarning")
def test_no_target_that_counts(backend):
    """A mean of no losses is nan, their sum 0, and no logit has a part in them, as in PyTorch."""
    wrong = []
    logits = np.array([[1.0, 2.0, -3.0], [0.0, 5.0, 1.0]])
    for reduction in ("mean", "sum", "none"):
        for options in (
            {},
            {"label_smoothing": 0.1},
            {"weight": wg.asarray([1.0, 2.0, 3.0], dtype=wg.float64)},
            {"ignore_index": 1},
        ):
            ignored = options.get("ignore_index", -100)
            for loss in (F.cross_entropy, F.nll_loss):
                if loss is F.nll_loss and "label_smoothing" in options:
                    continue
                x = wg.tensor(logits, requires_grad=True)
                found = loss(x, wg.asarray([ignored, ignored]), reduction=reduction, **options)
                (g,) = wg.autograd.grad(found.sum(), x, create_graph=True)
                (plain,) = wg.autograd.grad(found.sum(), x)
                right = {"mean": np.nan, "sum": 0.0, "none": [0.0, 0.0]}[reduction]
                same = np.array_equal(found.detach().numpy(), right, equal_nan=True)
                if not same or wg.any(g != 0) or wg.any(plain != 0):
                    wrong.append((loss.__name__, reduction, options, found, g, plain))
    assert not wrong


@pytest.mark.parametrize("pos_weight", [None, 3.0])
def test_a_small_loss_of_logits_keeps_its_digits(pos_weight: float | None) -> None:
    """Near probabilities of 0 and 1, two terms as large as the logit would cancel."""
    for dtype, size in (("float16", 9.0), ("float32", 20.0), ("float64", 40.0)):
        x = np.array([-size, size, 0.0], dtype)
        y = np.array([2.0 ** (-size / 0.7), 1.0, 0.5], dtype)
        found = F.binary_cross_entropy_with_logits(
            x, y, reduction="none", pos_weight=None if pos_weight is None else wg.asarray(
                np.array([pos_weight], dtype)))  # fmt: skip
        wide = x.astype("float64"), y.astype("float64")
        soft = np.log1p(np.exp(-np.abs(wide[0])))
        p = pos_weight or 1.0
        no = wide[1] * p * (soft + np.maximum(-wide[0], 0))
        expected = no + (1 - wide[1]) * (soft + np.maximum(wide[0], 0))
        np.testing.assert_allclose(found.numpy(), expected, rtol=8 * np.finfo(dtype).eps)


def test_small_probabilities_keep_their_digits() -> None:
    for dtype, x in (("float32", 1e-6), ("float64", 1e-9)):
        given = np.array([x], dtype)
        found = F.binary_cross_entropy(given, np.zeros(1, dtype))
        expected = -np.log1p(-given.astype("float64"))[0]
        np.testing.assert_allclose(found.item(), expected, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("x", [-45.0, -85.0])
def test_a_cross_entropy_of_unlikely_targets_has_its_slope(backend: Any, x: float) -> None:
    """The logits' own, though denominators are limited where probabilities are lost."""

    def loss(logits: Any, target: Any) -> Any:
        return F.binary_cross_entropy(wg.expit(logits), target, reduction="sum")

    for target, slope in ((1.0, -1.0), (0.0, math.exp(x))):
        given = wg.tensor([x]), wg.tensor([target])
        np.testing.assert_allclose(values(wg.grad(loss)(*given)), [slope], rtol=1e-5)
        second = values(wg.hessian(loss)(*given))  # of terms of the slope's size
        np.testing.assert_allclose(second, [[math.exp(x)]], rtol=1e-5, atol=1e-6 * target)


STEEP = {  # whose slopes are large, so that a share of the mean that vanishes shows
    "mse_loss": ((90.0, -70.0, 5.0, 40.0), (-30.0, 20.0, 5.5, -40.0)),
    "kl_div": ((-3.0, -1.0, 2.0, 4.0), (50.0, 60.0, 70.0, 80.0)),
    "binary_cross_entropy": ((0.01, 0.02, 0.98, 0.99), (1.0, 1.0, 0.0, 0.0)),
}


@pytest.mark.parametrize("name", STEEP)
def test_a_share_of_a_mean_of_half_precision_does_not_vanish(name: str) -> None:
    loss, found = getattr(F, name), {}
    for dtype in (wg.float16, wg.float32):
        x, y = (wg.asarray(np.asarray(v, "float16"), dtype=dtype) for v in STEEP[name])
        x, y = x.requires_grad_(), y.requires_grad_()
        out = loss(x, y)
        assert out.dtype is dtype and loss(input=x, target=y).item() == out.item()
        assert loss(x, y, reduction="none").dtype is dtype
        small = wg.asarray(2.0**-24, dtype=dtype)  # a quarter of it is 0 in float16
        found[dtype] = [g.numpy() for g in wg.autograd.grad(out, (x, y), small)]
    for half, single in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(half, single.astype("float16"))
    x, y = (np.asarray(v, "float16") for v in STEEP[name])
    assert loss(x, y.astype("float32")).dtype == loss(x.astype("float32"), y).dtype == "float32"


@np.errstate(divide="ignore")
def test_slopes_by_a_probability_of_zero_are_infinite() -> None:
    y = wg.asarray([0.0, 0.5, 1.0], dtype="float64", requires_grad=True)
    x = wg.asarray([-0.5, -0.7, -0.1], dtype="float64")
    F.kl_div(x, y, reduction="sum").backward()
    np.testing.assert_allclose(values(y.grad), [-math.inf, math.log(0.5) + 1.7, 1.1])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_slopes_without_a_kernel_are_those_with_one(reduction: str) -> None:
    logits, target = np.array([[1.0, 2.0, -3.0], [0.0, 5.0, 1.0]]), np.array([2, 0])
    for smoothing in (0.0, 0.25):
        found = []
        for name in ("numpy", "array_api_strict"):
            with wg.use_backend(name):
                x = wg.asarray(logits, requires_grad=True)
                options = {"reduction": reduction, "label_smoothing": smoothing}
                F.cross_entropy(x, wg.asarray(target), **options).backward()
                found.append(x.grad.numpy())
        np.testing.assert_allclose(*found, rtol=1e-12)
