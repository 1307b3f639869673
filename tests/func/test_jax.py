"""The transforms against JAX's, on the same functions at the same points, to rounding.

Where arguments or results are complex the conventions differ: PyTorch's gradient, which Wengert
follows, is the conjugate of JAX's, and so is the cotangent that a pullback takes. Tangents and
Jacobians are the same.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert import func

pytestmark = pytest.mark.oracle


class Case(NamedTuple):
    """A function of a namespace and of arguments, and the arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]


class Layer(NamedTuple):
    weight: Any
    bias: Any


X = np.asarray([0.3, -1.2, 2.5])
Y = np.asarray([0.9, 0.4, -0.7])
M = np.asarray([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 1.0]])
W = np.asarray([[0.2, -0.5, 0.4], [0.9, 0.1, -0.3]])
Z = np.asarray([0.5 + 1j, -1.2 + 0.3j])
S = np.asarray(0.8)


def oscillator(xp: Any, state: Any, p: Any) -> Any:
    """Some steps of a Runge-Kutta method, by the midpoint."""

    def slope(q: Any) -> Any:
        return xp.stack([q[1], -p["k"] * xp.sin(q[0]) - p["c"] * q[1]])

    for _ in range(4):
        state = state + 0.1 * slope(state + 0.05 * slope(state))
    return state


def network(xp: Any, layers: Any, x: Any) -> Any:
    for layer in layers[:-1]:
        x = xp.tanh(layer.weight @ x + layer.bias)
    return layers[-1].weight @ x + layers[-1].bias


LAYERS = [Layer(W, np.asarray([0.1, -0.2])), Layer(np.asarray([[1.0, -2.0]]), np.asarray([0.5]))]

#: Real functions, and the arguments. The first two return a scalar.
REAL = {
    "network": Case(lambda xp, p, x: xp.sum(network(xp, p, x) ** 2), (LAYERS, X)),
    "dict of lists": Case(
        lambda xp, p: xp.sum(p["w"] @ p["b"][0]) * p["b"][1] + xp.sum(p["w"] ** 3),
        ({"w": M, "b": [X, S]},),
    ),
    "hypot and atan2": Case(lambda xp, x, y: (xp.hypot(x, y), xp.atan2(y, x)), (X, Y)),
    "outer": Case(lambda xp, x: {"outer": x[:, None] * x[None, :], "x": [x, xp.sum(x)]}, (X,)),
    "oscillator": Case(oscillator, (np.asarray([1.0, 0.2]), {"k": S, "c": np.asarray(0.1)})),
    "layers": Case(network, (LAYERS, X)),
    "gradient": Case(lambda xp, x: transform(xp).grad(lambda y: xp.sum(xp.sin(y) * x**2))(x), (X,)),
    "complex results": Case(lambda xp, x: xp.exp(1j * x) * x, (X,)),
}
SCALAR = [*REAL][:2]
HOLOMORPHIC = {
    "exponential": Case(lambda xp, z: xp.exp(z) * z**2, (Z,)),
    "inverse": Case(lambda xp, z: xp.linalg.inv(z[:, None] * z[None, :] + 2 * xp.eye(2)), (Z,)),
}
#: Real and complex functions of complex numbers that are not holomorphic.
COMPLEX = {
    "modulus": Case(lambda xp, z: xp.sum(xp.abs(z) ** 3), (Z,)),
    "parts": Case(lambda xp, z: xp.sum(xp.real(z) ** 2 * xp.imag(z)), (Z,)),
    "conjugate": Case(lambda xp, z: xp.conj(z) * xp.abs(z), (Z,)),
    "complex and real": Case(lambda xp, z, x: z * x[:2] * 1j + xp.conj(z), (Z, X)),
}


@pytest.fixture
def jax() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def transform(xp: Any) -> Any:
    """Where a namespace's library has its transforms."""
    return func if xp is wg else pytest.importorskip("jax")


def compare(found: Any, expected: Any, units: float = 1e-12) -> None:
    """To rounding: relative to the largest number of each array."""
    ours, theirs = func.tree_leaves(found), func.tree_leaves(expected)
    assert len(ours) == len(theirs)
    for a, b in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        scale = max(1.0, float(np.max(np.abs(b), initial=0)))
        np.testing.assert_allclose(a, b, rtol=units, atol=units * scale)


def like(tree: Any, seed: int) -> Any:
    """Random arrays of a tree's shapes and dtypes."""
    random = np.random.default_rng(seed)

    def draw(x: Any) -> Any:
        array = np.asarray(random.standard_normal(np.shape(x)))
        return array + 1j * random.standard_normal(np.shape(x)) if np.iscomplexobj(x) else array

    return func.tree_map(draw, tree)


def conjugate(tree: Any) -> Any:
    """JAX's gradient is the conjugate of PyTorch's."""
    return func.tree_map(lambda x: np.conj(np.asarray(x)), tree)


@pytest.mark.parametrize("name", [*REAL, *HOLOMORPHIC, *COMPLEX])
def test_transforms_are_those_of_jax(name: str, jax: Any) -> None:
    function, args = (REAL | HOLOMORPHIC | COMPLEX)[name]
    f, g = functools.partial(function, wg), functools.partial(function, jax.numpy)
    tangents, every = like(args, 0), tuple(range(len(args)))
    pushed = jax.jvp(g, args, tangents)
    compare(func.jvp(f, args, tangents), pushed)
    value, pushforward = func.linearize(f, *args)
    compare((value, pushforward(*tangents)), pushed)
    value, pullback = func.vjp(f, *args)
    expected, their_pullback = jax.vjp(g, *args)
    compare(value, expected)
    seed = like(value, 1)
    compare(pullback(seed), conjugate(their_pullback(conjugate(seed))))
    if name in COMPLEX:
        return
    first = functools.partial(jax.jacfwd, argnums=every, holomorphic=name in HOLOMORPHIC)
    for jacobian in (func.jacfwd, func.jacrev, func.jacobian)[: 2 + (name in REAL)]:
        compare(jacobian(f, every)(*args), first(g)(*args))
    second = first(first(g))(*args)
    if name in HOLOMORPHIC:
        compare(func.jacfwd(func.jacfwd(f, every), every)(*args), second, 1e-11)
    if name in HOLOMORPHIC or name in SCALAR:
        compare(func.hessian(f, every)(*args), second, 1e-11)
    if name in SCALAR:
        slope = jax.grad(g, every)
        compare(func.value_and_grad(f, every)(*args), (expected, slope(*args)))
        product = jax.jvp(slope, args, tangents)[1]
        compare(func.hvp(f, args, tangents), product, 1e-11)
