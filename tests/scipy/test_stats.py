"""Distributions: values of SciPy's, derivatives by all parameters, draws that follow them."""

import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

import wengert as wg
from tests.catalogue.scipy import SHAPES
from tests.scipy.compare import tensor
from wengert.scipy import stats
from wengert.scipy.stats import CONTINUOUS, DISCRETE

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")
X = np.array([-1.0, 0.0, 0.05, 0.1, 0.3, 0.8, 1.0, 1.7, 5.0, np.nan, np.inf, -np.inf])
Q = np.array([0.0, 0.01, 0.3, 0.5, 0.9, 1.0, -0.1, np.nan])


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    shapes, wrong = SHAPES.get(name, ()), []
    for method in METHODS:
        own, theirs = (getattr(getattr(lib, name), method) for lib in (stats, scipy.stats))
        places = Q if method in ("ppf", "isf") else X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = theirs(places, *shapes, 0.1, 1.3)
        found = own(tensor(places), *shapes, loc=0.1, scale=1.3).numpy()
        if "pdf" in method:  # SciPy's are nan at infinity, where these are zero
            expected[-2] = found[-2] = 0.0
        if not np.allclose(expected, found, rtol=1e-12, atol=1e-15, equal_nan=True):
            wrong.append((method, expected, found))

        def finite(x: Any, own: Any = own) -> Any:  # no derivative is lost in what is not
            y = own(x, *shapes, 0.1, 1.3)
            return wg.sum(wg.where(wg.isfinite(y), y, 0.0))

        inside = places[np.isfinite(places)]
        gradient = wg.grad(finite)(tensor(inside)).numpy()
        if method in ("ppf", "isf"):  # infinite where the density is zero at an end
            ends = theirs((0, 1), *shapes, 0.1, 1.3)
            steep = getattr(scipy.stats, name).pdf(ends, *shapes, 0.1, 1.3) == 0
            assert (np.isinf(gradient[[0, 5]]) == steep & np.isfinite(ends)).all()
            gradient[[0, 5]] = 0.0
        if (name, method) == ("chi2", "pdf"):  # a root at the end of the support
            assert gradient[3] == np.inf
            gradient[3] = 0.0
        if not np.all(np.isfinite(gradient)):
            wrong.append((method, "gradient", gradient))
    assert wrong == []


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str) -> None:
    shapes, wrong = SHAPES[name], []
    k = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 1.5, np.nan])
    for method in ("logpmf", "pmf", "cdf", "sf"):
        own, theirs = (getattr(getattr(lib, name), method) for lib in (stats, scipy.stats))
        for loc in (0, 1):
            expected = theirs(k, *shapes, loc)
            found = own(tensor(k), *shapes, loc).numpy()
            if not np.allclose(expected, found, rtol=1e-12, atol=1e-15, equal_nan=True):
                wrong.append((method, expected, found))
    assert wrong == []


def test_invalid_parameters_give_nan() -> None:
    assert np.isnan(stats.norm.logpdf(tensor(0.3), 0, -1).numpy())
    assert np.isnan(stats.gamma.cdf(tensor(0.3), -2.0).numpy())
    assert np.isnan(stats.binom.logpmf(tensor(1), 3, 1.5).numpy())


def test_invalid_parameters_beside_others_are_masked() -> None:
    both, mask = tensor([2.0, -1.0]), wg.asarray([True, False])
    for name in ("cdf", "logsf", "logpdf"):
        f = lambda a: wg.sum(wg.where(mask, getattr(stats.gamma, name)(1.0, a), 0.0))  # noqa: B023
        found = wg.grad(f)(both).numpy()
        alone = wg.grad(lambda a: getattr(stats.gamma, name)(1.0, a))(tensor(2.0))  # noqa: B023
        assert found.tolist() == [float(alone), 0.0]


def test_draws_have_second_derivatives() -> None:
    """At the same quantiles, by differences of SciPy's."""
    draws = lambda a: wg.sum(stats.gamma.rvs(a, size=3, random_state=1))
    q, h = scipy.stats.gamma.cdf(scipy.stats.gamma.rvs(2.0, size=3, random_state=1), 2.0), 1e-3
    after, here, before = (scipy.stats.gamma.ppf(q, 2.0 + k * h).sum() for k in (1, 0, -1))
    second = float(wg.grad(wg.grad(draws))(tensor(2.0)))
    assert second == pytest.approx((after - 2 * here + before) / h**2, rel=1e-4)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name in SHAPES])
