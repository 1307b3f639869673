"""Distributions in their tails and near the ends of supports: slopes, of all orders."""

import math
from collections.abc import Iterator
from math import inf, nan
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import wengert as wg
from tests.scipy.compare import tensor
from tests.walking import walk
from wengert.scipy import special, stats  # noqa: F401 -- rows name it

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def _densities(*rows: Any) -> Iterator[Any]:
    """Of a density, and of its integral, whose derivatives are one order higher."""
    for law, place, *slopes in rows:
        yield law.format("pdf"), place, *slopes
        yield law.format("cdf"), place, None, *slopes


def _far(*rows: Any) -> Iterator[Any]:
    """Of Student's t by the degrees of freedom; by the place they are finite."""
    for method, place, df, slope in rows:
        yield f"stats.t.{method}({place}, x)", df, slope
        yield f"stats.t.{method}(x, {df})", place, ...


def _invalid() -> Iterator[Any]:
    for key in ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"):
        for name, shapes in (("norm", ""), ("gamma", "2.2, "), ("t", "3.3, ")):
            yield f"stats.{name}.{key}(x, {shapes}0.0, 1.0)", nan, nan
            yield f"stats.{name}.{key}(0.5, {shapes}0.0, x)", -1.0, nan


def _powers() -> Iterator[Any]:
    """Of Taylor's series, or of a sine: powers of the probability whose derivatives vanish."""
    for p in (1e-8, 1e-20):
        slopes = math.pi * p / 2, math.pi / 2, math.pi**2 * p, math.pi**2
        yield "special.gammaincinv(0.5, x)", p, *slopes
        yield "stats.gamma.ppf(x, 0.5, 0.3)", p, *slopes
        yield "stats.chi2.ppf(x, 1.0) / 2", p, *slopes
        half, cube = math.pi**2 / 2, math.pi**4 / 2
        slopes = half * p, half, -cube * p, -cube
        yield "special.betaincinv(0.5, 0.5, x)", p, *slopes
        yield "-special.betainccinv(0.5, 0.5, x)", p, *slopes
        yield "stats.beta.ppf(x, 0.5, 0.5, 0.3)", p, *slopes
        yield "-stats.beta.isf(x, 0.5, 0.5)", p, *slopes


