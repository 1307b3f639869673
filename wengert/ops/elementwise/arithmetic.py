"""Sums, products, quotients and powers."""

from functools import reduce
from typing import Any

import numpy as np

from wengert.backends import dtype_of
from wengert.ops.define import elementwise, operation
from wengert.ops.domain import ENTIRE, NOT_ZERO, POSITIVE, Domain, Joint
from wengert.ops.elementwise.rules import cast_like, is_complex
from wengert.ops.euclidean import nan_where, without_slope
from wengert.tape.primitive import ZERO, Primitive
from wengert.tape.promotion import SCALARS, check_range, common_dtype
from wengert.tape.tensor import Tensor

__all__ = [
    "add",
    "divide",
    "floor_divide",
    "multiply",
    "negative",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "sqrt",
    "square",
    "subtract",
]


@elementwise(dtypes="numeric", linear="together", x1=lambda xp, g: g, x2=lambda xp, g: g)
def add(x1: Any, x2: Any, /) -> Tensor:
    """Sum, :math:`x_1 + x_2`.

    Derivative 1 with respect to both. Array API standard.

    Examples
    --------
    >>> wg.add(wg.asarray([1.0, 2.0]), 10.0)
    tensor([11., 12.])
    >>> wg.grad(wg.add, argnums=(0, 1))(1.0, 2.0)
    (1.0, 1.0)
    """


@elementwise(dtypes="numeric", linear="together", x1=lambda xp, g: g, x2=lambda xp, g: -g)
def subtract(x1: Any, x2: Any, /) -> Tensor:
    """Difference, :math:`x_1 - x_2`.

    Derivatives 1 and -1. Array API standard.

    Examples
    --------
    >>> wg.subtract(wg.asarray([1.0, 2.0]), 0.5)
    tensor([0.5000, 1.5000])
    >>> wg.grad(wg.subtract, argnums=(0, 1))(1.0, 2.0)
    (1.0, -1.0)
    """


@elementwise(
    dtypes="numeric",
    linear="each",
    x1=lambda xp, g, x2: g * xp.conj(x2),
    x2=lambda xp, g, x1: g * xp.conj(x1),
)
def multiply(x1: Any, x2: Any, /) -> Tensor:
    r"""Product, :math:`x_1 x_2`.

    Derivatives :math:`x_2` and :math:`x_1`; the cotangents are :math:`\bar y \, x_2^*` and
    :math:`\bar y \, x_1^*`. Array API standard.

    Examples
    --------
    >>> wg.multiply(wg.asarray([1.0, 2.0]), 3.0)
    tensor([3., 6.])
    >>> wg.grad(wg.multiply, argnums=(0, 1))(2.0, 5.0)
    (5.0, 2.0)
    """


@elementwise(
    x1=lambda xp, g, x2: g / xp.conj(x2),
    # Not g * (out / x2): out / x2 may underflow where g / x2 and the product do not.
    x2=lambda xp, g, x2, out: -(g / xp.conj(x2)) * xp.conj(out),
    domain={"x2": NOT_ZERO},
)
def divide(x1: Any, x2: Any, /) -> Tensor:
    """Quotient, :math:`x_1 / x_2`.

    Derivatives :math:`1 / x_2` and :math:`-x_1 / x_2^2`. Of two integers the quotient has the
    default dtype. Array API standard.

    Examples
    --------
    >>> wg.divide(wg.asarray([1.0, 3.0]), 2.0)
    tensor([0.5000, 1.5000])
    >>> wg.grad(wg.divide, argnums=(0, 1))(1.0, 2.0)
    (0.5, -0.25)
    """


def _off_multiples(x1: Any, x2: Any) -> Any:
    times = np.round(x1 / np.where(x2 == 0, 1, x2))
    return abs(x1 - times * x2) / np.maximum(abs(times), 1)


#: Where the rounded quotient does not jump.
_WITH_A_REMAINDER: dict[str, Domain | Joint] = {
    "x2": NOT_ZERO,
    "x1 x2": Joint(_off_multiples, "all but x1 = k x2"),
}


@elementwise(dtypes="real numeric", x1=ZERO, x2=ZERO, domain=_WITH_A_REMAINDER)
def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    r"""Quotient rounded down, :math:`\lfloor x_1 / x_2 \rfloor`.

    Derivatives 0. Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.floor_divide(wg.asarray([7, -7]), 2)
    tensor([ 3, -4])
    """


