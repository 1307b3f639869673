"""Derivatives of matrices where a determinant leaves the range, is 0, or values are equal."""

import numpy as np
import pytest

import wengert as wg
from wengert import linalg
from wengert.testing.problem import values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SQUARE = np.array([[2.0, 0.5], [0.5, 1.0]])
COFACTORS = np.array([[1.0, -0.5], [-0.5, 2.0]])


@pytest.mark.parametrize("scale", [1e160, 1e-200, 1e-310])
def test_the_gradient_of_a_determinant_that_leaves_the_range(backend, scale) -> None:
    if backend.name == "jax" and scale == 1e-310:
        pytest.skip("XLA takes subnormal numbers for 0")
    for dtype in ("float64", "complex128"):
        x = wg.asarray(np.stack([SQUARE * scale, SQUARE]), dtype=dtype).requires_grad_()
        (g,) = wg.autograd.grad(linalg.det(x), x, wg.ones(2, dtype=dtype))
        # (NumPy divides complex numbers by the reciprocal, which may overflow.)
        np.testing.assert_allclose(values(g)[0].real / scale, COFACTORS, rtol=1e-12)
        np.testing.assert_allclose(values(g)[1], COFACTORS, rtol=1e-12)
        assert not values(g).imag.any()


@pytest.mark.parametrize("size", [3, 4, 8])
def test_determinants_of_all_sizes_over_the_range(size) -> None:
    """By cofactors of the matrix over its scale; infinite where these are."""
    random = np.random.default_rng(size)
    a = random.uniform(-1, 1, (size, size)) + 2 * np.eye(size)
    cofactors = np.linalg.det(a) * np.linalg.inv(a).T
    for exponent in (-1000, -300, -120, -70, -40, 40, 70, 120, 300, 1000):
        x = wg.asarray(a * 2.0**exponent, requires_grad=True)
        (g,) = wg.autograd.grad(linalg.det(x), x)
        expected = cofactors
        for _ in range(size - 1):
            expected = expected * 2.0**exponent
        found = values(g)
        if abs(exponent) * (size - 1) < 1000:
            np.testing.assert_allclose(found, expected, rtol=1e-11)
        else:
            assert (found == 0).all() if exponent < 0 else not np.isfinite(found).any()


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_slogdet_of_a_singular_matrix_has_an_infinite_slope(backend, kind) -> None:
    """And the others of its stack have theirs."""
    a = np.stack([SQUARE, [[1.0, 2.0], [2.0, 4.0]]]).astype(kind)
    x = wg.asarray(a, requires_grad=True)
    out = linalg.slogdet(x).logabsdet
    (g,) = wg.autograd.grad(out, x, wg.ones_like(out))
    np.testing.assert_allclose(values(g)[0], np.linalg.inv(SQUARE), rtol=1e-14)
    assert not np.isfinite(values(g)[1]).any()
    _, moved = wg.func.jvp(lambda x: linalg.slogdet(x).logabsdet, (x.detach(),), (x.detach(),))
    np.testing.assert_allclose(values(moved)[0], 2, rtol=1e-14)
    assert not np.isfinite(values(moved)[1])


def exponential(x):
    w, v = linalg.eigh(x)
    return (v * wg.expand_dims(wg.exp(w), axis=-2)) @ wg.conj(wg.matrix_transpose(v))


def product(x):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return (u * wg.expand_dims(s, axis=-2)) @ vh


def squares(x):
    return wg.sum(linalg.eigvalsh(x) ** 2, axis=-1)


def slopes(x):
    """The gradient of the sum of squared eigenvalues, 2 x."""
    (g,) = wg.autograd.grad(wg.sum(squares(x)), x, create_graph=True)
    return g


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("stack", [(), (2,)])
@pytest.mark.parametrize(
    ("function", "slope"), [(exponential, np.e), (product, 1.0), (squares, 2.0), (slopes, 2.0)]
)
def test_derivatives_at_equal_values_are_right_or_not_finite(function, slope, stack, kind) -> None:
    """Never 0 for what is not: cotangents of values and vectors leave it open.

    At the identity those of ``(v * w) @ v.mT`` and of ``v @ v.mT``, which is constant, are the same
    where the diagonal's weights are 0.
    """
    a = np.zeros((*stack, 3, 3), dtype=kind) + np.eye(3)
    random = np.random.default_rng(0)
    weight = random.uniform(1, 2, a.shape)
    weight = weight + weight.swapaxes(-1, -2)
    hollow = weight * (1 - np.eye(3))
    x = wg.asarray(a, requires_grad=True)
    out = function(x)
    for each in [weight, hollow] if function is not squares else [np.ones(stack)]:
        seed = wg.asarray(each.astype(values(out).dtype))
        (g,) = wg.autograd.grad(out, x, seed, retain_graph=True)
        right = slope * (each if function is not squares else a)
        found = values(g)
        known = np.isfinite(found)
        np.testing.assert_allclose(found[known], right[known], rtol=1e-14)
    if function is not slopes:
        _, moved = wg.func.jvp(function, (x.detach(),), (wg.asarray(a),))
        right = slope * (a if function is not squares else np.full(stack, 3.0))
        known = np.isfinite(values(moved))
        np.testing.assert_allclose(values(moved)[known], right[known], rtol=1e-14)
