"""``scipy.special``: the functions of `wengert.special`, and others with their derivatives.

The incomplete gamma and beta functions are integrals. In the logarithm of the variable, their
integrands fall on both sides of one peak. So their derivatives by the parameters are integrals over
the shorter tail, computed by the double exponential rule. The rules are written in the standard's
functions, and so have derivatives of any order.

>>> from wengert.scipy import special
>>> a = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
>>> special.gammainc(a, 1.5).backward()
>>> a.grad
tensor(-0.3135, dtype=wengert.float64)
"""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy import special as _scipy

import wengert as wg
from wengert.ops import special as _module
from wengert.scipy.naming import host, inexact, publish, values_of
from wengert.tape import NOT_IMPLEMENTED
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

#: Rules call functions of all its files, which the first name imports.
_LOADED = dir(_module)
_U = np.arange(-3.6, 6.4, 0.12)
_PLACES = np.exp(_U - np.exp(-_U))
#: The double exponential rule on the positive numbers.
_TAIL = [*zip(_PLACES.tolist(), (0.12 * _PLACES * (1 + np.exp(-_U))).tolist(), strict=True)]
#: Functions by SciPy's names.
TABLE: dict[str, Callable[..., Tensor]] = {}


def _define(name: str, inputs: str, kinds: str = "real floating", **rules: Any) -> None:
    """An elementwise function under SciPy's name, with its rules."""
    theirs = getattr(_scipy, name)
    TABLE[name] = host(name, inputs, theirs, rules, elementwise=True, dtypes=kinds)


def in_double(function: Callable[..., Any], *args: Any) -> Any:
    """A function of real numbers in double precision: of single ones, its terms would cancel."""
    given = inexact(*args)
    found = function(*[x if x.dtype.complex else wg.astype(x, "float64") for x in given])
    return wg.astype(found, wg.result_type(*given))


def _none(xp: Any, a: Any, x: Any) -> Any:
    """The slope by ``a`` at the end, whose own slope there is 0 or, of infinite ones, NaN."""
    return 0 * xp.pow(x, xp.where(a > 1, xp.full_like(a, 2), 0.5))


def _by_exponent(xp: Any, g: Any, y: Any, e: Any, log: Any, out: Any) -> Any:
    """The cotangent of an exponent; at the end powers jump where it is 0."""
    end = xp.where(e < 0, -math.inf, xp.where(e == 0, math.nan, _none(xp, e, y)))
    return g * xp.where(y > 0, out * log, end)


def _by_base(xp: Any, g: Any, y: Any, c: Any, d: Any, finite: bool) -> Any:
    """Where the power's own slope overflows, an exponent of 0 stays: it jumps there alone."""
    low, high = (c == 0) & (y < 1e-75), (d == 0) & (y == 1)
    less, after = xp.where(low, c, c - 1), xp.where(high | (not finite), d, d - 1)
    up = c * xp.scipy_powers(xp.where(low, 0, y), less, d, finite=finite)
    down = d * xp.scipy_powers(xp.where(high, 1, y), c, after, finite=finite)
    steep = xp.isinf(up) | xp.isinf(down)
    return g * xp.where(steep, xp.where(y < 0.5, up, -down), up - xp.where(steep, 0, down))


def _powers(xp: Any, y: Any, c: Any, d: Any, finite: bool) -> Any:
    if not finite:
        return xp.pow(y, c) * xp.exp(-y)
    low = y < 0.5  # where the difference loses digits
    rest = xp.where(low, xp.exp(d * xp.log1p(-xp.where(low, y, 0))), xp.pow(1 - y, d))
    return xp.pow(y, c) * rest


#: ``y**c (1 - y)**d``, or else ``y**c exp(-y)``: logarithms would cancel near the ends.
Primitive(
    "scipy_powers",
    ("y", "c", "d"),
    {
        "y": _by_base,
        "c": lambda xp, g, y, c, out: _by_exponent(xp, g, y, c, xp.log(xp.where(y > 0, y, 1)), out),
        "d": lambda xp, g, y, d, out: _by_exponent(
            xp, g, 1 - y, d, xp.log1p(-xp.where(y < 1, y, 0)), out
        ),
    },
    elementwise=True,
    composite=_powers,
)