@elementwise(
    dtypes="real numeric",
    x1=lambda xp, g: g,
    x2=lambda xp, g, x1, x2: g * -xp.floor_divide(x1, x2),
    domain=_WITH_A_REMAINDER,
)
def remainder(x1: Any, x2: Any, /) -> Tensor:
    r"""Remainder with the sign of the divisor, :math:`x_1 - \lfloor x_1 / x_2 \rfloor x_2`.

    Derivatives 1 and :math:`-\lfloor x_1 / x_2 \rfloor`. Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.remainder(wg.asarray([7.0, -7.0]), 3.0)
    tensor([1., 2.])
    >>> wg.grad(wg.remainder, argnums=(0, 1))(7.0, 3.0)
    (1.0, -2.0)
    """


@elementwise(dtypes="numeric", linear="together", view=None, x=lambda xp, g: g, domain=ENTIRE)
def positive(x: Any, /) -> Tensor:
    """Equal values, :math:`+x`.

    Derivative 1. Array API standard.

    Examples
    --------
    >>> wg.positive(wg.asarray([1.0, -2.0]))
    tensor([ 1., -2.])
    >>> wg.grad(wg.positive)(1.0)
    1.0
    """


@elementwise(dtypes="numeric", linear="together", x=lambda xp, g: -g, domain=ENTIRE)
def negative(x: Any, /) -> Tensor:
    """Opposite values, :math:`-x`.

    Derivative -1. Array API standard.

    Examples
    --------
    >>> wg.negative(wg.asarray([1.0, -2.0]))
    tensor([-1.,  2.])
    >>> wg.grad(wg.negative)(1.0)
    -1.0
    """


@elementwise(x=lambda xp, g, out: g * -xp.conj(xp.square(out)), domain=NOT_ZERO)
def reciprocal(x: Any, /) -> Tensor:
    """Reciprocal, :math:`1 / x`.

    Derivative :math:`-1 / x^2`. Array API standard.

    Examples
    --------
    >>> wg.reciprocal(wg.asarray([1.0, 4.0]))
    tensor([1.0000, 0.2500])
    >>> wg.grad(wg.reciprocal)(2.0)
    -0.25
    """


@elementwise(dtypes="numeric", x=lambda xp, g, x: g * (xp.conj(x) * 2), domain=ENTIRE)
def square(x: Any, /) -> Tensor:
    """Square, :math:`x^2`.

    Derivative :math:`2 x`. Array API standard.

    Examples
    --------
    >>> wg.square(wg.asarray([-3.0, 2.0]))
    tensor([9., 4.])
    >>> wg.grad(wg.square)(3.0)
    6.0
    """


@elementwise(x=lambda xp, g, out: g / (xp.conj(out) * 2), domain=POSITIVE)
def sqrt(x: Any, /) -> Tensor:
    r"""Principal square root, :math:`\sqrt x`.

    A negative real value gives nan. Derivative :math:`1 / (2 \sqrt x)`, which is inf at 0.
    Array API standard.

    Examples
    --------
    >>> wg.sqrt(wg.asarray([1.0, 4.0]))
    tensor([1., 2.])
    >>> wg.grad(wg.sqrt)(4.0)
    0.25
    """


# -- powers --------------------------------------------------------------------------------------

#: Exponents for which there is something faster than a power, and as accurate.
_SHORT = {
    2: lambda xp, x: xp.square(x),
    3: lambda xp, x: xp.square(x) * x,
    0.5: lambda xp, x: xp.sqrt(x),
    -1: lambda xp, x: xp.reciprocal(x),
}


def _pow_scalar_composite(xp: Any, x: Any, *, exponent: Any) -> Any:
    own = dtype_of(x.dtype)
    common = own if own.inexact else common_dtype([own], [type(exponent)])
    check_range("pow", exponent, common)
    if common.inexact and not own.inexact:
        x = xp.astype(x, getattr(xp, common.name))
    short = _SHORT.get(exponent)
    # The dtype of the result depends on the exponent's type, unless x is the more general one.
    if short is None or type(exponent) is complex or not common.inexact:
        return xp.pow(x, int(exponent) if type(exponent) is bool else exponent)
    return short(xp, x)


def _pow_scalar_rule(xp: Any, g: Any, x: Any, exponent: Any) -> Any:
    if exponent == 0:
        return xp.zeros_like(g)
    if exponent == 1:
        return g
    lower = x if exponent == 2 else xp.pow_scalar(x, exponent=exponent - 1)
    return g * (xp.conj(lower) * exponent.conjugate())


_pow_scalar = Primitive(
    "pow_scalar",
    ("x",),
    {"x": _pow_scalar_rule},
    elementwise=True,
    composite=_pow_scalar_composite,
    domain=POSITIVE,
    dtypes="numeric",
).bind


