"""Programs at the edges of what is differentiated: right numbers, or errors."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

import wengert as wg
from tests.scipy.compare import tensor
from wengert.scipy import integrate, interpolate, linalg, optimize, signal, special, stats
from wengert.scipy.spatial.distance import cdist

P = 0.7


@pytest.mark.parametrize("program", [
    lambda p: optimize.brentq(lambda x: math.cos(x) - p * x, 0.0, 2.0),
    lambda p: optimize.fsolve(lambda x: [x[0].item() ** 2 - p], [1.0])[0],
    lambda p: optimize.fsolve(lambda x: [np.interp(float(x[0]), [0, 1], [0, 2]) - p], [0.3])[0],
    lambda p: optimize.least_squares(lambda x: [math.sin(x[0]) - p * x[0]], [1.0]).x[0],
    lambda p: optimize.minimize(
        lambda x: (x[0] - p) ** 2 + math.sin(x[0]), [1.0], method="Nelder-Mead"
    ).x[0],
    lambda p: integrate.solve_ivp(lambda t, y: [-p * math.sin(y[0])], (0, 1), [1.0]).y[0, -1],
    lambda p: integrate.odeint(lambda y, t: [-p * math.sin(y[0])], [1.0], [0.0, 1.0])[-1, 0],
    lambda p: integrate.quad(lambda x: math.exp(-x), 0, p)[0],
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_unknowns_do_not_leave_the_tape(program: Callable[[Any], Any]) -> None:
    p = tensor(P).requires_grad_()
    for call in (lambda: program(p).backward(), lambda: wg.grad(program)(p)):
        with pytest.raises(RuntimeError, match="derivative would be lost"):
            call()
    with pytest.raises((RuntimeError, TypeError)):
        wg.jvp(program, (tensor(P),), (tensor(1.0),))


@pytest.mark.parametrize("name", ["kn", "yn", "polygamma"])
def test_functions_of_whole_orders_refuse_others(name: str) -> None:
    """SciPy's cut them off with a warning, or are nan."""
    function, x = getattr(special, name), tensor(1.5).requires_grad_()
    assert function(np.float64(2), x).item() == function(2, x).item()
    with pytest.raises(ValueError, match=r"whole orders, and not of 2.5"):
        function(2.5, x)


def test_plain_frozen_distributions_are_scipys() -> None:
    assert stats.norm(1, 2).expect(lambda x: x * x) == pytest.approx(5.0)
    assert stats.norm(1, 2).stats("mv") == (1.0, 4.0)
    assert stats.multivariate_normal([1, 2], np.eye(2)).mean.tolist() == [1, 2]
    assert float(stats.norm(1, 2).logpdf(tensor(1.0))) == pytest.approx(-math.log(8 * math.pi) / 2)


def test_fields_of_results_that_lose_derivatives() -> None:
    p = tensor([2.0, 1.0]).requires_grad_()
    bowl = lambda x: wg.sum((x - p) ** 2)
    for program in (
        lambda: optimize.minimize(bowl, [1.0, 1.2]).hess_inv,
        lambda: optimize.least_squares(lambda x: x - p, [1.0, 1.2]).jac,
        lambda: optimize.root(lambda x: x**2 - p, [1.0, 1.0]).fjac,
        lambda: optimize.fsolve(lambda x: x**2 - p, [1.0, 1.0], full_output=True)[1]["fjac"],
    ):
        with pytest.raises((AttributeError, KeyError)):
            program()
    x, more = optimize.brentq(lambda x: x**2 - p[0], 0.0, 3.0, full_output=True)
    assert more.root is x
    with pytest.raises(NotImplementedError, match="loss="):
        optimize.curve_fit(
            lambda x, a: a * x, np.ones(3), p[0] * np.ones(3), method="trf", loss="soft_l1"
        )


class _Bowl:
    def __init__(self, p: Any) -> None:
        self.p = p

    def __call__(self, x: Any) -> Any:
        return (x[0] - self.p) ** 2