def test_draws_move_with_shapes(name: str) -> None:
    """At the same quantile, by differences of SciPy's."""
    shapes, theirs, h = SHAPES[name], getattr(scipy.stats, name), 1e-5
    q = theirs.cdf(theirs.rvs(*shapes, size=4, random_state=3), *shapes)

    def draws(a: Any) -> Any:
        return getattr(stats, name).rvs(a, *shapes[1:], 0.1, 2.0, size=4, random_state=3)

    high, low = (theirs.ppf(q, shapes[0] + k * h, *shapes[1:]) for k in (1, -1))
    slopes = wg.jacobian(draws)(tensor(shapes[0])).numpy()
    assert slopes == pytest.approx(2.0 * (high - low) / (2 * h), rel=1e-6)


def test_frozen_and_several_variables() -> None:
    cov, places = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[0.1, 0.5], [1.0, -1.0]])
    mean, theirs = np.array([0.1, 0.2]), scipy.stats.multivariate_normal
    own = stats.multivariate_normal
    assert float(own(tensor(mean), cov).pdf(places[0])) == pytest.approx(
        theirs.pdf(places[0], mean, cov)
    )
    drawn = own.rvs(tensor(mean), cov, size=2, random_state=1).numpy()
    assert drawn == pytest.approx(theirs.rvs(mean, cov, size=2, random_state=1))
    by = wg.grad(lambda c: own.logpdf(places[0], mean, (c + c.T) / 2))(tensor(cov)).numpy()
    white = np.linalg.solve(cov, places[0] - mean)
    assert by == pytest.approx((np.outer(white, white) - np.linalg.inv(cov)) / 2)
    frozen = stats.norm(0.0, tensor(2.0))
    assert frozen.logpdf([1.0]).shape == (1,)
    assert frozen.rvs(3, random_state=0).shape == (3,)
    assert stats.norm(1, 2).mean() == 1
    assert stats.norm(0, 2).rvs(2, random_state=0) == pytest.approx(
        scipy.stats.norm(0, 2).rvs(2, random_state=0)
    )


def _slopes(name: str, method: str, x: float, *args: float) -> list[float]:
    given = [wg.tensor(v, dtype=wg.float64, requires_grad=True) for v in args]
    y = getattr(getattr(stats, name), method)(x, *given)
    return [float(y.detach()), *(float(g) for g in wg.autograd.grad(y, given) if g is not None)]


@pytest.mark.parametrize("name", ["beta", "cauchy", "expon", "gamma", "norm", "t", "uniform"])
@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"])
def test_a_location_that_is_nan_gives_nan(name: str, method: str) -> None:
    shapes = {"beta": (1.0, 1.0), "gamma": (2.0,), "t": (3.0,)}.get(name, ())
    found = getattr(getattr(stats, name), method)(0.5, *map(tensor, (*shapes, np.nan)))
    assert np.isnan(float(found))


def test_masses_of_many_ways() -> None:
    """By n differences of SciPy's; ways whose exponential overflows are not computed with."""
    found, h = _slopes("nbinom", "pmf", 600.0, 500.0, 0.5), 1e-3
    low, high = scipy.stats.nbinom.pmf(600, [500 - h, 500 + h], 0.5)
    assert found[1] == pytest.approx((high - low) / (2 * h), rel=1e-5)
    found = _slopes("binom", "pmf", 1.0, 1e9, 3e-9)
    rare = 1e9 * 3e-9 * np.exp((1e9 - 1) * np.log1p(-3e-9))
    assert found[0] == pytest.approx(rare, rel=1e-12)
    assert found[2] == pytest.approx(rare * (1 / 3e-9 - (1e9 - 1) / (1 - 3e-9)), rel=1e-12)
    assert _slopes("binom", "pmf", 1000.0, 2000.0, 1.0) == [0.0, 0.0, 0.0]
    assert _slopes("binom", "logpmf", 4.0, 3.0, 1.0) == [-np.inf, 0.0, 0.0]


def test_cauchys_density_far_away() -> None:
    y = stats.cauchy.logpdf(tensor(1e300))
    assert float(y) == pytest.approx(-np.log(np.pi) - 2 * np.log(1e300), rel=1e-14)