def _pow_exponent(xp: Any, g: Any, x1: Any, x2: Any, out: Any) -> Any:
    growing = (xp.real(x2) >= 0) & (xp.imag(x2) == 0) if is_complex(x2) else x2 >= 0
    # Where the power of 0 is 0 or 1 it does not depend on the exponent: log(1) says so.
    special = (x1 == 0) & growing
    logarithm = xp.log(cast_like(xp, xp.where(special, 1, x1), out))
    found = g * xp.conj(out * logarithm)

    def sharp() -> tuple[Any, Any]:
        own = xp.where(x2 == 0, x2, 0)
        return special & _up_to(xp, x2, 1), x1 + own

    return without_slope(xp, found, sharp)


def _up_to(xp: Any, x: Any, limit: int) -> Any:
    return (xp.real(x) if is_complex(x) else x) <= limit


def _falling(order: int) -> list[float]:
    """The polynomial y (y - 1) ... (y - order + 1), the highest power first."""
    found = [1.0]
    for k in range(order):
        found = [a - k * b for a, b in zip([*found, 0.0], [0.0, *found], strict=True)]
    return found


def _slope_of_pow(xp: Any, x1: Any, x2: Any, *, order: int) -> Any:
    # The product of factors is exactly 0 where it should be, and then an infinite power is no NaN.
    factor = x2
    for k in range(1, order):
        factor = factor * (x2 - k)
    nothing = factor == 0
    power = xp.pow(xp.where(nothing, 1, x1), x2 - order)
    return xp.where(nothing, 0, factor * power)


def _slope_by_exponent(xp: Any, g: Any, x1: Any, x2: Any, out: Any, order: int) -> Any:
    falling = _falling(order)
    slope = [c * (order - k) for k, c in enumerate(falling[:-1])]
    zero = x1 == 0
    base, exponent = cast_like(xp, xp.where(zero, 1, x1), out), cast_like(xp, x2, out)
    factor = reduce(lambda value, coefficient: value * exponent + coefficient, slope)
    moved = factor * xp.pow(base, x2 - order)
    total = moved + out * xp.log(base)
    found = g * xp.conj(xp.where(zero, 0, total))
    return nan_where(xp, zero & _up_to(xp, x2, order) & (g != 0), found)


# The derivative of that order by the base: x2 (x2 - 1) ... (x2 - order + 1) x1**(x2 - order).
Primitive(
    "slope_of_pow",
    ("x1", "x2"),
    {
        "x1": lambda xp, g, x1, x2, order: g * xp.conj(xp.slope_of_pow(x1, x2, order=order + 1)),
        "x2": _slope_by_exponent,
    },
    elementwise=True,
    dtypes="floating",
    composite=_slope_of_pow,
    domain={"x1": POSITIVE},
)


@operation(
    x1=lambda xp, g, x1, x2: g * xp.conj(xp.slope_of_pow(x1, x2, order=1)),
    x2=_pow_exponent,
    elementwise=True,
    domain={"x1": POSITIVE},
    dtypes="numeric",
    weak=False,
)
def pow(x1: Any, x2: Any, /) -> Tensor:
    r"""Power, :math:`x_1^{x_2}`.

    Derivatives :math:`x_2 x_1^{x_2 - 1}` and :math:`x_1^{x_2} \log x_1`. At :math:`x_1 = 0` the
    second is 0 for an exponent that is not negative, and at :math:`x_2 = 0` the first is 0. A
    negative real base with an exponent that is no integer gives nan, and its derivative with
    respect to the exponent is always nan. With a Python number as the exponent this is a faster
    operation of one input. Raises `ValueError`, `RuntimeError`, `TypeError` from the array library,
    if an integer is raised to a negative integer. Array API standard.

    Examples
    --------
    >>> wg.pow(wg.asarray([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    >>> wg.grad(wg.pow, argnums=(0, 1))(1.0, 3.0)
    (3.0, 0.0)
    """
    if type(x2) is int and x2 == 2:
        return square(x1)
    if type(x2) in SCALARS:
        return _pow_scalar(x1, exponent=x2)  # type: ignore[no-any-return]
    if hasattr(x2, "pin"):  # a number of a trace: its value decides how the power is computed
        return pow(x1, x2.pin())
    if isinstance(x2, np.generic):
        number = x2.item()
        if not isinstance(number, np.generic):  # as it does of a long double
            return pow(x1, number)
    return pow.run(x1, x2)
