"""Scans: the plain loop's values and derivatives, which differences and JAX give, too."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing.problem import values

pytestmark = pytest.mark.usefixtures("backend")

STEPS = 5


class State(NamedTuple):
    h: Any
    c: Any


def random(*shape, grad=False):
    x = np.random.default_rng(sum(shape)).standard_normal(shape)
    return wg.asarray(x).requires_grad_(grad)


def cell(w):
    """A step that closes over a Tensor, with a state of two, and results of two."""

    def step(state, x):
        c = wg.tanh(state.h @ w + x["in"]) + state.c * 0.5
        h = wg.sin(c) * state.h
        return State(h, c), {"out": h, "sum": (wg.sum(c), c * x["in"])}

    return step


def plain(f, state, xs, count):
    """The loop as one writes it."""
    found = []
    for t in range(count):
        state, y = f(state, wg.func.tree_map(lambda x, t=t: x[t], xs))
        found.append(y)
    return state, wg.func.tree_map(lambda *parts: wg.stack(parts), *found)


def total(tree):
    return sum(wg.sum(wg.cos(x)) for x in wg.func.tree_leaves(tree))


def start(grad=False):
    return State(random(2, 3, grad=grad), random(3, 2, grad=grad)[:2, :1] * wg.ones((1, 3)))


def by_scan(w, h, c, x, **options):
    return total(wg.scan(cell(w), State(h, c), {"in": x}, **options))


def by_loop(w, h, c, x):
    return total(plain(cell(w), State(h, c), {"in": x}, STEPS))


def arguments(grad=False):
    return tuple(random(*shape, grad=grad) for shape in ((3, 3), (2, 3), (1, 3), (STEPS, 2, 3)))


def with_state(w, h, c, x, function=by_scan, **options):
    return function(w, h, wg.broadcast_to(c, (2, 3)), x, **options)


@pytest.mark.parametrize("checkpoint", [False, True, 2])
def test_values_and_gradients_are_those_of_the_loop(checkpoint) -> None:
    given, other = arguments(grad=True), arguments(grad=True)
    y = with_state(*given, checkpoint=checkpoint)
    z = with_state(*other, function=by_loop)
    np.testing.assert_array_equal(values(y), values(z))
    y.backward()
    z.backward()
    for a, b in zip(given, other, strict=True):
        np.testing.assert_allclose(values(a.grad), values(b.grad), rtol=1e-12)


@pytest.mark.parametrize("checkpoint", [False, 3])
def test_gradients_are_those_of_differences(checkpoint) -> None:
    function = lambda *given: with_state(*given, checkpoint=checkpoint)
    assert gradcheck(function, arguments(grad=True))
    assert gradgradcheck(function, arguments(grad=True))


def test_transforms_go_through() -> None:
    """Of what the step closes over: the argument of a transform, here."""
    w, h, c, x = arguments()
    f = lambda w: with_state(w, h, c, x)
    g = lambda w: with_state(w, h, c, x, function=by_loop)
    t = wg.cos(w)
    for a, b in (
        (wg.jvp(f, (w,), (t,)), wg.jvp(g, (w,), (t,))),
        (wg.hvp(f, (w,), (t,)), wg.hvp(g, (w,), (t,))),
        (wg.hessian(f)(w), wg.hessian(g)(w)),
        (wg.func.jacfwd(f)(w), wg.grad(g)(w)),
        (wg.vmap(f)(wg.stack((w, t))), wg.stack((g(w), g(t)))),
    ):
        for one, other in zip(*map(wg.func.tree_leaves, (a, b)), strict=True):
            np.testing.assert_allclose(values(one), values(other), rtol=1e-10, atol=1e-12)


def test_modules_are_steps() -> None:
    lstm = nn.LSTMCell(3, 4)
    x = wg.randn(STEPS, 2, 3)
    zeros = wg.zeros((2, 4))

    def step(state, x):
        state = lstm(x, state)
        return state, state[0]

    for checkpoint in (False, True):
        for p in lstm.parameters():
            p.grad = None
        _, ys = wg.scan(step, (zeros, zeros), x, checkpoint=checkpoint)
        wg.sum(ys**2).backward()
        found = [values(p.grad) for p in lstm.parameters()]
        for p in lstm.parameters():
            p.grad = None
        wg.sum(plain(step, (zeros, zeros), x, STEPS)[1] ** 2).backward()
        for a, p in zip(found, lstm.parameters(), strict=True):
            np.testing.assert_allclose(a, values(p.grad), rtol=1e-5, atol=1e-7)


def test_numbers_and_arrays() -> None:
    s, ys = wg.scan(lambda s, x: (s + x, None), np.zeros(()), np.ones(4))
    assert (s.item(), s.dtype, ys) == (4.0, wg.float64, None)
    s, ys = wg.scan(lambda s, _: (s + 1, s), 0, length=3)
    assert (s.item(), ys.tolist()) == (3, [0, 1, 2])


def test_numbers_belong_to_the_library_of_arrays(backend) -> None:
    """The default library is NumPy here."""
    x = wg.asarray([1.0, 2.0])
    with wg.use_backend("numpy"):
        s, ys = wg.scan(lambda s, x: (s + x, (s, 1.0)), 0.0, x)
    assert s.backend.name == ys[1].backend.name == backend.name
    assert (s.item(), ys[0].tolist(), ys[1].tolist()) == (3.0, [0, 1], [1, 1])
    assert s.dtype == ys[1].dtype == wg.float32


def test_a_step_may_change_its_state_in_place() -> None:
    first = wg.ones(2)

    def step(state, x):
        state += x
        return state, state

    _, ys = wg.scan(step, first, wg.asarray([1.0, 2.0]))
    assert first.tolist() == [1, 1]
    assert ys.tolist() == [[2, 2], [4, 4]]


LAST = lambda s, x: (s, x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wg.scan(LAST, wg.ones(1)), ValueError, r"or a length, .* found \[\]"),
        (lambda: wg.scan(LAST, 0.0, (wg.ones(2), wg.ones(3))), ValueError, r"found \[2, 3\]"),
        (lambda: wg.scan(LAST, 0.0, wg.ones(2), 3), ValueError, r"found \[2, 3\]"),
        (lambda: wg.scan(LAST, 0.0, wg.ones((0, 2))), ValueError, r"at least 1, and found \[0\]"),
        (lambda: wg.scan(LAST, 0.0, wg.ones(())), ValueError, r"found \[0\]"),
        (lambda: wg.scan(LAST, 0.0, "ab"), TypeError, "str"),
        (lambda: wg.scan(LAST, 0.0, length=2, checkpoint=-1), ValueError, "no number of steps"),
        *(
            (lambda n=n: wg.scan(LAST, 0.0, length=2, checkpoint=n), TypeError, "no whole number")
            for n in (1.5, 0.5, "yes", None, np.True_)
        ),
        (lambda: wg.scan(LAST, 0.0, length=3.0), TypeError, r"length=3\.0 is no whole number"),
        (lambda: wg.scan(lambda s, x: s, 0.0, wg.ones(2)), TypeError, "should return a pair"),
        (
            lambda: wg.scan(lambda s, x: ((s, s), x), 0.0, wg.ones(2)),
            ValueError,
            r"is tuple\(\*, \*\) .* one leaf with",
        ),
        (
            lambda: wg.scan(lambda s, x: ([s[0] + x], x), [wg.ones(1)], wg.ones((2, 3))),
            ValueError,
            r"is .* with \['float32\[3\]'\], and .* with \['float32\[1\]'\] before it",
        ),
        (lambda: wg.scan(lambda s, x: (s + x, x), 0, wg.ones(2)), ValueError, r"int64\[\]"),
        (
            lambda: wg.scan(lambda s, x: (s + 1, wg.ones(int(s) + 1)), 0, length=2),
            ValueError,
            "y of a step is",
        ),
        (
            lambda: wg.scan(lambda s, x: (s + 1, s if s > 0 else None), 0, length=2),
            ValueError,
            "y of a step is",
        ),
        (lambda: wg.scan(lambda s, x: (s, "a"), 0, length=2), TypeError, "str"),
    ],
)
def test_errors(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.oracle
def test_jax_gives_the_same() -> None:
    jax = pytest.importorskip("jax")
    w, h, x = (
        np.random.default_rng(i).standard_normal(s) for i, s in enumerate([(3, 3), 3, (9, 3)])
    )

    def function(xp, scan):
        def f(w, h, x):
            step = lambda h, x: (xp.tanh(h @ w + x), xp.sin(h) * x)
            last, ys = scan(step, h, x)
            return xp.sum(last**2) + xp.sum(ys**3)

        return f

    with jax.enable_x64():
        theirs = jax.value_and_grad(function(jax.numpy, jax.lax.scan), (0, 1, 2))(w, h, x)
        hessian = jax.hessian(function(jax.numpy, jax.lax.scan))(w, h, x)
    mine = wg.value_and_grad(function(wg, wg.scan), (0, 1, 2))(w, h, x)
    np.testing.assert_allclose(wg.hessian(function(wg, wg.scan))(w, h, x), hessian, rtol=1e-9)
    for a, b in zip(wg.func.tree_leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