def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of the lower function by ``x``."""
    near, far = (x <= 0) | ((x < 1) & (a < 30)), x == math.inf
    power = xp.scipy_powers(xp.where(near, x, 0.5), a - 1, xp.ones_like(x), finite=False)
    y, log = xp.where(near | far, 1, x), xp.gammaln(a)
    found = xp.where(far, 0, xp.exp((a - 1) * xp.log(y) - y - log))
    return xp.where(near, power * xp.exp(-log), found)


def gamma_slope(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of the lower function by ``a``."""
    inside = (x > 0) & (x < math.inf) & (a > 0)
    none = _none(xp, a, xp.where(x > 0, 1, x))
    a, y = xp.where(inside, a, 1), xp.where(inside, x, 1)
    lower = y < a
    fall = xp.abs(y - a) + xp.minimum(y, xp.sqrt(y))
    mean, log, total = xp.digamma(a), xp.log(y), 0 * y
    for place, weight in _TAIL:
        w = place / fall  # of the logarithm below, and of the ratio above
        way = xp.where(lower, -w, xp.log1p(w))
        depth = xp.where(lower, a * w + y * xp.expm1(-w), y * w - (a - 1) * way)
        total = total + weight / fall * (log + way - mean) * xp.exp(-depth)
    found = xp.exp(a * log - y - xp.gammaln(a)) * total
    return xp.where(inside, xp.where(lower, found, -found), none + 0 * found)


def student_log(xp: Any, df: Any, t: Any, log: Any = None) -> Any:
    """The logarithm of Student's density, which is the normal one of infinite ``df``.

    Near the normal one by series in ``1 / df``, since gamma functions cancel (DLMF 5.11.8).
    """
    near, large = (df == math.inf) | ((df > 1e3) & (t * t < 1e-3 * df)), t * t == math.inf
    large = large | (t * t > 1e20 * (1 + df))
    v, few = xp.where(df > 1e3, 1 / df, 0), xp.where(df > 1e3, 1, df)  # for each df, not each t
    gammas = -xp.log(few) / 2 - xp.betaln(few / 2, xp.zeros_like(few) + 0.5)
    series = (v * v * v * (1 / 12 - v * v / 10) - v / 2 - math.log(2 * math.pi)) / 2
    scale = xp.where(df > 1e3, series, gammas)
    v, z = xp.where(near, 1 / df, 0), xp.where(near & ~large, t * t, 0)
    df, u = xp.where(near, 1, df), z * v
    series = (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u / 6)))) * u * z * (1 + v)
    size, t = xp.where(large, xp.abs(t), 1), xp.where(large, 0, t)
    ratio = 2 * (xp.log(size) if log is None else log) - xp.log(df)
    power = xp.where(large, xp.logaddexp(xp.zeros_like(ratio), ratio), xp.log1p(t * t / df))
    normal = xp.where(large, -math.inf, (series - z * (1 + v)) / 2)
    return xp.where(near, normal, -(df + 1) / 2 * power) + scale


#: Fisher's expansion of the distribution: polynomials in the square, times ``t / df**k``.
_FISHER = (
    (1 / 4, (1, 1)),
    (1 / 96, (3, -7, -5, -3)),
    (1 / 384, (1, -11, 14, 6, -3, -15)),
    (1 / 92160, (15, -375, 2225, -2141, -939, -213, -915, 945)),
)


