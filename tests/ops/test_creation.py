"""Creation functions and PyTorch's `tensor`: dtypes by default, flags, and what is refused."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend


@pytest.fixture
def double() -> Any:
    wg.set_default_dtype(wg.float64)
    yield
    wg.set_default_dtype(wg.float32)


def made(dtype: Any = None) -> dict[str, wg.Tensor]:
    return {
        "zeros": wg.zeros(2, dtype=dtype),
        "ones": wg.ones((2, 3), dtype=dtype),
        "empty": wg.empty(2, 3, dtype=dtype),
        "eye": wg.eye(2, dtype=dtype),
        "linspace": wg.linspace(0, 1, 3, dtype=dtype),
        "arange": wg.arange(0.0, 2.0, dtype=dtype),
        "full": wg.full(2, 1.5, dtype=dtype),
        "tensor": wg.tensor([1.0, 2], dtype=dtype),
        "randn": wg.randn(3, dtype=dtype),
    }


def test_python_numbers_get_the_default_dtypes(backend: Backend) -> None:
    for name, x in made().items():
        assert x.dtype is wg.float32, name
        assert not x.requires_grad
    assert wg.asarray(1).dtype is wg.arange(3).dtype is wg.full((), 2).dtype is wg.int64
    assert wg.asarray(True).dtype is wg.full(2, False).dtype is wg.bool
    assert wg.asarray(1j).dtype is wg.asarray([1, 2j]).dtype is wg.full(1, 1j).dtype is wg.complex64
    assert wg.asarray([]).dtype is wg.float32
    assert wg.asarray([np.float64(1), 2.0]).dtype is wg.float64  # NumPy's numbers keep theirs


@pytest.mark.usefixtures("double")
def test_the_default_dtype_can_be_chosen(backend: Backend) -> None:
    assert all(x.dtype is wg.float64 for x in made().values())
    assert wg.asarray(1j).dtype is wg.complex128
    assert wg.get_default_dtype() is wg.float64
    for wrong in (wg.int64, wg.complex64, "U3"):
        with pytest.raises(TypeError):
            wg.set_default_dtype(wrong)
    assert all(x.dtype is wg.float32 for x in made(wg.float32).values())


def test_numbers_between_ends_whose_difference_overflows(backend: Backend) -> None:
    for dtype, end in (("float64", 2.0**1023), ("float32", 2.0**127), ("complex128", 2j**1023)):
        parts = wg.linspace(-end, end, 5, dtype=dtype), wg.linspace(end, -end, 2, dtype=dtype)
        assert [x.tolist() for x in parts] == [[-end, -end / 2, 0, end / 2, end], [end, -end]]
        assert all(x.backend is backend and x.dtype.name == dtype for x in parts)


def test_requires_grad(backend: Backend) -> None:
    for x in (
        wg.ones(2, requires_grad=True),
        wg.randn((3, 3), requires_grad=True),
        wg.tensor(1.0, requires_grad=True),
        wg.asarray(np.ones(2), requires_grad=True),
        wg.zeros_like(wg.ones(1), requires_grad=True),
        wg.full(2, 1j, requires_grad=True),
    ):
        assert x.requires_grad
        assert x.is_leaf
    for make in (
        lambda: wg.arange(3, requires_grad=True),
        lambda: wg.tensor([True], requires_grad=True),
        lambda: wg.zeros(2, dtype=wg.int32, requires_grad=True),
    ):
        with pytest.raises(RuntimeError, match="floating point and complex"):
            make()


def test_tensor_is_a_new_leaf_and_asarray_stays_tracked(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert not wg.tensor(y).requires_grad
    assert wg.asarray(y, dtype=wg.float64).grad_fn is not None
    assert wg.asarray(y, copy=True).grad_fn is not None
    started = wg.asarray(y.detach(), requires_grad=True)
    assert started.is_leaf
    assert started.requires_grad
    assert wg.clone(y).grad_fn is not None
