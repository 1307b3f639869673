"""Rows for the special functions of `wengert.special` alone; SciPy gives their values."""

import math

import numpy as np
import scipy.special as sc
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.elementwise import PLANE, POSITIVE
from tests.ops.cases import BOX, Case, Constant, Entry, binary, unary
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws

special = wg.special

#: On both sides of the reflection, of the series and of Stirling's formula, and off the poles.
POLES = tuple(range(0, -5, -1))
GAMMA = ws.reals(-3.5, 12, away_from=POLES, distance=0.25)
UNIT = ws.reals(1 / 16, 15 / 16)
BEYOND_20 = ws.reals(-24, 24)
OFF_ZERO = ws.reals(-24, 24, away_from=(0.0,))


def torch_gamma(x):
    odd = (x.floor() % 2 != 0) & (x < 0)
    return x.lgamma().exp() * (1 - 2 * odd.to(x.dtype))


def torch_gammaln(x):
    """PyTorch's trigamma function, of which the second derivatives are, is better for large x."""
    return (x + 16).lgamma() - sum((x + k).log() for k in range(16))


def torch_betaln(a, b):
    return torch_gammaln(a) + torch_gammaln(b) - torch_gammaln(a + b)


@st.composite
def polygammas(draw):
    n = draw(st.integers(0, 3))
    return Case(n, draw(ws.arrays(elements=GAMMA)))


@st.composite
def zetas(draw):
    exponents, starts = draw(ws.broadcastable(2))
    s = draw(ws.arrays(shape=exponents, elements=ws.reals(1.25, 6)))
    return Case(s.view(Constant), draw(ws.arrays(shape=starts, elements=ws.reals(0.25, 14))))


@st.composite
def bessels(draw):
    return Case(draw(ws.arrays(elements=BEYOND_20)), n=draw(st.integers(0, 3)))


@st.composite
def bessel_slopes(draw):
    x = draw(ws.arrays(elements=OFF_ZERO))
    return Case(x, n=draw(st.integers(0, 1)), order=draw(st.integers(1, 3)))


def scaled_bessel_slope(x, n, order):
    """By Leibniz's rule, from the derivatives of the plain function."""
    y = np.abs(x)
    terms = [
        (-1) ** (order - k) * math.comb(order, k) * np.exp(-y) * sc.ivp(n, y, k)
        for k in range(order + 1)
    ]
    return sum(terms) * np.sign(x) ** (n + order)


def reduced_bessel(x, n):
    centre = x == 0
    safe = np.where(centre, 1.0, x)
    value = sc.iv(n, safe) / safe**n
    return np.where(centre, 0.5**n / math.factorial(n), value)


@st.composite
def cardinals(draw, kind="real"):
    if kind == "real":
        x = draw(ws.arrays(elements=ws.reals(-4, 4)))
    else:
        x = draw(ws.arrays("complex128", elements=ws.complexes(BOX)))
    return Case(x, order=draw(st.integers(0, 4)))


