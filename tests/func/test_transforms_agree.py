"""Every pair of transforms on the same functions: one meaning of every mode in all of them.

Each function comes with what it means: the same with ``k`` for what is constant, a copy of ``x``
that nothing follows. Its derivatives of any order are those with respect to ``x`` alone, which
differences of the NumPy function confirm.
"""

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube, operation
from tests.walking import walk
from wengert import func

Function = Callable[..., Any]

# -- functions ------------------------------------------------------------------------------------


def tangent(ctx, t):
    (x,) = ctx.saved_tensors
    return t * 3 * x**2


cube = operation(Cube.forward, Cube.backward, jvp=tangent)


@func.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3 * x**2,))
cubed.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))


def no_grad_part(x):
    with wg.no_grad():
        c = x * x
    return wg.sum(x**3 * c)


def no_grad_decorated(x):
    @wg.no_grad
    def c(y):
        return wg.sin(y)

    return wg.sum(c(x) * wg.sin(x))


def inference_part(x):
    with wg.inference_mode():
        c = wg.exp(x)
        with wg.enable_grad():  # which changes nothing there
            c = c * x
    return wg.sum(x**2 * c)


def switched_off(x):
    with wg.set_grad_enabled(False):
        c = x**3
    return wg.sum(c * x**4)


def enabled_inside(x):
    with wg.no_grad():
        c = x**2
        with wg.enable_grad():
            d = x**2 * c
    return wg.sum(d * x)


def assigned_unrecorded(x):
    y = x**3
    with wg.no_grad():
        y += 1.0  # the value changes, and the derivative stays
        y[...] = y * 2.0
    return wg.sum(y * y)


def assigned(x):
    y = x * 1.0
    if y.ndim:
        y[..., :1] = y[..., :1] ** 3
    else:
        y[...] = y**3
    y *= x
    return wg.sum(y)


def viewed(x):
    y = wg.reshape(x, (-1,))[::-1]
    return wg.sum(y[:1] * y[-1:] ** 2 * wg.flip(y))


def branching(x):
    return wg.sum(x**4) if bool(wg.all(x < 100)) else wg.sum(x)


def unrecorded_gradient(x):
    with wg.no_grad():
        c = func.grad(lambda y: wg.sum(y**3 * x))(x)
    return wg.sum(c * x**2)


def unrecorded_tangent(x):
    with wg.no_grad():
        c, d = func.jvp(lambda y: y**2 * x, (x,), (x,))
    return wg.sum((c + d) * x**2)


def unrecorded_pullback(x):
    c, pullback = func.vjp(lambda y: y**2 * x, x)
    with wg.no_grad():
        (d,) = pullback(x)
    return wg.sum((c + d) * x**2)


def unrecorded_jacobian(x):
    with wg.no_grad():
        c = func.jacrev(lambda y: y**2)(x), func.jacfwd(lambda y: y**2 * wg.sum(x))(x)
    return wg.sum(c[0]) * wg.sum(x**2) + wg.sum(c[1]) * wg.sum(x**3)


def swept_without_graph(x):
    w = wg.ones_like(x, requires_grad=True)
    (c,) = wg.autograd.grad(wg.sum(w**2 * x**2), w)
    wg.sum(w * x**2).backward(inputs=[w])
    return wg.sum(c * w.grad * x**2)


def swept_with_graph(x):
    w = wg.ones_like(x, requires_grad=True)
    (c,) = wg.autograd.grad(wg.sum(w**2 * x**2), w, create_graph=True)
    return wg.sum(c * x**2)


def gradient_inside(x):
    return wg.sum(func.grad(lambda y: wg.sum(y**3 * x))(x) * x)


def tangent_inside(x):
    return wg.sum(func.jvp(lambda y: y**3 * x, (x,), (x,))[1])


def custom_unrecorded(x):
    with wg.no_grad():
        c = cube(x) + cubed(x)
    return wg.sum(c * x**2)


def hooked(x):
    y = x * 1.0
    if y.requires_grad:  # forward mode has no cotangents for hooks to see
        y.register_hook(lambda g: g * 1.0)
    return wg.sum(y**4)


