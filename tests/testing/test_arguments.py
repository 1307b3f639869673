"""Arguments that fit together."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

import wengert as wg
from tests.testing.test_check import NUMPY
from wengert.testing import Argument, Axis, check_gradients
from wengert.testing import strategies as ws
from wengert.testing.arguments import calls

# -- what is drawn ---------------------------------------------------------------------------------


@settings(max_examples=50)
@given(calls([("n", "m"), ("m", 2), (..., "n"), ..., ..., Axis(0), Axis(3, none=True), 7, "a"]))
def test_arguments_fit_together(drawn):
    x, y, batch, left, right, axis, other, seven, name = drawn
    assert x.shape[1] == y.shape[0]
    assert y.shape[1] == 2
    assert batch.shape[-1] == x.shape[0]
    np.broadcast_shapes(batch.shape[:-1], left.shape, right.shape)
    assert -2 <= axis < 2
    assert other is None or -left.ndim <= other < left.ndim
    assert (seven, name) == (7, "a")


@settings(max_examples=50)
@given(
    calls(
        [
            Argument(("n",), domain=(0.5, 1), special=[9.0]),
            Argument((2, 2), dtype="complex128", differentiated=False),
            Argument(("n",), away_from=[0], unique=True),
            Axis(1, several=True),
        ],
        min_side=1,
    )
)
def test_arguments_are_as_told(drawn):
    x, z, y, axes = drawn
    assert np.all(((x >= 0.5) & (x <= 1)) | (x == 9))
    assert isinstance(z, wg.Tensor)
    assert z.dtype is wg.complex128
    assert not z.requires_grad
    assert np.all(abs(y) >= 1 / 16)
    assert np.unique(y).size == y.size
    np.sum(np.zeros((2, 2)), axis=axes)


def test_the_function_tells_how_many_arguments_it_takes():
    seen = []

    def function(x, y, z=2.0):
        seen.append((x.shape, y.shape, x.dtype.name))
        return x * y * z

    check_gradients(dtypes=("float64", "complex128"), **NUMPY)(function)()
    assert {dtype for *_, dtype in seen} >= {"float64", "complex128"}
    assert any(a != b for a, b, _ in seen)
    with pytest.raises(TypeError, match="does not tell how many arguments"):
        check_gradients(**NUMPY)(lambda *x: x)


def test_strategies_and_containers():
    pairs = st.tuples(ws.arrays(shape=(2,)), st.integers(1, 3))
    lists = st.fixed_dictionaries({"a": ws.tensors(shape=(2,), requires_grad=True)})

    def function(pair, named):
        assert pair[0].requires_grad
        assert named["a"].requires_grad
        return {"sum": pair[0] * pair[1] + named["a"]}

    check_gradients(function, pairs, lists, **NUMPY)


def test_arguments_are_known_by_their_annotations_and_names():
    from wengert.testing.targets import _argument

    for name in ("axis", "dim"):
        assert _argument(name, int) == _argument(name, None) == Axis(0)
    assert isinstance(_argument("n", int), st.SearchStrategy)
    assert _argument("x", float) == Argument(())
    assert _argument("x", complex) == Argument((), dtype="complex128")
    for hint in (wg.Tensor, None, Any, np.ndarray, np.typing.NDArray[np.float64], ArrayLike):
        assert _argument("x", hint) is ...
    assert _argument("x", str) is _argument("x", list[int]) is None
