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

#: Real functions that return a scalar.
SCALAR = {
    "network": Case(lambda xp, p, x: xp.sum(network(xp, p, x) ** 2), (LAYERS, X)),
    "dict of lists": Case(
        lambda xp, p: xp.sum(p["w"] @ p["b"][0]) * p["b"][1] + xp.sum(p["w"] ** 3),
        ({"w": M, "b": [X, S]},),
    ),
}

#: Real functions that return arrays or trees of them.
ARRAYS = {
    "hypot and atan2": Case(lambda xp, x, y: (xp.hypot(x, y), xp.atan2(y, x)), (X, Y)),
    "outer": Case(lambda xp, x: {"outer": x[:, None] * x[None, :], "x": [x, xp.sum(x)]}, (X,)),
    "oscillator": Case(oscillator, (np.asarray([1.0, 0.2]), {"k": S, "c": np.asarray(0.1)})),
    "layers": Case(network, (LAYERS, X)),
    "gradient": Case(lambda xp, x: transform(xp).grad(lambda y: xp.sum(xp.sin(y) * x**2))(x), (X,)),
    "complex results": Case(lambda xp, x: xp.exp(1j * x) * x, (X,)),
}

#: Holomorphic functions.
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

REAL = SCALAR | ARRAYS
ALL = {
    **REAL,
    **{f"holomorphic {name}": case for name, case in HOLOMORPHIC.items()},
    **{f"complex {name}": case for name, case in COMPLEX.items()},
}


@pytest.fixture(autouse=True)
def jax() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def transform(xp: Any) -> Any:
    """Where a namespace's library has its transforms."""
    return func if xp is wg else pytest.importorskip("jax")


def pair(case: Case, jax: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function for Wengert and for JAX."""
    return functools.partial(case.function, wg), functools.partial(case.function, jax.numpy)


def every(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.args)))


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


@pytest.mark.parametrize("name", ALL)
def test_jvp_and_linearize(name: str, jax: Any) -> None:
    case = ALL[name]
    ours, theirs = pair(case, jax)
    tangents = like(case.args, 0)
    value, tangent = func.jvp(ours, case.args, tangents)
    their_value, expected = jax.jvp(theirs, case.args, tangents)
    compare(value, their_value)
    compare(tangent, expected)
    value, pushforward = func.linearize(ours, *case.args)
    compare(value, their_value)
    compare(pushforward(*tangents), expected)


@pytest.mark.parametrize("name", ALL)
def test_vjp(name: str, jax: Any) -> None:
    case = ALL[name]
    ours, theirs = pair(case, jax)
    value, pullback = func.vjp(ours, *case.args)
    their_value, their_pullback = jax.vjp(theirs, *case.args)
    compare(value, their_value)
    g = like(value, 1)
    compare(pullback(g), conjugate(their_pullback(conjugate(g))))


@pytest.mark.parametrize("name", SCALAR)
def test_grad_and_hessian(name: str, jax: Any) -> None:
    case = SCALAR[name]
    ours, theirs = pair(case, jax)
    value, gradient = func.value_and_grad(ours, every(case))(*case.args)
    their_value, expected = jax.value_and_grad(theirs, every(case))(*case.args)
    compare(value, their_value)
    compare(gradient, expected)
    hessian = jax.jacrev(jax.grad(theirs, every(case)), every(case))
    compare(func.hessian(ours, every(case))(*case.args), hessian(*case.args), 1e-11)
    tangents = like(case.args, 2)
    product = func.hvp(ours, case.args, tangents)
    _, expected = jax.jvp(jax.grad(theirs, every(case)), case.args, tangents)
    compare(product, expected, 1e-11)


@pytest.mark.parametrize("name", REAL)
def test_jacobians(name: str, jax: Any) -> None:
    case = REAL[name]
    ours, theirs = pair(case, jax)
    expected = jax.jacfwd(theirs, every(case))(*case.args)
    compare(func.jacfwd(ours, every(case))(*case.args), expected)
    compare(func.jacrev(ours, every(case))(*case.args), expected)
    compare(func.jacobian(ours, every(case))(*case.args), expected)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_jacobians_of_holomorphic_functions(name: str, jax: Any) -> None:
    case = HOLOMORPHIC[name]
    ours, theirs = pair(case, jax)
    expected = jax.jacfwd(theirs, holomorphic=True)(*case.args)
    compare(func.jacfwd(ours)(*case.args), expected)
    compare(func.jacrev(ours)(*case.args), expected)
    compare(func.jacrev(ours)(*case.args), jax.jacrev(theirs, holomorphic=True)(*case.args))
    expected = jax.jacfwd(jax.jacfwd(theirs, holomorphic=True), holomorphic=True)(*case.args)
    compare(func.jacfwd(func.jacfwd(ours))(*case.args), expected, 1e-11)
    compare(func.hessian(ours)(*case.args), expected, 1e-11)
