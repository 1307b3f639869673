"""Distributions in their standard form: of ``y = (x - loc) / scale`` and of shapes.

What is outside of the support is never computed with.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import wengert as wg
from wengert import special as sp
from wengert.interpreters.namespaces import differentiable
from wengert.scipy.elementary import TABLE as EL
from wengert.scipy.elementary import student_log

Form = Callable[..., Any]
_INF = math.inf
_LOG_ROOT = math.log(2 * math.pi) / 2


def _positive(*shapes: Any) -> Any:
    return [shape > 0 for shape in shapes]


class Law(NamedTuple):
    """A distribution; one without ``sf`` is symmetric about 0, one of whole numbers has ``pdf``.

    Attributes
    ----------
    valid : callable
        The conditions that shapes fulfil.
    """

    log: Form
    cdf: Form
    ppf: Form | None = None
    sf: Form | None = None
    isf: Form | None = None
    logcdf: Form | None = None
    logsf: Form | None = None
    low: float = -_INF
    high: Any = _INF
    shapes: str = ""
    valid: Form = _positive
    pdf: Form | None = None

    def form(self, name: str) -> Form:
        """One of the functions: by symmetry, or as a logarithm, where there is none."""
        own: Form | None = getattr(self, name)
        if own is not None:
            return own
        if name == "logcdf" or self.sf is not None:
            return _log(*map(self.form, ("cdf", "sf") if name == "logcdf" else ("sf", "cdf")))
        if name == "isf":
            return lambda q, *shapes: -self.form("ppf")(q, *shapes)
        mirrored = self.form(name.replace("sf", "cdf"))
        return lambda y, *shapes: mirrored(-y, *shapes)


def _log(form: Form, other: Form) -> Form:
    """The logarithm of a probability; of one near 1 by the ``other`` side's, which keeps digits."""

    def call(*args: Any) -> Any:
        value = form(*args)
        near = value > 0.5
        rest = wg.log1p(-wg.where(near, other(*args), 0.0))
        far = wg.log(wg.where((value > 0) & ~near, value, 1.0))
        return wg.where(near, rest, wg.where(value > 0, far, -_INF))

    return call


def _laplace_cdf(y: Any) -> Any:
    right = y > 0
    tail = wg.exp(wg.where(right, -y, y)) / 2
    return wg.where(right, 1 - tail, tail)


def _laplace_ppf(q: Any) -> Any:
    left = q < 0.5
    far = wg.log(2 * wg.where(left, q, 1 - q))
    return wg.where(left, far, -far)


def _laplace_logcdf(y: Any) -> Any:
    tail = wg.exp(-wg.maximum(y, 0.0)) / 2
    return wg.where(y > 0, wg.log1p(-tail), y - math.log(2))


def _student(y: Any, df: Any) -> Any:
    return student_log(differentiable, df, y)


def _gamma(y: Any, a: Any) -> Any:
    return sp.xlogy(a - 1, y) - y - sp.gammaln(a)


def _beta(y: Any, a: Any, b: Any) -> Any:
    return sp.xlogy(a - 1, y) + sp.xlog1py(b - 1, -y) - sp.betaln(a, b)


def _lognormal(y: Any, s: Any) -> Any:
    log = wg.log(wg.where(y > 0, y, 1.0))
    return wg.where(y > 0, -((log / s) ** 2) / 2 - log - wg.log(s) - _LOG_ROOT, -_INF)


def _flip(name: str) -> Form:
    """A special function whose last argument is the place, and others shapes."""

    def call(y: Any, *shapes: Any) -> Any:
        return EL[name](*shapes, y)

    return call


_GAMMA = (
    _flip("gammainc"),
    _flip("gammaincinv"),
    _flip("gammaincc"),
    _flip("gammainccinv"),
)
_BETA = (
    _flip("betainc"),
    _flip("betaincinv"),
    _flip("betaincc"),
    _flip("betainccinv"),
)

