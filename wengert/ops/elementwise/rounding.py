"""Rounding, and the representation of floating-point numbers."""

from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.domain import NOT_ZERO, Domain
from wengert.tape.primitive import UNDEFINED, ZERO
from wengert.tape.tensor import Tensor

__all__ = ["ceil", "copysign", "floor", "nextafter", "round", "signbit", "trunc"]

#: Where rounding down, up or towards zero does not jump.
_BETWEEN_INTEGERS = Domain(without=(0,), period=1)


@elementwise(dtypes="real numeric", view=None, x=ZERO, domain=_BETWEEN_INTEGERS)
def ceil(x: Any, /) -> Tensor:
    r"""Nearest integer that is not less, :math:`\lceil x \rceil`.

    Derivative 0. Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.ceil(wg.asarray([-1.5, 1.2]))
    tensor([-1.,  2.])
    """


@elementwise(dtypes="real numeric", view=None, x=ZERO, domain=_BETWEEN_INTEGERS)
def floor(x: Any, /) -> Tensor:
    r"""Nearest integer that is not greater, :math:`\lfloor x \rfloor`.

    Derivative 0. Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.floor(wg.asarray([-1.5, 1.2]))
    tensor([-2.,  1.])
    """


@elementwise(dtypes="numeric", view=None, x=ZERO, domain=Domain(without=(0.5,), period=1))
def round(x: Any, /) -> Tensor:
    """Nearest integer, the even one of two that are equally near.

    Of a complex number both parts are rounded. Derivative 0. Array API standard.

    Examples
    --------
    >>> wg.round(wg.asarray([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    """


@elementwise(dtypes="real numeric", view=None, x=ZERO, domain=_BETWEEN_INTEGERS)
def trunc(x: Any, /) -> Tensor:
    """Nearest integer that is not farther from 0.

    Derivative 0. Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.trunc(wg.asarray([-1.5, 1.2]))
    tensor([-1.,  1.])
    """


@elementwise(dtypes="real floating", tracked=False)
def signbit(x: Any, /) -> Tensor:
    """Whether the sign bit is set, as in -0.0 and in negative numbers.

    Real floating dtypes. Array API standard.

    Examples
    --------
    >>> wg.signbit(wg.asarray([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """


@elementwise(
    dtypes="real floating",
    x1=lambda xp, g, x1, out: g * (xp.sign(x1) * xp.sign(out)),
    x2=ZERO,
    domain={"x1": NOT_ZERO, "x2": NOT_ZERO},
)
def copysign(x1: Any, x2: Any, /) -> Tensor:
    """Magnitude of ``x1`` with the sign of ``x2``.

    Derivatives 1 or -1, as the sign was kept or turned, and 0; at :math:`x_1 = 0` both are 0. Real
    floating dtypes. Array API standard.

    Examples
    --------
    >>> wg.copysign(wg.asarray([1.0, -2.0]), wg.asarray([-0.0, 3.0]))
    tensor([-1.,  2.])
    >>> wg.grad(wg.copysign)(1.0, -3.0)
    -1.0
    """


@elementwise(dtypes="real floating", x1=UNDEFINED, x2=UNDEFINED)
def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """Next representable number after ``x1`` towards ``x2``, which have one dtype.

    There is no derivative: `backward` through it is an error. Real floating dtypes.
    Array API standard.

    Examples
    --------
    >>> wg.nextafter(wg.asarray(1.0, dtype=wg.float64), 2.0).item()
    1.0000000000000002
    """
