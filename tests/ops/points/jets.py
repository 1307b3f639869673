"""Truncated power series over mpmath: a function's value and its first derivatives at a point."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath

#: The highest derivative: one beyond those that are judged, which tells how well conditioned they
#: are.
ORDER = 4


class Jet:
    """Taylor's coefficients of a function at a point, with the arithmetic of functions."""

    def __init__(self, coefficients: Sequence[Any]) -> None:
        self.c = list(coefficients)

    @classmethod
    def variable(cls, x: Any) -> "Jet":
        return cls([mpmath.mpmathify(x), mpmath.mpf(1), *[mpmath.mpf(0)] * (ORDER - 1)])

    @classmethod
    def of(cls, x: Any) -> "Jet":
        return x if isinstance(x, Jet) else cls([mpmath.mpmathify(x), *[mpmath.mpf(0)] * ORDER])

    @property
    def derivatives(self) -> list[Any]:
        return [c * mpmath.factorial(k) for k, c in enumerate(self.c)]

    def __add__(self, other: Any) -> "Jet":
        return Jet([a + b for a, b in zip(self.c, Jet.of(other).c, strict=True)])

    def __mul__(self, other: Any) -> "Jet":
        a, b = self.c, Jet.of(other).c
        return Jet([sum(a[j] * b[k - j] for j in range(k + 1)) for k in range(ORDER + 1)])

    def __neg__(self) -> "Jet":
        return Jet([-c for c in self.c])

    def __sub__(self, other: Any) -> "Jet":
        return self + -Jet.of(other)

    def __truediv__(self, other: Any) -> "Jet":
        b = Jet.of(other).c
        found: list[Any] = []
        for k, a in enumerate(self.c):
            found.append((a - sum(found[j] * b[k - j] for j in range(k))) / b[0])
        return Jet(found)

    def __rsub__(self, other: Any) -> "Jet":
        return Jet.of(other) - self

    def __rtruediv__(self, other: Any) -> "Jet":
        return Jet.of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, exponent: Any) -> "Jet":
        if int(exponent) == exponent and exponent >= 0:
            found = Jet.of(1)
            for _ in range(int(exponent)):
                found = found * self
            return found
        x = self.c[0]
        e = mpmath.mpf(exponent)
        power = x ** int(exponent) if int(exponent) == exponent else x**e
        each = [power]
        for k in range(ORDER):
            each.append(each[-1] * (e - k) / x)
        return self.through(each)

    def through(self, derivatives: Sequence[Any]) -> "Jet":
        """The composition with a function whose derivatives at this one's value are known."""
        off = Jet([0 * self.c[0], *self.c[1:]])
        found, power = Jet.of(derivatives[0]), Jet.of(1)
        for k in range(1, ORDER + 1):
            power = power * off
            found = found + power * (derivatives[k] / mpmath.factorial(k))
        return found

    def integral(self, value: Any, slope: "Jet") -> "Jet":
        """The composition with a function that has this value here, and this derivative."""
        rate = Jet([k * c for k, c in enumerate(self.c)][1:] + [mpmath.mpf(0)])
        product = slope * rate
        return Jet([mpmath.mpmathify(value), *[product.c[k - 1] / k for k in range(1, ORDER + 1)]])


def exp(x: Jet) -> Jet:
    return x.through([mpmath.exp(x.c[0])] * (ORDER + 1))


def log(x: Jet) -> Jet:
    return x.integral(mpmath.log(x.c[0]), 1 / x)


def log1p(x: Jet) -> Jet:
    return x.integral(mpmath.log1p(x.c[0]), 1 / (x + 1))


def sqrt(x: Jet) -> Jet:
    return x ** mpmath.mpf("0.5")


def _cycle(*functions: Callable[[Any], Any]) -> Callable[[Jet], Jet]:
    def function(x: Jet) -> Jet:
        each = [f(x.c[0]) for f in functions]
        return x.through([each[k % len(each)] for k in range(ORDER + 1)])

    return function


sin = _cycle(mpmath.sin, mpmath.cos, lambda x: -mpmath.sin(x), lambda x: -mpmath.cos(x))
cos = _cycle(mpmath.cos, lambda x: -mpmath.sin(x), lambda x: -mpmath.cos(x), mpmath.sin)
sinh = _cycle(mpmath.sinh, mpmath.cosh)
cosh = _cycle(mpmath.cosh, mpmath.sinh)


def integral(value: Callable[[Any], Any], slope: Callable[[Jet], Jet]) -> Callable[[Jet], Jet]:
    """A function of jets by its value and its derivative."""
    return lambda x: x.integral(value(x.c[0]), slope(x))


def listed(derivative: Callable[[int, Any], Any]) -> Callable[[Jet], Jet]:
    """A function of jets by its k-th derivative."""
    return lambda x: x.through([derivative(k, x.c[0]) for k in range(ORDER + 1)])


tan = integral(mpmath.tan, lambda x: 1 / cos(x) ** 2)
asin = integral(mpmath.asin, lambda x: 1 / (sqrt(1 - x) * sqrt(1 + x)))
acos = integral(mpmath.acos, lambda x: -1 / (sqrt(1 - x) * sqrt(1 + x)))
atan = integral(mpmath.atan, lambda x: 1 / (1 + x * x))
tanh = integral(mpmath.tanh, lambda x: 1 / cosh(x) ** 2)
asinh = integral(
    mpmath.asinh,
    lambda x: (
        1 / (sqrt(1 - x * mpmath.mpc(0, 1)) * sqrt(1 + x * mpmath.mpc(0, 1)))
        if isinstance(x.c[0], mpmath.mpc)
        else 1 / sqrt(1 + x * x)
    ),
)
acosh = integral(mpmath.acosh, lambda x: 1 / (sqrt(x - 1) * sqrt(x + 1)))
atanh = integral(mpmath.atanh, lambda x: 1 / ((1 - x) * (1 + x)))
expm1 = integral(mpmath.expm1, exp)


