"""The strategies give what they say, special cases among it, on every backend."""

import math

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import wengert as wg
from wengert.testing import strategies as ws
from wengert.testing.problem import values


def reaches(strategy, wanted):
    """Whether a strategy gives something that fits, within a thousand tries."""
    first = settings(max_examples=1000, database=None, phases=[Phase.generate])
    return find(strategy, wanted, settings=first)


def test_tensors_are_the_backends_own(backend):
    @settings(max_examples=5)
    @given(ws.tensors(requires_grad=True))
    def check(x):
        assert isinstance(x, wg.Tensor)
        assert x.backend is backend
        assert x.requires_grad and x.is_leaf
        assert x.dtype is wg.float64

    check()


def test_dtypes_are_those_that_the_backend_has(backend):
    found = set()

    @settings(max_examples=30)
    @given(ws.dtypes())
    def check(dtype):
        backend.raw_dtype(dtype)
        found.add(dtype.name)

    check()
    assert {"float32", "float64", "complex64", "complex128"} <= found


def test_shapes_have_zeros_ones_and_none_at_all():
    assert reaches(ws.shapes(), lambda shape: shape == ()) == ()
    assert 0 in reaches(ws.shapes(), lambda shape: 0 in shape)
    assert 1 in reaches(ws.shapes(), lambda shape: 1 in shape and len(shape) == 3)


def test_special_values_are_drawn():
    assert reaches(ws.arrays(elements=ws.reals(special=(math.inf,))), lambda x: np.isinf(x).any())
    assert np.isnan(reaches(ws.reals(special=(math.nan,)), math.isnan))


def test_axes_are_negative_several_and_none():
    assert reaches(ws.axes(3), lambda axis: isinstance(axis, int) and axis < 0)
    assert reaches(ws.axes(3), lambda axis: isinstance(axis, tuple) and len(axis) == 2)
    assert reaches(ws.axes(3), lambda axis: axis is None) is None


@given(st.data())
def test_index_keys_index(data):
    shape = data.draw(ws.shapes())
    key = data.draw(ws.index_keys(shape))
    x = np.arange(math.prod(shape)).reshape(shape)
    assert np.asarray(x[key]).size >= 0


def test_index_keys_have_masks_arrays_and_new_axes():
    def parts(key):
        return key if isinstance(key, tuple) else (key,)

    def has(kind):
        return lambda key: any(
            isinstance(part, np.ndarray) and part.dtype.kind == kind for part in parts(key)
        )

    keys = ws.index_keys((2, 3))
    assert has("b")(reaches(keys, has("b")))
    assert has("i")(reaches(keys, has("i")))
    assert None in parts(reaches(keys, lambda key: any(part is None for part in parts(key))))

    @given(ws.index_keys((2, 3), arrays_too=False))
    def check(key):
        assert not has("i")(key) and not has("b")(key)

    check()


@pytest.mark.slow
def test_index_keys_have_all_kinds_beside_an_array():
    kinds = set()

    def complete(key):
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], np.ndarray):
            kinds.add(key[1] >= 0 if isinstance(key[1], int) else type(key[1]))
        return kinds >= {True, False, slice, np.ndarray}

    assert reaches(ws.index_keys((1, 2)), complete)


@pytest.mark.parametrize(("low", "high", "step"), [(-2, 2, 1 / 16), (0.5, 1, 1 / 64)])
def test_narrow_ranges_have_32_steps_at_least(low, high, step):
    """Powers of two, and none finer than they have to be."""
    found = set()
    settings(max_examples=300)(given(ws.reals(low, high))(lambda x: found.add(x)))()
    assert {x % step for x in found} == {0}
    assert any(x % (2 * step) for x in found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_matrices_are_of_their_kinds(dtype):
    @settings(max_examples=30)
    @given(
        ws.matrices("well-conditioned", dtype, side=3),
        ws.matrices("symmetric", dtype, stack=(2,)),
        ws.matrices("positive definite", dtype, stack=ws.shapes(max_dims=1)),
        ws.matrices("lower triangular", dtype),
        ws.matrices("upper triangular", dtype),
    )
    def check(a, b, c, lower, upper):
        assert a.shape == (3, 3)
        assert np.linalg.cond(a) < 100
        assert b.shape[0] == 2
        np.testing.assert_array_equal(b, np.conj(np.swapaxes(b, -1, -2)))
        np.testing.assert_array_equal(c, np.conj(np.swapaxes(c, -1, -2)))
        assert np.all(np.linalg.eigvalsh(c) >= 1)
        for x in (b, c):
            assert np.all(np.diff(np.linalg.eigvalsh(x), axis=-1) >= 1)
        np.testing.assert_array_equal(lower, np.tril(lower))
        np.testing.assert_array_equal(upper, np.triu(upper))
        assert abs(np.linalg.det(lower)) > 1
        assert abs(np.linalg.det(upper)) > 1

    check()


def test_matrices_of_no_kind():
    with pytest.raises(ValueError, match="no matrices of the kind 'square'"):
        find(ws.matrices("square"), lambda x: True, settings=settings(database=None))


def test_domains_that_are_narrow_or_empty():
    @settings(max_examples=10)
    @given(ws.tensors(shape=(4,), domain=(0.01, 0.02)))
    def check(x):
        assert np.all((values(x) >= 0.01) & (values(x) <= 0.02))

    check()
    with pytest.raises(ValueError, match="no number from 2"):
        ws.reals(2, 1)
    with pytest.raises(ValueError, match="away from"):
        ws.reals(0, 1, away_from=[0.5], distance=1)
    assert math.isinf(find(ws.reals(special=[math.inf]), math.isinf))