def test_callables_of_all_kinds_refuse_to_lose_derivatives() -> None:
    bowl = _Bowl(tensor(2.0).requires_grad_())
    for function in (bowl, bowl.__call__, partial(_Bowl.__call__, bowl)):
        with pytest.raises(TypeError, match="result of argument 1"):
            optimize.fmin(function, [0.0], disp=0)
    assert optimize.fmin(_Bowl(1.0), [0.0], disp=0) == pytest.approx([1.0], abs=1e-4)


def test_solutions_near_zero() -> None:
    bent = lambda q: optimize.newton(lambda x: x + (x / 1e-9) ** 3 * 1e-9 - q, 5e-9)
    with pytest.raises(RuntimeError, match="no isolated solution"):
        wg.grad(bent)(tensor(2e-9))
    best = lambda q: optimize.minimize(
        lambda x: wg.sum((x - q) ** 2 + (x - q) ** 4), tensor([1.0, 1.0])
    ).x[0]
    assert float(wg.grad(best)(tensor(0.0))) == pytest.approx(1.0)


def test_interpolants_and_data() -> None:
    x, y = np.array([0.0, 0.7, 1.5]), np.array([1.0, 2.0, 0.5])
    for ends in (("clamped", "not-a-knot"), ("not-a-knot", (1, 0.3)), "not-a-knot"):
        expected = scipy.interpolate.CubicSpline(x, y, bc_type=ends)(0.4)
        assert float(interpolate.CubicSpline(x, tensor(y), bc_type=ends)(0.4)) == pytest.approx(
            expected
        )
    data, places = tensor(y), x.copy()
    one = interpolate.CubicSpline(places, data)
    data *= 3
    places[1] = 0.9
    assert float(one(0.4)) == pytest.approx(expected)
    x = np.array([0.0, 1.0, 1.0, 2.0, 3.0])
    y = np.array([1.0, 2.0, 4.0, 3.0, 5.0])
    assert float(integrate.simpson(tensor(y), x=x)) == pytest.approx(
        scipy.integrate.simpson(y, x=x)
    )
    for program in (
        lambda: interpolate.interp1d(x[::2], tensor(y[::2]), kind="quadratic"),
        lambda: linalg.solve(tensor(np.eye(2)), y[:2], assume_a="tridiagonal"),
    ):
        with pytest.raises(NotImplementedError, match="of Tensors"):
            program()(0.3)


def test_interpolants_as_functions_keep_their_data() -> None:
    """The integral of a spline through the data is linear in these."""
    x, y = np.linspace(0.0, 2.0, 4), tensor([1.0, 2.0, 0.5, 3.0])
    spline = lambda y: interpolate.CubicSpline(x, y)
    found = wg.grad(lambda y: integrate.quad(spline(y), 0.0, 2.0)[0])(y).numpy()
    each = [float(scipy.interpolate.CubicSpline(x, e).integrate(0.0, 2.0)) for e in np.eye(4)]
    assert found == pytest.approx(each, rel=1e-6)
    root = lambda y: optimize.brentq(spline(y - 1.0), 0.7, 1.3)
    slope = wg.grad(lambda c: root(y + c))(tensor(0.0))
    with pytest.raises(TypeError, match=r"nquad .*lose the derivative"):
        integrate.nquad(spline(y.requires_grad_()), [[0.0, 2.0]])
    at = float(root(y.detach()))
    assert float(slope) == pytest.approx(-1 / float(spline(y.detach().numpy())(at, 1)))


@pytest.mark.parametrize("call", [
    lambda x: special.jv(1.5, x),
    lambda x: special.betainc(x, 2.0, 0.3),
    lambda x: linalg.expm(x[:, None] * x),
    lambda x: linalg.solve_banded((0, 1), wg.stack([x, x + 1]), x),
    lambda x: signal.lfilter([1.0, 0.5], x, x),
    lambda x: stats.t.logcdf(x, 3.0),
    lambda x: stats.lognorm.cdf(x, 0.5) + stats.lognorm.logsf(x, 0.5),
])  # fmt: skip
def test_compiled_programs_call_scipy(call: Callable[[Any], Any]) -> None:
    one, two = tensor([0.5, 0.9]), tensor([0.7, 0.3])
    slope = lambda x: wg.grad(lambda y: wg.sum(call(y) ** 2))(x)
    for f in (call, slope):
        compiled = wg.compile(f)
        compiled(one)
        assert compiled(two).numpy() == pytest.approx(f(two).numpy(), rel=1e-13)