def student_slope(xp: Any, df: Any, t: Any) -> Any:
    """The derivative by ``df``: of an incomplete beta function, or of Fisher's expansion."""
    half, square = xp.zeros_like(df) + 0.5, t * t
    distant = (square == math.inf) & (xp.abs(t) < math.inf) & (df < math.inf)
    near, finite = square < 1e-14, (square < math.inf) & (df < math.inf)
    normal = (df > 1e4) & finite & (square * square < 0.1 * df)
    v, z, total = xp.where(normal, 1 / df, 0), xp.where(normal, square, 0), 0 * square
    for k in range(4, 0, -1):
        factor, row = _FISHER[k - 1]
        total = (total + k * factor * reduce(lambda p, c: p * z + c, row)) * v
    like_normal = xp.where(normal, t, 0) * xp.exp(-z / 2) * total * v / math.sqrt(2 * math.pi)
    other = near | normal | ~finite
    size, v = xp.where(distant, xp.abs(t), 1), xp.where(distant, df, 1)
    square, df = xp.where(other, 1, square), xp.where(finite & ~normal, df, 1)
    far, whole = square > df, df + square  # the small one of two parts keeps its digits
    a, b = xp.where(far, df / 2, half), xp.where(far, half, df / 2)
    place = xp.where(far, df, square) / whole
    by_place = beta_density(xp, a, b, place) * (square / whole) / whole
    tail = beta_slope(xp, a, b, place, far) / 4
    tail = xp.where(far, -tail, tail) - by_place / 2
    mean = xp.digamma((df + 1) / 2) - xp.digamma(df / 2) - 1 / df
    start = xp.where(near, t, 0) * xp.exp(student_log(xp, df, 0 * square)) * mean / 2
    # Far away the tail is the density times t / df.
    mean = xp.digamma((v + 1) / 2) - xp.digamma(v / 2) - 2 / v + xp.log(v) + 1
    slope = xp.exp(student_log(xp, v, size) + xp.log(size)) / v * (xp.log(size) - mean / 2)
    tail = xp.where(distant, slope, tail)
    found = xp.where(near, start, xp.where(t < 0, -tail, tail))
    return xp.where(finite | distant, xp.where(normal, like_normal, found), xp.zeros_like(found))


def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative of the lower function by ``x``."""
    ways = -xp.betaln(a, b)
    near = ((ways < 300) & xp.where(x < 0.5, a < 30, b < 30)) | (x <= 0) | (x >= 1)
    power = xp.scipy_powers(xp.where(near, x, 0.5), a - 1, b - 1, finite=True)
    y = xp.where(near, 0.5, x)
    found = xp.exp((a - 1) * xp.log(y) + (b - 1) * xp.log1p(-y) + ways)
    return xp.where(near, power * xp.exp(xp.minimum(ways, 700 + 0 * ways)), found)


def beta_slope(xp: Any, a: Any, b: Any, x: Any, by_a: Any) -> Any:
    """The derivative of the lower function by ``a``, or else ``b``."""
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0)
    none = _none(xp, a, xp.where(inside, 1, x)) + _none(xp, b, xp.where(inside, 1, 1 - x))
    a, b, y = xp.where(inside, a, 1), xp.where(inside, b, 1), xp.where(inside, x, 0.5)
    lower = y * (a + b) < a
    p, q = xp.where(lower, a, b), xp.where(lower, b, a)
    t, rest = xp.where(lower, y, 1 - y), xp.where(lower, 1 - y, y)
    width = (p + q) * t * rest
    fall = p - (p + q) * t + xp.minimum(width, xp.sqrt(width))  # at the start, and p at the end
    log, log_rest, whole = xp.log(t), xp.log(rest), xp.digamma(p + q)
    first = lower == by_a
    mean = xp.where(first, xp.digamma(p), xp.digamma(q)) - whole
    total = 0 * y
    for place, weight in _TAIL:
        s = log - log_rest - xp.log1p(place / fall) - place / p
        now, now_rest = -xp.logaddexp(0 * s, -s), -xp.logaddexp(0 * s, s)
        height = xp.exp(p * (now - log) + q * (now_rest - log_rest))
        step = xp.divide(weight, fall + place) + weight / p
        total = total + step * (xp.where(first, now, now_rest) - mean) * height
    found = xp.exp(p * log + q * log_rest - xp.betaln(p, q)) * total
    return xp.where(inside, xp.where(lower, found, -found), none + 0 * found)


def _series(xp: Any, x: Any, ratio: Callable[[int], Any]) -> Any:
    """What the power of ``x`` and a factor leave of an integral near 0: ratios of terms."""
    total = xp.ones_like(x)
    for k in range(20, 0, -1):
        total = 1 + total * ratio(k) * x
    return total


def gamma_start(xp: Any, a: Any, x: Any) -> tuple[Any, ...]:
    """Whether ``x`` is near 0; the power there, the logarithm of a factor and a series."""
    near = x < 0.1 * (a + 1)
    x = xp.where(near, x, 0)
    return near, a, -xp.gammaln(a + 1) - x, _series(xp, x, lambda k: 1 / (a + k))


def beta_start(xp: Any, a: Any, b: Any, x: Any) -> tuple[Any, ...]:
    """As `gamma_start`."""
    near = x * (a + b + 1) < 0.1 * (a + 1)
    x = xp.where(near, x, 0)
    log = b * xp.log1p(-x) - xp.betaln(a, b) - xp.log(a)
    return near, a, log, _series(xp, x, lambda k: (a + b + k - 1) / (a + k))


def student_start(xp: Any, df: Any, t: Any) -> tuple[Any, ...]:
    """As `gamma_start`, of ``-t`` in the lower tail."""
    far = (t < 0) & (t * t > df)
    df, t = xp.where(far, df, 1), xp.where(far, t, -1)
    u = xp.where(far, df * (1 / t) * (1 / t), 0)  # a square would overflow
    near, a, log, series = beta_start(xp, df / 2, xp.zeros_like(u) + 0.5, u / (1 + u))
    return near & far, -df, log + a * (xp.log(df) - xp.log1p(u)) - math.log(2), series


def _power_slope(xp: Any, p: Any, a: Any, log: Any, series: Any) -> Any:
    """The slope of an inverse near 0 by ``p``, whose power has no derivatives beyond its own."""
    power = xp.scipy_powers(p / series, 1 / a - 1, xp.zeros_like(series), finite=True)
    return power * xp.exp(-log / a) / a


def gamma_inverse_slope(xp: Any, a: Any, x: Any, p: Any, _: Any) -> Any:
    """The derivative of the lower function's inverse ``x`` by ``p``."""
    near, *start = gamma_start(xp, a, x)
    steep = _power_slope(xp, xp.where(near, p, 0.5), *start)
    return xp.where(near, steep, 1 / gamma_density(xp, a, xp.where(near, 1, x)))


