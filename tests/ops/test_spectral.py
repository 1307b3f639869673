"""Derivatives of matrices whose eigenvalues or singular values are equal, infinite or nan."""

import numpy as np
import pytest

import wengert as wg
from wengert import linalg
from wengert.testing.problem import values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SQUARE = np.array([[2.0, 0.5], [0.5, 1.0]])


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


def turned(values, random):
    """Symmetric matrices with these eigenvalues, along random vectors."""
    q, _ = np.linalg.qr(random.normal(size=(values.size, values.size)))
    a = (q * values) @ q.T
    return (a + a.T) / 2


def products(x):
    """Results that use each vector, in several ways."""
    yield wg.sum(exponential(x), axis=-1)[0]
    yield product(x)[0, -1] + product(x)[-1, 0]
    yield wg.sum(linalg.svd(x).U[0, :] ** 3)


def test_values_that_are_equal_up_to_rounding_have_no_finite_slopes(backend) -> None:
    random, wrong = np.random.default_rng(0), []
    for dtype in ("float64", "float32", "complex128"):
        for size in (3, 9):
            spread = np.linspace(1, 2, size)
            spread[1] = 1
            x = wg.asarray(turned(spread, random).astype(dtype), requires_grad=True)
            tangent = wg.asarray(random.normal(size=x.shape).astype(dtype))
            for i, out in enumerate(products(x)):
                out = wg.real(out) if dtype == "complex128" else out
                (g,) = wg.autograd.grad(out, x, retain_graph=True)
                _, t = wg.func.jvp(lambda x, i=i: [*products(x)][i], (x.detach(),), (tangent,))
                if np.isfinite(values(g)).all() or np.isfinite(values(t)):
                    wrong.append((dtype, size, i, values(g), values(t)))
    assert not wrong, wrong[0]


def test_what_uses_single_vectors_and_values_stays_finite(backend) -> None:
    """And values near each other, but for rounding, keep their slopes."""
    random = np.random.default_rng(1)
    for size in (3, 9):
        spread = np.linspace(1, 2, size)
        spread[1] = 1 + 1e-15
        x = wg.asarray(turned(spread, random), requires_grad=True)
        largest = wg.asarray(random.normal(size=size))
        for out in (
            (largest @ linalg.eigh(x).eigenvectors[:, -1]) ** 2,
            (largest @ linalg.svd(x).U[:, 0]) ** 2,
            linalg.eigh(x).eigenvalues[0],
            wg.sum(linalg.eigvalsh(x) ** 3),
            wg.sum(linalg.svdvals(x) ** 3),
        ):
            (g,) = wg.autograd.grad(out, x)
            assert np.isfinite(values(g)).all()
        spread[1] = 1 + 1e-12
        x = wg.asarray(turned(spread, random), requires_grad=True)
        (g,) = wg.autograd.grad(wg.sum(wg.linalg.diagonal(product(x))), x)
        np.testing.assert_allclose(values(g), np.eye(size), atol=0.05)


@pytest.mark.parametrize("at", [0.0, 1e-310, 2.0])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_one_value_has_no_other_beside_it(backend, kind, at) -> None:
    """Derivatives of exp(3 x) for a 1 x 1 matrix x of 0, or of nearly 0, are those of numbers."""

    functions = [
        linalg.eigvalsh,
        lambda x: linalg.eigh(x)[0],
        lambda x: wg.real(linalg.eigvals(x)),
        lambda x: wg.real(wg.log(exponential(x))),
    ]
    # A complex number that is 0 has no phase.
    for function in functions + [product] * (kind == "float64"):

        def f(x, function=function):
            return wg.exp(wg.sum(function(x)) * 3)

        x, one = (wg.asarray(np.array([[each]], kind)) for each in (at, 1.0))
        slope = wg.grad(f)
        second = lambda x, slope=slope, one=one: wg.jvp(slope, (x,), (one,))[1]
        third = wg.jvp(second, (x,), (one,))[1]
        (back,) = wg.vjp(slope, x)[1](one)
        found = [values(each).item() for each in (slope(x), second(x), back, third)]
        right = [n * np.exp(3 * at) for n in (3, 9, 9, 27)]
        np.testing.assert_allclose(found, right, rtol=1e-12)