def test_distances_and_scattered_data_refuse_what_has_no_derivative() -> None:
    x = tensor(np.eye(3)).requires_grad_()
    for program in (lambda: cdist(x, x, "cosine"), lambda: cdist(x, np.eye(3), metric="jaccard")):
        with pytest.raises(NotImplementedError, match="cdist: of Tensors metric="):
            program()
    with pytest.raises(TypeError, match="'p', of Tensors"):
        cdist(x, x, p=3)
    with pytest.raises(ValueError, match="as many columns"):
        cdist(x, np.ones((2, 1)))
    same = wg.grad(lambda z: wg.sum(cdist(z, z)[0, 0]))(tensor(np.eye(3)))
    assert not np.any(same.numpy())
    points = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(TypeError, match=r"griddata .*lose the derivative"):
        interpolate.griddata(tensor(points).requires_grad_(), np.ones(3), [[0.2, 0.2]])
    with pytest.raises(NotImplementedError, match="griddata: of Tensors method="):
        interpolate.griddata(points, x[0], [[0.2, 0.2]], method="cubic")


def test_poisson_has_second_derivatives_at_a_mean_of_one() -> None:
    found = wg.hessian(lambda m: -wg.sum(stats.poisson.logpmf([3, 1], m)))(tensor([1.0, 2.0]))
    np.testing.assert_allclose(found.numpy(), np.diag([3.0, 0.25]))


_POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])


@pytest.mark.parametrize(
    "function",
    [
        np.linalg.cholesky,
        linalg.cholesky,
        lambda a: linalg.cholesky(a, lower=True),
        lambda a: linalg.cho_solve(linalg.cho_factor(a), [1.0, 2.0, 3.0]),
        lambda a: linalg.eigvalsh(a, lower=False),
        lambda a: stats.multivariate_normal.logpdf([0.1, 0.2, 0.3], cov=a),
    ],
)
def test_matrices_of_which_one_triangle_is_read_have_its_derivatives(function: Any) -> None:
    def f(a: Any) -> Any:
        out = wg.asarray(function(a))
        return wg.sum(out * wg.reshape(wg.cos(wg.arange(out.size, dtype="float64")), out.shape))

    steps = 1e-6 * np.eye(9).reshape(9, 3, 3)
    expected = [(f(tensor(_POSITIVE + h)) - f(tensor(_POSITIVE - h))).item() / 2e-6 for h in steps]
    found = wg.grad(f)(tensor(_POSITIVE)).numpy()
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6, atol=1e-7)


def test_pinv_cuts_where_scipy_does_and_steps_of_data_are_refused() -> None:
    small = np.diag([1.0, 5e-16])
    np.testing.assert_allclose(linalg.pinv(tensor(small)).numpy(), scipy.linalg.pinv(small))
    with pytest.raises(ValueError, match="come twice"):
        interpolate.interp1d([0, 1, 1, 2], tensor([0.0, 0.0, 5.0, 5.0]))([1.0])


def test_closures_that_are_multiplied_by_zero() -> None:
    """Another factor gives the same values, and other derivatives."""
    factor = 1.0

    def flow(p: Any) -> Any:
        rate = lambda t, y: factor * p * y
        return integrate.solve_ivp(rate, (0, 1), wg.stack([0 * p])).y[0, -1]

    def equation(p: Any) -> Any:
        return optimize.fsolve(lambda x: x - 1 + factor * (p - P), [2.0])[0]

    p = tensor(P).requires_grad_()
    found, other, factor = flow(p), equation(p), 2.0
    other.backward()  # which keeps its equations
    assert p.grad is not None and float(p.grad) == pytest.approx(-1.0)
    with pytest.raises(RuntimeError, match="changed since"):
        found.backward()
    factor = 1.0
    flow(p).backward()


