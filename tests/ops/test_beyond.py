"""Margins, quantiles and unit vectors: values, derivatives, special values and errors."""

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import DTYPES, check_examples, tensor
from wengert.ops.beyond.padding import Mode
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing import strategies as ws
from wengert.testing.problem import values

EXAMPLES = {"numpy": 15, "array_api_strict": 4, "torch": 4}
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def run(backend, strategy, check):
    check_examples(EXAMPLES.get(backend.name, 1), check, strategy)


# -- pad -----------------------------------------------------------------------------------------

MODES = get_args(Mode)


@st.composite
def paddings(draw, mode):
    x = draw(
        ws.arrays(
            DTYPES[draw(st.sampled_from(["real", "complex"]))],
            ws.shapes(min_side=0 if mode == "constant" else 1),
            elements=ws.reals(-2, 2),
        )
    )
    width = st.integers(0, 5)
    pair = st.tuples(width, width)
    choices = [width, pair, st.lists(pair, min_size=x.ndim, max_size=x.ndim)]
    if x.ndim:
        choices.append(st.dictionaries(ws.axis(x.ndim), width | pair, max_size=1))
    return x, draw(st.one_of(choices))


@pytest.mark.parametrize("mode", MODES)
def test_pad_of_integers(mode):
    x = np.asarray([[3, -8, 5, 6], [1, 7, -2, 0]])
    found = wg.pad(tensor(x), 9, mode)
    assert found.dtype is wg.int64
    np.testing.assert_array_equal(values(found), np.pad(x, 9, mode))


@pytest.mark.parametrize("mode", MODES)
def test_pad(mode, backend):
    def check(padding):
        x, width = padding
        if x.ndim == 0 and not isinstance(width, int | tuple):
            width = 0
        found = wg.pad(tensor(x), width, mode)
        pairs = width
        if isinstance(width, dict):  # an error of NumPy's before 2.4
            pairs = [width.get(i, width.get(i - x.ndim, 0)) for i in range(x.ndim)]
            pairs = [(n, n) if isinstance(n, int) else n for n in pairs]
        wanted = np.pad(x, pairs, mode)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(values(found), wanted)
        gradcheck(lambda x: wg.pad(x, width, mode), [tensor(x, True)], fast_mode=True)

    run(backend, paddings(mode), check)


@pytest.mark.parametrize(
    "constants", [2.5, (1, 2.5), [(1, 2), (3, 4)], [[7.0]], ((1,), (2, 3)), (5.0,)], ids=str
)
def test_constants(constants, backend):
    x = np.arange(6.0).reshape(2, 3)
    found = wg.pad(tensor(x), ((1, 2), (2, 0)), constant_values=constants)
    plain = ((1, 1), (2, 3)) if constants == ((1,), (2, 3)) else constants
    np.testing.assert_array_equal(values(found), np.pad(x, ((1, 2), (2, 0)), constant_values=plain))


def test_constants_that_are_tensors_have_derivatives(backend):
    x = tensor(np.ones((2, 2)), True)
    a, b = tensor(np.asarray(3.0), True), tensor(np.asarray(4.0), True)
    call = lambda x, a, b: wg.pad(x, 1, constant_values=((a, b), (b, 2.0)))
    np.testing.assert_array_equal(
        values(call(x, a, b)), np.pad(np.ones((2, 2)), 1, constant_values=((3, 4), (4, 2)))
    )
    gradcheck(call, [x, a, b], fast_mode=backend.name == "dask")
    ga, gb = wg.autograd.grad(wg.sum(call(x, a, b)), (a, b))
    # The corners belong to the last axis.
    assert (float(ga), float(gb)) == (2, 6)


@pytest.mark.parametrize("mode", get_args(Mode))
def test_no_margin_gives_a_new_tensor_also_with_tangents(mode):
    def check(x):
        found = wg.pad(x, 0, mode)
        assert found is not x
        found += 1.0
        return x

    x = tensor(np.ones((2, 3)))
    check(x)
    wg.jvp(check, (x,), (x,))
    np.testing.assert_array_equal(values(x), 1.0)


def test_pad_errors():
    x = tensor(np.ones((2, 3)))
    empty = tensor(np.ones((0, 3)))
    cases = [
        (ValueError, "mode is one of", lambda: wg.pad(x, 1, "average")),
        (ValueError, "can't be negative", lambda: wg.pad(x, -1)),
        (ValueError, "a pair for each of 2 axes", lambda: wg.pad(x, [(1, 1)] * 3)),
        (TypeError, "of integers", lambda: wg.pad(x, 1.5)),
        (ValueError, "no elements to extend", lambda: wg.pad(empty, 1, "edge")),
        (ValueError, "constant_values is", lambda: wg.pad(x, 1, constant_values=(1, 2, 3))),
        (TypeError, "does not fit", lambda: wg.pad(x, 1, constant_values=1j)),
        (ValueError, "axis 2", lambda: wg.pad(x, {2: 1})),
        (TypeError, "wg.asarray", lambda: wg.pad([1, 2], 1)),
    ]
    for error, match, call in cases:
        with pytest.raises(error, match=match):
            call()