#: Functions of a matrix that have no number where a library has none.
OF_MATRICES = {
    "eigvalsh": linalg.eigvalsh,
    "eigh": lambda x: linalg.eigh(x)[0],
    "svdvals": linalg.svdvals,
    "svd": lambda x: linalg.svd(x, full_matrices=False)[1],
    "slogdet": lambda x: linalg.slogdet(x)[1],
    "pinv": linalg.pinv,
    **{str(p): lambda x, p=p: linalg.matrix_norm(x, ord=p) for p in ("fro", "nuc", 2, -2)},
}


@pytest.mark.parametrize("name", OF_MATRICES)
@pytest.mark.parametrize("unknown", [np.inf, -np.inf, np.nan])
def test_what_is_nan_has_no_finite_derivative(backend, name, unknown) -> None:
    """Libraries may refuse such a matrix."""
    function = OF_MATRICES[name]
    for size in (1, 2) if name in ("eigvalsh", "eigh", "slogdet", "pinv") else (1,):
        matrix = SQUARE[:size, :size].copy()
        matrix[0, 0] = unknown
        x = wg.asarray(matrix, requires_grad=True)
        try:
            out = function(x)
            found = values(out)
        except (RuntimeError, ValueError):  # LinAlgError of NumPy's and of PyTorch's
            continue
        if not np.isnan(found).any():
            continue
        (g,) = wg.autograd.grad(wg.sum(out), x)
        _, t = wg.func.jvp(function, (x.detach(),), (wg.ones_like(x),))
        assert np.isnan(values(g)).all(), (values(x), found, values(g))
        assert np.isnan(values(t)[np.isnan(found)]).all(), (values(x), values(t))


def test_singular_values_of_an_infinite_matrix_are_refused() -> None:
    """NumPy's are nan, its pseudoinverse is 0, and of the identity's size 3 LAPACK does not end."""
    x = np.eye(3)
    x[0, 0] = np.inf
    for function in (linalg.svd, linalg.svdvals, linalg.pinv, linalg.matrix_rank):
        with pytest.raises(np.linalg.LinAlgError, match="infinite element"):
            function(wg.asarray(x))


@pytest.mark.parametrize("function", ["svdvals", "nuc", "eigvalsh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_of_values_beside_others(function, dtype) -> None:
    """Values that differ by rounding errors have none; smaller ones beside them have theirs."""
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.standard_normal((3, 3)))[0] for _ in range(2))
    right = left if function == "eigvalsh" else right
    eps = np.finfo(dtype).eps
    for small, apart in [
        ((0.1, 0.2), True),
        ((1e-2, 0), True),
        ((0, 0), False),
        ((eps, 3 * eps), False),
        ((eps / 100, 0), False),
        ((1, 0.5), False),
    ]:
        x = (left * np.array([1, *small]) @ right.T).astype(dtype)
        t = random.standard_normal((3, 3)).astype(dtype)
        if function == "eigvalsh":
            x, t = (x + x.T) / 2, (t + t.T) / 2

        def f(x):
            found = linalg.eigvalsh(x) if function == "eigvalsh" else linalg.svdvals(x)
            if function == "nuc":  # a square, whose second derivative is 2, and a sum
                return wg.sum(wg.square(found)) + linalg.matrix_norm(x, ord="nuc") * 0
            return wg.sum(wg.square(found))

        x, t = wg.asarray(x), wg.asarray(t)
        for second in (wg.hvp(f, (x,), (t,))[0], wg.jvp(wg.grad(f), (x,), (t,))[1]):
            found = values(second)
            if apart:
                np.testing.assert_allclose(found, 2 * values(t), atol=4e3 * eps)
            else:
                assert not np.isfinite(found).all()