def test_what_is_not_differentiated_is_refused() -> None:
    p, batch = tensor(P).requires_grad_(), tensor(np.stack([np.eye(2)] * 2))
    for program in (
        lambda: optimize.newton(lambda z: z**2 + p, 0.5 + 1j),
        lambda: linalg.lu_factor(batch),
        lambda: linalg.lu_solve((batch[0], [0, 1]), batch),
        lambda: linalg.solve_banded((0, 0), tensor(np.ones((1, 2))), batch),
        lambda: linalg.block_diag(batch),
    ):
        with pytest.raises((NotImplementedError, TypeError), match=r"Cannot cast|no batches"):
            program()
    for option in ({"dense_output": True}, {"events": lambda t, y: y[0] - 0.5}):
        with pytest.raises(NotImplementedError, match=r"dense_output= .*pass t_eval"):
            integrate.solve_ivp(lambda t, y: -p * y, (0, 1), [1.0], **option)
    for law, shape in ((stats.bernoulli, ()), (stats.binom, (3,)), (stats.nbinom, (3,))):
        for method in (law.cdf, law.sf):
            with pytest.raises(TypeError, match=r"lose the derivative"):
                method(1, *shape, p)
    own = integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0], dense_output=True)
    assert own.sol(0.0).tolist() == [1.0]
    with pytest.raises(TypeError, match=r"sol of scipy.integrate.solve_ivp .*lose the derivative"):
        own.sol(p)


def test_bounds_that_are_tracked_are_refused_and_others_hold() -> None:
    p = tensor(P).requires_grad_()
    both = optimize.Bounds(tensor([-1.0]), tensor([1.0]))
    line = lambda x, a: p * a * x
    end = lambda bounds: [
        optimize.least_squares(lambda x: x - 3 * p, [0.1], bounds=bounds).x[0],
        optimize.curve_fit(line, [1.0, 2.0], [3.0, 6.0], bounds=bounds)[0][0],
        optimize.minimize(lambda x: (x[0] + 3 * p) ** 2, [0.1], bounds=bounds).x[0],
    ]
    assert [x.item() for x in end(both)] == pytest.approx([1.0, 1.0, -1.0], rel=1e-8)
    assert [float(wg.autograd.grad(x, p)[0]) for x in end(both)] == [0.0] * 3  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Bounds .*lose the derivative"):
        optimize.Bounds(-p, p)
    with pytest.raises(TypeError, match=r"minimize .*lose the derivative"):
        optimize.minimize(lambda x: x[0] ** 2, [0.1], bounds=[(p, None)])
    # SciPy stays where it begins, at the bound that the slope leads away from.
    with pytest.raises(RuntimeError, match="no isolated solution"):
        optimize.least_squares(lambda x: x - 3 * p, [0.0], bounds=(0.0, 5.0))


