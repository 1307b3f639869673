"""NumPy's arrays inside compiled functions, on every backend: as Tensors, indices and values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits

F = wg.nn.functional

W = np.arange(12.0).reshape(4, 3) / 7
ROWS = np.array([2, 0])
MASK = np.array([True, False, True, True])
NUMBER = np.float64(1.5)


def _set(x: Any, key: Any, value: Any) -> Any:
    made = wg.clone(x)
    made[key] = value
    return made


def _hvp(t: Any) -> Any:
    gradient = wg.grad(lambda v: wg.sum(v**3 * wg.asarray(W)))
    return wg.grad(lambda u: wg.sum(gradient(u) * wg.asarray(W)))(t)


CASES: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda t: t * wg.asarray(W),
    "tensor": lambda t: t * wg.tensor(W, dtype=t.dtype, device=t.device),
    "another dtype": lambda t: wg.asarray(W, dtype=wg.float32),
    "computed by NumPy": lambda t: t * wg.asarray(np.sin(W)[:, :1] * 2 + W.T[0, 0]),
    "a list beside it": lambda t: t * wg.asarray(np.add(np.negative(W), [1.0, 2.0, 3.0])),
    "from_numpy": lambda t: wg.from_numpy(W) @ t.T,
    "a list of arrays": lambda t: t * wg.asarray([W[0], W[1], W[2], W[3]]),
    "a list of numbers": lambda t: t[0, 0] + wg.asarray([NUMBER, 1.0, NUMBER]),
    "a number": lambda t: t * NUMBER + wg.asarray(NUMBER),
    "an index": lambda t: t[ROWS],
    "an index beside a list": lambda t: t[ROWS, [1, 2]],
    "take": lambda t: wg.take(t, wg.asarray(ROWS), axis=0),
    "where": lambda t: wg.where(wg.asarray(MASK)[:, None], t, 0.0),
    "set": lambda t: _set(t, 0, W[1]),
    "set at an index": lambda t: _set(t, ROWS, W[:2]),
    "classes": lambda t: F.cross_entropy(t, wg.asarray(np.array([0, 1, 2, 0]))),
    "a gradient": lambda t: wg.grad(lambda u: wg.sum(u * wg.asarray(W)))(t),
    "a tangent": lambda t: wg.func.jvp(lambda u: u * u, (t,), (wg.asarray(W),))[1],
    "a second derivative": _hvp,
}


@pytest.mark.backend
@pytest.mark.parametrize("name", CASES)
def test_numpy_arrays(name: str) -> None:
    function = CASES[name]
    t = wg.asarray((np.arange(12.0) / 5).reshape(4, 3))
    expected, compiled = function(t), wg.compile(function)
    for _ in range(3):  # recorded, checked, replayed
        found = compiled(t)
        assert type(found.array) is type(expected.array)
        assert same_bits(found.numpy(), expected.numpy())


@pytest.mark.backend
def test_numpy_arguments_are_read_at_each_call() -> None:
    compiled = wg.compile(lambda x, rows: wg.asarray(x)[rows] * 2.0)
    for i in range(4):
        x, rows = W + i, np.array([i % 2, 3])
        np.testing.assert_array_equal(compiled(x, rows).numpy(), x[rows] * 2)