#: By relative and absolute tolerance: calls, places, and derivatives from the first order on. None
#: is not compared, and what is ... is finite.
SLOPES: dict[tuple[float, float], list[Any]] = {
    (1e-6, 1e-12): [
        # one-sided, or of powers
        ("special.gammainc(2.5, x)", inf, 0.0),
        ("special.gammaincc(0.5, x)", 0.0, -inf),
        ("special.gammainc(x, inf)", 2.5, 0.0),
        ("special.betainc(1.0, 3.0, x)", 0.0, 3.0),
        ("special.stdtr(2.5, x)", -inf, 0.0),
        ("special.stdtr(x, inf)", 2.5, 0.0),
        ("stats.binom.pmf(1.0, 3, x)", 0.0, 3.0),
        ("stats.binom.pmf(3.0, 3, x)", 1.0, 3.0),
        ("stats.binom.pmf(2.0, 3, x)", 0.0, None, 6.0),
        ("stats.bernoulli.pmf(0.0, x)", 1.0, -1.0, 0.0),
        ("stats.nbinom.pmf(1.0, 3, x)", 1.0, -3.0),
        ("stats.poisson.pmf(1.0, x)", 0.0, 1.0),
        ("stats.poisson.logpmf(0.0, x)", 1.0, -1.0),
        ("stats.beta.logpdf(0.0, 1.0, x)", 2.5, 0.4),
        ("stats.gamma.logpdf(x, 1.0)", 0.0, -1.0),
        ("special.jv(0.0, x)", 0.0, 0.0),
        ("special.hyp2f1(0.5, 1.5, 2.5, x)", 0.0, 0.3),
        # smooth in the middle
        ("stats.laplace.cdf(x)", 0.0, 0.5),
        ("stats.laplace.sf(x)", 0.0, -0.5),
        ("stats.laplace.ppf(x)", 0.5, 2.0),
        ("stats.laplace.isf(x)", 0.5, -2.0),
        ("stats.laplace.logcdf(x)", 0.0, 1.0),
        ("stats.laplace.logsf(x)", 0.0, -1.0),
        # incomplete functions that are polynomials
        ("special.gammainc(1.0, x)", 0.0, 1.0, -1.0, 1.0),
        ("special.gammaincc(2.0, x)", 0.0, 0.0, -1.0, 2.0),
        ("special.betainc(1.0, 5.0, x)", 0.0, 5.0, -20.0, 60.0),
        ("special.betainc(5.0, 1.0, x)", 1.0, 5.0, 20.0, 60.0),
        ("stats.binom.pmf(2, 5, x)", 1e-9, 2e-8, 20.0, -180.0),
        ("stats.binom.pmf(2, 40, x)", 1e-12, 1.56e-9, 1560.0, -177840.0, 13160160.0),
        ("stats.binom.pmf(38, 40, x)", 1.0, 0.0, 1560.0, 177840.0),
        ("stats.poisson.cdf(1, x)", 0.0, 0.0, -1.0, 2.0),
        ("stats.nbinom.pmf(0, 3, x)", 1.0, 3.0, 6.0, 6.0),
        # densities at the ends of supports, from inside
        *_densities(
            ("stats.gamma.{}(x, 2.0)", 0.0, 1.0, -2.0),
            ("stats.gamma.{}(x, 1.5)", 0.0, inf),
            ("stats.gamma.{}(x, 1.0)", 0.0, -1.0, 1.0),
            ("stats.expon.{}(x)", 0.0, -1.0, 1.0),
            ("stats.chi2.{}(x, 4.0)", 0.0, 0.25, -0.25),
            ("stats.beta.{}(x, 2.0, 2.0)", 0.0, 6.0, -12.0),
            ("stats.beta.{}(x, 2.0, 2.0)", 1.0, -6.0, -12.0),
            ("stats.beta.{}(x, 1.0, 3.0)", 0.0, -6.0, 6.0),
            ("stats.beta.{}(x, 0.5, 0.7)", 0.0, -inf),
            ("stats.beta.{}(x, 0.5, 0.7)", 1.0, inf),
            ("stats.lognorm.{}(x, 0.5)", 0.0, 0.0, 0.0),
        ),
        # logarithms at ends, whose slopes are limits
        ("stats.gamma.logpdf(x, 2.0)", 0.0, inf, -inf),
        ("stats.gamma.logpdf(x, 0.5)", 0.0, -inf, inf),
        ("stats.gamma.logpdf(x, 1.0)", 0.0, -1.0, 0.0),
        ("stats.beta.logpdf(x, 2.0, 3.0)", 1.0, -inf, -inf),
        ("stats.beta.logpdf(x, 2.0, 0.5)", 1.0, inf, inf),
        ("stats.chi2.logcdf(x, 3.0)", 0.0, inf, -inf),
        ("stats.lognorm.logpdf(x, 0.5)", 0.0, inf),
        ("wg.log(stats.gamma.pdf(x, 2.0))", 0.0, inf),
        ("wg.log(stats.beta.pdf(x, 2.0, 1.5))", 1.0, -inf),
        ("stats.beta.logpdf(2.0, 2.0, 3.0, 0.0, x)", 2.0, nan),
        # none: infinite below a shape of one, and above
        ("stats.gamma.logpdf(0.0, x)", 1.0, nan),
        ("stats.chi2.logpdf(0.0, x)", 2.0, nan),
        ("stats.beta.logpdf(0.0, x, 2.0)", 1.0, nan),
        ("stats.beta.logpdf(1.0, 2.0, x)", 1.0, nan),
        ("stats.gamma.logpdf(0.0, 2.0, 0.0, x)", 1.0, None, nan),
        ("stats.gamma.logsf(x, 2.0)", 1000.0, nan),  # SciPy's is minus infinity
        ("stats.t.logsf(x, 1e5)", 40.0, nan),
        ("stats.norm.ppf(x)", 1.5, nan),
        ("stats.binom.pmf(1.0, 3, x)", 1.5, nan),
        ("stats.poisson.cdf(1.0, x)", -1.0, nan),
        *_invalid(),
    ],
    (1e-8, 1e-12): [  # of shapes that are whole, by differences of 60 digits
        ("stats.t.sf(10.0, x)", 2.0, None, None, -0.0313358684582819),
        ("stats.t.logsf(10.0, x)", 2.0, None, None, -0.178413708349822),
        ("stats.t.ppf(0.8, x)", 2.0, None, None, -0.271385517986679),
        ("special.stdtr(x, 1.0)", 2.0, None, None, 0.023638629166557),
        ("special.gammaincinv(x, 0.3)", 1.0, None, None, -0.507408312808574),
        ("special.betaincinv(x, 2.0, 0.3)", 1.0, None, None, -0.176213756076112),
    ],
    (1e-9, 0.0): [*_powers()],
    (1e-10, 0.0): [  # where the square overflows, by central differences of 60 digits
        *_far(
            ("sf", 1e155, 0.01, -4.915201791478909),
            ("cdf", -1e160, 0.01, -4.521012279927398),
            ("sf", 1e200, 0.5, -1.4777669909688464e-98),
            ("cdf", 1e160, 3.0, 0.0),
            ("cdf", -1e308, 3.0, 0.0),
            ("pdf", 1e160, 3.0, 0.0),
            ("logpdf", 1e160, 3.0, -367.1711615541533),
            ("logpdf", -1e300, 2.5, -689.579919538815),
            ("pdf", 1e160, inf, 0.0),
        ),
    ],
}
#: Logarithms of probabilities in tails, by 50 digits, of the nearest float32 numbers.
TAILS = [
    ("stats.norm.logcdf(x)", -5000.0, 5000.0002, -0.99999996),
    ("stats.norm.logsf(x)", 2.0**27, -(2.0**27), -1.0),
    ("stats.laplace.logsf(x)", 800.0, -1.0, 0.0),
    ("stats.beta.logcdf(x, 20.0, 2.0)", 2.0**-10, 20479.0467325, -20971520.908719),
    ("stats.gamma.logsf(x, 5.0)", 600.0, -0.99334448142, -1.1073889e-5),
]


