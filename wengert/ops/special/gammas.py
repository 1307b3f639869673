r"""The gamma function, its logarithm and its logarithmic derivative; the beta function.

Where an array library lacks them, they are computed from three expansions, with the coefficients
of Abramowitz and Stegun, "Handbook of Mathematical Functions", chapter 6: Taylor's series of
:math:`\log \Gamma` at 2 (6.1.33) for what the recurrence brings into [1.5, 2.5), Stirling's
(6.1.40) from 10 on, and the reflection (6.1.17) below -1/2.
"""

import math
from collections.abc import Sequence
from typing import Any

from wengert.backends import dtype_of
from wengert.interpreters.namespaces import differentiable
from wengert.ops.define import elementwise
from wengert.ops.domain import Domain
from wengert.ops.special.series import BERNOULLI, of_reals, polynomial
from wengert.tape.primitive import ZERO, Primitive
from wengert.tape.tensor import Tensor

__all__ = ["beta", "betaln", "digamma", "gamma", "gammaln", "gammasgn", "multigammaln", "psi"]

#: Away from the poles at 0 and the negative integers.
_OFF_POLES = Domain(without=(0,), period=-1)
_EULER = 0.57721566490153286
_FAR = 10.0
_ORDERS = range(1, 9)


def _zeta_less_one(s: int) -> float:
    """Riemann's zeta function less 1, whose digits it would hide, by Euler and Maclaurin."""
    tail = 10.0 ** (1 - s) / (s - 1) + 10.0**-s / 2
    factor = s / 2
    for j, number in enumerate(BERNOULLI, 1):
        tail += number * factor * 10.0 ** (1 - s - 2 * j)
        factor *= (s + 2 * j - 1) * (s + 2 * j) / ((2 * j + 1) * (2 * j + 2))
    return math.fsum([*(float(n) ** -s for n in range(2, 10)), tail])


# log(gamma(2 + y)) / y and its derivative's sum digamma(2 + y), the highest power of y first; with
# y up to 1/2 the terms fall by 1/4 each.
_ZETA = [(-1) ** k * _zeta_less_one(k) for k in range(2, 28)]
_NEAR_LOG = [*(z / k for k, z in reversed(list(enumerate(_ZETA, 2)))), 1 - _EULER]
_NEAR_SLOPE = [*reversed(_ZETA), 1 - _EULER]
# The remainder of Stirling's formula, times x, and that of digamma(x) - log(x): powers of 1/x**2.
_FAR_LOG = [BERNOULLI[k - 1] / (2 * k * (2 * k - 1)) for k in reversed(_ORDERS)]
_FAR_SLOPE = [BERNOULLI[k - 1] / (2 * k) for k in reversed(_ORDERS)]


