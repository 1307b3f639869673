"""Arguments by position, where NumPy or PyTorch take them so and the standard by keyword alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

VALUES = np.array([[3.0, -1.0, 2.5], [0.5, 4.0, -2.0]])
ORDER = np.array([[0, 2, 1], [1, 0, 2]])

#: The function, what follows its first argument, and NumPy's call of the same.
CALLS: dict[str, tuple[tuple[Any, ...], Callable[..., Any]]] = {
    "all": ((0,), np.all),
    "any": ((-1,), np.any),
    "argmax": ((1,), np.argmax),
    "argmin": ((0,), np.argmin),
    "argsort": ((0,), np.argsort),
    "count_nonzero": ((0,), np.count_nonzero),
    "cumulative_prod": ((1,), np.cumprod),
    "cumulative_sum": ((0,), np.cumsum),
    "diff": ((1, 0), np.diff),
    "fft.fft": ((4, 0), np.fft.fft),
    "fft.fftn": (((2, 2), (0, 1)), np.fft.fftn),
    "fft.fftshift": ((0,), np.fft.fftshift),
    "fft.hfft": ((4, 0), np.fft.hfft),
    "fft.ifft": ((4, 0, "forward"), np.fft.ifft),
    "fft.ifftn": (((2, 2), (0, 1)), np.fft.ifftn),
    "fft.ifftshift": ((1,), np.fft.ifftshift),
    "fft.ihfft": ((4, 0), np.fft.ihfft),
    "fft.irfft": ((4, 0), np.fft.irfft),
    "fft.irfftn": (((2, 2), (0, 1)), np.fft.irfftn),
    "fft.rfft": ((4, 0), np.fft.rfft),
    "fft.rfftn": (((2, 2), (0, 1)), np.fft.rfftn),
    "flip": ((0,), np.flip),
    "max": ((1,), np.max),
    "mean": ((-1,), np.mean),
    "median": ((0,), np.median),
    "min": ((0,), np.min),
    "prod": ((1,), np.prod),
    "quantile": ((0.25, 1), np.quantile),
    "repeat": ((2, 1), np.repeat),
    "roll": ((1, 0), np.roll),
    "sort": ((0,), np.sort),
    "std": ((0,), np.std),
    "sum": ((0,), np.sum),
    "take": (([1, 0], 0), np.take),
    "take_along_axis": ((ORDER, 1), np.take_along_axis),
    "tensordot": ((VALUES, 2), np.tensordot),
    "tril": ((1,), np.tril),
    "triu": ((1,), np.triu),
    "unstack": ((1,), lambda a, axis: tuple(np.moveaxis(a, axis, 0))),
    "var": ((1,), np.var),
}


#: Whose methods give other results in NumPy than in PyTorch, where an axis alone is given.
TWO_MEANINGS = {"max", "median", "min", "sort", "std", "var"}


def function(name: str) -> Callable[..., Any]:
    found: Any = wg
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.whole
@pytest.mark.parametrize("name", CALLS)
def test_by_position(backend: Backend, name: str) -> None:
    rest, reference = CALLS[name]
    values = VALUES + 0j if name in ("fft.hfft", "fft.irfft", "fft.irfftn") else VALUES
    expected = reference(values, *rest)
    ours = [wg.asarray(a) if isinstance(a, np.ndarray | list) else a for a in rest]
    x = wg.asarray(values)
    results = [function(name)(x, *ours)]
    if "." not in name and name not in TWO_MEANINGS | {"repeat"}:
        results.append(getattr(x, name)(*ours))
    for result in results:
        if isinstance(result, tuple):
            result = wg.stack(result)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_sequences_are_joined_along_an_axis_by_position(backend: Backend) -> None:
    x, y = wg.asarray(VALUES), wg.asarray(2 * VALUES)
    both = [VALUES, 2 * VALUES]
    np.testing.assert_array_equal(wg.concat([x, y], 1).numpy(), np.concatenate(both, 1))
    np.testing.assert_array_equal(wg.stack([x, y], -1).numpy(), np.stack(both, -1))


def test_the_derivative_is_that_of_the_axis_given() -> None:
    g = wg.grad(lambda x: wg.sum(x.sum(0) ** 2))(wg.asarray(VALUES))
    np.testing.assert_allclose(g.numpy(), 2 * np.broadcast_to(VALUES.sum(0), VALUES.shape))


@pytest.mark.whole
@pytest.mark.parametrize("name", ["sum", "mean", "argmax", "prod", "cumulative_sum"])
@pytest.mark.parametrize("wrong", [True, False, wg.asarray(1), np.array([0, 1]), 0.5, "0"])
def test_what_is_no_axis(name: str, wrong: Any) -> None:
    # In PyTorch max(x, other) is elementwise.
    x = wg.asarray(VALUES)
    getattr(x, name)(1)  # 1 is no reason to take True
    with pytest.raises(TypeError, match=r"an axis is an integer, and .* is not"):
        getattr(x, name)(wrong)


def test_maximum_is_named_where_two_arrays_are_given() -> None:
    x = wg.asarray(VALUES)
    with pytest.raises(TypeError, match=r"use wg\.maximum for two arrays"):
        x.max(x)
    with pytest.raises(TypeError, match=r"use wg\.minimum for two arrays"):
        wg.min(x, x)
