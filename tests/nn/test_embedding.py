"""Tables of vectors: values and derivatives."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import refusals, refuse, walk
from wengert import nn

RNG = np.random.default_rng(29)
TABLE = RNG.normal(size=(5, 3))
ROWS = np.array([[0, 1, 1], [4, 2, 1]])


@pytest.mark.parametrize("padding", [None, 1, -1])
def test_rows_and_their_derivatives(backend: Any, padding: int | None) -> None:
    layer = nn.Embedding(5, 3, padding, dtype="float64")
    if padding is not None:
        assert not layer.weight.detach().numpy()[padding].any()
    layer.load_state_dict({"weight": TABLE})
    found = layer(wg.asarray(ROWS))
    np.testing.assert_array_equal(found.detach().numpy(), TABLE[ROWS])
    seed = RNG.normal(size=(2, 3, 3))
    found.backward(wg.asarray(seed))
    wanted = np.zeros((5, 3))
    np.add.at(wanted, ROWS, seed)
    if padding is not None:
        wanted[padding] = 0
    np.testing.assert_allclose(layer.weight.grad.numpy(), wanted, rtol=1e-12)


def test_a_table_that_is_given(backend: Any) -> None:
    layer = nn.Embedding.from_pretrained(wg.asarray(TABLE), padding_idx=2)
    assert not layer.weight.requires_grad and layer.padding_idx == 2
    np.testing.assert_array_equal(layer(wg.asarray(ROWS)).numpy(), TABLE[ROWS])
    assert nn.Embedding.from_pretrained(wg.asarray(TABLE), freeze=False).weight.requires_grad


#: Calls, their errors, and what these say.
REFUSED = r"""
nn.Embedding(5, 3)(wg.asarray([5])) | IndexError | 5 is none of the 5 rows, 0 to 4
nn.Embedding(5, 3)(wg.asarray([-1])) | IndexError | -1 is none of the 5 rows
nn.Embedding(5, 3)(wg.ones(2)) | TypeError | integer indices, not float32
nn.Embedding(5, 3, padding_idx=5) | ValueError | Padding_idx must be within
nn.Embedding(5, 3, padding_idx=1.5) | TypeError | takes an integer .* as padding_idx
F.embedding(wg.asarray([0]), wg.ones((2, 2)), 0.5) | TypeError | takes an integer
nn.Embedding(5, 3, sparse=True) | TypeError | takes no sparse, .*: leave it out
nn.Embedding(5, 3, max_norm=1.0) | TypeError | takes no max_norm, .* after each step
nn.Embedding(5, 3, None, 1.0) | TypeError | positional arguments
F.embedding(wg.asarray([0]), wg.ones((2, 2)), max_norm=1) | TypeError | max_norm
F.embedding(wg.asarray([0]), wg.ones(3)) | RuntimeError | must be 2-D
nn.Embedding.from_pretrained(wg.ones(3)) | ValueError | expected to be 2-dimensional
"""


def test_what_does_not_fit_is_told() -> None:
    walk(refusals(REFUSED), refuse(), whole=True)
