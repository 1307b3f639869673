"""One factorisation serves a matrix and its transpose, as long as nobody has written into it."""

import gc
from typing import Any
from weakref import ref

import numpy as np
import pytest

import wengert as wg
from wengert.backends import factorised

pytest.importorskip("scipy")

RNG = np.random.default_rng(0)
N = factorised.FEWEST + 8


def matrix(dtype: str = "d") -> Any:
    x = RNG.normal(size=(N, N)) + 10 * np.eye(N)
    return (x + 1j * RNG.normal(size=(N, N)) if dtype in "FD" else x).astype(dtype)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The matrices that are factorised."""
    done: list[Any] = []
    getrf, getrs = factorised._functions("d")

    def counting(x: Any) -> Any:
        done.append(x)
        return getrf(x)

    monkeypatch.setattr(factorised, "_functions", lambda char: (counting, getrs))
    factorised._last().clear()
    return done


@pytest.mark.parametrize("dtype", [*"fdFD"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(N,), (N, 3)])
def test_solutions_are_numpys(dtype: str, order: Any, shape: tuple[int, ...]) -> None:
    x, y = np.asarray(matrix(dtype), order=order), RNG.normal(size=shape).astype(dtype)
    fine = 1e-6 if dtype in "fF" else 1e-12
    for given in (x, x.T, x[::-1], np.stack([x, x])):
        right = y if given.ndim == 2 or y.ndim > 1 else y[:, None]
        found = factorised.solve(given, right)
        expected = np.linalg.solve(given, right)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=fine, atol=fine)


@pytest.mark.parametrize("dtype", [*"fF"])
def test_single_precision_is_solved_in_double_as_by_numpy(dtype: str) -> None:
    x = np.linspace(0, 1, N)
    covariance = np.exp(-((x[:, None] - x) ** 2) / 0.02) + 1e-5 * np.eye(N)
    covariance, y = covariance.astype(dtype), np.sin(6 * x).astype(dtype)
    expected = np.linalg.solve(covariance, y)
    np.testing.assert_allclose(factorised.solve(covariance, y), expected, rtol=2e-6)
    assert factorised.solve(covariance, y).dtype == expected.dtype


def test_a_gradient_factorises_once(counted: list[Any]) -> None:
    a = wg.asarray(matrix(), requires_grad=True)
    b = wg.asarray(RNG.normal(size=(N, 2)), requires_grad=True)
    wg.sum(wg.linalg.solve(a, b) ** 2).backward()
    assert len(counted) == 1


def test_what_was_written_into_is_factorised_again(counted: list[Any]) -> None:
    x, y = matrix(), RNG.normal(size=N)
    factorised.solve(x, y)
    x[0, 0] += 1
    np.testing.assert_allclose(x @ factorised.solve(x, y), y)
    assert len(counted) == 2
    other = x.copy()
    factorised.solve(other, y)
    np.testing.assert_allclose(x.T @ factorised.solve(x.T, y), y)


def test_factors_live_as_long_as_the_matrix() -> None:
    x = matrix()
    factorised.solve(x, RNG.normal(size=N))
    (held,) = factorised._last()
    gone = ref(held.lu)
    del held
    assert gone() is not None
    del x
    gc.collect()
    assert not factorised._last()
    assert gone() is None


def test_memory_of_others_is_solved_each_time(counted: list[Any]) -> None:
    x: Any = np.ndarray((N, N), buffer=bytearray(matrix().tobytes()), order="F")
    y = RNG.normal(size=N)
    for _ in range(2):
        np.testing.assert_allclose(x @ factorised.solve(x, y), y)
    assert len(counted) == 2


def test_large_matrices_are_numpys_and_all_without_scipy(counted: list[Any]) -> None:
    x, y = matrix(), RNG.normal(size=N)
    for name, value in (("LARGEST", N * N - 1), ("_functions", lambda char: None)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(factorised, name, value)
            np.testing.assert_array_equal(factorised.solve(x, y), np.linalg.solve(x, y))
    assert not counted
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        factorised.solve(np.zeros((N, N)), np.ones(N))