@pytest.mark.parametrize(
    ("method", "x", "df", "slope"),
    [  # by central differences of 60 digits
        ("logsf", 1e7, 2.0, -15.464669241238308),
        ("logsf", 1e9, 2.0, -20.069839427226384),
        ("logsf", 1e12, 3.0, -26.721901124367882),
        ("logsf", 1e8, 0.5, -18.696458007437442),
        ("cdf", 2.0, 1e3, 0.1351049489460594e-6),
        ("cdf", 2.0, 1e7, 0.1349774291058177e-14),
        ("cdf", 2.0, 1e10, 0.134977416295793e-20),
        ("cdf", 5.0, 1e7, 4.831904043299563e-19),
        ("logpdf", 2.0, 1e3, -1.73673051125613e-6),
        ("logpdf", 2.0, 1e7, -1.749998666667308e-14),
    ],
)
def test_students_t_by_degrees_in_tails_and_near_the_normal(
    method: str, x: float, df: float, slope: float
) -> None:
    function = lambda df: getattr(stats.t, method)(x, df)
    place, h = tensor(df), 1e-4 * df
    first = wg.grad(function)
    assert float(first(place)) == pytest.approx(slope, rel=1e-9, abs=0)
    two = float(first(tensor(df + h)) - first(tensor(df - h))) / (2 * h)
    assert float(wg.grad(first)(place)) == pytest.approx(two, rel=1e-6, abs=0)
    batch = wg.vmap(first)(wg.stack([place, place]))
    assert batch.numpy() == pytest.approx(np.full(2, slope), rel=1e-9, abs=0)


def test_students_quantiles_near_the_normal() -> None:
    """By 1 / df: Cornish and Fisher's first term."""
    z = scipy.stats.norm.ppf(0.9)
    for df in (1e7, 1e9, 1e12):
        slope = wg.grad(lambda u: stats.t.ppf(0.9, 1 / u))(tensor(1 / df))
        assert float(slope) == pytest.approx((z**3 + z) / 4, rel=1e-6)


#: With densities that are infinite, finite and zero at the ends of the support.
_ENDS = [
    *(("gamma", (a,)) for a in (0.4, 1.0, 3.0)),
    *(("chi2", (df,)) for df in (0.7, 2.0, 5.0)),
    *(("beta", shapes) for shapes in ((0.5, 0.7), (1.0, 1.0), (2.0, 3.0), (0.5, 2.0))),
    *(("lognorm", (s,)) for s in (0.5, 3.0)),
    *(("expon", ()), ("uniform", ())),
]


@pytest.mark.parametrize(("name", "shapes"), _ENDS)
@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf", "ppf", "isf"])
def test_slopes_at_the_ends_of_supports(name: str, shapes: Any, method: str) -> None:
    """Of the limits from inside: the density at the end, which moves with location and scale."""
    law, theirs = getattr(stats, name), getattr(scipy.stats, name)
    bounded = name in ("beta", "uniform")
    for top in (False, True):
        y = (1.0 if bounded else np.inf) if top else 0.0
        sign = -1 if method in ("sf", "logsf", "isf") else 1
        inverse = method in ("ppf", "isf")
        place = (1.0 if top == (sign > 0) else 0.0) if inverse else 0.25 + 2.0 * y
        given = [tensor(v).requires_grad_() for v in (place, *shapes, 0.25, 2.0)]
        value = getattr(law, method)(*given)
        found = [float(g) for g in wg.autograd.grad(value, given, retain_graph=True)]
        if inverse:
            expected = [*(0.0 for _ in shapes), 1.0, y] if np.isfinite(y) else [0.0] * 3
            assert found[1:] == expected[-len(found[1:]) :]
            continue
        if np.isinf(float(value.detach())) and np.isfinite(y):  # has one side alone
            slope = -np.inf if top else np.inf
            expected = [slope, *(np.nan for _ in shapes), -slope, np.nan]
            assert found == pytest.approx(expected, nan_ok=True)
            assert not any(wg.autograd.grad(wg.where(wg.isfinite(value), value, 0.0), given))
            continue
        density = 0.0 if np.isinf(y) else sign * theirs.pdf(y, *shapes) / 2
        scaled = 0.0 if y in (0, np.inf) else -density * y
        assert found == pytest.approx([density, *(0.0 for _ in shapes), -density, scaled])
        if y == 0:
            of_scale = lambda s: getattr(law, method)(place, *shapes, 0.25, s)  # noqa: B023
            assert float(wg.grad(wg.grad(of_scale))(tensor(2.0))) == 0.0