@pytest.mark.parametrize("dtype", [wg.float64, wg.float32])
def test_slopes_of_all_orders(dtype: wg.DType) -> None:
    def check(call: str, place: float, slopes: Any, near: Any) -> None:
        function: Any = eval(f"lambda x: {call}", globals())
        x = wg.asarray(place, dtype=dtype)
        pushed = wg.jvp(function, (x,), (wg.ones_like(x),))[1]
        for order, expected in enumerate(slopes):
            function = wg.grad(function)
            for found in (function(x), pushed)[: 2 - (order > 0)]:
                if expected is ...:
                    assert np.isfinite(found.item())
                elif expected is not None:
                    assert found.item() == pytest.approx(expected, *near, nan_ok=True)

    groups = SLOPES if dtype is wg.float64 else {(1e-6, 1e-12): []}
    rows = [(*row, near) for near, group in groups.items() for row in group]
    rows += [(*row, (1e-6, 1e-12)) for row in TAILS]
    walk([(call, place, slopes, near) for call, place, *slopes, near in rows], check, whole=True)


def test_tails_of_distributions() -> None:
    """Values of SciPy's, and slopes by 40 digits."""
    tail = scipy.stats.poisson.sf(60, 3.0)
    assert float(stats.poisson.sf(tensor(60), 3.0)) == pytest.approx(tail, rel=1e-12)
    for y, df, slope in ((-20, 30, -0.8814086892994786), (-2.9, 2.5, -0.4772923896508866)):
        assert float(wg.grad(lambda d, y=y: stats.t.logcdf(y, d))(tensor(df))) == pytest.approx(
            slope
        )
        assert float(wg.grad(lambda d, y=y: stats.t.logsf(-y, d))(tensor(df))) == pytest.approx(
            slope
        )
    assert float(wg.grad(lambda d: stats.t.ppf(1e-10, d))(tensor(3.0))) == pytest.approx(
        5044.1434, rel=1e-6
    )
    assert float(stats.cauchy.ppf(tensor(1e-20))) == pytest.approx(-3.183098861837907e19)
    with pytest.raises(ValueError, match="Domain error"):
        stats.norm.rvs(0, tensor(-1.0), size=3)


def test_infinite_places_move_with_nothing() -> None:
    places = [-np.inf, np.inf, 0.3]
    for family, shapes in ((stats.norm, ()), (stats.t, (3.0,)), (stats.gamma, (2.0,))):
        for name in ("pdf", "cdf", "sf", "logpdf", "logcdf", "logsf"):
            for loc, scale in ((0.1, 2.0), (0.1, 1e-5)):
                f = lambda p: getattr(family, name)(places, *shapes, p[0], p[1])  # noqa: B023
                at = tensor([loc, scale])
                for found in (wg.func.jacrev(f)(at), wg.func.jacfwd(f)(at)):
                    assert not np.any(found.numpy()[:2]), (family, name)
    far = wg.grad(lambda scale: stats.norm.cdf(1e300, scale=scale))(tensor(1e-300))
    assert float(far) == 0.0