CONTINUOUS: dict[str, Law] = {
    "beta": Law(_beta, *_BETA, low=0.0, high=1.0, shapes="a b"),
    "cauchy": Law(
        lambda y: -math.log(math.pi) - 2 * wg.log(wg.hypot(wg.ones_like(y), y)),
        lambda y: wg.atan2(wg.ones_like(y), -y) / math.pi,
        lambda q: -1 / wg.tan(math.pi * q),
    ),
    "chi2": Law(
        lambda y, df: _gamma(y / 2, df / 2) - math.log(2),
        *(lambda y, df: _GAMMA[0](y / 2, df / 2), lambda q, df: 2 * _GAMMA[1](q, df / 2)),
        *(lambda y, df: _GAMMA[2](y / 2, df / 2), lambda q, df: 2 * _GAMMA[3](q, df / 2)),
        low=0.0,
        shapes="df",
    ),
    "expon": Law(
        *(wg.negative, lambda y: -wg.expm1(-y), lambda q: -wg.log1p(-q)),
        *(lambda y: wg.exp(-y), lambda q: -wg.log(q)),
        logsf=wg.negative,
        low=0.0,
    ),
    "gamma": Law(_gamma, *_GAMMA, low=0.0, shapes="a"),
    "laplace": Law(
        lambda y: -wg.abs(y) - math.log(2), _laplace_cdf, _laplace_ppf, logcdf=_laplace_logcdf
    ),
    "lognorm": Law(
        _lognormal,
        *(lambda y, s: sp.ndtr(wg.log(y) / s), lambda q, s: wg.exp(s * sp.ndtri(q))),
        *(lambda y, s: sp.ndtr(-wg.log(y) / s), lambda q, s: wg.exp(-s * sp.ndtri(q))),
        *(lambda y, s: sp.log_ndtr(wg.log(y) / s), lambda y, s: sp.log_ndtr(-wg.log(y) / s)),
        low=0.0,
        shapes="s",
    ),
    "norm": Law(lambda y: y * y * -0.5 - _LOG_ROOT, sp.ndtr, sp.ndtri, logcdf=sp.log_ndtr),
    "t": Law(
        lambda y, df: student_log(differentiable, df, y),
        _flip("stdtr"),
        _flip("stdtrit"),
        shapes="df",
    ),
    "uniform": Law(
        wg.zeros_like, lambda y: y, lambda q: q, lambda y: 1 - y, lambda q: 1 - q, low=0.0, high=1.0
    ),
}


def _mass(shapes: str, parts: Form, lower: str, upper: str, places: Form, **more: Any) -> Law:
    """Masses :math:`w p^u (1 - p)^d` of the last shape ``p``, by ``log w``, u and d or None.

    Their sums are the special functions ``lower`` and ``upper`` of places.
    """

    def log(k: Any, *given: Any) -> Any:
        ways, up, down = parts(k, *given)
        found = ways + sp.xlogy(up, given[-1])
        return found if down is None else found + sp.xlog1py(down, -given[-1])

    def pdf(k: Any, *given: Any) -> Any:
        *others, p = given  # at 0 and 1 powers have the derivatives that logarithms have not
        down = parts(k, *given)[2]
        end = (p == 0) if down is None else (p == 0) | ((p == 1) & (down != 0))
        there, inner = wg.where(end, p, 0.5), wg.where(end, 0.5, p)
        ways, up, down = parts(k, *others, there)
        powers = (
            wg.exp(wg.where(end, wg.minimum(ways, 600.0), 0.0))
            * there**up
            * (1 if down is None else (1 - there) ** down)
        )
        return wg.where(end, powers, wg.exp(log(k, *others, inner)))

    cdf, sf = (lambda *given, name=name: EL[name](*places(*given)) for name in (lower, upper))
    return Law(log, cdf, sf=sf, low=0.0, shapes=shapes, pdf=pdf, **more)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    return -wg.log1p(n) - sp.betaln(n - k + 1, k + 1), k, n - k


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    return sp.gammaln(n + k) - sp.gammaln(k + 1) - sp.gammaln(n), n, k


def _poisson(k: Any, mu: Any) -> Any:
    return -sp.gammaln(k + 1) - mu, k, None


DISCRETE: dict[str, Law] = {
    "bernoulli": _mass(
        *("p", lambda k, p: (0 * k, k, 1 - k), "betaincc", "betainc"),
        lambda k, p: (wg.ones_like(p), wg.ones_like(p), p),
        valid=lambda p: [p >= 0, p <= 1],
        high=1.0,
    ),
    "binom": _mass(
        *("n p", _binomial, "betaincc", "betainc"),
        lambda k, n, p: (k + 1, wg.where(k < n, n - k, 1.0), p),
        valid=lambda n, p: [n >= 0, wg.floor(n) == n, p >= 0, p <= 1],
        high=lambda n, p: n,
    ),
    "nbinom": _mass(
        *("n p", _negative_binomial, "betainc", "betaincc"),
        lambda k, n, p: (n, k + 1, p),
        valid=lambda n, p: [n > 0, p > 0, p <= 1],
    ),
    "poisson": _mass(
        *("mu", _poisson, "gammaincc", "gammainc"),
        lambda k, mu: (k + 1, mu),
        valid=lambda mu: [mu >= 0],
    ),
}