def test_log_probabilities_of_lognormals_far_out() -> None:
    """By differences of SciPy's; the probabilities themselves underflow."""
    for method, x, s in (("logcdf", 1e-300, 0.5), ("logsf", 1e300, 0.5), ("logcdf", 1e-300, 3.0)):
        law, h = getattr(scipy.stats.lognorm, method), 1e-5
        found = wg.grad(lambda s: getattr(stats.lognorm, method)(x, s))(tensor(s))  # noqa: B023
        assert float(found) == pytest.approx((law(x, s + h) - law(x, s - h)) / (2 * h), rel=1e-7)


def test_slopes_of_quantiles_by_location_and_scale_take_batches() -> None:
    found = wg.vmap(wg.jacobian(lambda p: stats.norm.ppf(0.9, p[0], p[1])))(tensor([[0.0, 2.0]]))
    assert found.numpy() == pytest.approx(np.array([[1.0, scipy.stats.norm.ppf(0.9)]]))


@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf", "logpdf", "ppf", "isf"])
def test_slopes_of_single_precision_keep_their_digits(method: str) -> None:
    place = 0.75 if method in ("ppf", "isf") else 1.25
    laws = [(stats.t, place, df) for df in (300.0, 1000.0, 3000.0)]
    laws += [(stats.gamma, 0.75 if place == 0.75 else 910.0, 900.0)]
    for law, x, shape in laws:
        single, double = (
            float(wg.grad(lambda s: getattr(law, method)(x, s))(wg.asarray(shape, dtype=dtype)))  # noqa: B023
            for dtype in (wg.float32, wg.float64)
        )
        assert single == pytest.approx(double, rel=2e-5, abs=0)


def test_frozen_laws_take_their_first_argument_by_name() -> None:
    one = stats.norm(tensor(0.5), 2.0)
    assert float(one.pdf(x=0.3)) == pytest.approx(scipy.stats.norm(0.5, 2.0).pdf(x=0.3))
    assert float(one.ppf(q=0.3)) == pytest.approx(scipy.stats.norm(0.5, 2.0).ppf(q=0.3))
    assert float(stats.binom(3, tensor(0.5)).pmf(k=1)) == pytest.approx(0.375)


@pytest.mark.parametrize("law", [stats.gamma, stats.beta])
def test_densities_that_jump_with_a_shape_have_no_slope_by_it(law: Any) -> None:
    """At the end of the support: infinite below one, and zero above."""
    more = (3.0,) if law is stats.beta else ()
    assert np.isnan(float(wg.grad(lambda a: law.pdf(0.0, a, *more))(tensor(1.0))))
    assert float(wg.grad(lambda a: law.pdf(0.0, a, *more))(tensor(2.5))) == 0.0
    both = wg.hessian(lambda p: law.cdf(p[1], p[0], *more))(tensor([1.0, 0.0])).numpy()
    assert np.isnan(both[0, 1])
    assert np.isnan(both[1, 0])


_FORMS: dict[str, Callable[..., Any]] = {
    "gamma": lambda x, a: mpmath.exp(-x) * x ** (a - 1) / mpmath.gamma(a),
    "chi2": lambda x, v: mpmath.exp(-x / 2) * (x / 2) ** (v / 2 - 1) / mpmath.gamma(v / 2) / 2,
    "beta": lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b),
}


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        *(("gamma", (a,)) for a in (1.0, 2.0, 2.5, 4.0)),
        *(("chi2", (df,)) for df in (2.0, 4.0, 5.0)),
        *(("beta", shapes) for shapes in ((2.0, 3.0), (1.0, 2.0), (0.5, 3.0))),
    ],
)
@pytest.mark.parametrize("method", ["pdf", "cdf", "logsf"])
@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
def test_higher_derivatives_near_ends(name: str, shapes: Any, method: str, dtype: Any) -> None:
    """By mpmath: powers of whole exponents end, where terms of logarithms would cancel."""
    form, law = _FORMS[name], getattr(getattr(stats, name), method)
    with mpmath.workdps(60):
        given = [mpmath.mpf(v) for v in shapes]
        whole = lambda x: form(x, *given)
        for place in (1e-12, 1e-9, 1e-7, 1e-6, 1e-3):
            x = mpmath.mpf(float(np.asarray(place, dtype.name)))
            function: Any = lambda x: law(x, *shapes)
            for order in range(1, 5):
                function = wg.grad(function)
                if order == 1 and method != "pdf":
                    continue
                if method == "logsf":  # whose slope is -f / s, with s' = -f
                    n = order - 1
                    f = mpmath.taylor(whole, x, n)
                    s = [1 - mpmath.quad(whole, [0, x]), *(-f[k] / (k + 1) for k in range(n))]
                    series = [mpmath.mpf(0)] * order
                    for k in range(order):
                        series[k] = (f[k] - sum(series[j] * s[k - j] for j in range(k))) / s[0]
                    expected = -series[n] * mpmath.factorial(n)
                    least = float(series[0])  # which is all of exponential laws
                else:
                    least = 0.0
                    expected = mpmath.diff(whole, x, order - (method != "pdf"))
                if abs(expected) < 1e30:
                    near = 1e-8 if dtype == wg.float64 else 1e-5
                    found = float(function(wg.asarray(float(x), dtype=dtype)))
                    close = pytest.approx(float(expected), rel=near, abs=near * least)
                    assert found == close, (place, order)


