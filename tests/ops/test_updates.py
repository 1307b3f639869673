"""Functional updates: repeated indices on every backend, derivatives, ties and errors."""

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import check_examples, tensor
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing import strategies as ws
from wengert.testing.problem import values

UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
#: Dask does not know before it computes how many elements a mask chooses.
MASKED = {"dask"}


def is_mask(key):
    return isinstance(key, np.ndarray) and key.dtype == bool


def as_key(key):
    """A drawn key with Tensors for its arrays."""
    if isinstance(key, tuple):
        return tuple(map(as_key, key))
    return tensor(key) if isinstance(key, np.ndarray) else key


@st.composite
def updates(draw, low=-2.0, complex_=False):
    """An array, a key that may repeat places, and a value that broadcasts to what it names."""
    shape = draw(ws.shapes(min_side=1))
    key = draw(ws.index_keys(shape))
    chosen = np.shape(np.empty(shape)[key])
    given_shape = tuple(n if draw(st.booleans()) else 1 for n in chosen)
    if is_mask(key):
        given_shape = chosen
    elements = ws.reals(low, 2, away_from=(0,)) if low else ws.reals(0.25, 2)
    kind = "float64"
    if complex_:
        elements, kind = ws.complexes(elements), "complex128"
    x = draw(ws.arrays(kind, shape, elements=elements))
    return x, key, draw(ws.arrays(kind, given_shape, elements=elements))


@pytest.mark.parametrize("name", UFUNCS)
def test_values_are_those_of_numpys_ufunc_at(name, backend):
    def check(update):
        x, key, value = update
        if is_mask(key) and backend.name in MASKED:
            return
        wanted = x.copy()
        UFUNCS[name].at(wanted, key, value)
        ours = tensor(x)
        found = getattr(wg.at(ours)[as_key(key)], name)(tensor(value))
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(values(found), wanted, rtol=1e-12)
        np.testing.assert_array_equal(values(ours), x)

    check_examples(
        {"numpy": 25, "array_api_strict": 4, "torch": 6}.get(backend.name, 1), check, updates()
    )


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_derivatives(name, complex_, backend):
    def check(update):
        x, key, value = update
        if is_mask(key) and backend.name in MASKED:
            return
        call = lambda x, value: getattr(wg.at(x)[as_key(key)], name)(value)
        inputs = [tensor(x, True), tensor(value, True)]
        assert gradcheck(call, inputs, fast_mode=True)
        if backend.name == "numpy":
            assert gradgradcheck(call, inputs, fast_mode=True)

    check_examples({"numpy": 8, "torch": 2}.get(backend.name, 1), check, updates(complex_=complex_))


def test_products_have_derivatives_at_zeros(backend):
    """The derivative of a product is that of the other factors, however many are zero."""
    x = tensor(np.asarray([2.0, 0.0, 5.0]), True)
    value = tensor(np.asarray([3.0, 0.0, 4.0, 7.0, 0.0]), True)
    rows = tensor(np.asarray([0, 0, 2, 1, 2]))
    out = wg.at(x)[rows].multiply(value)
    np.testing.assert_array_equal(values(out), [0, 0, 0])
    gx, gv = wg.autograd.grad(out, (x, value), wg.ones_like(out), create_graph=True)
    np.testing.assert_array_equal(values(gx), [0, 7, 0])
    np.testing.assert_array_equal(values(gv), [0, 6, 0, 0, 20])
    if backend.name != "dask":  # where each evaluation is a graph
        gradgradcheck(lambda x, v: wg.at(x)[rows].multiply(v), [x, value])


def test_products_leave_other_places_as_they_are(backend):
    """What one place becomes, infinite or NaN, has no part in the others."""
    x = tensor(np.asarray([1.0, -2.0, 3.0, 0.0]), True)
    value = tensor(np.asarray([np.inf, 2.0, np.nan, 2.0, 5.0, 1.0]), True)
    rows = tensor(np.asarray([0, 1, 2, 1, 0, 3]))
    out = wg.at(x)[rows].multiply(value)
    np.testing.assert_array_equal(values(out), [np.inf, -8, np.nan, 0])
    gx, gv = wg.autograd.grad(out, (x, value), wg.ones_like(out))
    np.testing.assert_array_equal(values(gx), [np.inf, 4, np.nan, 1])
    np.testing.assert_array_equal(values(gv), [5, -4, 3, -4, np.inf, 0])


def test_of_several_values_one_is_set_and_has_the_derivative(backend):
    x = tensor(np.zeros(3), True)
    value = tensor(np.asarray([1.0, 2.0, 3.0]), True)
    out = wg.at(x)[tensor(np.asarray([1, 1, 2]))].set(value)
    assert values(out)[1] in (1, 2)
    gx, gv = wg.autograd.grad(out, (x, value), wg.ones_like(out))
    np.testing.assert_array_equal(values(gx), [1, 0, 0])
    np.testing.assert_array_equal(values(gv), [*(values(out)[1] == [1, 2]), 1])