def beta_inverse_slope(xp: Any, a: Any, b: Any, x: Any, p: Any, q: Any) -> Any:
    """The derivative of the lower function's inverse ``x`` by ``p``, which is ``1 - q``."""
    up = x > 0.5
    c, d = xp.where(up, b, a), xp.where(up, a, b)
    y, w = xp.where(up, 1 - x, x), xp.where(up, q, p)
    near, *start = beta_start(xp, c, d, y)
    y, w = xp.where(near, y, 0), xp.where(near, w, 0.5)
    steep = _power_slope(xp, w, *start) * (1 - y)
    return xp.where(near, steep, 1 / beta_density(xp, a, b, xp.where(near, 0.5, x)))


def _integral(name: str, inverse: str, sign: int, density: Any, steep: Any, *slopes: Any) -> None:
    """A lower (``sign`` 1) or upper integral of a density, and its inverse."""

    def by(xp: Any, g: Any, given: Any, index: int) -> Any:
        return sign * g * (*slopes, density)[index](xp, *given)

    def back(xp: Any, g: Any, given: Any, out: Any, index: int) -> Any:
        *shapes, p = given
        if index == len(slopes):
            return sign * g * steep(xp, *shapes, out, *(p, 1 - p)[::sign])
        return -g * slopes[index](xp, *shapes, out) / density(xp, *shapes, out)

    _define(name, "*given", given=by)
    _define(inverse, "*given", given=back)


_BETA = beta_density, beta_inverse_slope, *(partial(beta_slope, by_a=x) for x in (True, False))
_GAMMA = gamma_density, gamma_inverse_slope, gamma_slope
_STUDENT: Any = lambda xp, df, t: xp.exp(student_log(xp, df, t))
_integral("betainc", "betaincinv", 1, *_BETA)
_integral("betaincc", "betainccinv", -1, *_BETA)
_integral("gammainc", "gammaincinv", 1, *_GAMMA)
_integral("gammaincc", "gammainccinv", -1, *_GAMMA)
_STEEP: Any = lambda xp, df, t, *_: 1 / _STUDENT(xp, df, t)
_integral("stdtr", "stdtrit", 1, _STUDENT, _STEEP, student_slope)