@pytest.mark.parametrize("beyond", [-0.1, -1e-5, 1e-8, 1e-5, 1e-3, 3e-3, 0.1])
@pytest.mark.parametrize("method", ["trf", "dogbox", "trust-constr", "Powell", "COBYLA", "TNC"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bounds_hold_parameters_that_stop_beside_them(method: str, beyond: float) -> None:
    def place(p: Any) -> Any:
        rest = lambda z: [z[0] - p, z[1] - 2 * z[0]]
        if method in ("trf", "dogbox"):
            return optimize.least_squares(rest, [1, 1], bounds=(0, [1.5, 9]), method=method).x[0]
        cost = lambda z: sum(r**2 for r in rest(z))
        return optimize.minimize(cost, [1, 1], bounds=[(0, 1.5), (0, 9)], method=method).x[0]

    try:
        found = float(wg.grad(place)(tensor(1.5 + beyond)))
    except RuntimeError as error:
        assert abs(beyond) <= 1e-5, "only beside the bound"
        assert "begins to hold" in str(error)  # noqa: PT017
    else:
        assert found == pytest.approx(float(beyond < 0))


def test_bounds_hold_by_the_scale_of_parameters() -> None:
    def place(p: Any) -> Any:
        rest = lambda x: [x[0] * 1e9 - p, x[0] * 0.5e9 - p * p]
        tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-14)
        return optimize.least_squares(rest, [1e-9], bounds=(0, 1), x_scale=1e-9, **tight).x[0]

    for p in np.linspace(1, 5, 9):
        assert float(wg.grad(place)(tensor(p))) == pytest.approx((1 + p) / 1.25e9)


@pytest.mark.parametrize("seed", range(1, 6))
def test_bounds_hold_parameters_that_depend_on_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, right = rng.normal(size=(6, 5)), rng.normal(size=(2, 6)) * 2
    line = lambda p: right[0] + p * right[1]
    exact = lambda p: scipy.optimize.lsq_linear(matrix, line(p), (-0.3, 0.4), "bvls", 1e-15).x
    rest = lambda x, p: tensor(matrix) @ x - tensor(right[0]) - p * tensor(right[1])
    fit = lambda p: optimize.least_squares(rest, np.zeros(5), bounds=(-0.3, 0.4), args=(p,)).x
    slope = (exact(0.5 + 1e-6) - exact(0.5 - 1e-6)) / 2e-6
    assert wg.func.jacrev(fit)(tensor(0.5)).numpy() == pytest.approx(slope, abs=1e-8)
    assert 0 < np.count_nonzero(np.abs(slope) > 1e-8) < 5


@pytest.mark.filterwarnings("ignore::scipy.optimize.OptimizeWarning")
def test_covariances_that_are_infinite() -> None:
    data = [0.0, 1.0], tensor([0.0, 1.0]).requires_grad_()
    best, cov = optimize.curve_fit(lambda x, a, b: a * x + b, *data)
    assert np.isposinf(cov.numpy()).all()
    assert best.requires_grad


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::RuntimeWarning")
def test_arguments_that_do_not_fit_are_errors() -> None:
    matrix, p = tensor(np.eye(2)), tensor(0.4).requires_grad_()
    for function in (linalg.eigh, linalg.eigvalsh):  # by position it is not `lower`
        with pytest.raises(TypeError, match="b="):
            function(matrix, 2 * np.eye(2))
    for method in ("RK45", "Radau"):
        rate = lambda t, y: 1j * p * y
        with pytest.raises(TypeError, match="complex y0"):
            integrate.solve_ivp(rate, (0, 1), [1.0], method)
    with pytest.raises(TypeError, match="transposed=True"):
        linalg.solve(matrix, [1.0, 2.0], transposed=True)
    with pytest.raises(ValueError, match=r"a\[0\]"):
        signal.lfilter([1.0], tensor([0.0, 1.0]), [1.0, 2.0])
    for mean, cov in ((1, 2), (3, 2), (2, 3)):
        given = tensor(np.zeros(mean)), np.eye(cov)
        for call in (stats.multivariate_normal.logpdf, scipy.stats.multivariate_normal.logpdf):
            with pytest.raises(ValueError, match=r"(?i)mean|array"):
                call(np.zeros(cov), *given)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (3, 2), (1, 3, 2), (3, 1, 2), (1, 1, 2)])
def test_normal_densities_have_scipys_shapes(shape: Any) -> None:
    found = stats.multivariate_normal.logpdf(tensor(np.zeros(shape)), tensor([0.0, 1.0]))
    expected = scipy.stats.multivariate_normal.logpdf(np.zeros(shape), [0.0, 1.0])
    assert found.shape == np.shape(expected)
    assert found.numpy() == pytest.approx(expected)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("program", [
    lambda y: interpolate.CubicSpline([0, 1, 2], [y[0], 4.0, y[1]])([1.5, 0.2]),
    lambda y: interpolate.CubicSpline([0, 1, 2, 3], [0.0, 1.0, 4.0, 8.0])([y[0], 1.2]),
    lambda y: interpolate.interp1d([0, 1, 2], [y[0], 4.0, y[1]])([1.5, 0.2]),
    lambda y: interpolate.interp1d([0, 1, y[1]], [0.0, 1.0, 4.0])(y[0]),
    lambda y: linalg.lu_factor(wg.stack([y, y[::-1]]))[0],
    lambda y: stats.multivariate_normal.logpdf([0.1, 0.2], y, 2.0),
    lambda y: stats.multivariate_normal.logpdf([0.1, 0.2], None, y[0]),
])  # fmt: skip
def test_tensors_of_all_libraries_beside_lists(program: Any) -> None:
    place, f = tensor([0.75, 2.5]), lambda y: wg.sum(program(y))
    steps = [(f(place + tensor(h)) - f(place - tensor(h))).item() / 2e-6 for h in 1e-6 * np.eye(2)]
    assert wg.grad(f)(place).numpy() == pytest.approx(steps, rel=1e-6, abs=1e-8)


