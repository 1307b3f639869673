"""linearize: against formulae and `jvp`, and where its pushforward differs from that."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube, operation
from tests.func.test_forward import close, host, raw
from wengert import func


def test_linearize_calls_the_function_once(backend):
    calls = []

    def f(x, y):
        calls.append(1)
        if wg.sum(x) > 0:  # a branch on values is taken once and for all
            return {"a": wg.sin(x) * y, "b": wg.linalg.inv(wg.eye(2, dtype=wg.float64) + x)[0, :]}
        return x

    random = np.random.default_rng(0)
    x, y = (raw(backend, random.uniform(0.1, 1, 2)) for _ in range(2))
    value, pushforward = func.linearize(f, x, y)
    for _ in range(3):
        s, t = (raw(backend, random.standard_normal(2)) for _ in range(2))
        found = pushforward(s, t)
        before = len(calls)
        again, expected = func.jvp(f, (x, y), (s, t))
        calls.pop()
        assert before == 1
        for key in ("a", "b"):
            assert type(found[key]) is type(x)
            close(found[key], expected[key])
            np.testing.assert_array_equal(host(value[key]), host(again[key]))


def test_linearize_needs_the_tape_alone() -> None:
    """A rule that answers for cotangents answers for tangents; one that is once swept does not."""
    x, t = np.array([1.0, 2.0]), np.array([1.0, -1.0])

    class Backward(Cube):  # whose forward rule is no derivative of it
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            raise AssertionError("the tape has no use for it")

    class Once(Cube):
        backward = staticmethod(wg.autograd.once_differentiable(Cube.backward))

    forward = operation(lambda ctx, x: x * 3, jvp=lambda ctx, t: t * 3)
    close(func.linearize(Backward.apply, x)[1](t), 3 * x**2 * t)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        func.linearize(Once.apply, x)[1](t)
    with pytest.raises(NotImplementedError, match="backward"):
        func.linearize(forward, x)
    with pytest.raises(NotImplementedError, match=r"nextafter.*not defined"):
        func.linearize(lambda x: wg.nextafter(x, x + 1), x)
    # A hook takes part, as in `vjp`.
    push = func.linearize(lambda x: (x.register_hook(lambda g: 2 * g), x**2)[1], x)[1]
    close(push(t), 4 * x * t)
