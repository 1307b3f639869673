"""Derivatives of determinants that leave the range, or are 0."""

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


@pytest.mark.parametrize("scale", [1e160, 1e-160, 1e-200])
@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_derivatives_of_a_determinant_whose_gradient_leaves_the_range(backend, rank, scale) -> None:
    """Rows of cofactors are cross products of the others, so that the second is of degree 1."""
    a = np.array([[2.0, 1.0, 0.5], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]])
    a = np.where(np.arange(3) < rank, a, a[:, :1] if rank else 0)
    t = np.arange(9.0).reshape(3, 3) ** 2
    right = [np.cross(a[i - 2], t[i - 1]) + np.cross(t[i - 2], a[i - 1]) for i in range(3)]
    last = [2 * np.cross(t[i - 2], t[i - 1]) for i in range(3)]
    x, along = wg.asarray(a * scale, requires_grad=True), wg.asarray(t)
    (first,) = wg.autograd.grad(linalg.det(x), x, create_graph=True)
    (second,) = wg.autograd.grad(first, x, along, create_graph=True)
    (third,) = wg.autograd.grad(second, x, along)
    np.testing.assert_allclose(values(second) / scale, right, 1e-12, 1e-12)
    np.testing.assert_allclose(values(third), last, 1e-12, 1e-12)

    def pushed(x):
        return wg.jvp(wg.grad(linalg.det), (x,), (along,))

    (_, second), (_, third) = wg.jvp(pushed, (x.detach(),), (along,))
    np.testing.assert_allclose(values(second) / scale, right, 1e-12, 1e-12)
    np.testing.assert_allclose(values(third), last, 1e-12, 1e-12)


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


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("singular", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_slogdet_of_a_singular_matrix_has_no_second_derivative(backend, kind, singular) -> None:
    """And the others of its stack have theirs; tangents whose elements cancel move it, too."""
    x = wg.asarray(np.stack([SQUARE, singular]).astype(kind))
    inverse = np.linalg.inv(SQUARE)

    def slopes(x):
        return wg.grad(lambda x: wg.real(wg.sum(linalg.slogdet(x).logabsdet)))(x)

    for t in ([[1.0, 0.0], [0.0, 0.0]], [[1.0, -1.0], [-1.0, 1.0]]):
        tangent = wg.asarray(np.stack([t, t]).astype(kind))
        for second in (wg.jvp(slopes, (x,), (tangent,)), wg.vjp(slopes, x)):
            found = second[1] if isinstance(second[1], wg.Tensor) else second[1](tangent)[0]
            right = -(inverse @ t @ inverse)
            np.testing.assert_allclose(values(found)[0], right, 1e-12, 1e-12)
            assert not np.isfinite(values(found)[1]).any()


def test_slogdet_of_a_number_that_is_zero_has_no_finite_second_derivative(backend) -> None:
    assert not np.isfinite(
        values(wg.hessian(lambda x: linalg.slogdet(x).logabsdet)(wg.asarray([[0.0]])))
    )