def test_t_of_infinitely_many_degrees_is_normal() -> None:
    for name in ("logpdf", "cdf", "logsf"):
        t = lambda x, df, n=name: getattr(stats.t, n)(x, df)
        found = wg.grad(t, argnums=(0, 1))(tensor(0.3), tensor(np.inf))
        expected = wg.grad(getattr(stats.norm, name))(tensor(0.3))
        np.testing.assert_allclose([float(x) for x in found], [float(expected), 0.0], rtol=1e-13)
    mixed = stats.t.logpdf(tensor([0.3, 0.3]), [np.inf, 2.0])
    np.testing.assert_allclose(mixed.numpy(), scipy.stats.t.logpdf(0.3, [np.inf, 2.0]))


def test_logarithms_of_probabilities_near_one_keep_digits() -> None:
    for name, shapes, x in (
        ("gamma", (2.0,), 50.0), ("beta", (2.0, 30.0), 0.8), ("t", (5.0,), 1e4),
        ("cauchy", (), 1e9), ("chi2", (3.0,), 100.0), ("expon", (), 40.0), ("norm", (), 10.0),
    ):  # fmt: skip
        own, theirs = getattr(stats, name), getattr(scipy.stats, name)
        rest, density = theirs.sf(x, *shapes), theirs.pdf(x, *shapes)
        value = own.logcdf(tensor(x), *shapes)
        assert float(value) == pytest.approx(np.log1p(-rest), rel=1e-9, abs=0.0), name
        found = wg.grad(lambda x: own.logcdf(x, *shapes))(tensor(x))  # noqa: B023
        assert float(found) == pytest.approx(density, rel=1e-9, abs=0.0), name
    for name, shapes, x in (("gamma", (2.0,), 1e-10), ("beta", (2.0, 30.0), 1e-10)):
        own, theirs = getattr(stats, name), getattr(scipy.stats, name)
        below = theirs.cdf(x, *shapes)
        assert float(own.logsf(tensor(x), *shapes)) == pytest.approx(-below, rel=1e-9, abs=0.0)


def _slopes(function: Any, given: Any, *orders: Any) -> list[float]:
    found = []
    for order in orders:
        f = function
        for i in order:
            f = wg.grad(f, argnums=i)
        found.append(float(f(*map(tensor, given))))
    return found


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (stats.gamma.logsf, (730.0, 2.0, 0.0, 1.0)),
        (stats.chi2.logsf, (1600.0, 3.0, 0.0, 1.0)),
        (stats.beta.logsf, (0.9, 50.0, 700.0, 0.0, 1.0)),
        (stats.t.logcdf, (-50.0, 1e5, 0.0, 1.0)),
    ],
)
def test_logarithms_of_what_underflows_have_no_slopes_of_any_order(
    function: Any, given: Any
) -> None:
    scale = len(given) - 1
    orders = [(0,), (1,), (0, 0), (0, 1), (scale, scale), (0, 0, 0), (1, 1, 0), (scale,) * 3]
    assert float(function(*map(tensor, given))) == -np.inf
    assert np.isnan(_slopes(function, given, *orders)).all()


@pytest.mark.parametrize("law", ["gamma", "beta", "chi2"])
@pytest.mark.parametrize("a", [0.001, 0.5, 1.7])
def test_slopes_by_the_scale_where_powers_overflow(law: str, a: float) -> None:
    """Of a multiple of a power, which is all of the distribution near its end."""
    shapes = {"gamma": (a,), "chi2": (2 * a,), "beta": (a, 1.5)}[law]
    scale, own = 2.0, getattr(stats, law)
    given, last = (1e-150, *shapes, 0.0, scale), len(shapes) + 2
    below, density = (float(f(*map(tensor, given))) for f in (own.cdf, own.pdf))
    found = _slopes(own.cdf, given, (last,), (last, last))
    expected = np.array([-a / scale, a * (a + 1) / scale**2])
    np.testing.assert_allclose(found, expected * below, rtol=1e-12)
    found = _slopes(own.pdf, given, (last,), (last, last))
    np.testing.assert_allclose(found, expected * density, rtol=1e-12)