@pytest.mark.parametrize(("name", "sign"), [("max", 1), ("min", -1)])
def test_ties_share_evenly(name, sign, backend):
    x = tensor(sign * np.asarray([2.0, 5.0, 1.0]), True)
    value = tensor(sign * np.asarray([2.0, 2.0, 1.0, 6.0, 6.0]), True)
    rows = tensor(np.asarray([0, 0, 0, 1, 1]))
    out = getattr(wg.at(x)[rows], name)(value)
    np.testing.assert_array_equal(values(out), sign * np.asarray([2, 6, 1]))
    gx, gv = wg.autograd.grad(out, (x, value), wg.ones_like(out), create_graph=True)
    third = 1 / 3
    np.testing.assert_allclose(values(gx), [third, 0, 1])
    np.testing.assert_allclose(values(gv), [third, third, 0, 0.5, 0.5])
    # Without a place that repeats it is the same as `maximum`: half each.
    out = getattr(wg.at(x)[:1], name)(value[:1])
    gx, gv = wg.autograd.grad(out, (x, value), wg.ones_like(out))
    np.testing.assert_allclose(values(gx), [0.5, 1, 1])
    np.testing.assert_allclose(values(gv), [0.5, 0, 0, 0, 0])


def test_nan_is_the_extreme(backend):
    x = tensor(np.asarray([1.0, np.nan, 3.0]), True)
    value = tensor(np.asarray([np.nan, 2.0, 4.0]), True)
    rows = tensor(np.asarray([0, 1, 2]))
    for name in ("max", "min"):
        out = getattr(wg.at(x)[rows], name)(value)
        assert np.isnan(values(out)).tolist() == [True, True, False]
        gx, _ = wg.autograd.grad(out, (x, value), wg.ones_like(out))
        assert np.isnan(values(gx)).tolist() == [True, True, False]
    # One that is not touched stays as it is, and so does its derivative.
    out = wg.at(x)[rows[:1]].max(value[1:2])
    (gx,) = wg.autograd.grad(out, x, wg.ones_like(out))
    np.testing.assert_array_equal(values(gx), [0, 1, 1])


def test_power_and_get(backend):
    x = np.asarray([1.0, 2.0, 3.0, 4.0])
    t = tensor(x, True)
    np.testing.assert_array_equal(values(wg.at(t)[1:3].power(2)), [1, 4, 9, 4])
    np.testing.assert_array_equal(values(wg.at(t, slice(1, 3)).get()), [2, 3])
    exponent = tensor(np.asarray([3.0, 0.5]), True)
    gradcheck(lambda t, e: wg.at(t)[::2].power(e), [t, exponent])


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_numbers_lists_and_dtypes(dtype, backend):
    x = np.asarray([4, 6, 8]).astype(dtype)
    rows = tensor(np.asarray([0, 0, 2]))
    t = tensor(x)
    for found, wanted in (
        (wg.at(t)[rows].add(1), [6, 6, 9]),
        (wg.at(t)[rows].subtract([1, 2, 3]), [1, 6, 5]),
        (wg.at(t)[rows].multiply(np.int8(2)), [16, 6, 16]),
        (wg.at(t)[1].add(True), [4, 7, 8]),
        (wg.at(t)[:].set(0), [0, 0, 0]),
        (wg.at(t)[rows[:0]].multiply(3), [4, 6, 8]),
    ):
        assert found.dtype == dtype
        assert found.backend is backend
        np.testing.assert_array_equal(values(found), np.asarray(wanted).astype(dtype))
    if dtype != "complex64":
        np.testing.assert_array_equal(values(wg.at(t)[rows].max(5)), [5, 6, 8])
        np.testing.assert_array_equal(values(wg.at(t)[rows[:0]].min(5)), [4, 6, 8])


def test_errors(backend):
    x = tensor(np.ones((2, 3)))
    whole, flag = tensor(np.asarray([1, 2])), tensor(np.asarray([True, False]))
    z = tensor(np.ones(2, complex))
    rows = tensor(np.asarray([0, 0]))
    cases = [
        (ValueError, "the index is missing", lambda: wg.at(x).set(1)),
        (ValueError, "given already", lambda: wg.at(x)[0][1]),
        (IndexError, "out of bounds", lambda: wg.at(x)[2].add(1)),
        (IndexError, "valid indices", lambda: wg.at(x)["a"].set(1)),
        (TypeError, r"at\.add: a real floating value", lambda: wg.at(whole)[0].add(1.5)),
        (TypeError, r"at\.max: a complex floating value", lambda: wg.at(x)[0].max(1j)),
        (TypeError, r"at\.multiply: a real floating value", lambda: wg.at(whole)[rows].multiply(x)),
        (TypeError, "at.divide needs a floating or complex", lambda: wg.at(whole)[0].divide(2)),
        (TypeError, "real dtype", lambda: wg.at(z)[rows].min(1.0)),
        (TypeError, "numeric array, not bool", lambda: wg.at(flag)[0].add(True)),
        (TypeError, "a complex floating value", lambda: wg.at(x)[0].set(1j)),
        (ValueError, "broadcast", lambda: wg.at(x)[rows].add(tensor(np.ones(2)))),
        (TypeError, "list", lambda: wg.at([1.0, 2.0])),
    ]
    for error, match, call in cases:
        with pytest.raises(error, match=match):
            call()
