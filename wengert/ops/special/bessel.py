r"""Modified Bessel functions of the first kind, of order 0 and 1.

All are made of the entire functions :math:`R_n(x) = I_n(x) / x^n`, whose derivative is
:math:`x R_{n+1}(x)`: so no derivative of any order has a singular point.
"""

import math
from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.special.series import of_reals, polynomial
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["i0", "i0e", "i1", "i1e"]

_BORDER = 20.0
_TERMS = 48
_FAR_TERMS = 24


def _near(xp: Any, x: Any, n: int) -> Any:
    """The power series (Abramowitz and Stegun 9.6.10), nested so that no factorial overflows."""
    square = xp.square(x) * 0.25
    total = xp.ones_like(x)
    for k in range(_TERMS, 0, -1):
        total = square * (1 / (k * (k + n))) * total + 1
    return total * (0.5**n / math.factorial(n))


def _root(xp: Any, x: Any) -> Any:
    """The square root of ``2 pi x``, whose radicand would overflow where x is huge."""
    return xp.sqrt(x * (1 / 16) * (2 * math.pi)) * 4


def _far(xp: Any, x: Any, n: int) -> Any:
    """Hankel's expansion (Abramowitz and Stegun 9.7.1) of ``exp(-x) I_n(x)``."""
    inverse = xp.reciprocal(x)
    total = xp.ones_like(x)
    for k in range(_FAR_TERMS, 0, -1):
        share = ((2 * k - 1) ** 2 - 4 * n**2) / (8 * k)
        total = inverse * share * total + 1
    return total / _root(xp, x)


@of_reals("the Bessel function")
def _reduced_composite(xp: Any, x: Any, *, n: int) -> Any:
    x = xp.abs(x)
    low = _near(xp, xp.minimum(x, _BORDER), n)
    far = xp.maximum(x, _BORDER)
    # In two factors, for the exponential overflows before the function does.
    grown = xp.exp(far * 0.5)
    high = _far(xp, far, n) * grown * grown
    for _ in range(n):
        high = high / far
    return xp.where(x > _BORDER, high, low)


Primitive(
    "reduced_bessel",
    ("x",),
    {"x": lambda xp, g, x, n: g * (x * xp.reduced_bessel(x, n=n + 1))},
    elementwise=True,
    dtypes="real floating",
    composite=_reduced_composite,
)


def _scale(n: int) -> Any:
    @of_reals("the Bessel function")
    def forward(xp: Any, x: Any) -> Any:
        size = xp.abs(x)
        near = xp.minimum(size, _BORDER)
        low = _near(xp, near, n) * xp.exp(-near)
        if n:
            low = low * near
        high = _far(xp, xp.maximum(size, _BORDER), n)
        value = xp.where(size > _BORDER, high, low)
        return value * xp.sign(x) if n else value

    return forward


# -- derivatives of the scaled functions -----------------------------------------------------------

_NODES = 48
_DISTANT = 60.0  # from here on the expansion is accurate, and the integral is not


def _slope_near(xp: Any, x: Any, n: int, order: int) -> Any:
    r"""The integral, by the trapezoidal rule: the integrand is periodic.

    It is :math:`\frac 1 \pi \int_0^\pi (-c)^k (1 - c)^n e^{-x c} d\theta`, with :math:`c = 1 -
    \cos\theta` and the order k, whose terms do not cancel as those of a difference do.
    """
    total = xp.zeros_like(x)
    for k in range(_NODES):
        c = 2 * math.sin(math.pi * (k + 0.5) / (2 * _NODES)) ** 2
        weight = (-c) ** order * (1 - c) ** n / _NODES
        total = total + xp.exp(x * -c) * weight
    return total


def _slope_far(xp: Any, x: Any, n: int, order: int) -> Any:
    """Hankel's expansion, term by term."""
    inverse = xp.reciprocal(x)
    coefficients, share = [], 1.0
    for j in range(_FAR_TERMS):
        falling = math.prod(j + 0.5 + i for i in range(order)) * (-1) ** order
        coefficients.append(share * falling)
        share *= ((2 * j + 1) ** 2 - 4 * n**2) / (8 * (j + 1))
    total = polynomial(xp, inverse, coefficients[::-1])
    for _ in range(order):
        total = total * inverse
    return total / _root(xp, x)