TRACKED = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)

#: name: the function, and what it means by ``x`` and the constant ``k``.
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "smooth": (lambda x: wg.sum(wg.sin(x) * x**2), lambda x, k: np.sum(np.sin(x) * x**2)),
    "no_grad": (no_grad_part, lambda x, k: np.sum(x**3 * k * k)),
    "no_grad, decorated": (no_grad_decorated, lambda x, k: np.sum(np.sin(k) * np.sin(x))),
    "inference_mode": (inference_part, lambda x, k: np.sum(x**2 * np.exp(k) * k)),
    "set_grad_enabled": (switched_off, lambda x, k: np.sum(k**3 * x**4)),
    "enable_grad": (enabled_inside, lambda x, k: np.sum(x**3 * k**2)),
    "detach": (lambda x: wg.sum(x**3 * wg.exp(x).detach()), lambda x, k: np.sum(x**3 * np.exp(k))),
    "in place under no_grad": (
        assigned_unrecorded,
        # twice the constant, and the derivative of x**3
        lambda x, k: np.sum((x**3 - k**3 + 2 * (k**3 + 1)) ** 2),
    ),
    "in place": (
        assigned,
        lambda x, k: np.sum(x * np.concatenate([np.ravel(x)[:1] ** 3, np.ravel(x)[1:]])
                            if np.ndim(x) == 1 else x**4),
    ),
    "views": (
        viewed,
        lambda x, k: np.sum(np.ravel(x)[-1] * np.ravel(x)[0] ** 2 * np.ravel(x)),
    ),
    "branch": (branching, lambda x, k: np.sum(x**4)),
    "tracked closure": (lambda x: wg.sum(x**3 * TRACKED), lambda x, k: np.sum(x**3 * 2.0)),
    "constant": (lambda x: wg.ones((), dtype=wg.float64) * 3.0, lambda x, k: 3.0 + 0 * np.sum(k)),
    "a closure alone": (lambda x: TRACKED * 3.0, lambda x, k: 6.0 + 0 * np.sum(k)),
    "the argument": (lambda x: wg.sum(x), lambda x, k: np.sum(x)),
    "Function": (lambda x: wg.sum(cube(x) * x), lambda x, k: np.sum(x**4)),
    "custom_vjp": (lambda x: wg.sum(cubed(x) * x), lambda x, k: np.sum(x**4)),
    "custom under no_grad": (custom_unrecorded, lambda x, k: np.sum(2 * k**3 * x**2)),
    "checkpoint": (
        lambda x: wg.sum(wg.checkpoint(lambda y: wg.sin(y) * y, x) * x),
        lambda x, k: np.sum(np.sin(x) * x**2),
    ),
    "checkpoint of no_grad": (
        lambda x: wg.checkpoint(no_grad_part, x), lambda x, k: np.sum(x**3 * k * k)
    ),
    "grad under no_grad": (unrecorded_gradient, lambda x, k: np.sum(3 * k**3 * x**2)),
    "jvp under no_grad": (unrecorded_tangent, lambda x, k: np.sum(3 * k**3 * x**2)),
    "pullback under no_grad": (
        unrecorded_pullback, lambda x, k: np.sum((x**3 + 2 * k**3) * x**2)
    ),
    "jacobian under no_grad": (
        unrecorded_jacobian,
        lambda x, k: np.sum(2 * k) * np.sum(x**2) + np.sum(2 * k) * np.sum(k) * np.sum(x**3),
    ),
    "a sweep without graph": (swept_without_graph, lambda x, k: np.sum(2 * k**4 * x**2)),
    "a sweep with graph": (swept_with_graph, lambda x, k: np.sum(2 * x**4)),
    "grad inside": (gradient_inside, lambda x, k: np.sum(3 * x**4)),
    "jvp inside": (tangent_inside, lambda x, k: np.sum(3 * x**4)),
    "hooks": (hooked, lambda x, k: np.sum(x**4)),
}  # fmt: skip

# -- transforms -----------------------------------------------------------------------------------


