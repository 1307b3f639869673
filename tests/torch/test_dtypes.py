"""Dtypes and shapes of reductions and transforms."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("dtype", "total", "product"),
    [("int32", 213, 420_000), ("int8", -43, -96), ("uint8", 213, 160), ("bool", True, True)],
)
def test_sums_have_the_dtype_that_is_asked_for(
    room: Any, dtype: str, total: Any, product: Any
) -> None:
    x, wanted = room.tensor([3, 2, 100, 100, 1, 7]), getattr(room, dtype)
    assert (x.sum(dtype=wanted).dtype, x.sum(dtype=wanted).item()) == (wanted, total)
    assert (x.prod(dtype=wanted).dtype, x.prod(dtype=wanted).item()) == (wanted, product)
    if dtype != "bool":  # PyTorch has no sums of booleans along an axis
        assert (x.cumsum(0, dtype=wanted).dtype, x.cumsum(0, dtype=wanted)[-1]) == (wanted, total)
        last = x.cumprod(0, dtype=wanted)
        assert (last.dtype, last[-1].item()) == (wanted, product)


def test_unsigned_integers_and_counts_are_summed_in_int64(room: Any) -> None:
    x = room.tensor([200, 100], dtype=room.uint8)
    for found in (x.sum(), x.prod(), x.cumsum(0), x.cumprod(0), x.bincount()):
        assert found.dtype is room.int64
    assert (x.sum().item(), x.cumprod(0).tolist()) == (300, [200, 20_000])
    assert x.cumsum_(0).tolist() == [200, 44] and x.dtype is room.uint8
    one = room.tensor([0, 1, 1])
    assert room.bincount(one, room.tensor([1, 2, 3])).dtype is room.float64
    assert room.bincount(one, room.tensor([1.0, 2.0, 3.0])).tolist() == [1.0, 5.0]


def test_modes_are_the_least_of_the_most_frequent_at_their_last_places(room: Any) -> None:
    found = room.mode(room.tensor([[2, 1, 2, 1], [3, 3, 0, 3], [0, 5, 0, 5]]))
    assert found.values.tolist() == [1, 3, 0]
    assert found.indices.tolist() == [3, 3, 2]


def test_norms_of_matrices_keep_axes_where_the_whole_is_a_matrix(room: Any) -> None:
    x = room.arange(18.0).reshape(2, 3, 3)
    assert room.linalg.norm(x[0], 2, keepdim=True).shape == (1, 1)
    assert room.linalg.norm(x, "fro", dim=(1, 2)).shape == (2,)
    with pytest.raises(NotImplementedError, match="has no keepdim"):
        room.linalg.norm(x, "fro", dim=(1, 2), keepdim=True)


def test_transforms_of_two_axes_are_of_the_last_two(room: Any) -> None:
    x = room.arange(12.0).reshape(2, 2, 3)
    for name in ("fft2", "ifft2", "rfft2"):
        found = getattr(room.fft, name)(x).tolist()
        assert found == [getattr(room.fft, name)(each).tolist() for each in x], name