@of_reals("the Bessel function")
def _scaled_slope_composite(xp: Any, x: Any, *, n: int, order: int) -> Any:
    size = xp.abs(x)
    far = size > _DISTANT
    low = _slope_near(xp, xp.where(far, 1, size), n, order)
    value = xp.where(far, _slope_far(xp, xp.where(far, size, _DISTANT), n, order), low)
    # An odd function is taken as 0 at 0, also where it jumps there.
    return value * xp.sign(x) if (n + order) % 2 else value


#: The derivative of that order of the scaled function of order n.
Primitive(
    "scaled_bessel_slope",
    ("x",),
    {"x": lambda xp, g, x, n, order: g * xp.scaled_bessel_slope(x, n=n, order=order + 1)},
    elementwise=True,
    dtypes="real floating",
    composite=_scaled_slope_composite,
)


def _i1_rule(xp: Any, g: Any, x: Any) -> Any:
    # A sum of positive terms, and so no difference of infinities.
    more = xp.square(x) * xp.reduced_bessel(x, n=2)
    return g * (more + xp.reduced_bessel(x, n=1))


def _scaled_rule(n: int) -> Any:
    return lambda xp, g, x: g * xp.scaled_bessel_slope(x, n=n, order=1)


@elementwise(
    dtypes="real floating",
    composite=lambda xp, x: xp.reduced_bessel(x, n=0),
    x=lambda xp, g, x: g * xp.i1(x),
)
def i0(x: Any, /) -> Tensor:
    r"""Modified Bessel function of order 0, :math:`I_0(x) = \sum_k (x^2/4)^k / (k!)^2`.

    Derivative `i1`. Source: M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions",
    sections 9.6 and 9.7. Real floating dtypes. SciPy: ``scipy.special.i0``.

    Examples
    --------
    >>> wg.special.i0(wg.asarray([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    >>> wg.grad(wg.special.i0)(0.0)
    0.0
    """


@elementwise(
    dtypes="real floating", composite=lambda xp, x: x * xp.reduced_bessel(x, n=1), x=_i1_rule
)
def i1(x: Any, /) -> Tensor:
    """Modified Bessel function of order 1, :math:`I_1(x) = I_0'(x)`.

    Derivative :math:`I_0(x) - I_1(x) / x`, which is 1/2 at 0. Source: as `i0`. Real floating
    dtypes. SciPy: ``scipy.special.i1``.

    Examples
    --------
    >>> wg.special.i1(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    >>> wg.grad(wg.special.i1)(0.0)
    0.5
    """


@elementwise(dtypes="real floating", composite=_scale(0), x=_scaled_rule(0))
def i0e(x: Any, /) -> Tensor:
    r"""Exponentially scaled `i0`, :math:`e^{-|x|} I_0(x)`, without overflow.

    Derivative :math:`e^{-|x|} (I_1(x) - \operatorname{sign}(x) I_0(x))`, which at the kink at 0 is
    0, as in PyTorch. Source: as `i0`. Real floating dtypes. SciPy: ``scipy.special.i0e``.

    Examples
    --------
    >>> wg.special.i0e(wg.asarray([0.0, 1.0, 1000.0]))
    tensor([1.0000, 0.4658, 0.0126])
    """


@elementwise(dtypes="real floating", composite=_scale(1), x=_scaled_rule(1))
def i1e(x: Any, /) -> Tensor:
    r"""Exponentially scaled `i1`, :math:`e^{-|x|} I_1(x)`, without overflow.

    Derivative :math:`e^{-|x|} (I_0(x) - I_1(x) (1/x + \operatorname{sign}(x)))`, which is 1/2 at 0.
    Source: as `i0`. Real floating dtypes. SciPy: ``scipy.special.i1e``.

    Examples
    --------
    >>> wg.special.i1e(wg.asarray([0.0, 1.0, 1000.0]))
    tensor([0.0000, 0.2079, 0.0126])
    """
