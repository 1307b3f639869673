"""The functions that are judged: what mpmath says of them, their domains and hard points."""

import math
from collections.abc import Callable
from typing import Any

import mpmath

import wengert as wg
from tests.ops.points import jets as m
from tests.ops.points.jets import ORDER, Jet
from tests.ops.points.judge import Row
from wengert.nn import functional as F

inf = math.inf
sp = wg.special

EPS = (2.0**-52, 2.0**-23)
#: Where every function is looked at, with both signs: what is subnormal, small, moderate and large
#: in both precisions, their neighbours of 1, and where exponentials and squares vanish or overflow.
COMMON = [
    0.0, 5e-324, 1e-300, 1e-160, 1e-38, 1e-20, *EPS, 2.0**-12, 0.25, 0.5, 1 - EPS[0] / 2,
    1 - EPS[1] / 2, 1.0, 1 + EPS[0], 1 + EPS[1], 1.5, 3.0, 9.0, 14.0, 40.0, 88.0, 170.0, 700.0,
    1e4, 1e15, 1e30, 1e100, 1e200, 1e300,
]  # fmt: skip
#: What else the wide profile looks at.
WIDE = [
    1e-310, 1e-200, 1e-100, 1e-45, 1e-30, 1e-15, 1e-10, 2.0**-26, 1e-7, 1e-5, 1e-3, 0.01, 0.1, 0.3,
    0.46875, 0.4999, 0.7, 0.9, 1.1, 2.0, 2.5, 4.0, 5.0, 6.0, 7.0, 8.5, 10.0, 12.0, 17.0, 20.0,
    20.001, 25.0, 26.6, 27.5, 30.0, 37.0, 60.0, 60.001, 89.0, 100.0, 120.0, 350.0, 710.0, 745.0,
    1e3, 1e5, 1e6, 1e8, 1e10, 1e20, 1e38, 1e150,
]  # fmt: skip
#: Both sides of integers and halves, down to where a reflection is used.
HALVES = [*(k / 2 for k in range(-9, 6)), -30.5, 9.999, 10.0, 12.0]
POLES = [-float(k) for k in range(130)]


# What is known to be larger, and stands in the documentation's table.
QUANTILE = (
    "the slope is an exponential of the result's square, up to 750, whose rounding it multiplies",
    lambda x: min(abs(x), abs(1 - abs(x)), abs(2 - abs(x))) < 1e-3,
    2e4,
)
SUBNORMAL = ("SciPy's function is infinite at subnormal numbers", lambda x: abs(x) < 1e-307, inf)
AT_OVERFLOW = ("SciPy's function overflows a little early", lambda x: 709 < abs(x) < 713, inf)


def number(x: float) -> Any:
    return mpmath.mpf(x)


def logit(x: Jet) -> Jet:
    return x.integral(mpmath.log(x.c[0]) - mpmath.log1p(-x.c[0]), 1 / (x * (1 - x)))


def tanh_gelu(x: Jet) -> Jet:
    return x * m.expit((x + x**3 * number(0.044715)) * (2 * mpmath.sqrt(2 / mpmath.pi)))