def sinc_derivative(x, order):
    """The sine's quotient as the integral of the cosine from 0 to 1, by Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = (nodes + 1) / 2
    u = np.pi * x[..., None]
    return np.sum(weights / 2 * t**order * np.cos(u * t + order * np.pi / 2), axis=-1)


@st.composite
def slopes(draw, elements, first):
    return Case(draw(ws.arrays(elements=elements)), n=draw(st.integers(first, 3)))


def erfcx_slope(x, n):
    """By the recurrence of the repeated integrals, whose terms cancel little for small x."""
    before, value = 2 / math.sqrt(math.pi), sc.erfcx(x)
    for k in range(1, n + 1):
        before, value = value, (before - 2 * x * value) / (2 * k)
    return value * (-2.0) ** n * math.factorial(n)


def log_ndtr_slope(x, n):
    m = np.exp(-(x**2) / 2 - sc.log_ndtr(x)) / math.sqrt(2 * math.pi)
    return [m, -m * (x + m), m * ((x + m) * (x + 2 * m) - 1)][n - 1]


SPECIAL_FUNCTIONS = {
    "gammaln": Entry(real=unary(GAMMA),
        differs={"jax-real": "JAX has polygamma for positive numbers alone"}),
    "gamma": Entry(real=unary(ws.reals(-2.75, 6, away_from=POLES, distance=0.25)),
        torch=torch_gamma, differs={"jax-real": "JAX has polygamma for positive numbers alone"}),
    "gammasgn": Entry(real=unary(GAMMA)),
    "digamma": Entry(real=unary(GAMMA),
        differs={"jax-real": "JAX has polygamma for positive numbers alone"}),
    "polygamma": Entry(real=polygammas(), call=special.polygamma,
        differs={"jax-real": "JAX has polygamma for positive numbers alone"}),
    "zeta": Entry(real=zetas(), call=special.zeta),
    "polygamma_step": Entry(real=binary(ws.reals(0.25, 14), scalars=False),
        call=lambda a, b: PRIMITIVES["polygamma_step"].bind(a, b, n=0),
        reference=lambda a, b: sc.digamma(a) - sc.digamma(a + b)),
    "betaln": Entry(real=binary(ws.reals(0.25, 14), scalars=False), torch=torch_betaln,
        differs={"jax-real": "JAX's second derivatives are wrong where a and b are equal"}),
    "beta": Entry(real=binary(ws.reals(0.25, 14), scalars=False),
        torch=lambda a, b: torch_betaln(a, b).exp(),
        differs={"jax-real": "JAX's second derivatives are wrong where a and b are equal"}),
    "xlog1py": Entry(real=binary(BOX, ws.reals(-0.75, 3)),
        complex=binary(BOX, ws.reals(-0.75, 3), "complex", scalars=False),
        differs={"torch-complex": "PyTorch has xlog1py for real numbers alone"}),
    "entr": Entry(real=unary(POSITIVE)),
    "rel_entr": Entry(real=binary(POSITIVE), torch=lambda x, y: x * (x / y).log()),
    "kl_div": Entry(real=binary(POSITIVE), call=special.kl_div,
        torch=lambda x, y: x * (x / y).log() - x + y),
    "i0": Entry(real=unary(BEYOND_20), differs={"jax-real": "JAX's derivatives are wrong at 0"}),
    "i1": Entry(real=unary(BEYOND_20), differs={"jax-real": "JAX's derivatives are wrong at 0"}),
    "i0e": Entry(real=unary(OFF_ZERO)),
    "i1e": Entry(real=unary(OFF_ZERO)),
    "reduced_bessel": Entry(real=bessels(), reference=reduced_bessel),
    "scaled_bessel_slope": Entry(real=bessel_slopes(), reference=scaled_bessel_slope),
    "erfinv": Entry(real=unary(ws.reals(-15 / 16, 15 / 16))),
    "erfcinv": Entry(real=unary(ws.reals(1 / 16, 31 / 16)), torch=lambda x: (1 - x).erfinv()),
    "erfcx": Entry(real=unary(ws.reals(-3, 8))),
    "erfcx_slope": Entry(real=slopes(ws.reals(-2, 1.5), 0), reference=erfcx_slope),
    "log_ndtr_slope": Entry(real=slopes(ws.reals(-2, 4), 1), reference=log_ndtr_slope),
    "ndtr": Entry(real=unary(ws.reals(-5, 5))),
    "log_ndtr": Entry(real=unary(ws.reals(-8, 5))),
    "ndtri": Entry(real=unary(UNIT)),
    "sinc": Entry(real=unary(ws.reals(-4, 4)), complex=unary(PLANE, "complex"), jax="sinc",
        differs=dict.fromkeys(("torch-real", "torch-complex"), "PyTorch's is 0 twice at 0")),
    "sinc_derivative": Entry(real=cardinals(), complex=cardinals("complex"),
        reference=sinc_derivative),
}  # fmt: skip
