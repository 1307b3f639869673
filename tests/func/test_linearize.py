"""linearize: against formulae and `jvp`, and where its pushforward differs from that."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube
from tests.func.test_forward import close, host, raw, tensor
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


def test_pushforward_is_linear_and_can_be_transformed():
    x = tensor([0.3, 0.7])
    _, push = func.linearize(lambda x: wg.sin(x) * wg.sum(x), x)
    s, t = tensor([1.0, 2.0]), tensor([5.0, -3.0])
    close(push(s * 2 + t), push(s) * 2 + push(t))
    jacobian = func.jacrev(lambda x: wg.sin(x) * wg.sum(x))(x)
    close(func.jacrev(push)(s), jacobian)
    close(func.jacfwd(push)(s), jacobian)
    close(func.jvp(push, (s,), (t,))[1], push(t))
    assert float(wg.sum(abs(func.hvp(lambda t: wg.sum(push(t)), (s,), (t,))[0]))) == 0


def test_linearize_inside_and_outside_of_other_transforms():
    """Whatever the function closed over, and the point, can be differentiated outside."""
    random = np.random.default_rng(0)
    x, z, t, u = (tensor(random.uniform(0.2, 1, 3)) for _ in range(4))

    def by_linearize(x, z, t):
        _, push = func.linearize(lambda x: wg.sin(x * z) * wg.sum(x**2), x)
        return wg.sum(push(t) * u)

    def by_jvp(x, z, t):
        return wg.sum(func.jvp(lambda x: wg.sin(x * z) * wg.sum(x**2), (x,), (t,))[1] * u)

    every = (0, 1, 2)
    for transform in (
        lambda f: func.grad(f, every),
        lambda f: func.hessian(f, every),
        lambda f: lambda *at: func.jvp(func.grad(f, every), at, at)[1],
        lambda f: func.grad(lambda *at: wg.sum(func.grad(f, 1)(*at) ** 2), every),
    ):
        found, expected = (func.tree_leaves(transform(f)(x, z, t)) for f in (by_linearize, by_jvp))
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    # Only what the function closed over requires grad, or only the tangent.
    z.requires_grad_()
    found, expected = (wg.autograd.grad(f(x, z, t), z)[0] for f in (by_linearize, by_jvp))
    close(found, expected)
    t.requires_grad_()
    found, expected = (wg.autograd.grad(f(x, z, t), [z, t]) for f in (by_linearize, by_jvp))
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_linearize_needs_the_tape_alone() -> None:
    """A rule that answers for cotangents answers for tangents; one that is once swept does not."""
    x, t = np.array([1.0, 2.0]), np.array([1.0, -1.0])

    class Backward(Cube):  # whose forward rule is no derivative of it
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            raise AssertionError("the tape has no use for it")

    class Once(Cube):
        backward = staticmethod(wg.autograd.once_differentiable(Cube.backward))

    class Forward(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 3

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 3

    close(func.linearize(Backward.apply, x)[1](t), 3 * x**2 * t)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        func.linearize(Once.apply, x)[1](t)
    with pytest.raises(NotImplementedError, match="backward"):
        func.linearize(Forward.apply, x)
    with pytest.raises(NotImplementedError, match=r"nextafter.*not defined"):
        func.linearize(lambda x: wg.nextafter(x, x + 1), x)
    # A hook takes part, as in `vjp`.
    push = func.linearize(lambda x: (x.register_hook(lambda g: 2 * g), x**2)[1], x)[1]
    close(push(t), 4 * x * t)


def test_linearize_where_its_value_is_asked_from_outside() -> None:
    """Primals and what the function closed over are tracked; without recording, neither is."""
    x, w, t = (tensor(v, requires_grad=True) for v in ([0.5, 0.7], [1.5, -0.3], [1.0, 2.0]))
    point = x * 2
    for direction, tracked in ((t, [x, w, t]), (t.detach(), [x, w])):
        value, push, aux = func.linearize(lambda y: (y**2 * w, y * w), point, has_aux=True)
        tangent = push(direction)
        for y, expected in (
            (value, point**2 * w),
            (aux, point * w),
            (tangent, 2 * point * w * direction),
        ):
            for a, b in zip(
                wg.autograd.grad(wg.sum(y), tracked, retain_graph=True, materialize_grads=True),
                wg.autograd.grad(
                    wg.sum(expected), tracked, retain_graph=True, materialize_grads=True
                ),
                strict=True,
            ):
                close(a, b)
        with wg.no_grad():
            assert not push(direction).requires_grad
    with wg.no_grad():
        value, push, aux = func.linearize(lambda y: (y**2 * w, y * w), point, has_aux=True)
    assert not any(y.requires_grad for y in (value, aux, push(t.detach())))
    close(push(t.detach()), 2 * point * w * t)
    with pytest.raises(RuntimeError, match="outside of no_grad"):
        push(t)


def test_linearize_releases_what_it_held():
    x = np.ones(1000)
    _, push = func.linearize(lambda x: wg.sin(wg.exp(x)), x)
    push(x)
    before = len(wg.global_tape)
    kept = weakref.ref(push)
    del push
    gc.collect()
    assert kept() is None
    assert len(wg.global_tape) <= before
