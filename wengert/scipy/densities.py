"""Distributions in their standard form: of ``y = (x - loc) / scale`` and of shapes.

Each is what is not zero of its density, and of the functions that can be computed from one another,
one. Values outside of the support are never computed with.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wengert as wg
from wengert.ops import special as sp
from wengert.scipy import elementary as el

Form = Callable[..., Any]
_INF = math.inf


@dataclass(frozen=True)
class Density:
    """A continuous distribution.

    Attributes
    ----------
    logpdf, cdf, sf : callable
        Of ``y`` within the support, and of the shapes.
    ppf, isf : callable
        The inverses of ``cdf`` and ``sf``.
    logcdf, logsf : callable, optional
        Where the logarithms of ``cdf`` and ``sf`` lose digits.
    low, high : float
        The ends of the support.
    inside : callable
        A place within the support, for what is computed outside.
    """

    logpdf: Form
    cdf: Form
    sf: Form
    ppf: Form
    isf: Form
    logcdf: Form | None = None
    logsf: Form | None = None
    low: float = -_INF
    high: float = _INF

    @property
    def inside(self) -> float:
        """A place within the support, for what is computed outside."""
        return 0.0 if self.low == -_INF else self.low + 0.5


def _logit(q: Any) -> Any:
    return wg.log(q) - wg.log1p(-q)


def _half_line(cumulative: Form, rest: Form, **more: Any) -> dict[str, Any]:
    return {"cdf": cumulative, "sf": rest, "low": 0.0, **more}


def _laplace_cdf(y: Any) -> Any:
    tail = wg.exp(-wg.abs(y)) / 2
    return wg.where(y > 0, 1 - tail, tail)


def _laplace_ppf(q: Any) -> Any:
    low = q < 0.5
    small = wg.where(low, q, 1 - q)
    return wg.where(low, wg.log(2 * small), -wg.log(2 * small))


def _laplace_logcdf(y: Any) -> Any:
    right = y > 0
    tail = wg.exp(-wg.where(right, y, 0.0)) / 2
    return wg.where(right, wg.log1p(-tail), y - math.log(2))


def _student_logpdf(y: Any, df: Any) -> Any:
    half = wg.zeros_like(df) + 0.5
    return -(df + 1) / 2 * wg.log1p(y * y / df) - wg.log(df) / 2 - sp.betaln(df / 2, half)


def _gamma_logpdf(y: Any, a: Any) -> Any:
    return sp.xlogy(a - 1, y) - y - sp.gammaln(a)


def _beta_logpdf(y: Any, a: Any, b: Any) -> Any:
    return sp.xlogy(a - 1, y) + sp.xlog1py(b - 1, -y) - sp.betaln(a, b)


def _cauchy_ppf(q: Any) -> Any:
    return wg.tan(math.pi * (q - 0.5))


_LOG_2PI = math.log(2 * math.pi)
_NORMAL = Density(
    logpdf=lambda y: -y * y / 2 - _LOG_2PI / 2,
    cdf=sp.ndtr,
    sf=lambda y: sp.ndtr(-y),
    ppf=sp.ndtri,
    isf=lambda q: -sp.ndtri(q),
    logcdf=sp.log_ndtr,
    logsf=lambda y: sp.log_ndtr(-y),
)

#: Shapes and forms by SciPy's names.
CONTINUOUS: dict[str, Density] = {
    "beta": Density(
        _beta_logpdf,
        lambda y, a, b: el.betainc(a, b, y),
        lambda y, a, b: el.betaincc(a, b, y),
        lambda q, a, b: el.betaincinv(a, b, q),
        lambda q, a, b: el.betainccinv(a, b, q),
        low=0.0,
        high=1.0,
    ),
    "cauchy": Density(
        lambda y: -math.log(math.pi) - wg.log1p(y * y),
        lambda y: wg.atan2(wg.ones_like(y), -y) / math.pi,
        lambda y: wg.atan2(wg.ones_like(y), y) / math.pi,
        _cauchy_ppf,
        lambda q: -_cauchy_ppf(q),
    ),
    "chi2": Density(
        lambda y, df: _gamma_logpdf(y / 2, df / 2) - math.log(2),
        lambda y, df: el.gammainc(df / 2, y / 2),
        lambda y, df: el.gammaincc(df / 2, y / 2),
        lambda q, df: 2 * el.gammaincinv(df / 2, q),
        lambda q, df: 2 * el.gammainccinv(df / 2, q),
        low=0.0,
    ),
    "expon": Density(
        lambda y: -y,
        lambda y: -wg.expm1(-y),
        lambda y: wg.exp(-y),
        lambda q: -wg.log1p(-q),
        lambda q: -wg.log(q),
        logsf=lambda y: -y,
        low=0.0,
    ),
    "gamma": Density(
        _gamma_logpdf,
        lambda y, a: el.gammainc(a, y),
        lambda y, a: el.gammaincc(a, y),
        lambda q, a: el.gammaincinv(a, q),
        lambda q, a: el.gammainccinv(a, q),
        low=0.0,
    ),
    "laplace": Density(
        lambda y: -wg.abs(y) - math.log(2),
        _laplace_cdf,
        lambda y: _laplace_cdf(-y),
        _laplace_ppf,
        lambda q: -_laplace_ppf(q),
        logcdf=_laplace_logcdf,
        logsf=lambda y: _laplace_logcdf(-y),
    ),
    "logistic": Density(
        lambda y: -wg.abs(y) - 2 * wg.log1p(wg.exp(-wg.abs(y))),
        sp.expit,
        lambda y: sp.expit(-y),
        sp.logit,
        lambda q: -sp.logit(q),
        logcdf=sp.log_expit,
        logsf=lambda y: sp.log_expit(-y),
    ),
    "lognorm": Density(
        lambda y, s: -((wg.log(y) / s) ** 2) / 2 - wg.log(s * y) - _LOG_2PI / 2,
        lambda y, s: sp.ndtr(wg.log(y) / s),
        lambda y, s: sp.ndtr(-wg.log(y) / s),
        lambda q, s: wg.exp(s * sp.ndtri(q)),
        lambda q, s: wg.exp(-s * sp.ndtri(q)),
        lambda y, s: sp.log_ndtr(wg.log(y) / s),
        lambda y, s: sp.log_ndtr(-wg.log(y) / s),
        low=0.0,
    ),
    "norm": _NORMAL,
    "rayleigh": Density(
        lambda y: wg.log(y) - y * y / 2,
        lambda y: -wg.expm1(-y * y / 2),
        lambda y: wg.exp(-y * y / 2),
        lambda q: wg.sqrt(-2 * wg.log1p(-q)),
        lambda q: wg.sqrt(-2 * wg.log(q)),
        logsf=lambda y: -y * y / 2,
        low=0.0,
    ),
    "t": Density(
        _student_logpdf,
        lambda y, df: el.stdtr(df, y),
        lambda y, df: el.stdtr(df, -y),
        lambda q, df: el.stdtrit(df, q),
        lambda q, df: -el.stdtrit(df, q),
    ),
    "uniform": Density(
        lambda y: wg.zeros_like(y),
        lambda y: y,
        lambda y: 1 - y,
        lambda q: q,
        lambda q: 1 - q,
        low=0.0,
        high=1.0,
    ),
}
#: The shapes for which a distribution is defined: all positive.
SHAPES = {"beta": "a b", "chi2": "df", "gamma": "a", "lognorm": "s", "t": "df"}


@dataclass(frozen=True)
class Mass:
    """A distribution of whole numbers ``k``, from 0 to ``high``."""

    shapes: str
    logpmf: Form
    cdf: Form
    valid: Form
    high: Form = lambda *shapes: _INF


def _binomial_logpmf(k: Any, n: Any, p: Any) -> Any:
    ways = -wg.log1p(n) - sp.betaln(n - k + 1, k + 1)
    return ways + sp.xlogy(k, p) + sp.xlog1py(n - k, -p)


def _probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _binomial_cdf(k: Any, n: Any, p: Any) -> Any:
    below = k < n
    rest = wg.where(below, n - k, 1.0)
    return wg.where(below, el.betaincc(k + 1, rest, wg.where(below, p, 0.5)), 1.0)


DISCRETE: dict[str, Mass] = {
    "bernoulli": Mass(
        "p",
        lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p),
        lambda k, p: wg.where(k < 1, 1 - p, 1.0),
        _probability,
        lambda p: 1.0,
    ),
    "binom": Mass(
        "n p",
        _binomial_logpmf,
        _binomial_cdf,
        lambda n, p: (n >= 0) & (wg.floor(n) == n) & _probability(p),
        lambda n, p: n,
    ),
    "geom": Mass(  # of k - 1 failures, by its default loc
        "p",
        lambda k, p: sp.xlog1py(k, -p) + wg.log(p),
        lambda k, p: -wg.expm1(wg.log1p(-p) * (k + 1)),
        lambda p: (p > 0) & (p <= 1),
    ),
    "nbinom": Mass(
        "n p",
        lambda k, n, p: (
            sp.gammaln(n + k)
            - sp.gammaln(k + 1)
            - sp.gammaln(n)
            + n * wg.log(p)
            + sp.xlog1py(k, -p)
        ),  # fmt: skip
        lambda k, n, p: el.betainc(n, k + 1, p),
        lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    ),
    "poisson": Mass(
        "mu",
        lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu,
        lambda k, mu: el.gammaincc(k + 1, mu),
        lambda mu: mu >= 0,
    ),
}
