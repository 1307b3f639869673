"""Special functions beside `wengert.special`: SciPy's values, and rules for the derivatives.

The incomplete gamma and beta functions have integrands that fall on both sides of one peak, in the
logarithm of their variable. Their derivatives by the parameters are integrals over the shorter tail
by the double exponential rule, which rules compose of the standard's functions. So derivatives of
any order follow.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.ops import special
from wengert.ops.define import operation
from wengert.scipy.naming import scipy_module
from wengert.tape import NOT_IMPLEMENTED
from wengert.tape.tensor import Tensor

_scipy = scipy_module("special")
#: Rules call functions of all its files, which the first name imports.
_LOADED = dir(special)
_ROWS: list[str] = []
_U = np.arange(-3.6, 6.4, 0.15)
_PLACES = np.exp(_U - np.exp(-_U))
#: The double exponential rule on the positive numbers, and Gauss' on the numbers from -1 to 1.
_TAIL = [*map(float, _PLACES)], [*map(float, 0.15 * _PLACES * (1 + np.exp(-_U)))]
_GAUSS = [[*map(float, part)] for part in np.polynomial.legendre.leggauss(48)]


def _kernel(name: str) -> Callable[..., Any]:
    """SciPy's own function, of arrays of any library."""

    def composite(xp: Any, *arrays: Any) -> Any:
        last = arrays[-1]
        found = getattr(_scipy, name)(*[xp.backend.to_numpy(x) for x in arrays])
        if isinstance(last, np.ndarray | np.generic):
            return found
        return xp.backend.from_numpy(np.asarray(found), xp.device(last))

    return composite


def _define(name: str, inputs: str, **rules: Any) -> Callable[..., Any]:
    """An elementwise function under SciPy's name, with its rules."""
    names = ", ".join(inputs.split())
    stub: dict[str, Any] = {}
    exec(f"def {name}({names}, /): ...", {}, stub)  # noqa: S102
    kinds = rules.pop("dtypes", "real floating")
    _ROWS.append(name)
    return operation(elementwise=True, dtypes=kinds, composite=_kernel(name), **rules)(
        stub[name]
    ).run


# -- incomplete gamma functions --------------------------------------------------------------------


def _gamma_density(xp: Any, a: Any, x: Any) -> Any:
    inside = x > 0
    y = xp.where(inside, x, 1)
    edge = xp.where(a < 1, math.inf, xp.where(a > 1, 0, 1)) + 0 * x
    return xp.where(inside, xp.exp((a - 1) * xp.log(y) - y - xp.gammaln(a)), edge)


