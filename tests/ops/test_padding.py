"""Margins: values, derivatives and errors."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import DTYPES, check_examples, tensor
from wengert.ops.beyond.padding import Mode
from wengert.testing import gradcheck
from wengert.testing import strategies as ws
from wengert.testing.problem import values

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

    check_examples(
        {"numpy": 15, "array_api_strict": 4, "torch": 4}.get(backend.name, 1), check, paddings(mode)
    )


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
