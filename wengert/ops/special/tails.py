r"""Derivatives of `erfcx` and `log_ndtr`, without differences of almost equal numbers.

Both are made of the scaled repeated integrals :math:`E_n(t) = e^{t^2} \operatorname{i^n erfc}(t)
= \frac{2}{\sqrt\pi} \int_0^\infty \frac{s^n}{n!} e^{-s^2 - 2ts} ds` of the complementary error
function (M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", section 7.2), whose
derivatives are :math:`-2 (n + 1) E_{n+1}`.
"""

import math
from functools import cache
from typing import Any

from wengert.ops.special.series import of_reals
from wengert.tape.primitive import Primitive

__all__: list[str] = []

#: From where on the continued fraction is better than the integral, and how long it is.
_BORDER = 6.0
_TERMS = 24
_NODES = 44
_REACH = 7.0  # beyond it exp(-s**2) adds nothing


@cache
def _quadrature() -> list[tuple[float, float]]:
    """Nodes and weights of the Gauss-Legendre formula."""
    found = []
    for k in range(_NODES):
        x = math.cos(math.pi * (k + 0.75) / (_NODES + 0.5))
        for _ in range(8):
            before, value = 1.0, x
            for j in range(2, _NODES + 1):
                before, value = value, ((2 * j - 1) * x * value - (j - 1) * before) / j
            slope = _NODES * (x * value - before) / (x * x - 1)
            x -= value / slope
        s = (x + 1) * _REACH / 2
        weight = _REACH / ((1 - x * x) * slope * slope)
        found.append((s, weight * math.exp(-s * s) * 2 / math.sqrt(math.pi)))
    return found


def _integrals(xp: Any, t: Any, upto: int) -> list[Any]:
    """E_0, ..., E_upto by the integral, for t from 0 to the border."""
    sums: list[Any] = [None] * (upto + 1)
    for s, weight in _quadrature():
        share = xp.exp(t * (-2 * s))
        for n in range(upto + 1):
            term = share * (weight * s**n / math.factorial(n))
            sums[n] = term if sums[n] is None else sums[n] + term
    return sums


def _ratios(xp: Any, t: Any, upto: int) -> list[Any]:
    """E_1 / E_0, ..., E_upto / E_(upto - 1), for t from the border on."""
    twice = t * 2
    found = [xp.reciprocal(twice)]
    for n in range(upto + _TERMS, 0, -1):
        found.append(xp.reciprocal(twice + found[-1] * (2 * (n + 1))))
    return found[: -upto - 1 : -1]


@of_reals("erfcx")
def _erfcx_slope_composite(xp: Any, x: Any, *, n: int) -> Any:
    left, far = x < 0, x > _BORDER
    middle = _integrals(xp, xp.where(left | far, 1, x), n)[n]
    product = xp.erfcx(x)
    for ratio in _ratios(xp, xp.where(far, x, _BORDER), n):
        product = product * ratio
    # On the left the recurrence has positive terms alone.
    low = xp.where(left, x, -1)
    before, value = xp.full_like(x, 2 / math.sqrt(math.pi)), xp.erfcx(low)
    for k in range(1, n + 1):
        more = before - low * 2 * value
        before, value = value, more * (1 / (2 * k))
    found = xp.where(left, value, xp.where(far, product, middle))
    return found * ((-2.0) ** n * math.factorial(n))


#: The n-th derivative of `erfcx`, which is ``(-2)**n n! E_n``.
Primitive(
    "erfcx_slope",
    ("x",),
    {"x": lambda xp, g, x, n: g * xp.erfcx_slope(x, n=n + 1)},
    elementwise=True,
    dtypes="real floating",
    composite=_erfcx_slope_composite,
)


def _cumulant(xp: Any, moments: list[Any], n: int) -> Any:
    """The n-th cumulant of a density with these moments, of which the 0-th is 1."""
    found: list[Any] = [None]
    for k in range(1, n + 1):
        value = moments[k]
        for j in range(1, k):
            both = found[j] * moments[k - j]
            value = value - both * math.comb(k - 1, j - 1)
        found.append(value)
    return found[n]


@cache
def _of_ratio(n: int) -> dict[tuple[int, int], int]:
    """The n-th derivative by x as a polynomial in x and m = phi / Phi: m' is -m (x + m)."""
    terms = {(0, 1): 1}
    for _ in range(n - 1):
        after: dict[tuple[int, int], int] = {}
        for (i, j), c in terms.items():
            more = [((i - 1, j), c * i), ((i + 1, j), -c * j), ((i, j + 1), -c * j)]
            for key, value in more:
                if value:
                    after[key] = after.get(key, 0) + value
        terms = after
    return terms


def _right_tail(xp: Any, x: Any, n: int) -> Any:
    bell = xp.exp(xp.square(x) * -0.5)
    m = bell * (1 / math.sqrt(2 * math.pi)) / xp.ndtr(x)
    total = xp.zeros_like(x)
    for (i, j), c in _of_ratio(n).items():
        term = m * c
        for _ in range(j - 1):
            term = term * m
        for _ in range(i):
            term = term * x
        total = total + term
    return total


@of_reals("log_ndtr")
def _log_ndtr_slope_composite(xp: Any, x: Any, *, n: int) -> Any:
    left = x < 0
    right = _right_tail(xp, xp.where(left, 1, xp.minimum(x, 50.0)), n)
    # log(E_0(t) / 2) - t**2 with t = -x / sqrt(2). The derivatives of log(E_0) are cumulants of the
    # density under the integral, whose moments are n! E_n / E_0.
    t = xp.where(left, x, -1) * -math.sqrt(0.5)
    far = t > _BORDER
    near = _integrals(xp, xp.where(far, 1, t), n)
    moments: list[Any] = [None]
    product = xp.ones_like(t)
    for k, ratio in enumerate(_ratios(xp, xp.where(far, t, _BORDER), n), 1):
        product = product * ratio
        each = xp.where(far, product, near[k] / near[0])
        moments.append(each * math.factorial(k))
    value = _cumulant(xp, moments, n) * 2 ** (n / 2)
    if n == 1:
        value = value + t * math.sqrt(2)
    elif n == 2:
        value = value - 1
    return xp.where(xp.isnan(x), x, xp.where(left, value, right))


#: The n-th derivative of `log_ndtr`, from the first on.
Primitive(
    "log_ndtr_slope",
    ("x",),
    {"x": lambda xp, g, x, n: g * xp.log_ndtr_slope(x, n=n + 1)},
    elementwise=True,
    dtypes="real floating",
    composite=_log_ndtr_slope_composite,
)