def _along(gradient: Any, t: Any) -> Any:
    return wg.sum(gradient * t)


def _by_vjp(f: Function, t: Any) -> Function:
    def derivative(x):
        value, pullback = func.vjp(f, x)
        return _along(pullback(wg.ones_like(value))[0], t)

    return derivative


def _by_sweep(f: Function, t: Any) -> Function:
    def derivative(x):
        y = x if x.requires_grad else wg.Tensor(x._array, requires_grad=True)
        value = f(y)
        if not value.requires_grad:
            return wg.sum(wg.zeros_like(t))
        (g,) = wg.autograd.grad(value, y, create_graph=True, materialize_grads=True)
        return _along(g, t)

    return derivative


#: A function's derivative along t.
TRANSFORMS: dict[str, Callable[[Function, Any], Function]] = {
    "grad": lambda f, t: lambda x: _along(func.grad(f)(x), t),
    "value_and_grad": lambda f, t: lambda x: _along(func.value_and_grad(f)(x)[1], t),
    "vjp": _by_vjp,
    "jvp": lambda f, t: lambda x: func.jvp(f, (x,), (t,))[1],
    "linearize": lambda f, t: lambda x: func.linearize(f, x)[1](t),
    "jacrev": lambda f, t: lambda x: _along(func.jacrev(f)(x), t),
    "jacfwd": lambda f, t: lambda x: _along(func.jacfwd(f)(x), t),
    "jacobian": lambda f, t: (
        lambda x: _along(func.jacobian(lambda y: wg.stack([f(y)] * 5))(x)[2], t)
    ),
    "autograd.grad": _by_sweep,
    "checkpoint": lambda f, t: lambda x: _along(func.grad(lambda y: wg.checkpoint(f, y))(x), t),
}

#: All but those that are made of others.
MOST = [name for name in TRANSFORMS if name not in ("value_and_grad", "jacobian")]
#: By reverse mode, by forward mode, and by what users write by hand: what orders above 2 are of.
FEW = ("grad", "jvp", "jacrev", "autograd.grad")

POINTS = {
    "a vector": np.array([0.7, -1.2, 0.4]),
    "size 1": np.array([0.7]),
    "0-d": np.array(0.7),
    "two axes of 1": np.array([[0.7]]),
}


def _direction(x: np.ndarray) -> np.ndarray:
    return np.cos(np.arange(x.size)).reshape(x.shape) + 0.5


def _meant(means: Function, x: np.ndarray, order: int) -> float:
    """A derivative along the direction by interpolation: a polynomial through nearby points."""
    t, steps = _direction(x), np.linspace(-0.2, 0.2, 15)
    values = [float(means(x + s * t, x)) for s in steps]
    fit = np.polynomial.Polynomial.fit(steps, values, 12, domain=[-1, 1])
    return float(fit.deriv(order)(0.0))


def _check(name: str, transforms: tuple[str, ...], x: np.ndarray, context: Any) -> None:
    function, means = FUNCTIONS[name]
    expected = _meant(means, x, len(transforms))
    t = wg.asarray(_direction(x))
    for transform in reversed(transforms):
        function = TRANSFORMS[transform](function, t)
    with context():
        found = function(wg.asarray(x))
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-6), (name, transforms)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("point", POINTS)
def test_every_transform(name: str, point: str) -> None:
    for transform in TRANSFORMS:
        for context in (nullcontext, wg.no_grad, wg.inference_mode):
            if transform == "autograd.grad" and context is not nullcontext:
                continue  # which records nothing there
            _check(name, (transform,), POINTS[point], context)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_pair_of_transforms(name: str) -> None:
    for pair in itertools.product(MOST, repeat=2):
        _check(name, pair, POINTS["a vector"], nullcontext)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pairs_of_transforms_under_no_grad(name: str) -> None:
    for pair in itertools.product(("grad", "jvp", "jacrev", "linearize"), repeat=2):
        _check(name, pair, POINTS["a vector"], wg.no_grad)


