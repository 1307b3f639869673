"""Data types: one object each, whatever the library."""

import copy
import pickle
import sys

import numpy as np
import pytest

import wengert as wg
from wengert.backends import DTYPES, Backend, DType, as_dtype, dtype_of

STANDARD = [d for d in DTYPES.values() if d.name == d.host != "float16"]


@pytest.mark.parametrize("dtype", STANDARD, ids=lambda d: d.name)
def test_raw_dtypes_are_equal_to_their_singleton(backend: Backend, dtype: DType) -> None:
    raw = backend.raw_dtype(dtype)
    assert dtype_of(raw) is dtype
    assert dtype == raw
    assert as_dtype(raw) is dtype
    made = wg.zeros(2, dtype=dtype)
    assert made.dtype is dtype
    assert dtype_of(made.array.dtype) is dtype
    assert all(dtype != backend.raw_dtype(other) for other in STANDARD if other is not dtype)


def test_what_stands_for_a_dtype() -> None:
    for spec, dtype in {
        "float32": wg.float32,
        "f4": wg.float32,
        np.float32: wg.float32,
        bool: wg.bool,
        int: wg.int64,
        float: wg.float64,
        complex: wg.complex128,
        np.dtype("c8"): wg.complex64,
    }.items():
        assert as_dtype(spec) is dtype
        assert dtype == spec
    for wrong in ("float31", "U5", object, 3, np.dtype("M8[s]")):
        with pytest.raises(TypeError):
            as_dtype(wrong)
    # Each time: an answer is kept for what can be a key.
    others: list[object] = [{}, [], {"a": 1}, {1}, None, "uint9", "float31", 3, np.dtype("M8[s]")]
    for other in others * 3:
        assert wg.uint8 != other
        assert wg.float32 != other


def test_pickles_and_copies_are_the_same_object() -> None:
    for dtype in DTYPES.values():
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.copy(dtype) is copy.deepcopy(dtype) is dtype
        assert repr(dtype) == f"wengert.{dtype.name}"
    assert len({*map(hash, DTYPES.values())}) == len(DTYPES)


def test_tensors_pickle_with_their_backend(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    with wg.use_backend("numpy"):
        back = pickle.loads(pickle.dumps(x))
    assert (back.backend, back.dtype, back.requires_grad) == (backend, wg.float32, True)
    assert back.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_short_floats_where_the_library_has_them(backend: Backend, name: str) -> None:
    dtype = DTYPES[name]
    try:
        backend.raw_dtype(dtype)
    except TypeError as error:
        assert f"{backend.name} has no data type {name}" in str(error)  # noqa: PT017
        return
    x = wg.tensor([1.0, 2.5], dtype=dtype, requires_grad=True)
    y = wg.sum(x * x + 0.5)
    y.backward()
    assert x.grad is not None
    assert x.dtype is y.dtype is x.grad.dtype is dtype
    assert x.grad.tolist() == [2.0, 5.0]
    drawn = wg.rand_like(wg.zeros(4000, dtype=dtype))
    assert drawn.dtype is dtype
    assert float(wg.max(drawn)) < 1
    assert 0.45 < float(wg.mean(wg.astype(drawn, wg.float32))) < 0.55
    start = wg.rand(4000, dtype=dtype)
    assert float(wg.max(start)) < 1


def test_numpy_takes_wengert_s_dtypes() -> None:
    for dtype in [d for d in DTYPES.values() if d.host == d.name]:
        theirs = np.dtype(dtype.name)
        x = wg.ones(2, dtype=dtype)
        for made in (np.zeros(3, dtype), np.arange(3).astype(dtype), np.asarray(x, dtype=dtype)):
            assert made.dtype == theirs
        # The comparison in this order is NumPy's.
        assert np.dtype(dtype) == theirs == dtype


@pytest.mark.parametrize("name", [d.name for d in DTYPES.values() if d.host != d.name])
def test_dtypes_that_numpy_lacks(name: str) -> None:
    if "ml_dtypes" in sys.modules:  # which teaches them to NumPy
        assert np.zeros(3, dtype=DTYPES[name]).dtype == np.dtype(name)
        return
    told = "Cannot interpret"  # by NumPy, which before 2.4 hides why
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        told = rf"NumPy has no data type {name}; use wg\.float32"
    with pytest.raises(TypeError, match=told):
        np.zeros(3, dtype=DTYPES[name])


def test_a_dtype_is_no_array() -> None:
    x = wg.ones(2)
    assert (x == wg.float32) is False
    assert x.to(wg.float64).dtype is wg.float64
    assert wg.result_type(wg.float32, wg.float64) is wg.float64
