"""Reductions where they are hard: zeros, ties, no elements, NaN, no spread."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend
from wengert.testing import gradcheck, gradgradcheck


def gradient(function: Any, x: Any, g: Any = None, **more: Any) -> np.ndarray:
    t = wg.asarray(np.asarray(x), requires_grad=True)
    y = function(t, **more)
    g = np.ones(y.shape, y.detach().numpy().dtype) if g is None else np.asarray(g)
    y.backward(wg.asarray(g))
    return t.grad.numpy()


ZEROS = [
    [2.0, 3.0, 4.0],
    [0.0, 3.0, 4.0],
    [2.0, 0.0, 4.0],
    [2.0, 3.0, 0.0],
    [0.0, 3.0, 0.0],
    [0.0, 0.0, 0.0],
    [5.0],
    [0.0],
]


@pytest.mark.parametrize("x", ZEROS, ids=str)
def test_slopes_of_products_at_zeros(backend: Backend, x: list[float]) -> None:
    others = [math.prod(x[:i] + x[i + 1 :]) for i in range(len(x))]
    np.testing.assert_array_equal(gradient(wg.prod, x), others)
    g = np.arange(1.0, len(x) + 1)
    want = [
        sum(g[k] * math.prod(x[:i] + x[i + 1 : k + 1]) for k in range(i, len(x)))
        for i in range(len(x))
    ]
    np.testing.assert_allclose(gradient(wg.cumulative_prod, x, g), want, rtol=1e-15)


@pytest.mark.parametrize("x", ZEROS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products_have_all_derivatives_at_zeros(x: list[float], dtype: str) -> None:
    t = wg.asarray(np.asarray(x, dtype), requires_grad=True)
    for function in (
        wg.prod,
        wg.cumulative_prod,
        lambda t: wg.cumulative_prod(t, include_initial=True),
    ):
        assert gradcheck(function, (t,))
        assert gradgradcheck(function, (t,))


def test_prod_over_several_axes_at_zeros() -> None:
    x = np.arange(24.0).reshape(2, 3, 4) / 10
    x[1, 2, 3] = 0
    t = wg.asarray(x, requires_grad=True)
    for axis in [(0, 2), (2, 0), (-1,), (0, 1, 2), ()]:
        assert gradcheck(lambda t, axis=axis: wg.prod(t, axis=axis), (t,))
        assert gradgradcheck(lambda t, axis=axis: wg.prod(t, axis=axis, keepdims=True), (t,))


@pytest.mark.parametrize("function", [wg.max, wg.min])
def test_ties_share_evenly(backend: Backend, function: Any) -> None:
    x = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    best = x == (x.max(1, keepdims=True) if function is wg.max else x.min(1, keepdims=True))
    want = best / best.sum(1, keepdims=True) * np.array([[1.0], [2], [3]])
    np.testing.assert_allclose(gradient(function, x, [1.0, 2.0, 3.0], axis=1), want)
    for keepdims in (True, False):
        want = (x == (2 if function is wg.max else 0)) / 3
        np.testing.assert_allclose(gradient(function, x, keepdims=keepdims), want)


@pytest.mark.parametrize("function", [wg.max, wg.min])
def test_an_infinite_extreme_has_a_derivative(backend: Backend, function: Any) -> None:
    inf = math.inf if function is wg.max else -math.inf
    np.testing.assert_array_equal(gradient(function, [inf, 0.0, inf]), [0.5, 0, 0.5])


@pytest.mark.parametrize("function", [wg.max, wg.min])
def test_the_derivative_of_a_nan_is_nan(backend: Backend, function: Any) -> None:
    x = [[math.nan, 1.0], [1.0, 2.0]]
    found = gradient(function, x, axis=1)
    assert np.isnan(found[0]).all()
    assert sorted(found[1]) == [0, 1]


def test_no_elements(backend: Backend) -> None:
    for function, value in ((wg.sum, 0), (wg.prod, 1)):
        y = function(wg.asarray(np.zeros((0, 3))), axis=0)
        np.testing.assert_array_equal(y.numpy(), [value] * 3)
        assert gradient(function, np.zeros((0, 3)), axis=0).shape == (0, 3)
        assert gradient(function, np.zeros((3, 0)), axis=0).shape == (3, 0)
    for function in (wg.max, wg.min):
        with pytest.raises(ValueError, match="no elements"):
            function(wg.asarray(np.zeros((0, 3))), axis=0)
        assert gradient(function, np.zeros((3, 0)), axis=0).shape == (3, 0)
    for function in (wg.mean, wg.var, wg.std):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert gradient(function, np.zeros((2, 0)), axis=0).shape == (2, 0)
    for function in (wg.cumulative_sum, wg.cumulative_prod):
        assert gradient(function, np.zeros((0, 3)), axis=0).shape == (0, 3)
        y = function(wg.asarray(np.zeros((0, 2))), axis=0, include_initial=True)
        assert y.shape == (1, 2)


@pytest.mark.parametrize("function", [wg.var, wg.std])
def test_spread_without_degrees_of_freedom(function: Any) -> None:
    """PyTorch's: NaN where the deviation is 0, as it must be with one element."""
    with pytest.warns(RuntimeWarning):
        assert math.isnan(gradient(function, [3.0], correction=1)[0])


@pytest.mark.parametrize("function", [np.var, np.std])
@pytest.mark.parametrize("more", [{"mean": 2.5}, {"where": [True, True, False, True]}])
def test_numpys_spread_without_degrees_of_freedom(function: Any, more: Any) -> None:
    x = wg.tensor([1.0, 2.0, 3.0, 4.0], dtype=wg.float64)
    with np.errstate(divide="ignore"):
        assert [float(function(x, ddof=ddof, **more)) for ddof in (4, 5)] == [math.inf] * 2


def test_float16_does_not_overflow_on_the_way() -> None:
    x = np.full((2, 100), 1000, np.float16)
    for axis, keepdims in ((None, False), (None, True), (1, False), (0, True)):
        for function, expected in ((wg.mean, np.mean), (wg.var, np.var), (wg.std, np.std)):
            found = function(wg.asarray(x), axis=axis, keepdims=keepdims)
            wanted = expected(x.astype(float), axis=axis, keepdims=keepdims)
            assert found.dtype is wg.float16
            np.testing.assert_array_equal(found.numpy(), wanted, strict=False)
            assert found.shape == wanted.shape
