"""Quantiles, and unit vectors: values, derivatives, special values and errors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import check_examples, gradient, tensor
from wengert.testing import gradcheck
from wengert.testing import strategies as ws
from wengert.testing.problem import values

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


LEVELS = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0])


@st.composite
def quantiles(draw, methods=METHODS):
    x = draw(ws.arrays(shape=ws.shapes(min_side=1), unique=True))
    q = draw(
        LEVELS
        | st.lists(LEVELS, max_size=3)
        | st.lists(LEVELS, min_size=2, max_size=2).map(lambda q: np.asarray([q]))
    )
    return (
        x,
        q,
        {
            "axis": draw(ws.axes(x.ndim, min_size=1)) if x.ndim else None,
            "keepdims": draw(st.booleans()),
            "method": draw(st.sampled_from(methods)),
        },
    )


def test_quantiles(backend):
    def check(drawn):
        x, q, kwargs = drawn
        wanted = np.quantile(x, np.asarray(q, float), **kwargs)
        found = wg.quantile(tensor(x), q, **kwargs)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(values(found), wanted, rtol=1e-12, atol=1e-14)
        gradcheck(lambda x: wg.quantile(x, q, **kwargs), [tensor(x, True)], fast_mode=True)

    check_examples(
        {"numpy": 15, "array_api_strict": 4, "torch": 4}.get(backend.name, 1), check, quantiles()
    )


@pytest.mark.oracle
@pytest.mark.parametrize("method", METHODS)
def test_quantile_has_pytorchs_derivatives(method):
    """Also with respect to the level, and among equal elements."""
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    q = np.asarray([0.0, 0.15, 0.5, 0.62, 1.0])
    for x in (random.standard_normal((3, 6)), np.asarray([[2.0, 2.0, 1.0, 2.0]])):
        ours, level = tensor(x, True), tensor(q, True)
        out = wg.quantile(ours, level, axis=1, method=method)
        other = torch.tensor(x, requires_grad=True)
        theirs_level = torch.tensor(q, requires_grad=True)
        theirs = torch.quantile(other, theirs_level, dim=1, interpolation=method)
        np.testing.assert_allclose(values(out), theirs.numpy(force=True), rtol=1e-12)
        g = random.standard_normal(out.shape)
        mine = wg.autograd.grad(out, (ours, level), tensor(g), materialize_grads=True)
        his = torch.autograd.grad(
            theirs, (other, theirs_level), torch.tensor(g), materialize_grads=True
        )
        np.testing.assert_allclose(values(mine[0]), his[0].numpy(), rtol=1e-10, atol=1e-12)
        # On an element PyTorch has no slope by the level; here it is that to the next.
        inside = np.asarray([0 < each < 1 for each in q])
        np.testing.assert_allclose(
            values(mine[1])[inside], his[1].numpy()[inside], rtol=1e-10, atol=1e-12
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quantile_that_is_nan_has_no_finite_derivative(backend):
    x = tensor(np.asarray([[1.0, np.nan, 2.0], [-np.inf, 4.0, np.inf], [3.0, 1.0, 2.0]]), True)
    for q in (0.25, 0.5, tensor(np.asarray(0.5))):
        out = wg.quantile(x, q, axis=1)
        _, t = wg.func.jvp(
            lambda x, q=q: wg.quantile(x, q, axis=1), (x.detach(),), (wg.ones_like(x),)
        )
        unknown = np.isnan(values(out))
        np.testing.assert_array_equal(np.isnan(gradient(out, x)).any(axis=1), unknown)
        np.testing.assert_array_equal(np.isnan(values(t)), unknown)


def test_quantile_errors():
    x = tensor(np.ones((2, 3)))
    cases = [
        (ValueError, "between 0 and 1", lambda: wg.quantile(x, 1.5)),
        (ValueError, "between 0 and 1", lambda: wg.quantile(x, [0.5, np.nan])),
        (ValueError, "method is one of", lambda: wg.quantile(x, 0.5, method="cubic")),
        (ValueError, "twice", lambda: wg.quantile(x, 0.5, axis=(0, 0))),
        (IndexError, "axis 2", lambda: wg.median(x, axis=2)),
        (ValueError, "median of no elements", lambda: wg.median(tensor(np.ones((2, 0))), axis=1)),
        (TypeError, "median needs a real floating", lambda: wg.median(tensor(np.arange(3)))),
        (TypeError, "quantile needs a real", lambda: wg.quantile(tensor(np.ones(2, complex)), 0.5)),
        (TypeError, "q is of a real", lambda: wg.quantile(x, tensor(np.asarray(1)))),
        (TypeError, "wg.asarray", lambda: wg.median([1.0])),
    ]
    for error, match, call in cases:
        with pytest.raises(error, match=match):
            call()


def test_quantiles_between_equal_infinities_have_the_slopes_of_others(backend) -> None:
    for infinite in (-math.inf, math.inf):
        x = wg.asarray([infinite] * 3 if infinite < 0 else [1.0, infinite, infinite, infinite])
        q, right = (0.375, [0.25, 0.75, 0]) if infinite < 0 else (0.75, [0, 0, 0.75, 0.25])
        found, moved = wg.jvp(lambda x, q=q: wg.quantile(x, q), (x,), (wg.asarray(right),))
        assert found.item() == infinite
        assert moved.item() == 0.625
        np.testing.assert_array_equal(wg.grad(lambda x, q=q: wg.quantile(x, q))(x).numpy(), right)
        assert not wg.grad(lambda q, x=x: wg.quantile(x, q))(wg.asarray(q)).item()


@pytest.mark.parametrize("function", [wg.quantile, np.nanquantile])
def test_slopes_by_the_share_at_an_element(backend, function) -> None:
    """Beside an infinite element there is none, and at the last one it is that from below."""

    def slope(x, q):
        x, q = (wg.asarray(v, dtype="float64") for v in (x, q))
        by_q = wg.grad(lambda q: function(x, q))(q).item()
        np.testing.assert_equal(
            wg.jvp(lambda q: function(x, q), (q,), (q * 0 + 1,))[1].item(), by_q
        )
        return by_q

    for x, q in (([1, 2, math.inf], 0.5), ([1, 2, math.inf], 1), ([-math.inf, 1], 0)):
        assert not math.isfinite(slope(x, q))
    assert [slope([1, 2, 4], q) for q in (0, 0.5, 1)] == [2, 4, 4]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nanmedians_beside_infinities_are_numpys(backend) -> None:
    for n in (2, 3):
        for x in itertools.product((-np.inf, -1.0, 2.0, np.inf, np.nan), repeat=n):
            found = values(np.nanmedian(tensor(np.asarray(x))))
            np.testing.assert_array_equal(found, np.nanmedian(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_beside_one_infinity_are_numpys(backend) -> None:
    """Or those of its median, where NumPy's interpolation is nan between no opposite infinities."""
    for x in itertools.combinations_with_replacement((-np.inf, -1.0, 2.0, np.inf), 3):
        for n in (2, 3):
            given = np.asarray(x[:n])
            np.testing.assert_array_equal(values(wg.median(tensor(given))), np.median(given))
        levels = [0.0, 0.125, 0.5, 0.625, 0.75, 1.0]
        found, wanted = values(wg.quantile(tensor(np.asarray(x)), levels)), np.quantile(x, levels)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(found[known], wanted[known])
        for q, one in zip(levels, found, strict=True):
            between = x[math.floor(q * 2)], x[math.ceil(q * 2)]
            assert np.isnan(one) == (q * 2 % 1 > 0 and between == (-np.inf, np.inf))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_quantiles_beside_one_infinity_have_the_slopes_of_others(backend) -> None:
    for x, q, right in (([0.5, -np.inf], 0.25, [0.25, 0.75]), ([np.inf, 0.5], 0.75, [0.75, 0.25]),
                        ([-(2.0**1023), 2.0**1023], 0.25, [0.75, 0.25])):  # fmt: skip
        x = tensor(np.asarray(x))
        found, moved = wg.jvp(lambda x, q=q: wg.quantile(x, q), (x,), (tensor(np.asarray(right)),))
        assert found.item() == (-(2.0**1022) if np.isfinite(values(x)).all() else x.numpy().sum())
        assert moved.item() == 0.625
        np.testing.assert_array_equal(wg.grad(lambda x, q=q: wg.quantile(x, q))(x).numpy(), right)
        level = tensor(np.asarray(q))
        assert wg.grad(lambda q, x=x: wg.quantile(x, q))(level).item() == np.inf


# -- unit vectors --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_one_hot(axis, dtype, backend):
    x = np.asarray([[0, 2, 1], [3, 0, 0]], dtype)
    found = wg.one_hot(tensor(x), 3, axis=axis)
    assert found.dtype == wg.get_default_dtype()
    np.testing.assert_array_equal(values(found), np.moveaxis(np.eye(4, 3)[x], -1, axis))
    assert wg.one_hot(tensor(x), 2, dtype=wg.int32).dtype == wg.int32


def test_one_hot_errors():
    with pytest.raises(TypeError, match="integer dtype"):
        wg.one_hot(tensor(np.ones(2)), 3)
    with pytest.raises(ValueError, match="can't be negative, and is -1"):
        wg.one_hot(tensor(np.arange(2)), -1)
    with pytest.raises(IndexError, match="axis 2"):
        wg.one_hot(tensor(np.arange(2)), 3, axis=2)