def _gamma_slope(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of the lower function by ``a``."""
    inside = (x > 0) & (x < math.inf) & (a > 0)
    a, y = xp.where(inside, a, 1), xp.where(inside, x, 1)
    lower = y < a
    sign = xp.where(lower, 1.0, -1.0) + 0 * y
    fall = xp.abs(y - a) + xp.minimum(y, xp.sqrt(y))
    mean, log, total = xp.digamma(a), xp.log(y), 0 * y
    for place, weight in zip(*_TAIL, strict=True):
        w = place / fall  # of the logarithm below, and of the ratio above
        way = xp.where(lower, -w, xp.log1p(w))
        depth = xp.where(lower, a * w + y * xp.expm1(-w), y * w - (a - 1) * way)
        total = total + weight / fall * (log + way - mean) * xp.exp(-depth)
    found = sign * xp.exp(a * log - y - xp.gammaln(a)) * total
    return xp.where(inside, found, 0 * x)


gammainc = _define(
    "gammainc",
    "a x",
    a=lambda xp, g, a, x: g * _gamma_slope(xp, a, x),
    x=lambda xp, g, a, x: g * _gamma_density(xp, a, x),
)
gammaincc = _define(
    "gammaincc",
    "a x",
    a=lambda xp, g, a, x: -g * _gamma_slope(xp, a, x),
    x=lambda xp, g, a, x: -g * _gamma_density(xp, a, x),
)
gammaincinv = _define(
    "gammaincinv",
    "a y",
    a=lambda xp, g, a, out: -g * _gamma_slope(xp, a, out) / _gamma_density(xp, a, out),
    y=lambda xp, g, a, out: g / _gamma_density(xp, a, out),
)
gammainccinv = _define(
    "gammainccinv",
    "a y",
    a=lambda xp, g, a, out: -g * _gamma_slope(xp, a, out) / _gamma_density(xp, a, out),
    y=lambda xp, g, a, out: -g / _gamma_density(xp, a, out),
)


# -- incomplete beta functions ---------------------------------------------------------------------


def _beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    inside = (x > 0) & (x < 1)
    y = xp.where(inside, x, 0.5)
    log = (a - 1) * xp.log(y) + (b - 1) * xp.log1p(-y) - xp.betaln(a, b)
    power = xp.where(x <= 0, a, b)
    edge = xp.where(power < 1, math.inf, xp.where(power > 1, 0, xp.where(x <= 0, b, a)))
    return xp.where(inside, xp.exp(log), edge + 0 * x)


def _beta_slope(xp: Any, a: Any, b: Any, x: Any, by: str) -> Any:
    """The derivative of the lower function by ``a`` or ``b``."""
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0)
    a, b, y = xp.where(inside, a, 1), xp.where(inside, b, 1), xp.where(inside, x, 0.5)
    lower = y * (a + b) < a
    p, q = xp.where(lower, a, b), xp.where(lower, b, a)
    t, rest = xp.where(lower, y, 1 - y), xp.where(lower, 1 - y, y)
    width = (p + q) * t * rest
    fall = p - (p + q) * t + xp.minimum(width, xp.sqrt(width))
    log, log_rest, whole = xp.log(t), xp.log(rest), xp.digamma(p + q)
    start, total = log - log_rest, 0 * y
    first = lower if by == "a" else ~lower
    mean = xp.where(first, xp.digamma(p), xp.digamma(q)) - whole
    for place, weight in zip(*_TAIL, strict=True):
        s = start - place / fall
        now, now_rest = -xp.logaddexp(0 * s, -s), -xp.logaddexp(0 * s, s)
        height = xp.exp(p * (now - log) + q * (now_rest - log_rest))
        total = total + weight / fall * (xp.where(first, now, now_rest) - mean) * height
    found = xp.exp(p * log + q * log_rest - xp.betaln(p, q)) * total
    return xp.where(inside, xp.where(lower, found, -found), 0 * x)


def _beta_rules(sign: int) -> dict[str, Any]:
    return {
        "a": lambda xp, g, a, b, x: sign * g * _beta_slope(xp, a, b, x, "a"),
        "b": lambda xp, g, a, b, x: sign * g * _beta_slope(xp, a, b, x, "b"),
        "x": lambda xp, g, a, b, x: sign * g * _beta_density(xp, a, b, x),
    }


def _beta_inverse_rules(sign: int) -> dict[str, Any]:
    def by(name: str) -> Any:
        return lambda xp, g, a, b, out: (
            -g * _beta_slope(xp, a, b, out, name) / _beta_density(xp, a, b, out)
        )

    def y(xp: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
        return sign * g / _beta_density(xp, a, b, out)

    return {"a": by("a"), "b": by("b"), "y": y}


betainc = _define("betainc", "a b x", **_beta_rules(1))
betaincc = _define("betaincc", "a b x", **_beta_rules(-1))
betaincinv = _define("betaincinv", "a b y", **_beta_inverse_rules(1))
betainccinv = _define("betainccinv", "a b y", **_beta_inverse_rules(-1))


# -- Student's distribution ------------------------------------------------------------------------


def _student_density(xp: Any, df: Any, t: Any) -> Any:
    log = -(df + 1) / 2 * xp.log1p(t * t / df) - xp.log(df) / 2
    return xp.exp(log - xp.betaln(df / 2, xp.zeros_like(df) + 0.5))


def _student_tail(xp: Any, df: Any, t: Any) -> Any:
    """The derivative by ``df``, of the lower tail for negative ``t``, and of the upper one."""
    half, square = xp.zeros_like(df) + 0.5, t * t
    place = df / (df + square)
    by_shape = _beta_slope(xp, df / 2, half, place, "a") / 2
    return (by_shape + _beta_density(xp, df / 2, half, place) * square / (df + square) ** 2) / 2


def _student_slope(xp: Any, df: Any, t: Any) -> Any:
    far = xp.abs(t) > 3
    tail = _student_tail(xp, df, xp.where(far, t, 3))
    end, total = xp.asinh(xp.where(far, 0, t)), 0 * t
    mean = xp.digamma((df + 1) / 2) - xp.digamma(df / 2) - 1 / df
    for place, weight in zip(*_GAUSS, strict=True):
        u = xp.sinh(end * (place + 1) / 2)
        square = u * u
        slope = mean - xp.log1p(square / df) + (df + 1) * square / (df * (df + square))
        total = total + weight * xp.sqrt(1 + square) * _student_density(xp, df, u) * slope / 4
    return xp.where(far, xp.where(t < 0, tail, -tail), total * end)


stdtr = _define(
    "stdtr",
    "df t",
    df=lambda xp, g, df, t: g * _student_slope(xp, df, t),
    t=lambda xp, g, df, t: g * _student_density(xp, df, t),
)
stdtrit = _define(
    "stdtrit",
    "df p",
    df=lambda xp, g, df, out: -g * _student_slope(xp, df, out) / _student_density(xp, df, out),
    p=lambda xp, g, df, out: g / _student_density(xp, df, out),
)


# -- Bessel functions ------------------------------------------------------------------------------


def _steps(name: str, below: float, above: float) -> Any:
    """The derivative of a Bessel function as a sum of its neighbours."""

    def rule(xp: Any, g: Any, v: Any, z: Any) -> Any:
        function = getattr(xp, name)
        return g * (below * function(v - 1, z) + above * function(v + 1, z))

    return rule


jv = _define("jv", "v z", v=NOT_IMPLEMENTED, z=_steps("jv", 0.5, -0.5))
yv = _define("yv", "v z", v=NOT_IMPLEMENTED, z=_steps("yv", 0.5, -0.5))
iv = _define("iv", "v z", v=NOT_IMPLEMENTED, z=_steps("iv", 0.5, 0.5))
kv = _define("kv", "v z", v=NOT_IMPLEMENTED, z=_steps("kv", -0.5, -0.5))
j1 = _define("j1", "x", x=lambda xp, g, x: g * (xp.j0(x) - xp.jv(xp.zeros_like(x) + 2, x)) / 2)
j0 = _define("j0", "x", x=lambda xp, g, x: -g * xp.j1(x))
y1 = _define("y1", "x", x=lambda xp, g, x: g * (xp.y0(x) - xp.yv(xp.zeros_like(x) + 2, x)) / 2)
y0 = _define("y0", "x", x=lambda xp, g, x: -g * xp.y1(x))
k1 = _define("k1", "x", x=lambda xp, g, x: -g * (xp.k0(x) + xp.kv(xp.zeros_like(x) + 2, x)) / 2)
k0 = _define("k0", "x", x=lambda xp, g, x: -g * xp.k1(x))


# -- hypergeometric and elliptic functions, integrals ----------------------------------------------

hyp2f1 = _define(
    "hyp2f1",
    "a b c z",
    **dict.fromkeys("abc", NOT_IMPLEMENTED),
    z=lambda xp, g, a, b, c, z: g * (a * b / c) * xp.hyp2f1(a + 1, b + 1, c + 1, z),
)


def _series(xp: Any, a: float, b: float, m: Any) -> Any:
    return xp.hyp2f1(*(xp.zeros_like(m) + s for s in (a, b, 2)), m)


ellipk = _define("ellipk", "m", m=lambda xp, g, m: g * math.pi / 8 * _series(xp, 1.5, 1.5, m))
ellipe = _define("ellipe", "m", m=lambda xp, g, m: -g * math.pi / 8 * _series(xp, 0.5, 1.5, m))
lambertw_of = _define(
    "lambertw",
    "z",
    dtypes="floating",
    z=lambda xp, g, out: g * xp.conj(xp.exp(-out) / (1 + out)),
)

TABLE: dict[str, Callable[..., Tensor]] = {name: globals().get(name, lambertw_of) for name in _ROWS}
