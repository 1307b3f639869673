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


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("float32", "float32"),
        ("f4", "float32"),
        (np.float32, "float32"),
        (np.dtype("c8"), "complex64"),
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (complex, "complex128"),
    ],
)
def test_what_stands_for_a_dtype(spec: object, name: str) -> None:
    assert as_dtype(spec) is getattr(wg, name)
    assert getattr(wg, name) == spec


@pytest.mark.parametrize("wrong", ["float31", "U5", object, 3, None, np.dtype("M8[s]")])
def test_what_does_not(wrong: object) -> None:
    if wrong is not None:  # NumPy takes None for float64
        with pytest.raises(TypeError):
            as_dtype(wrong)
    assert wg.float32 != wrong
    assert hash(wg.float32) != hash(wg.float64)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=lambda d: d.name)
def test_pickles_and_copies_are_the_same_object(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.copy(dtype) is copy.deepcopy(dtype) is dtype
    assert repr(dtype) == f"wengert.{dtype.name}"


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


@pytest.mark.parametrize("name", [d.name for d in DTYPES.values() if d.host == d.name])
def test_numpy_takes_wengert_s_dtypes(name: str) -> None:
    dtype = DTYPES[name]
    assert np.dtype(dtype) == np.dtype(name)
    assert np.zeros(3, dtype=dtype).dtype == np.dtype(name)
    assert np.arange(3).astype(dtype).dtype == np.dtype(name)
    assert np.asarray(wg.ones(2, dtype=dtype), dtype=dtype).dtype == np.dtype(name)
    assert np.dtype(dtype) == dtype  # and the comparison in this order, which NumPy makes


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


@pytest.mark.parametrize("other", [{}, [], {"a": 1}, {1}, None, "uint9"])
def test_what_is_no_data_type_is_unequal_each_time(other: object) -> None:
    assert [wg.uint8 == other for _ in range(3)] == [False] * 3
    assert [wg.float64 == np.dtype("float64"), wg.float64 == "float64"] == [True] * 2