@pytest.mark.filterwarnings("ignore:logm result")
@pytest.mark.parametrize("name", ["expm", "sinm", "cosm", "logm", "sqrtm"])
@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
def test_functions_of_matrices_take_cotangents_of_any_size(name: str, dtype: Any) -> None:
    a, weights = (wg.asarray(x, dtype=dtype) for x in ([[2.0, 0.3], [0.1, 1.0]], [[1, 2], [3, 4]]))
    f = lambda a, size: wg.sum(getattr(linalg, name)(a) * weights) * size
    found = [wg.grad(f)(a, size).numpy() / size for size in (1.0, 1e20, 1e-20)]
    close = 1e-13 if dtype == wg.float64 else 1e-5
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=close)
    tangents = [wg.jvp(lambda a: f(a, 1), (a,), (size * a,))[1] / size for size in (1.0, 1e20)]
    assert float(tangents[1]) == pytest.approx(float(tangents[0]), rel=close)


@pytest.mark.filterwarnings("ignore:.* singular", "ignore:logm result")
@pytest.mark.parametrize("name", ["logm", "sqrtm"])
def test_roots_and_logarithms_of_singular_matrices_have_no_derivative(name: str) -> None:
    function = getattr(linalg, name)
    for matrix in (np.zeros((2, 2)), np.ones((2, 2))):
        assert np.isfinite(function(tensor(matrix)).numpy()).all()
        with pytest.raises(Warning, match="singular"):
            wg.grad(lambda a: wg.sum(function(a)))(tensor(matrix))


@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_lu_factors_are_of_square_matrices(shape: Any) -> None:
    for seed in range(3):
        matrix = np.random.default_rng(seed).standard_normal(shape)
        with pytest.raises(NotImplementedError, match="square"):
            linalg.lu_factor(tensor(matrix))


@pytest.mark.filterwarnings("ignore:.*`lwork`:DeprecationWarning")  # an option of places before
def test_options_by_position_are_scipys() -> None:
    a, y = tensor(_POSITIVE), tensor([1.0, 2.0, 3.0])
    calls: list[tuple[Any, ...]] = [
        ("cholesky", a, True, True), ("cho_solve", (np.eye(3), True), y, True), ("inv", a, True),
        ("lu_solve", (np.eye(3), [0, 1, 2]), y, 0, True),
        ("lu_factor", a, True), ("det", a, True), ("norm", a, "fro", None, True, False),
        ("qr", a, True, None, "economic"), ("svd", a, False, True, True),
    ]  # fmt: skip
    for name, *args in calls:
        numbers = [x.numpy() if isinstance(x, wg.Tensor) else x for x in args]
        own, theirs = (getattr(lib, name) for lib in (linalg, scipy.linalg))
        found, expected = own(*args), theirs(*numbers[:-1], numbers[-1])
        one, other = (x[0] if isinstance(x, tuple) else x for x in (found, expected))
        np.testing.assert_allclose(abs(one.detach().numpy()), abs(other), rtol=1e-10, atol=1e-12)
    for call, word in (
        (lambda: linalg.qr(a, False, None, "full", True), "pivoting=True"),
        (lambda: linalg.qr(a, False, 5), "lwork=5"),
        (lambda: linalg.det(a, True, overwrite_a=True), "overwrite_a"),
        (lambda: signal.lfilter([1.0], y, y, -1, y), "zi"),
        (lambda: stats.multivariate_normal.logpdf(y, y, a, True), "allow_singular=True"),
    ):
        with pytest.raises((TypeError, NotImplementedError), match=word):
            call()


def test_convolutions_along_an_axis_are_centred_along_others() -> None:
    x, y = np.arange(3.0)[None], np.arange(30.0).reshape(5, 6)
    found = signal.fftconvolve(tensor(x), y, "same", axes=[1]).numpy()
    expected = scipy.signal.fftconvolve(x, y, "same", axes=[1])
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_zeta_of_one_number_and_of_two() -> None:
    for given in ((2.5,), (2.5, 1.5)):
        found = special.zeta(*map(tensor, given)).item()
        assert found == pytest.approx(scipy.special.zeta(*given), rel=1e-14)
