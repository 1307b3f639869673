"""Distributions in their standard form: of ``y = (x - loc) / scale`` and of shapes.

What is outside of the support is never computed with.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import wengert as wg
from wengert import special as sp
from wengert.scipy import elementary as el

Form = Callable[..., Any]
_INF = math.inf
_LOG_ROOT = math.log(2 * math.pi) / 2


class Density(NamedTuple):
    """A continuous distribution; one without ``sf`` and ``isf`` is symmetric about 0."""

    logpdf: Form
    cdf: Form
    ppf: Form
    sf: Form | None = None
    isf: Form | None = None
    logcdf: Form | None = None
    logsf: Form | None = None
    low: float = -_INF
    high: float = _INF
    shapes: str = ""

    def form(self, name: str) -> Form:
        """One of the functions: by symmetry, or as a logarithm, where there is none."""
        own: Form | None = getattr(self, name)
        if own is not None:
            return own
        if name == "logcdf" or self.sf is not None:
            return _log(self.form(name.removeprefix("log")))
        if name == "isf":
            return lambda q, *shapes: -self.ppf(q, *shapes)
        mirrored = self.form(name.replace("sf", "cdf"))
        return lambda y, *shapes: mirrored(-y, *shapes)


def _log(form: Form) -> Form:
    def call(*args: Any) -> Any:
        value = form(*args)
        return wg.where(value > 0, wg.log(wg.where(value > 0, value, 1.0)), -_INF)

    return call


def _laplace_cdf(y: Any) -> Any:
    tail = wg.exp(-wg.abs(y)) / 2
    return wg.where(y > 0, 1 - tail, tail)


def _laplace_ppf(q: Any) -> Any:
    far = wg.log(2 * wg.minimum(q, 1 - q))
    return wg.where(q < 0.5, far, -far)


def _laplace_logcdf(y: Any) -> Any:
    tail = wg.exp(-wg.maximum(y, 0.0)) / 2
    return wg.where(y > 0, wg.log1p(-tail), y - math.log(2))


def _student(y: Any, df: Any) -> Any:
    half = wg.zeros_like(df) + 0.5
    return -(df + 1) / 2 * wg.log1p(y * y / df) - wg.log(df) / 2 - sp.betaln(df / 2, half)


def _gamma(y: Any, a: Any) -> Any:
    return sp.xlogy(a - 1, y) - y - sp.gammaln(a)


def _beta(y: Any, a: Any, b: Any) -> Any:
    return sp.xlogy(a - 1, y) + sp.xlog1py(b - 1, -y) - sp.betaln(a, b)


def _lognormal(y: Any, s: Any) -> Any:
    log = wg.log(wg.where(y > 0, y, 1.0))
    return wg.where(y > 0, -((log / s) ** 2) / 2 - log - wg.log(s) - _LOG_ROOT, -_INF)


def _last(function: Form, factor: float = 1.0) -> Form:
    """A function whose last argument is the place, and other arguments shapes, times a factor."""
    return lambda y, *shapes: function(*[s * factor for s in shapes], y)


CONTINUOUS: dict[str, Density] = {
    "beta": Density(
        *(_beta, _last(el.betainc), _last(el.betaincinv)),
        *(_last(el.betaincc), _last(el.betainccinv)),
        low=0.0,
        high=1.0,
        shapes="a b",
    ),
    "cauchy": Density(
        lambda y: -math.log(math.pi) - wg.log1p(y * y),
        lambda y: wg.atan2(wg.ones_like(y), -y) / math.pi,
        lambda q: -1 / wg.tan(math.pi * q),
    ),
    "chi2": Density(
        lambda y, df: _gamma(y / 2, df / 2) - math.log(2),
        lambda y, df: el.gammainc(df / 2, y / 2),
        lambda q, df: 2 * el.gammaincinv(df / 2, q),
        lambda y, df: el.gammaincc(df / 2, y / 2),
        lambda q, df: 2 * el.gammainccinv(df / 2, q),
        low=0.0,
        shapes="df",
    ),
    "expon": Density(
        lambda y: -y,
        lambda y: -wg.expm1(-y),
        lambda q: -wg.log1p(-q),
        lambda y: wg.exp(-y),
        lambda q: -wg.log(q),
        logsf=lambda y: -y,
        low=0.0,
    ),
    "gamma": Density(
        *(_gamma, _last(el.gammainc), _last(el.gammaincinv)),
        *(_last(el.gammaincc), _last(el.gammainccinv)),
        low=0.0,
        shapes="a",
    ),
    "laplace": Density(
        *(lambda y: -wg.abs(y) - math.log(2), _laplace_cdf, _laplace_ppf),
        logcdf=_laplace_logcdf,
    ),
    "lognorm": Density(
        _lognormal,
        lambda y, s: sp.ndtr(wg.log(y) / s),
        lambda q, s: wg.exp(s * sp.ndtri(q)),
        lambda y, s: sp.ndtr(-wg.log(y) / s),
        lambda q, s: wg.exp(-s * sp.ndtri(q)),
        lambda y, s: sp.log_ndtr(wg.log(y) / s),
        lambda y, s: sp.log_ndtr(-wg.log(y) / s),
        low=0.0,
        shapes="s",
    ),
    "norm": Density(lambda y: y * y * -0.5 - _LOG_ROOT, sp.ndtr, sp.ndtri, logcdf=sp.log_ndtr),
    "t": Density(_student, _last(el.stdtr), _last(el.stdtrit), shapes="df"),
    "uniform": Density(
        *(wg.zeros_like, lambda y: y, lambda q: q, lambda y: 1 - y, lambda q: 1 - q),
        low=0.0,
        high=1.0,
    ),
}


class Mass(NamedTuple):
    """A distribution of whole numbers from 0 on, and the condition that parameters fulfil."""

    shapes: str
    logpmf: Form
    cdf: Form
    sf: Form
    valid: Form
    high: Form = lambda *shapes: _INF


def _binomial(k: Any, n: Any, p: Any) -> Any:
    ways = -wg.log1p(n) - sp.betaln(n - k + 1, k + 1)
    return ways + sp.xlogy(k, p) + sp.xlog1py(n - k, -p)


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    ways = sp.gammaln(n + k) - sp.gammaln(k + 1) - sp.gammaln(n)
    return ways + n * wg.log(p) + sp.xlog1py(k, -p)


DISCRETE: dict[str, Mass] = {
    "bernoulli": Mass(
        "p",
        lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p),
        lambda k, p: 1 - p,
        lambda k, p: p,
        lambda p: (p >= 0) & (p <= 1),
        lambda p: 1.0,
    ),
    "binom": Mass(
        "n p",
        _binomial,
        lambda k, n, p: el.betaincc(k + 1, wg.where(k < n, n - k, 1.0), p),
        lambda k, n, p: el.betainc(k + 1, wg.where(k < n, n - k, 1.0), p),
        lambda n, p: (n >= 0) & (wg.floor(n) == n) & (p >= 0) & (p <= 1),
        lambda n, p: n,
    ),
    "nbinom": Mass(
        "n p",
        _negative_binomial,
        lambda k, n, p: el.betainc(n, k + 1, p),
        lambda k, n, p: el.betaincc(n, k + 1, p),
        lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    ),
    "poisson": Mass(
        "mu",
        lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu,
        lambda k, mu: el.gammaincc(k + 1, mu),
        lambda k, mu: el.gammainc(k + 1, mu),
        lambda mu: mu >= 0,
    ),
}