@pytest.mark.parametrize("name", ["logpdf", "logcdf", "logsf"])
@pytest.mark.parametrize("law", ["norm", "expon", "gamma"])
def test_hessians_of_logarithms(law: str, name: str) -> None:
    shapes = SHAPES.get(law, ())
    f = lambda p: getattr(getattr(stats, law), name)(p[0], *shapes, p[1], p[2])
    place, steps = tensor([1.25, 0.5, 2.0]), 1e-5 * np.eye(3)
    slopes = [wg.grad(f)(place + tensor(h)) - wg.grad(f)(place - tensor(h)) for h in steps]
    expected = wg.stack(slopes).numpy() / 2e-5
    for hessian in (wg.hessian(f), wg.func.jacfwd(wg.func.jacrev(f))):
        assert hessian(place).numpy() == pytest.approx(expected, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *(("gamma", (0.5, a)) for a in (1.0, 2.0, 2.5)),
        *(("chi2", (0.5, df)) for df in (2.0, 3.0, 4.0)),
        *(("beta", shapes) for shapes in ((0.3, 1.0, 2.0), (0.3, 2.0, 1.0), (0.8, 1.5, 3.0))),
    ],
)
@pytest.mark.parametrize("method", ["pdf", "cdf"])
def test_mixed_derivatives_have_one_value_in_all_orders(name: str, place: Any, method: str) -> None:
    """By mpmath: where exponents are 0, their own slopes are not."""
    law = getattr(getattr(stats, name), method)
    wanted = [(0, 1), (1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0), (0, 1, 1)]
    with mpmath.workdps(40):
        for by in wanted if len(place) == 2 else [*wanted, (1, 2, 0), (0, 2, 1), (0, 0, 2)]:
            least = by if method == "pdf" else (*sorted(by)[1:],)
            counts = tuple(least.count(i) for i in range(len(place)))
            exact = mpmath.diff(_FORMS[name], place, counts, h=mpmath.mpf(10) ** -12)
            function: Any = law
            for i in by:
                function = wg.grad(function, argnums=i)
            found = float(function(*map(tensor, place)))
            assert found == pytest.approx(float(exact), rel=1e-8), by


def test_masses_of_one_success_have_symmetric_derivatives() -> None:
    """Of n (n + 1) / 2 p**n (1 - p)**2."""
    found = wg.hessian(lambda v: stats.nbinom.pmf(2.0, v[0], v[1]))(tensor([1.0, 0.3])).numpy()
    form = lambda n, p: n * (n + 1) / 2 * p**n * (1 - p) ** 2
    expected = [
        [mpmath.diff(form, (1, 0.3), [(2, 0), (1, 1), (0, 2)][i + j]) for j in range(2)]
        for i in range(2)
    ]
    assert found == pytest.approx(np.array(expected, float), rel=1e-8)


def test_log_probabilities_of_lognormals_in_tails() -> None:
    """Of `u` far down, the slope is that of a parabola and of a logarithm."""
    u = np.log(1e-3) / 1e-8
    found = wg.grad(stats.lognorm.logcdf, argnums=(0, 1))(tensor(1e-3), tensor(1e-8))
    expected = [-u / 1e-11, u * u / 1e-8]
    assert [float(x) for x in found] == pytest.approx(expected, rel=1e-10)
