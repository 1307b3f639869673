"""Calls that take a way of their own in a function, beside what NumPy gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

X = np.arange(12.0).reshape(3, 4)


def w(x: Any) -> wg.Tensor:
    return wg.asarray(x)


#: What Wengert gives, and what NumPy does.
CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "full of a scalar of NumPy's": (lambda: wg.full(2, np.float32(3)), np.full(2, 3.0)),
    "full of an array of no axes": (lambda: wg.full(2, np.asarray(3.5)), np.full(2, 3.5)),
    "full of a Tensor": (lambda: wg.full((2, 1), w(2.5)), np.full((2, 1), 2.5)),
    "full of True": (lambda: wg.full(2, w(True)), np.full(2, True)),
    "full of False": (lambda: wg.full(2, w(False)), np.full(2, False)),
    "roll one axis several times": (lambda: wg.roll(w(X), (1, 2), axis=1), np.roll(X, 3, axis=1)),
    "booleans of complex numbers": (
        lambda: wg.astype(w([0j, 1j, 0.5]), wg.bool),
        np.array([False, True, True]),
    ),
    "logsumexp of nothing": (
        lambda: wg.logsumexp(wg.ones((2, 0)), axis=1, keepdims=True),
        np.full((2, 1), -np.inf),
    ),
    "fill_ with a Tensor": (lambda: wg.zeros((2, 3)).fill_(w([3])), np.full((2, 3), 3.0)),
    "a backend's device": (lambda: wg.to_backend(w(X), "numpy:cpu"), X),
    "a move to where it is": (lambda: wg.to_backend(w(X), "numpy"), X),
    "cpu": (lambda: w(X).cpu(), X),
}


@pytest.mark.parametrize("name", CALLS)
def test_value(name: str, backend: Backend) -> None:
    call, expected = CALLS[name]
    found = call()
    assert found.shape == expected.shape
    assert (found.dtype.kind == "bool") == (expected.dtype.kind == "b")
    np.testing.assert_array_equal(found.detach().numpy(), expected)


def test_full_of_a_tensor_is_a_leaf_where_that_is_asked(backend: Backend) -> None:
    value = w(2.5)
    assert not wg.full(2, value).requires_grad
    made = wg.full(2, value, requires_grad=True, device=value.device)
    assert made.requires_grad
    assert made.is_leaf
    tracked = value.requires_grad_()
    assert not wg.full(2, tracked, requires_grad=True).is_leaf


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_limits_of_types_that_numpy_lacks(name: str) -> None:
    """Each follows from the widths of its parts; float8_e4m3fn has no infinity, but a nan."""
    bits, mantissa, lowest, top = {
        "bfloat16": (16, 7, -126, (2 - 2**-7) * 2.0**127),
        "float8_e4m3fn": (8, 3, -6, 448.0),
        "float8_e5m2": (8, 2, -14, 57344.0),
    }[name]
    found = wg.finfo(name)
    assert (found.bits, found.eps, found.smallest_normal) == (bits, 2.0**-mantissa, 2.0**lowest)
    assert (found.max, found.min) == (top, -top)


def test_of_bounds_that_cross_the_upper_one_counts(backend):
    x = wg.asarray([0.0, 3.0])
    if backend.name == "array_api_strict":
        with pytest.raises(ValueError, match="min must be less than or equal to max"):
            wg.clip(x, 2.0, 1.0)
        return
    assert wg.clip(x, 2.0, 1.0).tolist() == [1, 1]
    assert wg.clip(x, wg.asarray([2.0, -1.0]), wg.asarray([1.0, 2.0])).tolist() == [1, 2]
