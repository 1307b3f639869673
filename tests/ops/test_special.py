"""Special functions against Python's, SciPy's and PyTorch's, and where they are hard."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

INF, NAN = math.inf, math.nan


def tensor(a, dtype="float64"):
    return wg.tensor(a, dtype=dtype, requires_grad=True)


def values(x):
    return np.asarray(x.detach().tolist())


def gradient(out, x):
    (g,) = wg.autograd.grad(out, x, wg.ones_like(out))
    assert g.dtype == x.dtype
    return values(g)


# -- the error function --------------------------------------------------------------------------


def test_error_functions_of_complex_numbers_need_a_library_that_has_them() -> None:
    with wg.use_backend("array_api_strict"), pytest.raises(TypeError, match="complex"):
        wg.erf(wg.tensor([1j]))


# -- extremes ------------------------------------------------------------------------------------

LARGE = [-INF, -1e4, -750.0, -100.0, 0.0, 40.0, 100.0, 750.0, 1e4, INF]


def logistic(x):
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        # (1 - logistic(x) would be 0 where logistic(-x) is not.)
        ("expit", logistic, lambda x: logistic(x) * logistic(-x)),
        ("log_expit", lambda x: -softplus(-x), lambda x: logistic(-x)),
        ("softplus", softplus, logistic),
        ("relu", lambda x: max(x, 0.0), lambda x: float(x > 0)),
        ("leaky_relu", lambda x: x if x > 0 else 0.01 * x, lambda x: 1.0 if x > 0 else 0.01),
    ],
)
def test_extremes_without_overflow(backend: Backend, name, value, slope) -> None:
    x = tensor(LARGE)
    out = getattr(wg, name)(x)
    # Some libraries flush what is below the smallest normal number.
    np.testing.assert_allclose(values(out), [value(v) for v in LARGE], rtol=1e-13, atol=1e-307)
    np.testing.assert_allclose(gradient(out, x), [slope(v) for v in LARGE], rtol=1e-13, atol=1e-307)


@pytest.mark.parametrize("name", ["silu", "gelu"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_smooth_activations_at_large_numbers(backend: Backend, name, dtype) -> None:
    x = tensor([-80.0, 80.0], dtype)
    out = getattr(wg, name)(x)
    np.testing.assert_allclose(values(out), [0, 80], atol=1e-30)
    np.testing.assert_allclose(gradient(out, x), [0, 1], atol=1e-30)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_xlogy_where_a_factor_is_zero(backend: Backend) -> None:
    x, y = tensor([0.0, 0.0, 0.0, 0.0, 2.0, 0.0]), tensor([0.0, -1.0, 3.0, INF, 0.0, NAN])
    out = wg.xlogy(x, y)
    np.testing.assert_array_equal(values(out), [0, 0, 0, 0, -INF, NAN])
    dx, dy = wg.autograd.grad(out, (x, y), wg.ones_like(out))
    np.testing.assert_allclose(values(dx), [0, 0, math.log(3), INF, -INF, NAN], rtol=1e-15)
    np.testing.assert_array_equal(values(dy), [0, 0, 0, 0, INF, NAN])


@pytest.mark.parametrize(("function", "edge"), [(wg.xlogy, 0.0), (wg.special.xlog1py, -1.0)])
def test_products_that_are_zero_are_so_for_all_places(function: Any, edge: float) -> None:
    """All derivatives by the second argument are 0; the mixed one is infinite, and not told."""
    slope = wg.grad(lambda y: function(0.0, y))
    assert wg.grad(slope)(edge) == 0.0
    assert wg.grad(wg.grad(slope))(edge) == 0.0
    found = wg.func.hessian(lambda z: function(z[0], z[1]))(wg.asarray([0.0, edge]))
    np.testing.assert_array_equal(found.numpy(), [[0.0, NAN], [NAN, 0.0]])


def test_xlogy_takes_numbers_and_warns_of_nothing_where_it_is_masked(backend: Backend) -> None:
    y = tensor([0.0, 1.0])
    for x in (0, 0.0):
        out = wg.xlogy(x, y)
        assert values(out).tolist() == [0, 0]
        assert gradient(out, y).tolist() == [0, 0]


def test_relu_has_no_slope_at_zero_and_nan_passes() -> None:
    x = tensor([0.0, -0.0, NAN])
    out = wg.relu(x)
    np.testing.assert_array_equal(values(out), [0, 0, NAN])
    np.testing.assert_array_equal(gradient(out, x), [0, 0, 1])
    assert gradient(wg.leaky_relu(x, 0.2), x).tolist() == [0.2] * 3


def test_gelu_knows_two_forms() -> None:
    with pytest.raises(ValueError, match="'none' or 'tanh'"):
        wg.gelu(tensor([1.0]), approximate="erf")


# -- sums of exponentials ------------------------------------------------------------------------


def random(*shape, complex=False):
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if complex else x


@pytest.mark.parametrize("axis", [None, 0, -1, 1, (0, 2), (-1, 0), ()])
@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmax_family(backend: Backend, axis, shift) -> None:
    special = pytest.importorskip("scipy.special")
    array = random(2, 3, 4) + shift
    x = tensor(array)
    axes = tuple(range(3)) if axis is None else axis
    for name in ("softmax", "log_softmax"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy's own
            expected = getattr(special, name)(array, axis=axes)
        found = getattr(wg, name)(x, axis=axis)
        np.testing.assert_allclose(values(found), expected, rtol=1e-13, atol=1e-13)
    for keepdims in (False, True):
        out = wg.logsumexp(x, axis=axis, keepdims=keepdims)
        top = array.max(axis=axes, keepdims=True)
        total = np.sum(np.exp(array - top), axis=axes, keepdims=True)
        expected = np.log(total) + top
        expected = expected if keepdims else expected.reshape(np.sum(array, axis=axes).shape)
        np.testing.assert_allclose(values(out), expected, rtol=1e-13)
        np.testing.assert_allclose(gradient(out, x), np.exp(array - top) / total, rtol=1e-13)


@pytest.mark.parametrize(
    ("row", "value", "shares"),
    [
        ([-INF, -INF], -INF, [0.5, 0.5]),
        ([INF, 1.0], INF, [1, 0]),
        ([INF, INF], INF, [0.5, 0.5]),
        ([1.0, -INF], 1.0, [1, 0]),
        ([1000.0, 1000.0], 1000 + math.log(2), [0.5, 0.5]),
    ],
)
def test_logsumexp_of_infinities(backend: Backend, row, value, shares) -> None:
    x = tensor([row])
    out = wg.logsumexp(x, axis=1)
    assert values(out).tolist() == [value]
    assert gradient(out, x).tolist() == [shares]


def test_masked_entries_have_no_share(backend: Backend) -> None:
    x = tensor([1.0, -INF, 2.0])
    p, logp = wg.softmax(x), wg.log_softmax(x)
    assert values(p)[1] == 0
    assert values(logp)[1] == -INF
    for out in (p[0], logp[2]):
        (g,) = wg.autograd.grad(out, x, create_graph=True)
        assert np.isfinite(values(g)).all()
        assert values(g)[1] == 0
        (second,) = wg.autograd.grad(wg.sum(g * g), x)
        assert np.isfinite(values(second)).all()


def test_sums_of_nothing(backend: Backend) -> None:
    x = tensor(np.zeros((2, 0)))
    assert values(wg.logsumexp(x, axis=1)).tolist() == [-INF, -INF]
    assert wg.softmax(x, axis=1).shape == (2, 0)
    assert wg.log_softmax(x, axis=0).shape == (2, 0)


def test_weighted_logsumexp(backend: Backend) -> None:
    special = pytest.importorskip("scipy.special")
    array, weights = random(3, 4), random(3, 1) - np.asarray([[0], [0], [5]])
    weights[1] = 0
    a, b = tensor(array), tensor(weights)
    out, sign = wg.logsumexp(a, 0, b, return_sign=True)
    expected, direction = special.logsumexp(array, 0, weights, return_sign=True)
    np.testing.assert_allclose(values(out), expected, rtol=1e-13)
    assert values(sign).tolist() == direction.tolist()
    terms = weights * np.exp(array)
    da, db = wg.autograd.grad(out, (a, b), wg.ones_like(out))
    np.testing.assert_allclose(values(da), terms / terms.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        values(db), (np.exp(array) / terms.sum(axis=0)).sum(axis=1, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("large", [1e5, INF])
def test_terms_without_weight_may_be_large(backend: Backend, large, dtype) -> None:
    a = wg.tensor([large, 1.0, -INF], dtype=dtype, requires_grad=True)
    out = wg.logsumexp(a, b=wg.tensor([0.0, 2.0, 1.0], dtype=dtype))
    assert out.item() == pytest.approx(1 + math.log(2))
    assert gradient(out, a).tolist() == [0, 1, 0]


# -- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.oracle)])
def test_slopes_of_half_precision_at_probabilities_that_round_to_1(dtype) -> None:
    """Against double precision: what is left of 1 is the sum of the others."""
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    functional = wg.nn.functional
    functions = (
        lambda x: wg.softmax(x, axis=1)[:, 0],
        lambda x: wg.log_softmax(x, axis=1)[:, 0],
        lambda x: functional.cross_entropy(x, wg.zeros(2, dtype="int64"), reduction="sum"),
        lambda x: functional.binary_cross_entropy_with_logits(x, wg.ones_like(x), reduction="sum"),
        lambda x: wg.expit(x),
        lambda x: wg.tanh(x),
    )
    with wg.use_backend("torch" if dtype == "bfloat16" else "numpy"):
        half = wg.astype(wg.asarray([[6.0, 0.0, -1.0], [7.5, -0.5, -2.0]]), getattr(wg, dtype))
        eps = float(wg.finfo(half.dtype).eps)
        weight = np.array([1.0, -2.0, 0.5])
        for function in functions:
            found = []
            for x in (half, wg.astype(half, wg.float64)):
                y = function(x.requires_grad_())
                (g,) = wg.autograd.grad(wg.sum(y), x, create_graph=True)
                (h,) = wg.autograd.grad(wg.sum(g * wg.asarray(weight, dtype=x.dtype)), x)
                t = wg.jvp(function, (x.detach(),), (wg.eye(2, 3, dtype=x.dtype),))[1]
                found.append([np.asarray(v.tolist()) for v in (g, h, t)])
            for ours, right in zip(*found, strict=True):
                np.testing.assert_allclose(ours, right, rtol=16 * eps, atol=1e-6)