#: What modes do inside and outside of each other, once of each kind.
KINDS = ("smooth", "enable_grad", "in place", "views", "custom_vjp", "checkpoint of no_grad")


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in KINDS else pytest.mark.slow) for name in FUNCTIONS],
)
def test_third_order(name: str) -> None:
    for triple in itertools.product(FEW, repeat=3):
        _check(name, triple, POINTS["a vector"], nullcontext)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("point", POINTS)
def test_hessians(name: str, point: str) -> None:
    """`hessian`, `hvp` and `ggnvp` have the same second derivatives."""
    function, means = FUNCTIONS[name]
    x = POINTS[point]
    t = _direction(x)
    expected = _meant(means, x, 2)
    for context in (nullcontext, wg.no_grad):
        with context():
            (product,) = map(_numpy, func.hvp(function, (x,), (t,)))
            matrix = _numpy(func.hessian(function)(x))
        n = x.size
        by_matrix = np.reshape(matrix, (n, n)) @ t.reshape(n)
        np.testing.assert_allclose(product.reshape(n), by_matrix, rtol=1e-9, atol=1e-10)
        assert float(np.sum(product * t)) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    # of the identity, the Gauss-Newton matrix is the loss's own Hessian
    (gauss,) = func.ggnvp(lambda y: y * 1.0, function, (x,), (t,))
    np.testing.assert_allclose(_numpy(gauss), product, rtol=1e-9, atol=1e-10)


def _numpy(x: Any) -> np.ndarray:
    """What a transform answers; it is tracked where the function closes over what is."""
    return x.detach().numpy() if isinstance(x, wg.Tensor) else x


def test_closures_are_constant_under_no_grad() -> None:
    """What is outside the transform is followed by an outer one in both modes alike."""

    def outer(x):
        with wg.no_grad():
            c = func.jvp(lambda y: wg.sin(y) * x, (x * 1.0,), (1.0,))[1]
            d = func.grad(lambda y: wg.sin(y) * x)(x * 1.0)
            e = func.hvp(lambda y: y**3 * x, (x * 1.0,), (1.0,))[0]
        return c * d * e * x

    constant = np.cos(0.7) * 0.7
    expected = constant**2 * 6 * 0.7 * 0.7
    assert func.grad(outer)(0.7) == pytest.approx(expected)
    assert func.jvp(outer, (0.7,), (1.0,))[1] == pytest.approx(expected)
    assert func.jacfwd(outer)(0.7) == pytest.approx(expected)


@pytest.mark.parametrize("transform", ["vjp", "linearize"])
def test_what_was_made_under_no_grad_is_linear_in_what_it_is_given(transform: str) -> None:
    """The pullback's point is constant, its cotangent is not."""
    x = wg.asarray(np.array([0.3, 0.7]))
    ones = wg.ones_like(x)
    with wg.no_grad():
        _, linear = getattr(func, transform)(wg.sin, x)
        _, closed = getattr(func, transform)(lambda y: y * TRACKED, x)

    def f(g):
        found = linear(g)
        return wg.sum(found[0] if transform == "vjp" else found)

    cosines = np.cos([0.3, 0.7])
    np.testing.assert_allclose(_numpy(func.grad(f)(ones)), cosines)
    assert func.jvp(f, (ones,), (ones,))[1].item() == pytest.approx(np.sum(cosines))
    g = wg.asarray(np.ones(2), requires_grad=True)
    f(g).backward()
    np.testing.assert_allclose(g.grad.numpy(), cosines)
    assert not f(ones).requires_grad
    if transform == "vjp":
        with pytest.raises(RuntimeError, match="call vjp outside of no_grad"):
            closed(g)
        assert not closed(ones)[0].requires_grad


