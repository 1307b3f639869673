"""The extension ``linalg``: degenerate matrices, edges, errors, and what the rows leave out."""

import math
from fractions import Fraction

import numpy as np
import pytest

import wengert as wg
from tests.ops.cases import gradient
from wengert import linalg
from wengert.backends import Backend
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing.problem import values

INF = math.inf
KINDS = ["real", "complex"]


def drawn(kind, *shape, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    return x + 1j * random.standard_normal(shape) if kind == "complex" else x


def leaf(a):
    return wg.asarray(a, dtype="complex128" if np.iscomplexobj(a) else "float64").requires_grad_()


def pytorch(function, *arrays):
    """A result of PyTorch's, and the gradients for cotangents of ones."""
    torch = pytest.importorskip("torch")
    inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = function(torch, *inputs)
    one = torch.ones_like(out)
    gradients = torch.autograd.grad(out, inputs, one, allow_unused=True, materialize_grads=True)
    return out.detach().numpy(), [g.numpy() for g in gradients]


def adjoint(x):
    return wg.conj(wg.matrix_transpose(x))


# -- determinants --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's, of the value
def test_the_gradient_of_a_determinant_of_nan_is_nan(backend: Backend) -> None:
    x = leaf(np.where(np.eye(3), math.nan, 1.0))
    assert np.isnan(gradient(linalg.det(x), x)).all()


# -- norms ---------------------------------------------------------------------------------------

POINTS = [[0.0, 0.0, 0.0], [0.0, 3.0, -4.0], [2.0, -2.0, 1.0], [1.0, 2.0, -2.0]]
ORDERS = [0, 0.5, 1, 1.5, 2, 3, 4, -1, -0.5, INF, -INF]


@pytest.mark.oracle
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_norms_of_vectors_are_pytorchs(backend: Backend, kind, order) -> None:
    """At zeros, where most have a kink, and where several elements are the largest."""
    for point in POINTS:
        a = np.asarray(point) * (0.6 + 0.8j if kind == "complex" else 1)
        x = leaf(a)
        with np.errstate(divide="ignore"):  # 0 ** -1
            out = linalg.vector_norm(x, ord=order)
            found, slope = values(out), gradient(out, x)
        expected, (right,) = pytorch(lambda t, x: t.linalg.vector_norm(x, ord=order), a)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        np.testing.assert_allclose(slope, right, rtol=1e-13, atol=1e-15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # 0 ** -1
@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_half_precision_neither_overflow_nor_vanish(backend: Backend, order) -> None:
    """The values and slopes of single precision, rounded once."""
    try:
        backend.raw_dtype(wg.float16)
    except TypeError:
        pytest.skip(f"{backend.name} has no float16")
    for size in (300.0, 1e-4):
        a = np.asarray([[size, -size / 2, size], [size / 4, 0, 0]], "float16")
        x, wide = (wg.asarray(v).requires_grad_() for v in (a, a.astype("float32")))
        found, expected = (linalg.vector_norm(v, ord=order, axis=1) for v in (x, wide))
        assert found.dtype is wg.float16
        with np.errstate(over="ignore"):
            rounded = values(expected).astype("float16")
        np.testing.assert_array_equal(values(found), rounded)
        if order in (2, 3):
            (found[0] + 0).backward()
            (expected[0] + 0).backward()
            np.testing.assert_array_equal(x.grad.numpy(), wide.grad.numpy().astype("float16"))
    assert linalg.matrix_norm(wg.full((2, 2), 200.0, dtype="float16")).item() == 400


def test_norms_of_infinities_and_of_no_order(backend: Backend) -> None:
    """An infinity is no unit to divide by; an order that is nan has no norm."""
    wrong = []
    for elements, order, right in (
        *(([INF, 1.0], order, INF) for order in (1.5, 2, 3, 7.5)),
        *(([INF, INF], order, INF) for order in (3, -1, -2.5)),
        *(([INF, 2.0], order, 2.0) for order in (-1, -3)),
        *(([INF, 0.0], order, 0.0) for order in (-1, -3)),
        ([math.nan, 1.0], 3, math.nan),
        *(([3.0, 4.0], order, math.nan) for order in (math.nan,)),
    ):
        x = wg.asarray(elements, dtype=wg.float64)
        for given in (order, wg.asarray(float(order), dtype=wg.float64)):
            with np.errstate(all="ignore"):
                found = linalg.vector_norm(x, ord=given).item()
            if not np.array_equal(found, right, equal_nan=True):
                wrong.append((elements, given, found, right))
    assert not wrong


@pytest.mark.parametrize("order", [-3, -1, -0.5, 0.5, 0.9, 1.01, 1.5, 2.5, 7])
def test_shares_of_norms_that_cancel_or_leave_the_range(backend: Backend, order) -> None:
    """The leading element's own curvature is the others' share, and powers outlive quotients."""
    mpmath = pytest.importorskip("mpmath")
    for elements in (
        *([1.0, 1e-17], [1.0, -1e-5, 1e-9], [2.0, 2.0, 1e-12], [1.0, 1e10, -1e-10], [3.0, -4.0]),
        *([1e300, 1e-300], [1e200, -1e-150], [3.0, -4.0, 1e-200]),
    ):
        with mpmath.workdps(600):
            signs = [mpmath.sign(v) for v in elements]
            powers = [abs(mpmath.mpf(v)) ** order for v in elements]
            norm = mpmath.fsum(powers) ** (1 / mpmath.mpf(order))
            shares = [p / norm**order for p in powers]
            weights = [
                s * r * norm / abs(v) for s, r, v in zip(signs, shares, elements, strict=True)
            ]
            rest = [mpmath.fsum(shares) - r for r in shares]
            slope = np.array([float(w) for w in weights])
            # Times the norm, so that it has no dimension.
            curved = np.array([[float((1 - order) * a * b) for a in weights] for b in weights])
            for i, (w, r, v) in enumerate(zip(weights, rest, elements, strict=True)):
                curved[i, i] = float((order - 1) * w * r * norm / v)
        x = wg.asarray(elements, dtype="float64")

        def length(x):
            return linalg.vector_norm(x, ord=order)

        with np.errstate(all="ignore"):
            np.testing.assert_allclose(wg.grad(length)(x).numpy(), slope, rtol=1e-12)
            for found in (wg.hessian(length)(x), wg.func.jacfwd(wg.grad(length))(x)):
                found = found.numpy() * float(norm)
                known = np.isfinite(found)  # between elements that are too far apart
                assert known.all() or (order < 2 and np.ptp(np.log10(np.abs(elements))) > 300)
                lost = 1e-299 + 1e-307 * float(norm)
                np.testing.assert_allclose(found[known], curved[known], rtol=1e-11, atol=lost)


@pytest.mark.filterwarnings("ignore:(overflow|invalid):RuntimeWarning")
@pytest.mark.parametrize("order", [0.5, 1.5, 3])
def test_slopes_of_a_norm_that_overflows_are_those_of_its_direction(backend, order) -> None:
    """And beside an infinity the limits."""

    def slopes(*elements):
        x, length = leaf(np.asarray(elements)), lambda x: linalg.vector_norm(x, ord=order)
        g, y = values(wg.grad(length)(x)), values(length(x)).item()
        _, moved = wg.jvp(length, (x.detach(),), (wg.ones_like(x),))
        np.testing.assert_allclose(moved.item(), g.sum())
        return y, g

    large, found = slopes(1.7e308, -1.5e308)
    assert large == INF
    np.testing.assert_allclose(found, slopes(1.7, -1.5)[1], rtol=1e-13)
    for size in (INF, -INF):
        value, found = slopes(size, 0.0 if order < 1 else 2.0)
        assert value == INF and found.tolist() == [np.sign(size), 0]


def test_there_is_no_second_derivative_of_a_norm_at_zero(backend: Backend) -> None:
    """A smooth function of the norm has one, for which 0 would be wrong."""
    for order in (1.5, 2, 3):
        x = leaf(np.zeros(3))
        for function in (lambda norm: norm, lambda norm: wg.exp(-norm * norm)):
            y = function(linalg.vector_norm(x, ord=order))
            (g,) = wg.autograd.grad(y, x, create_graph=True)
            assert not values(g).any()
            assert np.isnan(gradient(g, x)).all()


@pytest.mark.oracle
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_norms_of_matrices_with_equal_rows(order) -> None:
    for a in (np.eye(3), np.ones((2, 2)), np.asarray([[2.0, 0.0], [0.0, -2.0]])):
        if order in ("nuc", -2) and np.linalg.matrix_rank(a) < len(a):
            continue  # LAPACK is free to choose the sign of singular vectors for the value 0
        x = leaf(a)
        out = linalg.matrix_norm(x, ord=order)
        expected, (right,) = pytorch(lambda t, x: t.linalg.matrix_norm(x, ord=order), a)
        np.testing.assert_allclose(values(out), expected, atol=1e-15)
        np.testing.assert_allclose(gradient(out, x), right, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_second_derivatives_of_norms_of_matrices(kind, order) -> None:
    x = leaf(drawn(kind, 2, 3))
    gradgradcheck(lambda x: linalg.matrix_norm(x, ord=order), x)


def test_the_rank(backend: Backend) -> None:
    a = np.stack([np.eye(3), np.diag([1.0, 1e-9, 0.0]), np.zeros((3, 3))])
    x = leaf(a)
    assert linalg.matrix_rank(x).tolist() == [3, 2, 0]
    assert linalg.matrix_rank(x, rtol=1e-6).tolist() == [3, 1, 0]
    rtol = np.asarray([1e-6, 1e-12, 0.0])
    assert linalg.matrix_rank(x, rtol=wg.asarray(rtol)).tolist() == [3, 2, 0]
    assert not linalg.matrix_rank(x).requires_grad


# -- degenerate decompositions -------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda xp, x: xp.linalg.svdvals(x),
        lambda xp, x: xp.linalg.svd(x, full_matrices=False)[1] ** 3,
        lambda xp, x: xp.linalg.svd(x)[1],
        lambda xp, x: xp.linalg.eigvalsh(x) ** 2,
        lambda xp, x: xp.linalg.eigh(x)[0],
        lambda xp, x: xp.linalg.eigvals(x) ** 2,
        lambda xp, x: xp.linalg.eig(x)[0],
    ],
    ids=["svdvals", "svd", "full svd", "eigvalsh", "eigh", "eigvals", "eig"],
)
def test_equal_values_are_no_matter_where_no_vectors_are_used(function, kind) -> None:
    for a in (np.eye(3), np.diag([2.0, 2.0, -1.0])):
        a = a + 0 * drawn(kind, 3, 3)
        x = leaf(a)
        slope = gradient(function(wg, x), x)
        assert np.isfinite(slope).all()
        _, (right,) = pytorch(function, a)
        np.testing.assert_allclose(slope, right, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_the_whole_singular_vectors(kind, shape) -> None:
    """Those beyond the singular values have the derivative of the space that they span."""

    def spaces(x):
        u, s, vh = linalg.svd(x)
        k = s.shape[-1]
        out = [s, u[:, k:] @ adjoint(u[:, k:]), adjoint(vh[k:]) @ vh[k:]]
        return [*out, (u[:, :k] * s**2) @ vh[:k]]

    x = leaf(drawn(kind, *shape))
    gradcheck(spaces, x)
    gradgradcheck(spaces, x, fast_mode=True)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_the_pseudo_inverse_of_deficient_matrices(backend: Backend, kind) -> None:
    a = drawn(kind, 4, 2, seed=1) @ drawn(kind, 2, 3, seed=2)
    x = leaf(a)
    out = linalg.pinv(x, rtol=1e-10)
    expected, (right,) = pytorch(lambda t, x: t.linalg.pinv(x, rtol=1e-10), a)
    np.testing.assert_allclose(values(out), expected, atol=1e-12)
    np.testing.assert_allclose(gradient(out, x), right, rtol=1e-9, atol=1e-11)


def test_the_tolerance_of_the_pseudo_inverse(backend: Backend) -> None:
    a = np.stack([np.diag([1.0, 1e-3]), np.diag([1.0, 1e-3])])
    out = linalg.pinv(wg.asarray(a), rtol=wg.asarray([1e-2, 1e-4], dtype="float64"))
    np.testing.assert_allclose(values(out), [np.diag([1, 0]), np.diag([1, 1e3])], atol=1e-10)
    out = linalg.pinv(wg.asarray(a), rtol=1e-2)
    np.testing.assert_allclose(values(out), [np.diag([1, 0])] * 2, atol=1e-12)
    for rtol, lost in ((1e-4, 0), (1e-2, 8), (wg.asarray([1e-2, 1e-4], dtype="float64"), 4)):
        f = lambda x: wg.sum(linalg.pinv(x, rtol=rtol))  # noqa: B023
        x = wg.asarray(a)
        assert np.isnan(values(wg.grad(f)(x))).sum() == lost  # vectors would turn
        assert np.isnan(values(wg.jvp(f, (x,), (x,))[1])) == (lost > 0)


def test_the_complete_factor_of_a_tall_matrix_has_no_derivative(backend: Backend) -> None:
    x = leaf(drawn("real", 3, 2))
    q, r = linalg.qr(x, mode="complete")
    for result in (q, r):
        with pytest.raises(NotImplementedError, match=r"rows \(3\) than columns \(2\).*reduced"):
            gradient(result, x)


def test_either_factor_may_go_unused(backend: Backend) -> None:
    for shape in [(3, 2), (2, 3), (2, 2)]:
        a = drawn("real", *shape)
        for i in range(2):
            x = leaf(a)
            gradcheck(lambda x, i=i: linalg.qr(x)[i], x, fast_mode=True)


# -- systems, powers, products -------------------------------------------------------------------


def test_which_right_hand_sides_are_vectors(backend: Backend) -> None:
    """Those of one axis; (2, 2) beside a stack of two matrices is a matrix."""
    a = drawn("real", 2, 2, 2)
    for shape in [(2,), (2, 2), (2, 2, 1), (3, 1, 2, 5)]:
        b = drawn("real", *shape, seed=1)
        x, y = leaf(a), leaf(b)
        out = linalg.solve(x, y)
        expected = np.linalg.solve(a, b[:, None])[..., 0] if b.ndim == 1 else np.linalg.solve(a, b)
        assert out.shape == expected.shape
        np.testing.assert_allclose(values(out), expected, rtol=1e-12)
        gradcheck(linalg.solve, (x, y), fast_mode=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 33, 70])
def test_triangular_systems(backend: Backend, kind: str, n: int) -> None:
    """Small ones, and ones that are solved in blocks where the library has no such function."""
    a = drawn(kind, n, n) / max(n, 1) + 2 * np.eye(n)
    b = drawn(kind, n, 4, seed=1)
    for upper in (True, False):
        for unit in (True, False):
            part = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
            part = part + np.eye(n) if unit else part
            for x, y in ((a, b), (np.stack([a, a + 0.1 * part]), b), (a, np.stack([b, 2 * b]))):
                shape = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
                turned = np.asfortranarray(x) if x.ndim == 2 else x
                for given in (x, turned):
                    out = linalg.solve_triangular(
                        leaf(given), leaf(y), upper=upper, unitriangular=unit
                    )
                    exact = np.triu(x, int(unit)) if upper else np.tril(x, -int(unit))
                    exact = exact + np.eye(n) if unit else exact
                    assert out.shape == (*shape, n, 4)
                    np.testing.assert_allclose(
                        values(out), np.linalg.solve(exact, y), rtol=1e-10, atol=1e-12
                    )


@pytest.mark.parametrize("upper", [False, True])
def test_triangles_of_rows_of_all_sizes_keep_their_digits(backend: Backend, upper: bool) -> None:
    """Substitution is accurate row by row; what exchanges rows is not."""
    rng = np.random.default_rng(4)
    a = rng.normal(size=(40, 4, 4)) * 10.0 ** rng.integers(-8, 9, (40, 4, 1))
    part = np.triu(a) if upper else np.tril(a)
    b = rng.normal(size=(40, 4, 1))
    rows = range(4)[::-1] if upper else range(4)
    exact = np.zeros((40, 4))
    for k in range(40):  # in rational numbers
        found: dict[int, Fraction] = {}
        for i in rows:
            known = sum(Fraction(part[k, i, j]) * found[j] for j in found)
            found[i] = (Fraction(b[k, i, 0]) - known) / Fraction(part[k, i, i])
        exact[k] = [float(found[i]) for i in range(4)]
    for given, rhs, expected in ((a, b, exact), (a[0], b[0], exact[0])):
        out = values(linalg.solve_triangular(leaf(given), leaf(rhs), upper=upper))[..., 0]
        # Higham, Accuracy and Stability of Numerical Algorithms, 8.1: by the triangle's condition.
        t = abs(np.triu(given) if upper else np.tril(given))
        size = np.linalg.inv(np.triu(given) if upper else np.tril(given))
        bound = 20 * np.finfo(float).eps * (abs(size) @ t @ abs(expected)[..., None])[..., 0]
        assert (abs(out - expected) <= bound).all()


def test_a_singular_triangle_is_an_error_or_infinite(backend: Backend) -> None:
    x, y = leaf(np.asarray([[0.0, 1.0], [0.0, 2.0]])), leaf(np.ones((2, 1)))
    if backend.name in ("numpy", "dask"):
        for matrices in (x, wg.stack([x, x])):
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                values(linalg.solve_triangular(matrices, y, upper=True))
    else:
        with np.errstate(all="ignore"):
            out = values(linalg.solve_triangular(x, y, upper=True))
        assert not np.isfinite(out).all()
    unit = linalg.solve_triangular(x, y, upper=True, unitriangular=True)
    np.testing.assert_array_equal(values(unit), [[0.0], [1.0]])


# -- errors --------------------------------------------------------------------------------------

SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
ANY = ["matrix_norm", "matrix_rank", "pinv", "qr", "svd", "svdvals"]


@pytest.mark.parametrize("name", [*SQUARE, *ANY])
def test_what_is_no_matrix_is_refused(backend: Backend, name) -> None:
    function = getattr(linalg, name)
    with pytest.raises(TypeError, match=f"({name}|eig) takes floating .* not int64"):
        function(wg.asarray([[1, 2], [3, 4]], dtype="int64"))
    with pytest.raises(ValueError, match=r"matrix or a stack of them, not shape \(3,\)"):
        function(wg.asarray([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"list; convert it with wg\.asarray"):
        function([[1.0]])
    if name in SQUARE:
        with pytest.raises(ValueError, match=rf"{name} .*square matrices, not shape \(2, 3\)"):
            function(wg.asarray(np.ones((2, 3))))


def test_other_errors_say_what_to_do() -> None:
    x = wg.asarray(np.eye(3))
    for call, text in [
        (lambda: linalg.solve(x, wg.asarray(np.ones(2))), r"as many rows"),
        (lambda: linalg.solve(x, wg.asarray(np.ones((2, 3)))), r"as many rows"),
        (lambda: linalg.solve(x, wg.asarray(1.0)), r"as many rows"),
        (lambda: linalg.solve_triangular(x, wg.ones(2), upper=True), r"as many rows"),
        (lambda: linalg.solve_triangular(x, wg.ones((2, 3)), upper=True), r"as many rows"),
        (lambda: linalg.qr(x, mode="full"), r"'reduced' and 'complete', not 'full'"),
        (lambda: linalg.matrix_norm(x, ord=3), r"'fro', 'nuc', 1.* not 3"),
        (lambda: linalg.matrix_power(wg.asarray(np.ones((2, 3))), 2), r"square"),
        (lambda: linalg.cross(x[0, :2], x[0, :2]), r"length has to be 3"),
        (lambda: linalg.cross(x, x[0], axis=0), r"count it from the end"),
        (lambda: linalg.outer(x, x), r"two vectors"),
        (lambda: linalg.outer(x, x[0]), r"two vectors"),
        (lambda: linalg.outer(x[0], x), r"two vectors"),
        (lambda: linalg.diagonal(x[0]), r"diagonal takes a matrix"),
        (lambda: linalg.trace(x[0]), r"trace takes a matrix"),
        (lambda: linalg.vector_norm(x, axis=2), r"axis 2"),
        (lambda: linalg.vector_norm(x, axis=(0, 0)), r"twice"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match=r"number as ord, not 'fro'"):
        linalg.vector_norm(x, ord="fro")  # type: ignore[arg-type]
