"""Distributions in their standard form: of ``y = (x - loc) / scale`` and of shapes.

A row has the logarithm of the density, and the derivatives of the distribution function by shapes.
Everything else follows: values are SciPy's.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from wengert.scipy.elementary import (
    beta_density,
    beta_slope,
    gamma_density,
    gamma_slope,
    student_log,
    student_slope,
)

Form = Callable[..., Any]
_LOG_ROOT = math.log(2 * math.pi) / 2


def _positive(*shapes: Any) -> Any:
    return [shape > 0 for shape in shapes]


class Law(NamedTuple):
    """A distribution; one of whole numbers has ``pmf``.

    Attributes
    ----------
    log, slopes, pmf : callable
        Of ``xp``, a place within the support, and shapes. A pair is a product with an exponential.
    valid : callable
        The conditions that shapes fulfil.
    """

    log: Form
    slopes: Form = lambda *_: []
    low: float = -math.inf
    high: Form = lambda *_: math.inf
    shapes: str = ""
    valid: Form = _positive
    pmf: Form | None = None


def _gamma(xp: Any, y: Any, a: Any) -> Any:
    return xp.xlogy(a - 1, y) - y - xp.gammaln(a)


def _beta(xp: Any, y: Any, a: Any, b: Any) -> Any:
    return xp.xlogy(a - 1, y) + xp.xlog1py(b - 1, -y) - xp.betaln(a, b)


def _lognormal(xp: Any, y: Any, s: Any) -> Any:
    log = xp.log(xp.where(y > 0, y, 1))
    return xp.where(y > 0, -((log / s) ** 2) / 2 - log - xp.log(s) - _LOG_ROOT, -math.inf)


def _lognormal_slope(xp: Any, y: Any, s: Any) -> list[Any]:
    u = xp.log(xp.where(y > 0, y, 1)) / s
    return [(-u / s, -u * u / 2 - _LOG_ROOT)]


CONTINUOUS: dict[str, Law] = {
    "beta": Law(
        _beta,
        lambda xp, y, a, b: [beta_slope(xp, a, b, y, by_a) for by_a in (True, False)],
        *(0.0, lambda *_: 1.0, "a b"),
    ),
    "cauchy": Law(lambda xp, y: -math.log(math.pi) - 2 * xp.log(xp.hypot(xp.ones_like(y), y))),
    "chi2": Law(
        lambda xp, y, df: _gamma(xp, y / 2, df / 2) - math.log(2),
        lambda xp, y, df: [gamma_slope(xp, df / 2, y / 2) / 2],
        low=0.0,
        shapes="df",
    ),
    "expon": Law(lambda xp, y: -y, low=0.0),
    "gamma": Law(_gamma, lambda xp, y, a: [gamma_slope(xp, a, y)], low=0.0, shapes="a"),
    "laplace": Law(lambda xp, y: -xp.abs(y) - math.log(2)),
    "lognorm": Law(_lognormal, _lognormal_slope, low=0.0, shapes="s"),
    "norm": Law(lambda xp, y: y * y * -0.5 - _LOG_ROOT),
    "t": Law(
        lambda xp, y, df: student_log(xp, df, y),
        lambda xp, y, df: [student_slope(xp, df, y)],
        shapes="df",
    ),
    "uniform": Law(lambda xp, y: 0 * y, low=0.0, high=lambda *_: 1.0),
}


def _mass(shapes: str, parts: Form, slopes: Form, **more: Any) -> Law:
    """Masses :math:`w p^u (1 - p)^d` of the last shape ``p``, by ``log w``, u and d or None."""

    def log(xp: Any, k: Any, *given: Any) -> Any:
        ways, up, down = parts(xp, k, *given)
        found = ways + xp.xlogy(up, given[-1])
        return found if down is None else found + xp.xlog1py(down, -given[-1])

    def pmf(xp: Any, k: Any, *given: Any) -> Any:
        *others, p = given  # at 0 and 1 powers have the derivatives that logarithms have not
        down = parts(xp, k, *given)[2]
        end = (p == 0) if down is None else (p == 0) | ((p == 1) & (down != 0))
        there, inner = xp.where(end, p, 0.5), xp.where(end, 0.5, p)
        ways, up, down = parts(xp, k, *others, there)
        powers = (
            xp.exp(xp.where(end, xp.minimum(ways, 600 + 0 * ways), 0 * ways))
            * there**up
            * (1 if down is None else (1 - there) ** down)
        )
        return xp.where(end, powers, xp.exp(log(xp, k, *others, inner)))

    return Law(log, slopes, 0.0, shapes=shapes, pmf=pmf, **more)


def _binomial(xp: Any, k: Any, n: Any, p: Any) -> Any:
    return -xp.log1p(n) - xp.betaln(n - k + 1, k + 1), k, n - k


def _negative_binomial(xp: Any, k: Any, n: Any, p: Any) -> Any:
    return xp.gammaln(n + k) - xp.gammaln(k + 1) - xp.gammaln(n), n, k


def _poisson(xp: Any, k: Any, mu: Any) -> Any:
    return -xp.gammaln(k + 1) - mu, k, None


def _binomial_slopes(xp: Any, k: Any, n: Any, p: Any) -> list[Any]:
    rest = xp.where(k < n, n - k, 1)
    return [-beta_slope(xp, k + 1, rest, p, False), -beta_density(xp, k + 1, rest, p)]


def _negative_binomial_slopes(xp: Any, k: Any, n: Any, p: Any) -> list[Any]:
    return [beta_slope(xp, n, k + 1, p, True), beta_density(xp, n, k + 1, p)]


DISCRETE: dict[str, Law] = {
    "bernoulli": _mass(
        *("p", lambda xp, k, p: (0 * k, k, 1 - k), lambda xp, k, p: [0 * p - 1]),
        valid=lambda p: [p >= 0, p <= 1],
        high=lambda p: 1.0,
    ),
    "binom": _mass(
        *("n p", _binomial, _binomial_slopes),
        valid=lambda n, p: [n >= 0, n % 1 == 0, p >= 0, p <= 1],
        high=lambda n, p: n,
    ),
    "nbinom": _mass(
        *("n p", _negative_binomial, _negative_binomial_slopes),
        valid=lambda n, p: [n > 0, p > 0, p <= 1],
    ),
    "poisson": _mass(
        *("mu", _poisson, lambda xp, k, mu: [-gamma_density(xp, k + 1, mu)]),
        valid=lambda mu: [mu >= 0],
    ),
}