#: What transforms of v(y) = w y³ and of its sum s give at x along t, and the same by formula.
OUTSIDE: dict[str, tuple[Function, Function]] = {
    "grad": (lambda s, v, x, t: func.grad(s)(x), lambda w, x, t: 3 * w * x**2),
    "value": (lambda s, v, x, t: func.value_and_grad(s)(x)[0], lambda w, x, t: wg.sum(w * x**3)),
    "vjp": (lambda s, v, x, t: func.vjp(v, x)[1](t)[0], lambda w, x, t: 3 * w * x**2 * t),
    "jvp": (lambda s, v, x, t: func.jvp(v, (x,), (t,))[1], lambda w, x, t: 3 * w * x**2 * t),
    "value of jvp": (lambda s, v, x, t: func.jvp(v, (x,), (t,))[0], lambda w, x, t: w * x**3),
    "linearize": (lambda s, v, x, t: func.linearize(v, x)[1](t), lambda w, x, t: 3 * w * x**2 * t),
    "value of linearize": (lambda s, v, x, t: func.linearize(v, x)[0], lambda w, x, t: w * x**3),
    "jacrev": (lambda s, v, x, t: func.jacrev(v)(x) @ t, lambda w, x, t: 3 * w * x**2 * t),
    "jacfwd": (lambda s, v, x, t: func.jacfwd(v)(x) @ t, lambda w, x, t: 3 * w * x**2 * t),
    "jacobian": (lambda s, v, x, t: func.jacobian(v)(x) @ t, lambda w, x, t: 3 * w * x**2 * t),
    "hvp": (lambda s, v, x, t: func.hvp(s, (x,), (t,))[0], lambda w, x, t: 6 * w * x * t),
    "hessian": (lambda s, v, x, t: func.hessian(s)(x) @ t, lambda w, x, t: 6 * w * x * t),
    "ggnvp": (lambda s, v, x, t: func.ggnvp(v, None, (x,), (t,))[0],
        lambda w, x, t: 9 * w**2 * x**4 * t),
    "checkpoint": (lambda s, v, x, t: wg.checkpoint(v, x), lambda w, x, t: w * x**3),
    "aux of grad": (lambda s, v, x, t: func.grad(lambda y: (s(y), v(y)), has_aux=True)(x)[1],
        lambda w, x, t: w * x**3),
    "aux of jvp": (
        lambda s, v, x, t: func.jvp(lambda y: (v(y), v(y) * y), (x,), (t,), has_aux=True)[2],
        lambda w, x, t: w * x**4,
    ),
    "aux of linearize": (lambda s, v, x, t: func.linearize(lambda y: (y, v(y)), x, has_aux=True)[2],
        lambda w, x, t: w * x**3),
    "aux of jacfwd": (lambda s, v, x, t: func.jacfwd(lambda y: (y, v(y)), has_aux=True)(x)[1],
        lambda w, x, t: w * x**3),
}  # fmt: skip


def test_what_transforms_give_is_followed_outside() -> None:
    """By their points, directions and what functions close over: on the tape and by transforms."""
    points = [np.array(v) for v in ([0.5, 0.7], [1.5, -0.3], [1.0, 2.0], [0.3, -1.1])]
    u = wg.asarray(points[3])

    def check(name: str) -> None:
        run, formula = OUTSIDE[name]

        def ours(x, w, t):
            return wg.sum(run(lambda y: wg.sum(w * y**3), lambda y: w * y**3, x, t) * u)

        def right(x, w, t):
            return wg.sum(formula(w, x, t) * u)

        leaves = [wg.asarray(v, requires_grad=True) for v in points[:3]]
        every = (0, 1, 2)
        pairs = [(ours(*leaves), right(*leaves))]
        pairs += zip(
            *(wg.autograd.grad(f, leaves, materialize_grads=True) for f in pairs[0]), strict=True
        )
        inputs = [x.detach() for x in leaves]
        for transform in (
            lambda f: func.grad(f, every)(*inputs),
            lambda f: [func.jvp(f, inputs, inputs)[1]],
            lambda f: func.grad(lambda *at: wg.sum(func.grad(f, 1)(*at) ** 2), every)(*inputs),
            lambda f: [func.jvp(func.grad(f, 0), inputs, inputs)[1]],
        ):
            pairs += zip(transform(ours), transform(right), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(_numpy(found), _numpy(expected), rtol=1e-10, atol=1e-12)
        with wg.no_grad():
            assert not ours(*leaves).requires_grad

    walk([(name,) for name in OUTSIDE], check, whole=True)