def _reflect(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """A mask of reflected ``x``, their ``1 - x``, and the distance from an integer."""
    left = x < -0.5
    finite = xp.where(xp.isinf(x), 0, x)
    return left, xp.where(left, 1 - x, x), finite - xp.round(finite)


def _brought_near(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """``x`` up to 10, how far it is from an integer, and from 1.5 on ``(x - 1) (x - 2) ...``."""
    near = xp.minimum(x, _FAR)
    product = xp.ones_like(near)
    for j in range(1, 9):
        there = near >= 1.5 + j
        product = product * xp.where(there, near - j, 1)
    return near, near - xp.floor(near + 0.5), product


def _correction(xp: Any, x: Any) -> Any:
    """The correction of Stirling's formula, from 10 on."""
    inverse = xp.reciprocal(x)
    return inverse * polynomial(xp, xp.square(inverse), _FAR_LOG)


@of_reals("gammaln")
def _gammaln_composite(xp: Any, x: Any) -> Any:
    left, right, off = _reflect(xp, x)
    near, y, product = _brought_near(xp, right)
    pole = (x == 0) | (left & (off == 0))
    # gamma(x) is gamma(x + 1) / x, and gamma(x + 2) / (x (x + 1)).
    low = xp.abs(xp.where(near == 0, 1, near))
    factor = xp.log(xp.where(near < 1.5, low, product))
    factor = xp.where(near < 1.5, -factor, factor)
    second = xp.log1p(xp.where(near < 0.5, near, 0))
    middle = y * polynomial(xp, y, _NEAR_LOG) + (factor - second)
    far = xp.maximum(right, _FAR)
    size = (xp.log(far) - 1) * (far - 0.5)
    rest = _correction(xp, far) + (0.5 * math.log(2 * math.pi) - 0.5)
    value = xp.where(right >= _FAR, size + rest, middle)
    sine = xp.abs(xp.sin(xp.where(pole, 0.5, off) * math.pi))
    mirrored = math.log(math.pi) - (xp.log(xp.where(left, sine, 1)) + value)
    return xp.where(pole, math.inf, xp.where(left, mirrored, value))


@elementwise(
    dtypes="real floating",
    composite=_gammaln_composite,
    x=lambda xp, g, x: g * xp.digamma(x),
    domain=_OFF_POLES,
)
def gammaln(x: Any, /) -> Tensor:
    r"""Logarithm of the absolute value of the gamma function, :math:`\log |\Gamma(x)|`.

    At the poles 0, -1, -2, ... the value is inf. Derivative `digamma`. Source: M. Abramowitz and I.
    A. Stegun, "Handbook of Mathematical Functions", section 6.1. Real floating dtypes.
    SciPy: ``scipy.special.gammaln``.

    Examples
    --------
    >>> wg.special.gammaln(wg.asarray([1.0, 5.0, 1000.0]))
    tensor([0.0000e+00, 3.1781e+00, 5.9052e+03])
    >>> round(wg.grad(wg.special.gammaln)(1.0), 4)
    -0.5772
    """


@of_reals("digamma")
def _digamma_composite(xp: Any, x: Any) -> Any:
    left, right, off = _reflect(xp, x)
    near, y, _ = _brought_near(xp, right)
    sums = polynomial(xp, y, _NEAR_SLOPE)
    for j in range(1, 9):
        there = near >= 1.5 + j
        share = xp.reciprocal(xp.where(there, near - j, 1))
        sums = sums + xp.where(there, share, 0)
    first, second = near < 1.5, near < 0.5
    low = first & (near != 0)
    sums = sums - xp.where(low, xp.reciprocal(xp.where(low, near, 1)), 0)
    share = xp.reciprocal(xp.where(second, near, 0) + 1)
    middle = sums - xp.where(second, share, 0)
    far = xp.maximum(right, _FAR)
    inverse = xp.reciprocal(far)
    rest = inverse * polynomial(xp, xp.square(inverse), _FAR_SLOPE)
    rest = inverse * (rest + 0.5)
    value = xp.where(right >= _FAR, xp.log(far) - rest, middle)
    pole = off == 0
    tangent = xp.tan(xp.where(pole, 0.5, off) * math.pi)
    value = xp.where(left, value - xp.divide(math.pi, tangent), value)
    value = xp.where(left & pole, math.nan, value)
    return xp.where(x == 0, xp.copysign(xp.full_like(x, math.inf), -x), value)


@elementwise(
    dtypes="real floating",
    composite=_digamma_composite,
    x=lambda xp, g, x: g * xp.polygamma(x, n=1),
    domain=_OFF_POLES,
)
def digamma(x: Any, /) -> Tensor:
    r"""Logarithmic derivative of the gamma function, :math:`\psi(x) = \Gamma'(x) / \Gamma(x)`.

    At 0.0 the value is -inf, at -0.0 inf, at the other poles nan. Derivative :math:`\psi^{(1)}`,
    `polygamma` of order 1. SciPy also calls it ``psi``. Source: as `gammaln`, section 6.3. Real
    floating dtypes. SciPy: ``scipy.special.digamma``.

    Examples
    --------
    >>> wg.special.digamma(wg.asarray([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    >>> round(wg.grad(wg.special.digamma)(1.0), 4)  # pi^2 / 6
    1.6449
    """


psi = digamma


def _odd(xp: Any, x: Any) -> Any:
    """Whether an integral ``x`` is odd."""
    return xp.floor(x / 2) * 2 != x


@of_reals("gamma")
def _gamma_composite(xp: Any, x: Any) -> Any:
    left, right, off = _reflect(xp, x)
    near, y, product = _brought_near(xp, right)
    first, second = near < 1.5, near < 0.5
    low = near * xp.where(second, near + 1, 1)
    base = xp.exp(y * polynomial(xp, y, _NEAR_LOG))
    safe = xp.where(first & (near != 0), low, 1)
    middle = xp.where(first, base / safe, base * product)
    # The power is taken in two halves, for it is larger than the gamma function.
    far = xp.minimum(xp.maximum(right, _FAR), 200.0 if dtype_of(x.dtype).itemsize > 4 else 40.0)
    half = xp.pow(far, far * 0.5 - 0.25)
    scale = half * xp.exp(_correction(xp, far) - far)
    large = scale * half * math.sqrt(2 * math.pi)
    value = xp.where(right >= _FAR, large, middle)
    pole = off == 0
    sine = xp.sin(xp.where(pole, 0.5, off) * math.pi)
    sine = xp.where(_odd(xp, xp.round(xp.where(left, x, 0))), -sine, sine)
    mirrored = xp.divide(math.pi, sine * xp.where(left, value, 1))
    value = xp.where(left, xp.where(pole, math.nan, mirrored), value)
    return xp.where(x == 0, xp.copysign(xp.full_like(x, math.inf), x), value)


@elementwise(
    dtypes="real floating",
    composite=_gamma_composite,
    x=lambda xp, g, x, out: g * (out * xp.digamma(x)),
    domain=_OFF_POLES,
)
def gamma(x: Any, /) -> Tensor:
    r"""Gamma function, :math:`\Gamma(x) = \int_0^\infty t^{x-1} e^{-t} dt`.

    At 0.0 the value is inf, at -0.0 -inf, at the other poles nan; beyond 171.6 it is inf in double
    precision. Derivative :math:`\Gamma(x) \psi(x)` with `digamma`. Source: as `gammaln`. Real
    floating dtypes. SciPy: ``scipy.special.gamma``.

    Examples
    --------
    >>> wg.special.gamma(wg.asarray([1.0, 0.5, 5.0]))
    tensor([ 1.0000,  1.7725, 24.0000])
    >>> round(wg.grad(wg.special.gamma)(1.0), 4)  # Euler's constant, negative
    -0.5772
    """


@of_reals("gammasgn")
def _gammasgn_composite(xp: Any, x: Any) -> Any:
    below = xp.floor(xp.where(xp.isinf(x), 0, x))
    odd = _odd(xp, below)
    unit = xp.ones_like(x)
    value = xp.where((x < 0) & odd, -unit, unit)
    value = xp.where(x == 0, xp.copysign(unit, x), value)
    integral = (below == x) | xp.isinf(x)
    nothing = ((x < 0) & integral) | xp.isnan(x)
    return xp.where(nothing, math.nan, value)


@elementwise(dtypes="real floating", composite=_gammasgn_composite, x=ZERO, domain=_OFF_POLES)
def gammasgn(x: Any, /) -> Tensor:
    """Sign of the gamma function, 1 or -1; nan at the poles -1, -2, ....

    Derivative 0. Real floating dtypes. SciPy: ``scipy.special.gammasgn``.

    Examples
    --------
    >>> wg.special.gammasgn(wg.asarray([1.5, -0.5, -1.5]))
    tensor([ 1., -1.,  1.])
    """


# -- the beta function ---------------------------------------------------------------------------


def _turn(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """A mask of cancelling poles, and ``1 - a - b`` there, ``a`` elsewhere.

    ``B(a, b) = (-1)^b B(1 - a - b, b)`` if ``a`` and ``a + b`` are integers up to 0, and ``b`` one
    from 1 on.
    """
    end = 1 - (a + b)
    whole = (xp.floor(a) == a) & (xp.floor(b) == b)
    apart = (b > 0) & (end > 0)
    there = whole & xp.isfinite(a) & apart
    return there, xp.where(there, end, a)


def _is_pole(xp: Any, x: Any) -> Any:
    """Whether the gamma function has a pole."""
    return (x <= 0) & (xp.floor(x) == x)


def _log_beta(xp: Any, a: Any, b: Any) -> Any:
    """``betaln`` of real floating arrays, for which the sum of three logarithms is too coarse."""
    a, b = _turn(xp, a, b)[1], _turn(xp, b, a)[1]
    known = ~xp.isnan(a + b)
    pole = known & (_is_pole(xp, a) | _is_pole(xp, b))
    ends = pole | _is_pole(xp, a + b)
    a, b = xp.where(ends, 1, a), xp.where(ends, 1, b)
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    total = a + b
    plain = xp.gammaln(small) + xp.gammaln(large) - xp.gammaln(total)
    # Stirling's formula for the larger one and the sum, in which the large terms are cancelled.
    one = (large >= _FAR) & (total >= _FAR)
    one = one & xp.isfinite(large)
    # A sum that overflows enters by its correction alone, which is 0 there.
    sums = xp.where(xp.isfinite(total), total, large)
    high, sums = xp.where(one, large, _FAR), xp.where(one, sums, _FAR)
    ratio = xp.log1p(xp.where(one, small / high, 0))
    both = one & (small >= _FAR)
    low = xp.where(one, small, _FAR)
    rest = _correction(xp, high) - _correction(xp, sums)
    mixed = xp.gammaln(low) - low * (xp.log(sums) - 1)
    mixed = mixed - (high - 0.5) * ratio
    low = xp.where(both, small, _FAR)
    pair = (low - 0.5) * xp.log1p(high / low)
    pair = pair + (high * ratio + xp.log(high) * 0.5)
    pair = _correction(xp, low) + 0.5 * math.log(2 * math.pi) - pair
    value = xp.where(one, xp.where(both, pair, mixed) + rest, plain)
    vanished = xp.isinf(large) & (small > 0)
    return xp.where(pole, math.inf, xp.where(ends | vanished, -math.inf, value))


def _power_gap(xp: Any, u: Any, v: Any, coefficients: Sequence[float]) -> Any:
    """``(p(u) - p(v)) / (u - v)`` of a polynomial, without the difference of its values."""
    gap, value = 0.0, coefficients[0]
    for coefficient in coefficients[1:]:
        gap = u * gap + value
        value = v * value + coefficient
    return gap


@of_reals("polygamma_step")
def _step_composite(xp: Any, a: Any, b: Any, *, n: int) -> Any:
    sign = (-1.0) ** (n + 1)
    there, a = _turn(xp, a, b)
    plain = xp.polygamma(a, n=n) - xp.polygamma(a + b, n=n)
    # It is a sum of differences of powers of 1 / (a + k) and 1 / (a + b + k), and of Stirling's
    # series; each has the factor b. Far left there are more poles than terms.
    end = a + b
    poles = _is_pole(xp, a) | _is_pole(xp, end)
    known = (xp.minimum(a, end) > -2) & ~poles
    known = known & (xp.isfinite(a) & xp.isfinite(b))
    x, step = xp.where(known, a, 1), xp.where(known, b, 1)
    power = [math.gamma(n + 1) * sign, *[0.0] * (n + 1)]
    total = xp.zeros_like(plain)
    for _ in range(int(_FAR) + 2):
        total = total + _step_of(xp, x, step, power)
        x = x + 1
    # psi(x) is log(x) - u / 2 - sum(B[2k] u^2k / 2k) with u = 1 / x, and n times differentiated
    series = [0.0] * (2 * len(_ORDERS) + n + 1)
    series[n + 1] = sign * math.gamma(n + 1) / 2
    if n:
        series[n] += sign * math.gamma(n)
    for k in _ORDERS:
        series[2 * k + n] = sign * BERNOULLI[k - 1] * math.gamma(2 * k + n) / math.gamma(2 * k + 1)
    total = total + _step_of(xp, x, step, series[::-1])
    if not n:
        total = total - xp.log1p(step / x)
    level = (a == math.inf) & xp.isfinite(b)
    found = xp.where(known, total, xp.where(level, 0, plain))
    return xp.where(there, found * sign, found)


def _step_of(xp: Any, x: Any, step: Any, coefficients: Sequence[float]) -> Any:
    """The decrease of a polynomial in ``1 / x`` from ``x`` to ``x + step``."""
    end = x + step
    u, v = xp.reciprocal(x), xp.reciprocal(end)
    apart = u * (step / end)
    return apart * _power_gap(xp, u, v, coefficients)


#: polygamma(n, a) - polygamma(n, a + b)
Primitive(
    "polygamma_step",
    ("a", "b"),
    {
        "a": lambda xp, g, a, b, n: g * xp.polygamma_step(a, b, n=n + 1),
        "b": lambda xp, g, a, b, n: -(g * xp.polygamma(a + b, n=n + 1)),
    },
    elementwise=True,
    dtypes="real floating",
    composite=_step_composite,
)


@elementwise(
    dtypes="real floating",
    composite=of_reals("betaln")(_log_beta),
    a=lambda xp, g, a, b: g * xp.polygamma_step(a, b, n=0),
    b=lambda xp, g, a, b: g * xp.polygamma_step(b, a, n=0),
)
def betaln(a: Any, b: Any, /) -> Tensor:
    r"""Logarithm of the absolute value of the beta function, :math:`\log |B(a, b)|`.

    Derivatives :math:`\psi(a) - \psi(a + b)` and :math:`\psi(b) - \psi(a + b)` with `digamma`. Real
    floating dtypes. SciPy: ``scipy.special.betaln``.

    Examples
    --------
    >>> wg.special.betaln(wg.asarray([1.0, 1000.0]), 1000.0)
    tensor([   -6.9078, -1388.4825])
    """


@of_reals("beta")
def _beta_composite(xp: Any, a: Any, b: Any) -> Any:
    (at_a, first), (at_b, second) = _turn(xp, a, b), _turn(xp, b, a)
    at_a = at_a | (_is_pole(xp, a) & _is_pole(xp, b))
    power = xp.where(at_a, b, xp.where(at_b, a, 0))
    a, b = first, second
    total = a + b
    logarithm = _log_beta(xp, a, b)
    ends = xp.isinf(logarithm)  # 0, or a pole
    close = xp.maximum(xp.maximum(xp.abs(a), xp.abs(b)), xp.abs(total)) < _FAR
    close = close & ~ends
    near = [xp.gamma(xp.where(close, x, 1)) for x in (a, b, total)]
    product = near[0] / near[2] * near[1]
    sign = xp.gammasgn(a) * xp.gammasgn(b) * xp.gammasgn(total)
    sign = xp.where(ends, 1, sign)
    value = xp.where(close, product, sign * xp.exp(logarithm))
    return xp.where(xp.remainder(power, 2) == 1, -value, value)


@elementwise(
    dtypes="real floating",
    composite=_beta_composite,
    a=lambda xp, g, a, b, out: g * (out * xp.polygamma_step(a, b, n=0)),
    b=lambda xp, g, a, b, out: g * (out * xp.polygamma_step(b, a, n=0)),
)
def beta(a: Any, b: Any, /) -> Tensor:
    r"""Beta function, :math:`B(a, b) = \Gamma(a) \Gamma(b) / \Gamma(a + b)`.

    The derivatives are the value times those of `betaln`. Real floating dtypes.
    SciPy: ``scipy.special.beta``.

    Examples
    --------
    >>> wg.special.beta(wg.asarray([1.0, 2.0]), 3.0)
    tensor([0.3333, 0.0833])
    """


def multigammaln(a: Any, d: int) -> Tensor:
    r"""Logarithm of the multivariate gamma function.

    :math:`\log \Gamma_d(a) = \frac{d (d - 1)}{4} \log \pi` :math:`+ \sum_{j=1}^d \log
    \Gamma\left(a - \frac{j - 1}{2}\right)`. It is defined for ``a`` above ``(d - 1) / 2``;
    elsewhere the value is that sum of `gammaln`. Derivative: the sum of `digamma` there.
    Real floating dtypes. Raises `ValueError` if ``d`` is no positive integer.
    SciPy: ``scipy.special.multigammaln``.

    Examples
    --------
    >>> wg.special.multigammaln(wg.asarray([2.0, 5.0]), 2)
    tensor([0.4516, 6.2042])
    """
    if int(d) != d or d < 1:
        raise ValueError(f"multigammaln takes a positive integer d, and not {d!r}")
    xp = differentiable
    value = xp.gammaln(a)
    for j in range(1, int(d)):
        value = value + xp.gammaln(a - j / 2)
    return value + d * (d - 1) / 4 * math.log(math.pi)  # type: ignore[no-any-return]