def sinc(x: Jet) -> Jet:
    if x.c[0] == 0:
        even = [(-1) ** (k // 2) * mpmath.pi**k / mpmath.factorial(k + 1) for k in range(ORDER + 1)]
        return Jet([mpmath.mpf(0) if k % 2 else c for k, c in enumerate(even)])
    u = x * mpmath.pi
    return m.sin(u) / u


def scaled_bessel(n: int) -> Callable[[Jet], Jet]:
    return lambda x: m.besseli(n)(x) * m.exp(-x if x.c[0] > 0 else x)


def betaln(x: Jet, b: float) -> Jet:
    a, b = x.c[0], number(b)
    value = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return x.integral(value, m.digamma(x) - m.digamma(x + b))


def selu(x: Jet) -> Jet:
    alpha, scale = (
        mpmath.mpf("1.6732632423543772848170429916717"),
        mpmath.mpf("1.0507009873554804934193349852946"),
    )
    return x * scale if x.c[0] > 0 else m.expm1(x) * (alpha * scale)


def piecewise(*pieces: tuple[float, Callable[[Jet], Any]]) -> Callable[[Jet], Jet]:
    """Functions and from where on each is taken."""
    return lambda x: x * 0 + [piece for start, piece in pieces if x.c[0] >= start][-1](x)


#: Straight or quadratic between some points.
STRAIGHT: list[Any] = [
    ("relu", F.relu, [(-inf, lambda x: 0), (0, lambda x: x)]),
    ("leaky_relu, straight", F.leaky_relu, [(-inf, lambda x: x * 0.01), (0, lambda x: x)]),
    ("relu6", F.relu6, [(-inf, lambda x: 0), (0, lambda x: x), (6, lambda x: 6)]),
    ("hardswish", F.hardswish,
     [(-inf, lambda x: 0), (-3, lambda x: x * (x + 3) / 6), (3, lambda x: x)]),
]  # fmt: skip


def R(
    name: str, exact: Callable[[Jet], Jet], low: float = -inf, high: float = inf, *,
    f: Any = None, **more: Any,
) -> Row:  # fmt: skip
    if f is None:
        f = getattr(wg, name, None) or getattr(sp, name)
    return Row(name, f, exact, low, high, **more)


def power(e: float, f: Callable[[Any], Any], name: str) -> Row:
    whole = float(e).is_integer()
    # Rounding e - 1 and e - 2 is an error of the exponent, which counts by the logarithm.
    units = (8, 16, 32, 64) if whole else (8, 256, 512, 1024)
    singular = () if whole and e >= 0 else (0.0,)
    return R(name, lambda x: x**e, -inf if whole else 0, f=f, singular=singular, units=units)


ROWS = [
    # exponentials and logarithms
    R("exp", m.exp),
    R("expm1", m.expm1),
    R("log", m.log, 0),
    R("log1p", m.log1p, -1),
    R("log2", lambda x: m.log(x) / mpmath.log(2), 0),
    R("log10", lambda x: m.log(x) / mpmath.log(10), 0),
    R("logaddexp(x, 0)", m.softplus, f=lambda x: wg.logaddexp(x, wg.zeros_like(x))),
    R("logaddexp(1, x)", lambda x: m.softplus(x - 1) + 1,
        f=lambda x: wg.logaddexp(wg.ones_like(x), x)),
    # trigonometric and hyperbolic functions
    R("sin", m.sin),
    R("cos", m.cos),
    R("tan", m.tan),
    R("asin", m.asin, -1, 1),
    R("acos", m.acos, -1, 1),
    R("atan", m.atan, large=10),
    R("atan2(x, 1)", m.atan, f=lambda x: wg.atan2(x, wg.ones_like(x)), large=10),
    R("atan2(1, x)", m.integral(lambda x: mpmath.atan2(1, x), lambda x: -1 / (1 + x * x)),
        f=lambda x: wg.atan2(wg.ones_like(x), x), large=10),
    R("hypot(x, 1)", lambda x: m.sqrt(x * x + 1), f=lambda x: wg.hypot(x, wg.ones_like(x)),
        large=10),
    R("hypot(3, x)", lambda x: m.sqrt(x * x + 9), f=lambda x: wg.hypot(wg.full_like(x, 3), x),
        large=10),
    R("sinh", m.sinh),
    R("cosh", m.cosh),
    R("tanh", m.tanh),
    R("asinh", m.asinh, large=10),
    R("acosh", m.acosh, 1, large=10),
    R("atanh", m.atanh, -1, 1),
    # powers
    R("sqrt", m.sqrt, 0),
    R("square", lambda x: x * x),
    R("reciprocal", lambda x: 1 / x, singular=[0]),
    R("x / 3", lambda x: x / 3, f=lambda x: x / 3),
    R("3 / x", lambda x: 3 / x, f=lambda x: 3 / x, singular=[0]),
    *[
        power(e, lambda x, e=e: x**e, f"x ** {e:g}")
        for e in (0, 1, 2, 3, 7, -1, -2, -3, 0.5, -0.5, 1.5, 2.5, 1 / 3)
    ],
    *[
        power(e, lambda x, e=e: wg.pow(x, wg.full_like(x, e)), f"pow(x, {e:g})")
        for e in (0, 1, 2, 3, -1, -2, 0.5, 1.5)
    ],
    *[
        R(f"{b:g} ** x", lambda x, b=b: m.exp(x * mpmath.log(b)), f=lambda x, b=b: b**x)
        for b in (2.0, 0.5, 10.0, 1.0)
    ],
    # the error function and the normal distribution
    R("erf", m.erf, -1e4, 1e4),
    R("erfc", m.erfc, -1e4, 1e4),
    R("erfcx", lambda x: m.exp(x * x) * m.erfc(x), -1e4, 1e4),
    R("erfinv", m.erfinv, -1, 1, small=0, known=QUANTILE),
    R("erfcinv", m.erfcinv, 1e-323, 2, small=0, known=QUANTILE),
    R("ndtr", m.ndtr, -1e4, 1e4),
    R("log_ndtr", m.log_ndtr, -1e5, 1e5, more=[-3, -8.5, -8.6, 8, 13, 13.9, 15]),
    R("ndtri", m.ndtri, 0, 1, small=0, known=QUANTILE),
    # the logistic function and activations
    R("expit", m.expit),
    R("logit", logit, 0, 1),
    R("log_expit", m.log_expit),
    R("softplus", m.softplus),
    R("silu", lambda x: x * m.expit(x)),
    R("gelu", lambda x: x * m.ndtr(x), -1e4, 1e4),
    R("gelu, tanh", tanh_gelu, -1e30, 1e30, f=lambda x: wg.gelu(x, "tanh")),
    R("F.softplus, beta 2", lambda x: m.softplus(x * 2) / 2, high=10,
        f=lambda x: F.softplus(x, 2.0)),
    R("F.elu", lambda x: x if x.c[0] > 0 else m.expm1(x), f=F.elu, singular=[0]),
    R("F.selu", selu, f=F.selu, singular=[0]),
    *(
        R(f"F.{name}", piecewise(*pieces), f=f, singular=[b for b, _ in pieces[1:]])
        for name, f, pieces in STRAIGHT
    ),
    R("F.binary_cross_entropy_with_logits", lambda x: m.softplus(x) - x * 0.25,
        f=lambda x: F.binary_cross_entropy_with_logits(x, wg.full_like(x, 0.25), reduction="none")),
    R("sinc", sinc, more=[1 / math.pi, 2 / math.pi, 3 / math.pi], small=10),
    # Bessel functions
    R("i0", m.besseli(0), -1e4, 1e4, more=[20, 20.001], known=AT_OVERFLOW),
    R("i1", m.besseli(1), -1e4, 1e4, more=[20, 20.001], known=AT_OVERFLOW),
    R("i0e", scaled_bessel(0), -1e4, 1e4, singular=[0], more=[20, 20.001]),
    R("i1e", scaled_bessel(1), -1e4, 1e4, singular=[0], more=[20, 20.001]),
    # the gamma function's family
    R("gammaln", m.gammaln, -100, small=0, known=SUBNORMAL, singular=POLES, more=HALVES),
    R("gamma", m.gamma, -100, 1e4, small=0, overflows=True, singular=POLES, more=HALVES),
    R("digamma", m.digamma, -100, small=0, singular=POLES, more=HALVES),
    *[
        R(
            f"polygamma({n}, x)",
            m.polygamma(n),
            -100,
            f=lambda x, n=n: sp.polygamma(n, x),
            singular=POLES,
            more=HALVES,
            small=0,
        )
        for n in (1, 2, 5)
    ],
    *[
        R(
            f"betaln(x, {b:g})",
            lambda x, b=b: betaln(x, b),
            1e-200,
            1e30,
            small=0,
            large=2,
            f=lambda x, b=b: sp.betaln(x, b),
        )
        for b in (2.5, 1e-10, 1e20)
    ],
    R("beta(x, 2.5)", lambda x: m.exp(betaln(x, 2.5)), 1e-200, 1e10, f=lambda x: sp.beta(x, 2.5),
        small=0, overflows=True),
    R("zeta(2.5, x)", m.zeta(2.5), 0, 1e5, small=0, f=lambda x: sp.zeta(wg.full_like(x, 2.5), x)),
    # products with logarithms, and divergences
    R("entr", lambda x: -(x * m.log(x)), 0, more=[math.exp(-1)]),
    R("xlogy(x, 2.5)", lambda x: x * mpmath.log(2.5), f=lambda x: sp.xlogy(x, 2.5)),
    R("xlogy(2.5, x)", lambda x: m.log(x) * 2.5, 0, f=lambda x: sp.xlogy(2.5, x)),
    R("xlogy(x, x)", lambda x: x * m.log(x), 0, f=lambda x: sp.xlogy(x, x), overflows=True),
    R("xlog1py(2.5, x)", lambda x: m.log1p(x) * 2.5, -1, f=lambda x: sp.xlog1py(2.5, x)),
    R("xlog1py(x, x)", lambda x: x * m.log1p(x), -1, f=lambda x: sp.xlog1py(x, x)),
    *[
        R(f"{name}{args}", exact, 0, f=f, more=[1.25, 1.2500001, 2.5, 2.5000001, 3.75])
        for name, args, exact, f in [
            (
                "rel_entr",
                "(x, 2.5)",
                lambda x: x * (m.log(x) - mpmath.log(2.5)),
                lambda x: sp.rel_entr(x, 2.5),
            ),
            (
                "rel_entr",
                "(2.5, x)",
                lambda x: (mpmath.log(2.5) - m.log(x)) * 2.5,
                lambda x: sp.rel_entr(2.5, x),
            ),
            (
                "kl_div",
                "(x, 2.5)",
                lambda x: x * (m.log(x) - mpmath.log(2.5)) - x + 2.5,
                lambda x: sp.kl_div(x, 2.5),
            ),
            (
                "kl_div",
                "(2.5, x)",
                lambda x: (mpmath.log(2.5) - m.log(x)) * 2.5 + x - 2.5,
                lambda x: sp.kl_div(2.5, x),
            ),
        ]
    ],
]  # fmt: skip

# -- in the complex plane ------------------------------------------------------------------------

_PARTS = [0.0, 1e-20, 0.25, 1.5, 14.0]
#: Both sides of all axes: the cuts lie on these.
PLANE = [
    complex(a * x, b * y) for x in _PARTS for y in _PARTS for a in (1, -1) for b in (1, -1)
    if (x or a > 0) and (y or b > 0)
]  # fmt: skip


#: Where squares overflow, in all quadrants.
BEYOND = [
    complex(a * x, b * y) for x, y in ((1e12, 1e12), (1e25, 1e24), (1.0, 1e25), (1e25, 1.0))
    for a in (1, -1) for b in (1, -1)
]  # fmt: skip
BEYOND += [z * 1e140 for z in BEYOND[4:]]


def _left(z: complex) -> bool:
    return z.imag == 0 and z.real <= 0


def _beyond_one(z: complex) -> bool:
    return z.imag == 0 and abs(z.real) >= 1


def _never(z: complex) -> bool:
    return False


def C(
    name: str, exact: Callable[[Jet], Jet], cut: Any = _never, *, f: Any = None, **more: Any
) -> Row:
    return R(name, exact, f=f, cut=cut, overflows=True, **more)


LOG1P = ("NumPy's complex log1p loses the real part of small numbers", lambda z: abs(z) < 0.5, inf)
ACOSH = (
    "the slope's two roots cancel in the second derivative near 0, which is small there",
    lambda z: abs(z) < 0.01,
    inf,
)

COMPLEX_ROWS = [
    C("exp", m.exp),
    C("log", m.log, _left),
    C("log1p", m.log1p, lambda z: z.imag == 0 and z.real <= -1, known=LOG1P),
    C("sin", m.sin),
    C("cos", m.cos),
    C("sinh", m.sinh),
    C("cosh", m.cosh),
    C("tanh", m.tanh),
    C("asin", m.asin, _beyond_one),
    C("acos", m.acos, _beyond_one),
    C("atanh", m.atanh, _beyond_one),
    C("atan", m.atan, lambda z: z.real == 0 and abs(z.imag) >= 1),
    C("asinh", m.asinh, lambda z: z.real == 0 and abs(z.imag) >= 1),
    C("acosh", m.acosh, lambda z: z.imag == 0 and z.real <= 1, known=ACOSH),
    C("sqrt", m.sqrt, _left),
    C("square", lambda x: x * x),
    C("reciprocal", lambda x: 1 / x, lambda z: z == 0),
    C("x ** 3", lambda x: x**3, f=lambda x: x**3),
    C("x ** 1.5", lambda x: x**1.5, _left, f=lambda x: x**1.5, units=(32, 64, 128, 256)),
    C("expit", m.expit),
    C("log_expit", m.log_expit, lambda z: z.real == 0),
    C("softplus", m.softplus, lambda z: z.real == 0),
    C("silu", lambda x: x * m.expit(x)),
    C("sinc", sinc),
    *[
        C(f"{name}, far", getattr(m, name), f=getattr(wg, name), at=BEYOND, orders=2)
        for name in ("asin", "acos", "asinh", "acosh")
    ],
]
