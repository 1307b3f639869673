"""Objects that stand for a number, a length or a truth are asked anew by each call."""

from typing import Any

import numpy as np
import pytest

import wengert as wg


class Number:
    """Stands for what was put into it last."""

    def __init__(self, value: int) -> None:
        self.value = value


class Index(Number):
    def __index__(self) -> int:
        return self.value


class Float(Number):
    def __float__(self) -> float:
        return float(self.value)


class Truth(Number):
    def __bool__(self) -> bool:
        return bool(self.value)


class Length(Number):
    def __len__(self) -> int:
        return self.value


class Items(Number):
    def __iter__(self) -> Any:
        return iter([self.value])


class Equal(Number):
    def __eq__(self, other: object) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return self.value


class Array(Number):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray([float(self.value)], dtype)


X = wg.asarray(np.arange(6.0).reshape(2, 3))
CALLS = {
    "sum": (Index, lambda o: wg.sum(X, axis=o)),
    "sum of several": (Index, lambda o: wg.sum(X, axis=(o,))),
    "sum of a list": (Index, lambda o: wg.sum(X, axis=[o])),
    "method": (Index, lambda o: X.argmax(axis=o)),
    "softmax": (Index, lambda o: wg.nn.functional.softmax(X, o)),
    "cumulative_sum": (Index, lambda o: wg.cumulative_sum(X, axis=o)),
    "sort": (Index, lambda o: wg.sort(X, axis=o, descending=True)),
    "expand_dims": (Index, lambda o: wg.expand_dims(X, axis=o)),
    "stack": (Index, lambda o: wg.stack([X, X], axis=o)),
    "norm": (Index, lambda o: wg.linalg.vector_norm(X, axis=o)),
    "ones": (Index, lambda o: wg.ones((2, o))),
    "key": (Index, lambda o: X[o]),
    "slice": (Index, lambda o: X[:, o:]),
    "tile": (Index, lambda o: wg.tile(X, (o, 2))),
    "list": (Index, lambda o: X * [3.0, 5.0][o]),
    "full": (Float, lambda o: wg.full((2,), float(o))),
    "keepdims": (Truth, lambda o: wg.sum(X, axis=0, keepdims=o)),
    "condition": (Truth, lambda o: X * (1 if o else 3)),
    "length": (Length, lambda o: X * len(o)),
    "iteration": (Items, lambda o: wg.sum(X, axis=tuple(o))),
    "equality": (Equal, lambda o: X * [7, o].count(3)),
    "hash": (Equal, lambda o: X * hash(o)),
    "array": (Array, lambda o: X * np.asarray(o)),
}


@pytest.mark.whole
@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_that_objects_stand_for_are_asked_anew(name: str, compiles: bool) -> None:
    kind, function = CALLS[name]
    asked = kind(0)
    step = lambda: function(asked)
    run = wg.compile(step) if compiles else step
    for value in (0, 1, 1, 0, 1):
        asked.value = value
        found, expected = run(), function(kind(value))  # another object, which is new
        assert found.shape == expected.shape
        assert found.tolist() == expected.tolist()
