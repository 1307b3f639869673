"""Indices: where their axes stand, and which are refused."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.walking import lines_of

PARTS = [
    lambda t: 0,
    lambda t: slice(None),
    lambda t: None,
    lambda t: ...,
    lambda t: [0, 1],
    lambda t: t.tensor(1),
    lambda t: t.tensor([True, False]),
    lambda t: t.tensor([[True, False], [True, True]]),
    lambda t: np.array([1, 0]),
]


def _outcome(library: Any, combination: Any) -> Any:
    x = library.tensor(np.arange(16.0).reshape(2, 2, 2, 2))
    key = tuple(PARTS[n](library) for n in combination)
    try:
        read = x[key].clone()
    except IndexError:
        return IndexError
    x[key] = -library.arange(float(read.numel())).reshape(read.shape).to(x.dtype)
    return tuple(read.shape), read.tolist(), x.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("length", [1, 2, 3])
def test_mixed_indices_are_pytorchs(room: Any, length: int) -> None:
    """Reads and writes of numbers, slices, None, Ellipsis, lists, arrays and masks."""
    torch = pytest.importorskip("torch")
    for combination in product(range(len(PARTS)), repeat=length):
        if combination.count(3) < 2:
            assert _outcome(room, combination) == _outcome(torch, combination), combination


def test_a_number_beside_an_array_is_taken_first(room: Any) -> None:
    x = room.arange(24.0).reshape(2, 3, 4).requires_grad_()
    part = x[0, :, [0, 1]]
    assert part.tolist() == [[0.0, 1.0], [4.0, 5.0], [8.0, 9.0]]
    part.sum().backward()
    assert x.grad.sum() == 6 and x.grad[0, 2, 1] == 1
    with room.no_grad():
        x[0, :, [0, 1]] = room.tensor([[1.0, 2.0]])
        x[1, :, [0, 1]] += 1
    assert x[0, :, 1].tolist() == [2.0] * 3 and x[1, :, 1].tolist() == [14.0, 18.0, 22.0]


@pytest.mark.parametrize("index", [2, -3])
def test_select_beyond_the_axis_is_an_error(room: Any, index: int) -> None:
    assert room.arange(4).reshape(2, 2).select(1, -1).tolist() == [1, 3]
    with pytest.raises(IndexError):
        room.ones(2, 2).select(0, index)


@pytest.mark.parametrize(
    "line",
    lines_of("""
t.index_select(x, 1, t.tensor([-1]))  t.index_select(x, 1, t.tensor([3]))
t.index_select(x, 1, t.tensor([[1]]))  t.index_select(x, 0, t.tensor([True, True]))
t.index_add(x, 1, t.tensor([-1]), t.ones(2, 1))  t.index_add(x, 1, t.tensor([0, 1]), t.ones(2, 1))
x.index_copy_(1, t.tensor([-1]), t.ones(2, 1))  x.index_copy_(1, t.tensor([0, 1]), t.ones(2, 1))
t.scatter(x, 1, t.tensor([[1, 2], [0, 0]]), t.ones(2, 1))  t.bincount(t.tensor([1, -1]))
t.bincount(t.tensor([[1, 1]]))  t.bincount(t.tensor([1, 1]), t.ones(1))
"""),
)
def test_places_and_lengths_that_are_not_there_are_errors(room: Any, line: str) -> None:
    x = room.zeros(2, 3)
    with pytest.raises((IndexError, RuntimeError), match=r"bounds|axis|shape|bincount"):
        eval(line, {"t": room, "x": x})
    assert not x.any()


def test_an_index_without_axes_keeps_the_axis(room: Any) -> None:
    x = room.arange(6.0).reshape(2, 3)
    assert room.index_select(x, 0, room.tensor(1)).tolist() == [[3.0, 4.0, 5.0]]
    assert x.index_select(1, room.tensor([2, 0])).tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert x.index_add(0, room.tensor(1), room.ones(1, 3))[1].tolist() == [4.0, 5.0, 6.0]
    assert x.index_fill(1, room.tensor([-1]), 7.0)[0].tolist() == [0.0, 1.0, 7.0]
