"""Norms and bounds of gradients."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from wengert import nn


def test_complex_gradients_have_no_bounds(backend: Any) -> None:
    real, both = wg.ones(2, requires_grad=True), wg.ones(1, dtype="complex64", requires_grad=True)
    real.grad, both.grad = wg.ones(2), wg.asarray([0.1 - 5j])
    with pytest.raises(TypeError, match="complex numbers have no order"):
        nn.utils.clip_grad_value_([real, both], 0.5)
    assert real.grad.tolist() == [1, 1]


def test_a_gradient_that_comes_twice_is_scaled_once(backend: Any) -> None:
    tied, other = wg.zeros(2, requires_grad=True), wg.zeros(2, requires_grad=True)
    for again in ([tied, tied, other], [tied, wg.zeros(2, requires_grad=True), other]):
        tied.grad, other.grad = wg.asarray([3.0, 4.0]), wg.asarray([12.0, 0.0])
        again[1].grad = tied.grad
        assert nn.utils.clip_grad_norm_(again, 6.5).item() == pytest.approx(13)
        np.testing.assert_allclose(values(again[1].grad), [1.5, 2], rtol=1e-6)
        np.testing.assert_allclose(values(other.grad), [6, 0], rtol=1e-6)


def test_gradients_that_are_views_of_each_other_are_scaled_once(backend: Any) -> None:
    whole, part = wg.zeros(4, requires_grad=True), wg.zeros(2, requires_grad=True)
    whole.grad = wg.asarray([0.0, 2.0, 4.0, 6.0])
    part.grad = whole.grad[1:3]
    norm = nn.utils.clip_grad_norm_([whole, part], 1.0).item()
    assert norm == pytest.approx(76**0.5)  # as PyTorch's, which then scales the part twice
    np.testing.assert_allclose(values(whole.grad) * norm, [0, 2, 4, 6], rtol=1e-5)
    np.testing.assert_allclose(values(part.grad) * norm, [2, 4], rtol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_no_gradient_is_lost_by_an_infinite_or_undefined_norm(backend: Any, bad: float) -> None:
    for clip, expected in (
        (lambda x: nn.utils.clip_grad_norm_(x, 1.0), [np.nan, np.nan]),
        (lambda x: nn.utils.clip_grad_value_(x, 1.0), [np.clip(bad, -1, 1), 1.0]),
    ):
        weight = wg.zeros(2, requires_grad=True)
        weight.grad = wg.asarray([bad, 3.0])
        clip(weight)
        np.testing.assert_array_equal(values(weight.grad), expected)


def test_bounds_of_gradients_are_numbers() -> None:
    weight = wg.ones(2, requires_grad=True)
    weight.grad = wg.ones(2)
    bound = wg.tensor(0.5, requires_grad=True)
    for clip, given in (
        (nn.utils.clip_grad_norm_, {"max_norm": bound}),
        (nn.utils.clip_grad_norm_, {"max_norm": 1.0, "norm_type": bound}),
        (nn.utils.clip_grad_value_, {"clip_value": bound}),
        (nn.utils.get_total_norm, {"norm_type": bound}),
    ):
        name = next(name for name, value in given.items() if value is bound)
        with pytest.raises(TypeError, match=f"{name} should be a number without a derivative"):
            clip([weight], **given)
    assert weight.grad.tolist() == [1, 1]
    with pytest.raises(TypeError, match="decay should be a number without a derivative"):
        wg.optim.swa_utils.get_ema_avg_fn(bound)


_SIZES: list[tuple[list[float], list[float]]] = [
    ([1.5, -2.0], [0.25]),
    ([1e20, -2e20], [3e19]),
    ([1e-30, 2e-30], [1e-31]),
    ([1e25, 1e-25], [3.0]),
    ([0.0, 0.0], [0.0]),
    ([3.0, 4.0], [0.0]),
]
ORDERS = (1.0, 2.0, 3.5, 0.0, -1.0, -math.inf, math.inf, "inf")
#: Gradients, their dtypes, and orders of the norm. Squares neither overflow nor vanish; those of
#: half precision are summed in float32: no gradient becomes 0 for a scale that is.
CLIPPED: list[tuple[list[Any], tuple[str, ...], tuple[Any, ...]]] = [
    ([[[0.5, -2.0], [1.5, 0.25]], [-3.0, 1.0]], ("float64",) * 2, ORDERS),
    ([[3.0, 4.0], [3.0, 4.0]], ("float32", "float64"), (2.0, "inf")),
    *(([*s], d, (2.0,)) for s in _SIZES for d in (("float32",) * 2, ("float64", "float32"))),
    *(([[s, -s / 2, s]], ("float16",), (2.0, 3.0)) for s in (300.0, 6e4, 1e-4)),
    ([np.zeros((0, 3))], ("float32",), (2.0, 1.0)),
    ([], (), (2.0,)),
]


@pytest.mark.parametrize(("held", "dtypes", "orders"), CLIPPED)
def test_gradients_are_clipped_by_their_norm(
    backend: Any, held: list[Any], dtypes: tuple[str, ...], orders: tuple[Any, ...]
) -> None:
    if "float16" in dtypes and not hasattr(backend.xp, "float16"):
        pytest.skip("has no float16")
    arrays = [np.asarray(a, dtype) for a, dtype in zip(held, dtypes, strict=True)]
    for order, most in itertools.product(orders, (0.5, 100.0)):
        parameters = [nn.Parameter(wg.zeros(a.shape, dtype=a.dtype.name)) for a in arrays]
        for parameter, array in zip(parameters, arrays, strict=True):
            parameter.grad = wg.asarray(array.copy())
        grads = [p.grad for p in parameters]
        aliases = [g.detach() for g in grads]
        norms = [np.linalg.norm(a.astype("float64").ravel(), float(order)) for a in arrays]
        exact = np.linalg.norm(norms or [0.0], float(order))
        for total in (
            nn.utils.get_total_norm([p.grad for p in parameters], order),
            nn.utils.clip_grad_norm_(parameters, most, order),
        ):
            np.testing.assert_allclose(total.item(), exact, rtol=1e-6)
        for parameter, array in zip(parameters, arrays, strict=True):
            assert parameter.grad.dtype == array.dtype.name
            assert any(parameter.grad is g for g in grads)
            expected = array.astype("float64") * min(1.0, most / (exact + 1e-6))
            rtol = 2e-3 if array.dtype == "float16" else 1e-6
            np.testing.assert_allclose(values(parameter.grad), expected, rtol=rtol, atol=1e-45)
        for alias, array in zip(aliases, arrays, strict=True):
            np.testing.assert_array_equal(values(alias), array)


def test_clip_grad_value(backend: Any) -> None:
    z = wg.asarray([3 + 4j, 1j], dtype="complex64")
    assert nn.utils.get_total_norm([z, wg.asarray([1.0])]).item() == pytest.approx(27**0.5)
    far = wg.asarray([complex(1, 2), complex(np.inf, 0)], dtype="complex64")
    assert nn.utils.get_total_norm([far, z]).item() == np.inf  # and inf * 0j is nan
    parameter, array = nn.Parameter(wg.zeros((3, 2))), np.linspace(-1, 1, 6).reshape(3, 2)
    parameter.grad = wg.asarray(array, dtype=wg.float32)
    nn.utils.clip_grad_value_([parameter, nn.Parameter(wg.zeros(1))], 0.3)
    np.testing.assert_allclose(values(parameter.grad), np.clip(array, -0.3, 0.3), rtol=1e-7)


@pytest.mark.oracle
def test_utilities_are_pytorchs() -> None:
    """At numbers that are not finite, too."""
    torch = pytest.importorskip("torch")
    arrays = [np.asarray([[1.0, -2.0], [math.inf, 0.5]]), np.asarray([math.nan, -math.inf, 0.1])]
    found = []
    for lib, make in ((nn, wg.asarray), (torch.nn, torch.tensor)):
        held = [lib.Parameter(make(np.zeros_like(a))) for a in arrays]
        for parameter, array in zip(held, arrays, strict=True):
            parameter.grad = make(array)
        norms = [
            lib.utils.get_total_norm([make(a) for a in chosen], order)
            for chosen in (arrays, arrays[:1], [arrays[0][:1], arrays[1][2:]])
            for order in (2.0, 1.0, math.inf)
        ]
        lib.utils.clip_grad_value_(held, 0.3)
        found.append([*norms, *[p.grad for p in held]])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(values(ours), theirs.numpy(force=True), rtol=1e-12)