# -- quantiles -----------------------------------------------------------------------------------

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

    run(backend, quantiles(), check)


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


def test_the_level_as_a_tensor(backend):
    x = np.random.default_rng(0).standard_normal((2, 7))
    q = np.asarray([[0.1, 0.45], [0.72, 0.9]])
    inputs = [tensor(x, True), tensor(q, True)]
    call = lambda x, q: wg.quantile(x, q, axis=1)
    np.testing.assert_allclose(values(call(*inputs)), np.quantile(x, q, axis=1), rtol=1e-12)
    gradcheck(call, inputs, fast_mode=True)
    if backend.name != "dask":  # where each evaluation is a graph
        gradgradcheck(call, inputs, fast_mode=True)
    out = wg.quantile(inputs[0], tensor(np.asarray([-0.1, 0.5, 1.1])))
    assert np.isnan(values(out)).tolist() == [True, False, True]


def test_special_values(backend):
    inf, nan = np.inf, np.nan
    for x in ([inf, inf], [-inf, -inf, 1.0], [1.0, inf], [nan, 1.0], [inf, inf, inf, nan]):
        for q, wanted in ((0.0, np.min(x)), (0.5, np.median(x)), (1.0, np.max(x))):
            np.testing.assert_array_equal(values(wg.quantile(tensor(np.asarray(x)), q)), wanted)
    x = tensor(np.asarray([inf, inf, 1.0]), True)
    out = wg.quantile(x, [0.75, 0.0])
    np.testing.assert_array_equal(values(out), [inf, 1])
    (g,) = wg.autograd.grad(out, x, wg.ones_like(out))
    assert np.isfinite(values(g)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quantile_that_is_nan_has_no_finite_derivative(backend):
    x = tensor(np.asarray([[1.0, np.nan, 2.0], [-np.inf, 4.0, np.inf], [3.0, 1.0, 2.0]]), True)
    for q in (0.25, 0.5, tensor(np.asarray(0.5))):
        out = wg.quantile(x, q, axis=1)
        (g,) = wg.autograd.grad(out, x, wg.ones_like(out))
        _, t = wg.func.jvp(
            lambda x, q=q: wg.quantile(x, q, axis=1), (x.detach(),), (wg.ones_like(x),)
        )
        unknown = np.isnan(values(out))
        np.testing.assert_array_equal(np.isnan(values(g)).any(axis=1), unknown)
        np.testing.assert_array_equal(np.isnan(values(t)), unknown)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_quantiles_stay_in_their_precision(dtype, backend):
    try:
        backend.raw_dtype(getattr(wg, dtype))
    except TypeError:
        pytest.skip(f"{backend.name} has no {dtype}")
    x = tensor(np.asarray([1, 2, 4], dtype), True)
    for q in (0.25, [0.3], tensor(np.asarray(0.25))):
        out = wg.quantile(x, q)
        assert out.dtype == dtype
        (g,) = wg.autograd.grad(out, x, wg.ones_like(out))
        assert g.dtype == dtype


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


# -- unit vectors --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_one_hot(axis, dtype, backend):
    x = np.asarray([[0, 2, 1], [3, 0, 0]], dtype)
    found = wg.one_hot(tensor(x), 3, axis=axis)
    assert found.dtype == wg.get_default_dtype()
    np.testing.assert_array_equal(values(found), np.moveaxis(np.eye(4, 3)[x], -1, axis))
    assert wg.one_hot(tensor(x), 2, dtype=wg.int32).dtype == wg.int32


def test_one_hot_of_what_is_out_of_range(backend):
    found = wg.one_hot(tensor(np.asarray([-1, 5, 1])), 2)
    np.testing.assert_array_equal(values(found), [[0, 0], [0, 0], [0, 1]])
    assert wg.one_hot(tensor(np.asarray(0)), 0).shape == (0,)


def test_one_hot_errors():
    with pytest.raises(TypeError, match="integer dtype"):
        wg.one_hot(tensor(np.ones(2)), 3)
    with pytest.raises(ValueError, match="can't be negative, and is -1"):
        wg.one_hot(tensor(np.arange(2)), -1)
    with pytest.raises(IndexError, match="axis 2"):
        wg.one_hot(tensor(np.arange(2)), 3, axis=2)


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
