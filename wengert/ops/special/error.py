"""The error function and its complement."""

import math
from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.special.series import of_reals, rational
from wengert.tape.tensor import Tensor

__all__ = ["erf", "erfc"]

# Rational Chebyshev approximations of W. J. Cody, Math. Comp. 23 (1969) 631-637: coefficients of
# numerator and denominator, highest power first. Relative errors stay below 1e-16.
#: erf(x) / x in x**2, up to 0.46875.
_NEAR = (
    (
        1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
        3.77485237685302021e2, 3.20937758913846947e3,
    ),
    (
        1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
        2.84423683343917062e3,
    ),
)  # fmt: skip
#: exp(x**2) erfc(x) in x, up to 4.
_MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
        6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
        1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
        1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
        3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip
#: x**2 (1/sqrt(pi) - x exp(x**2) erfc(x)) in 1/x**2, beyond 4.
_FAR = (
    (
        1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
        1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4,
    ),
    (
        1.0, 2.56852019228982242e0, 1.87295284992346047e0, 5.27905102951428412e-1,
        6.05183413124413191e-2, 2.33520497626869185e-3,
    ),
)  # fmt: skip
BORDER = 0.46875
_VANISHED = 30.0  # erfc is 0 in float64 from 27.3 on
_SLOPE = 2 / math.sqrt(math.pi)
HALF = math.sqrt(0.5)


def near(xp: Any, x: Any) -> Any:
    """``erf(x)`` for small ``x``; what is larger counts as the border."""
    inside = xp.minimum(xp.maximum(x, -BORDER), BORDER)
    return inside * rational(xp, xp.square(inside), _NEAR)


def scaled_tail(xp: Any, y: Any) -> Any:
    """``exp(y**2) erfc(y)`` for ``y`` from the border on."""
    middle = rational(xp, xp.minimum(y, 4.0), _MIDDLE)
    beyond = xp.reciprocal(xp.maximum(y, 4.0))
    square = xp.square(beyond)
    far = 1 / math.sqrt(math.pi) - square * rational(xp, square, _FAR)
    return xp.where(y > 4.0, far * beyond, middle)


def exponential_of_square(xp: Any, y: Any, sign: int) -> Any:
    """``exp(sign * y**2)``, which would have the rounding error of ``y**2`` as its relative one."""
    # The square of a multiple of 1/16 is exact, and what remains is small.
    coarse = xp.trunc(y * 16.0) / 16.0
    rest = (y - coarse) * (y + coarse)
    large = xp.exp(xp.square(coarse) * sign)
    return large * xp.exp(rest * sign)


def _tail(xp: Any, y: Any) -> Any:
    """``erfc(y)`` for ``y`` from the border on; what is smaller counts as the border."""
    y = xp.minimum(xp.maximum(y, BORDER), _VANISHED)
    return exponential_of_square(xp, y, -1) * scaled_tail(xp, y)


@of_reals("erf")
def _erf_composite(xp: Any, x: Any) -> Any:
    far = xp.sign(x) * (1.0 - _tail(xp, xp.abs(x)))
    return xp.where(xp.abs(x) < BORDER, near(xp, x), far)


@of_reals("erfc")
def _erfc_composite(xp: Any, x: Any) -> Any:
    tail = _tail(xp, xp.abs(x))
    far = xp.where(x < 0, 2.0 - tail, tail)
    return xp.where(xp.abs(x) < BORDER, 1.0 - near(xp, x), far)


def _bell(xp: Any, g: Any, x: Any, height: float) -> Any:
    x = xp.conj(x) if is_complex(x) else xp.clip(x, -_VANISHED, _VANISHED)
    return g * (xp.exp(-xp.square(x)) * height)


def gaussian(xp: Any, g: Any, out: Any, height: float, width: float) -> Any:
    """``g * height * exp(width * out**2)``."""
    return g * (xp.exp(xp.square(out) * width) * height)


@elementwise(
    dtypes="real floating", x=lambda xp, g, x: _bell(xp, g, x, _SLOPE), composite=_erf_composite
)
def erf(x: Any, /) -> Tensor:
    r"""Error function, :math:`\frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.

    Complex numbers are taken where the array library has them (NumPy with SciPy). Derivative
    :math:`2 e^{-x^2} / \sqrt\pi`. Array libraries without an error function use W. J. Cody,
    "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969).
    SciPy: ``scipy.special.erf``.

    Examples
    --------
    >>> wg.erf(wg.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.8427,  0.0000,  0.8427])
    >>> round(wg.grad(wg.erf)(0.0), 4)  # 2 / sqrt(pi)
    1.1284
    """


@elementwise(
    dtypes="real floating", x=lambda xp, g, x: _bell(xp, g, x, -_SLOPE), composite=_erfc_composite
)
def erfc(x: Any, /) -> Tensor:
    r"""Complementary error function, :math:`1 - \operatorname{erf} x`, accurate in its tail.

    Complex numbers are taken where the array library has them (NumPy with SciPy). Derivative
    :math:`-2 e^{-x^2} / \sqrt\pi`. Source: as `erf`. SciPy: ``scipy.special.erfc``.

    Examples
    --------
    >>> wg.erfc(wg.asarray([0.0, 5.0]))
    tensor([1.0000e+00, 1.5375e-12])
    >>> round(wg.grad(wg.erfc)(0.0), 4)
    -1.1284
    """


@elementwise(
    dtypes="real floating",
    composite=of_reals("ndtr")(lambda xp, x: xp.erfc(x * -HALF) * 0.5),
    x=lambda xp, g, x: gaussian(xp, g, x, 1 / math.sqrt(2 * math.pi), -0.5),
)
def ndtr(x: Any, /) -> Tensor:
    r"""Normal distribution function, :math:`\Phi(x)`, accurate in its left tail.

    Derivative :math:`\phi(x) = e^{-x^2/2} / \sqrt{2 \pi}`. Real floating dtypes.
    SciPy: ``scipy.special.ndtr``.

    Examples
    --------
    >>> wg.special.ndtr(wg.asarray([-1.96, 0.0, 1.96]))
    tensor([0.0250, 0.5000, 0.9750])
    >>> round(wg.grad(wg.special.ndtr)(0.0), 4)  # the density at 0
    0.3989
    """