def _softplus(x: Any) -> Any:
    if isinstance(x, mpmath.mpc):
        return mpmath.log(1 + mpmath.exp(x))
    small = mpmath.log1p(mpmath.exp(-x if mpmath.re(x) > 0 else x))
    return x + small if mpmath.re(x) > 0 else small


expit = integral(
    lambda x: 1 / (1 + mpmath.exp(-x)), lambda x: 1 / (exp(x * 0.5) + exp(x * -0.5)) ** 2
)
softplus = integral(_softplus, expit)


def log_expit(x: Jet) -> Jet:
    return -softplus(-x)


def _bell(x: Jet) -> Jet:
    return exp(-(x * x)) * (2 / mpmath.sqrt(mpmath.pi))


erf = integral(mpmath.erf, _bell)
erfc = integral(mpmath.erfc, lambda x: -_bell(x))


def ndtr(x: Jet) -> Jet:
    return erfc(x * (-1 / mpmath.sqrt(2))) * 0.5


def log_ndtr(x: Jet) -> Jet:
    below = ndtr(x)
    bell = exp(x * x * -0.5) / mpmath.sqrt(2 * mpmath.pi)
    value = mpmath.log(below.c[0]) if x.c[0] < 0 else mpmath.log1p(-ndtr(-x).c[0])
    return x.integral(value, bell / below)


def _inverse_erfc(p: Any) -> Any:
    """The y for which erfc(y) is p, by Newton's method on the logarithm."""
    if p > 1:
        return -_inverse_erfc(2 - p)
    y = mpmath.sqrt(-mpmath.log(p)) if p < 0.1 else mpmath.erfinv(1 - p)
    for _ in range(60):
        tail = mpmath.erfc(y)
        rate = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-y * y) / tail
        step = mpmath.log(p / tail) / rate
        y = y - step
        if abs(step) <= abs(y) * mpmath.mpf(2) ** -150:
            break
    return y


def _inverse(y: Any, factor: Any, width: Any) -> list[Any]:
    """Derivatives of a y for which y' is ``factor * exp(width * y**2)``."""
    # As polynomials p(y): the k-th derivative is p(y) y'**k, and the next 2 k width y p + p'.
    rate = factor * mpmath.exp(width * y * y)
    found, p = [y, rate], [mpmath.mpf(1)]
    for k in range(1, ORDER):
        more = [mpmath.mpf(0)] * (len(p) + 1)
        for i, c in enumerate(p):
            more[i + 1] += 2 * k * width * c
            if i:
                more[i - 1] += i * c
        p = more
        found.append(mpmath.fsum(c * y**i for i, c in enumerate(p)) * rate ** (k + 1))
    return found


def _small_erfinv(x: Any) -> Any:
    return x * mpmath.sqrt(mpmath.pi) / 2 if abs(x) < 1e-40 else mpmath.erfinv(x)


def erfinv(x: Jet) -> Jet:
    v = x.c[0]
    y = _small_erfinv(v) if abs(v) < 0.5 else mpmath.sign(v) * _inverse_erfc(1 - abs(v))
    return x.through(_inverse(y, mpmath.sqrt(mpmath.pi) / 2, 1))


def erfcinv(x: Jet) -> Jet:
    v = x.c[0]
    y = _inverse_erfc(v) if abs(v - 1) > 0.5 else _small_erfinv(1 - v)
    return x.through(_inverse(y, -mpmath.sqrt(mpmath.pi) / 2, 1))


def ndtri(x: Jet) -> Jet:
    v = 2 * x.c[0]
    y = _inverse_erfc(v) if abs(v - 1) > 0.5 else _small_erfinv(1 - v)
    half = mpmath.mpf("0.5")
    return x.through(_inverse(-mpmath.sqrt(2) * y, mpmath.sqrt(2 * mpmath.pi), half))


def besseli(n: int) -> Callable[[Jet], Jet]:
    def one(order: int, x: Any) -> Any:
        order = abs(order)
        if abs(x) < 40:  # the power series, which mpmath gives up on for tiny arguments
            square, total, term = x * x / 4, mpmath.mpf(0), mpmath.mpf(1)
            for k in range(1, 200):
                total += term
                term *= square / (k * (k + order))
                if abs(term) < abs(total) * mpmath.mpf(2) ** -mpmath.mp.prec:
                    break
            return total * (x / 2) ** order / mpmath.factorial(order)
        return mpmath.besseli(order, x)

    def all_of(x: Jet) -> Jet:
        values = {order: one(order, x.c[0]) for order in range(n + ORDER + 1)}
        found = []
        for k in range(ORDER + 1):
            each = (mpmath.binomial(k, j) * values[abs(n - k + 2 * j)] for j in range(k + 1))
            found.append(mpmath.fsum(each) / 2**k)
        return x.through(found)

    return all_of


digamma = listed(lambda k, x: mpmath.psi(k, x))
gammaln = integral(
    lambda x: mpmath.log(abs(mpmath.gamma(x))) if x < 0 else mpmath.loggamma(x), digamma
)


def gamma(x: Jet) -> Jet:
    return exp(x.integral(0, digamma(x))) * mpmath.gamma(x.c[0])


def polygamma(n: int) -> Callable[[Jet], Jet]:
    return listed(lambda k, x: mpmath.psi(n + k, x))


def zeta(s: float) -> Callable[[Jet], Jet]:
    return listed(lambda k, q: (-1) ** k * mpmath.rf(s, k) * mpmath.zeta(s + k, q))