@pytest.mark.parametrize("y", [-1e90, -1e160, -1e200, -1e300])
def test_slopes_by_the_scale_where_squares_overflow(y: float) -> None:
    """Of a power of the place over the scale."""
    for family, shapes, power in (
        (stats.cauchy, (), 1.0), (stats.t, (1.0,), 1.0),
        (stats.t, (0.6,), 0.6), (stats.t, (3.0,), 3.0),
    ):  # fmt: skip
        given, last = (y, *shapes, 0.0, 1.0), len(shapes) + 2
        orders = (last,), (last,) * 2, (last,) * 3
        logs = np.array([1.0, -1.0, 2.0])
        found = _slopes(family.logcdf, given, *orders)
        np.testing.assert_allclose(found, power * logs, rtol=1e-12)
        found = _slopes(family.logpdf, given, *orders, (0,), (0, last))
        np.testing.assert_allclose(found[:3], power * logs, rtol=1e-12)
        np.testing.assert_allclose(found[3:], [(power + 1) / -y, 0.0], rtol=1e-12, atol=1e-200)
        below = np.exp(float(family.logcdf(*map(tensor, given))))
        found = _slopes(family.cdf, given, *orders)
        p = power * np.array([1.0, power - 1, (power - 1) * (power - 2)])
        np.testing.assert_allclose(found, p * below, rtol=1e-11, atol=1e-307)


_LOWER: dict[str, Any] = {
    "gamma": lambda y, a: mpmath.gammainc(a, 0, y, regularized=True),
    "beta": lambda y, a, b: mpmath.betainc(a, b, 0, y, regularized=True),
    "expon": lambda y: 1 - mpmath.exp(-y),
    "uniform": lambda y: y,
    "t": lambda y, df: mpmath.betainc(df / 2, 0.5, 0, df / (df + y * y), regularized=True) / 2,
    "cauchy": lambda y: mpmath.atan(-1 / y) / mpmath.pi,
}


@pytest.mark.parametrize(
    ("name", "shapes", "y"),
    [
        *(("gamma", (a,), y) for a, y in ((2.3, 1e-9), (0.4, 1e-13), (300.0, 20.0))),
        *(("beta", s, 1e-9) for s in ((2.3, 1.7), (0.4, 0.7), (2.0, 300.0))),
        *(("expon", (), 1e-9), ("uniform", (), 1e-9), ("t", (2.3,), -1e6), ("cauchy", (), -1e6)),
    ],
)
def test_third_derivatives_of_log_probabilities_near_ends(name: str, shapes: Any, y: float) -> None:
    """By 60 digits; logarithms of the place and of the scale cancel in others."""
    given, n = (y, *shapes, 0.0, 1.0), len(shapes)

    def exact(x: Any, *rest: Any) -> Any:
        *own, loc, scale = rest
        return mpmath.log(_LOWER[name]((x - loc) / scale, *own))

    for at in (
        (0, 0, n + 2),
        (0, n + 1, n + 2),
        (n + 2, 0, 0),
        *([(0, 1, 1), (1, 0, 1)] * (n > 0)),
    ):
        function = getattr(stats, name).logcdf
        for i in at:
            function = wg.grad(function, argnums=i)
        with mpmath.workdps(90):
            orders = tuple([at.count(i) for i in range(len(given))])
            place = tuple(map(mpmath.mpf, given))
            expected = float(mpmath.diff(exact, place, orders, h=abs(place[0]) / 10**12))
        found = float(function(*map(tensor, given)))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-300), at


def test_third_derivatives_of_log_survival_near_an_upper_end() -> None:
    """As of the mirrored law near its lower one."""
    law, low, high = stats.beta, tensor(1e-9), tensor(1 - 1e-9)
    a, b = tensor(0.4), tensor(0.7)
    for order in range(1, 4):
        f, mirrored = law.logsf, law.logcdf
        for i in (2, 1, 0)[:order]:
            f, mirrored = wg.grad(f, argnums=i), wg.grad(mirrored, argnums=(0, 2, 1)[i])
        sign = -1 if order == 3 else 1
        assert float(f(high, b, a)) == pytest.approx(sign * float(mirrored(low, a, b)), rel=1e-6)
    for t in (40.0, 1e6):
        found = wg.grad(stats.t.logsf, argnums=1)(tensor(t), tensor(3.0))
        assert float(found) == float(wg.grad(stats.t.logcdf, argnums=1)(tensor(-t), tensor(3.0)))
