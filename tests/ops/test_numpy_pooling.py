"""NumPy's pooling, and what it takes elements with, give what composites and NumPy's own give."""

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.ops.test_numpy_convolutions import laid_out
from wengert.backends import get_backend
from wengert.backends.backend import composites
from wengert.ops.beyond import numpy_pooling
from wengert.ops.beyond import pooling as pooling  # declares the primitives

KERNELS = type(get_backend("numpy")).kernels
RNG = np.random.default_rng(0)
#: Lengths; kernel, stride, margin and dilation; and how many windows.
MAXIMA: dict[str, tuple[Any, ...]] = {
    "side by side": ((6, 8), ((2, 2), (2, 2), (0, 0), (1, 1)), (3, 4)),
    "overlapping": ((6, 7), ((3, 3), (2, 2), (1, 1), (1, 1)), (3, 4)),
    "a stride beyond the kernel": ((7, 9), ((2, 1), (3, 4), (0, 0), (1, 1)), (2, 3)),
    "dilated": ((8, 7), ((3, 2), (1, 2), (1, 1), (2, 3)), (6, 3)),
    "one element": ((4, 5), ((1, 1), (1, 1), (0, 0), (1, 1)), (4, 5)),
    "two elements": ((4, 5), ((1, 2), (1, 1), (0, 0), (1, 1)), (4, 4)),
    "a signal": ((11,), ((3,), (2,), (1,), (2,)), (5,)),
    "a margin as wide as the step": ((3, 4), ((4, 5), (1, 2), (2, 1), (1, 1)), (4, 1)),
    "the whole array": ((5, 7), ((5, 7), (1, 1), (0, 0), (1, 1)), (1, 1)),
    "more elements than a byte counts": ((20, 18), ((17, 16), (1, 1), (0, 0), (1, 1)), (4, 3)),
}
SUMS: dict[str, tuple[Any, ...]] = {
    "side by side": ((6, 9), (2, 3), (2, 3)),
    "some are left": ((7, 9), (2, 2), (2, 2)),
    "overlapping": ((6, 7), (3, 2), (1, 2)),
    "one element": ((4, 5), (1, 1), (1, 2)),
    "the whole array": ((5, 7), (5, 7), (1, 1)),
    "one window": ((5, 7), (4, 7), (3, 2)),
    "a signal": ((11,), (3,), (2,)),
    "long": ((20, 18), (9, 8), (3, 5)),
}


def numbers(shape: Any, dtype: str, what: str = "") -> Any:
    if np.dtype(dtype).kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = RNG.integers(-3 if least else 0, 3, shape).astype(dtype)
        x[RNG.random(shape) < 0.3] = least if what == "infinite" else most
        return x
    x = RNG.integers(-3, 3, shape) if what == "ties" else RNG.normal(size=shape)
    x = np.asarray(x + (1j * RNG.normal(size=shape) if "complex" in dtype else 0)).astype(dtype)
    if what == "nan":
        x[RNG.random(shape) < 0.3] = np.nan
    if what == "infinite":
        x[RNG.random(shape) < 0.7] = -np.inf
    return x


def agree(name: str, x: Any, **options: Any) -> None:
    """Compare a kernel with its composite, of numbers in all orders in memory."""
    expected = composites[name](get_backend("numpy").namespace, x, **options)
    for order in laid_out(x).values():
        found = KERNELS[name](order, **options)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert not np.shares_memory(found, order)
        if name == "window_argmax" or found.dtype.kind in "iu":
            np.testing.assert_array_equal(found, expected)
        else:
            fine = 20 * np.finfo(found.dtype).eps
            np.testing.assert_allclose(found, expected, rtol=fine, atol=20 * fine)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize("what", ["", "ties", "nan", "infinite"])
@pytest.mark.parametrize("case", MAXIMA)
def test_where_maxima_are(case: str, what: str, dtype: str) -> None:
    lengths, options, counts = MAXIMA[case]
    for lead in ((2, 3), (3, 0), (1, 1)):
        x = numbers((*lead, *lengths), dtype, what)
        agree("window_argmax", x, counts=counts, options=options)


def test_places_of_large_images_are_not_kept() -> None:
    """They would take more than the images, for each size that there was."""
    tracemalloc.start()
    try:
        for n in range(600, 610):
            x = np.zeros((1, 1, n, n), np.float32)
            options = ((2, 2), (2, 2), (0, 0), (1, 1))
            KERNELS["window_argmax"](x, counts=(n // 2, n // 2), options=options)
        assert tracemalloc.get_traced_memory()[0] < 2 * x.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("longest", [numpy_pooling.LONGEST, 1])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int8", "int64"])
@pytest.mark.parametrize("case", SUMS)
def test_sums(case: str, dtype: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_pooling, "LONGEST", longest)
    lengths, size, stride = SUMS[case]
    for lead in ((2, 3), (3, 0), (1, 1)):
        x = numbers((*lead, *lengths), dtype)
        x = x // 32 if dtype == "int8" else x
        agree("window_sum", x, size=size, stride=stride)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_elements_along_an_axis(axis: int, dtype: str) -> None:
    x = RNG.normal(size=(3, 4, 5))
    for taken, order in product((2, 7), (x, *laid_out(x).values())):
        shape = [taken if i == axis % 3 else n for i, n in enumerate(x.shape)]
        least = 0 if dtype == "uint8" else -x.shape[axis]
        places = RNG.integers(least, x.shape[axis], shape).astype(dtype)
        for some in (places, places % x.shape[axis], np.asfortranarray(places % x.shape[axis])):
            expected = np.take_along_axis(order, some, axis)
            found = KERNELS["take_along_axis"](order, some, axis=axis)
            np.testing.assert_array_equal(found, expected)
        one = places[tuple([slice(1) if i != axis % 3 else slice(None) for i in range(3)])]
        found = KERNELS["take_along_axis"](order, one, axis=axis)
        np.testing.assert_array_equal(found, np.take_along_axis(order, one, axis))
    for wrong in (x.shape[axis], -x.shape[axis] - 1):
        if wrong > 0 or dtype != "uint8":
            with pytest.raises(IndexError, match="out of bounds"):
                KERNELS["take_along_axis"](x, np.full_like(places, wrong), axis=axis)
    none = np.zeros((3, 4, 0), dtype)
    assert KERNELS["take_along_axis"](x, none, axis=2).shape == none.shape


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_places_in_several_axes_are_counted_from_both_ends(dtype: str) -> None:
    """Also of more elements than the indices' dtype counts."""
    shape = (5, 40, 3)
    key = [
        RNG.integers(-n, n, size).astype(dtype)
        for n, size in zip(shape, ((6, 1), 7, 7), strict=True)
    ]
    values = RNG.normal(size=(6, 7))
    found = KERNELS["scatter_add"](values, *key, key=("array",) * 3, shape=shape)
    expected = np.zeros(shape)
    np.add.at(expected, tuple(key), values)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