def _bessel(name: str, below: float, above: float) -> None:
    """A Bessel function, whose derivative is a sum of its neighbours."""

    def rule(xp: Any, g: Any, v: Any, z: Any) -> Any:
        function = getattr(xp, name)
        return g * (below * function(v - 1, z) + above * function(v + 1, z))

    _define(name, "v z", v=NOT_IMPLEMENTED, z=rule)


_bessel("jv", 0.5, -0.5)
_bessel("yv", 0.5, -0.5)
_bessel("iv", 0.5, 0.5)
_bessel("kv", -0.5, -0.5)


def _elliptic(xp: Any, a: float, b: float, m: Any) -> Any:
    return xp.hyp2f1(*(xp.zeros_like(m) + s for s in (a, b, 2)), m)


def _hypergeometric(xp: Any, g: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    return g * (a * b / c) * xp.hyp2f1(a + 1, b + 1, c + 1, z)


_NONE: Any = dict.fromkeys("abc", NOT_IMPLEMENTED)
_define("hyp2f1", "a b c z", **_NONE, z=_hypergeometric)
_define("ellipk", "m", m=lambda xp, g, m: g * math.pi / 8 * _elliptic(xp, 1.5, 1.5, m))
_define("ellipe", "m", m=lambda xp, g, m: -g * math.pi / 8 * _elliptic(xp, 0.5, 1.5, m))
_define("lambertw", "z", "floating", z=lambda xp, g, out: g * xp.conj(xp.exp(-out) / (1 + out)))


# -- names -----------------------------------------------------------------------------------------

_special: Any = _module
_SAME = (
    "beta betaln digamma entr erf erfc erfcinv erfcx erfinv expit gamma gammaln gammasgn i0 "
    "i0e i1 i1e kl_div log_expit log_ndtr logit ndtr ndtri psi rel_entr softplus xlog1py xlogy"
)


def _ufunc(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """A ufunc of operands of any kind: integers as float64."""
    return lambda *args: function(*inexact(*args))


def _whole(n: Any, x: Any, function: Callable[..., Tensor]) -> Tensor:
    """A function of a whole order: SciPy's cut off the rest, or are NaN."""
    n = np.asarray(values_of(n, "scipy.special's n"))
    if (n % 1 != 0).any():
        raise ValueError(f"this function is of whole orders, and not of {n}")
    return function(n.item(), *inexact(x)) if not n.ndim else function(*inexact(n, x))


def _lambertw(z: Any, k: int = 0, tol: float = 1e-8) -> Tensor:
    """Lambert's function, which is complex."""
    if k != 0:
        raise NotImplementedError("lambertw of Tensors is the branch k=0 alone")
    return TABLE["lambertw"](wg.astype(inexact(z)[0], "complex128"))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Logarithm of a sum of exponentials, with factors ``b``."""
    x, *factor = inexact(a) if b is None else inexact(a, b)
    return _special.logsumexp(x, axis, *factor, keepdims=keepdims, return_sign=return_sign)


_UFUNCS: dict[str, Any] = {name: partial(in_double, one) for name, one in TABLE.items()}
_UFUNCS |= {name: getattr(_special, name) for name in _SAME.split()}
for _name in ("j0", "j1", "y0", "y1", "k0", "k1"):
    _UFUNCS[_name] = lambda x, f=TABLE[f"{_name[0]}v"], n=int(_name[1]): f(wg.full_like(x, n), x)
_UFUNCS |= {"expm1": wg.expm1, "jn": TABLE["jv"], "log1p": wg.log1p}
_OWN: dict[str, Any] = {
    "lambertw": _lambertw,
    "log_softmax": lambda x, axis=None: _special.log_softmax(*inexact(x), axis=axis),
    "polygamma": lambda n, x: _whole(n, x, lambda n, x: _special.polygamma(int(n), x)),
    **{f"{kind}n": lambda n, x, kind=kind: _whole(n, x, TABLE[f"{kind}v"]) for kind in "ky"},
    "zeta": lambda x, q=None: _special.zeta(*inexact(x, 1.0 if q is None else q)),
    "multigammaln": lambda a, d: _special.multigammaln(*inexact(a), d),
    "softmax": lambda x, axis=None: _special.softmax(*inexact(x), axis=axis),
}
publish(globals(), {name: _ufunc(one) for name, one in _UFUNCS.items()} | _OWN)
