"""Rounding, and the representation of floating-point numbers."""

from typing import Any

from wengert.ops.define import elementwise
from wengert.tape.domain import NOT_ZERO, Domain
from wengert.tape.primitive import UNDEFINED, ZERO
from wengert.tape.tensor import Tensor

__all__ = ["ceil", "copysign", "floor", "nextafter", "round", "signbit", "trunc"]


@elementwise(view=None, x=ZERO, domain=Domain(without=(0,), period=1))
def ceil(x: Any, /) -> Tensor:
    r"""Nearest integer that is not less, :math:`\lceil x \rceil`.

    Parameters
    ----------
    x : Tensor
        Real.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Notes
    -----
    Derivative 0. Array API: ``ceil``.
    """


@elementwise(view=None, x=ZERO, domain=Domain(without=(0,), period=1))
def floor(x: Any, /) -> Tensor:
    r"""Nearest integer that is not greater, :math:`\lfloor x \rfloor`.

    Parameters
    ----------
    x : Tensor
        Real.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Notes
    -----
    Derivative 0. Array API: ``floor``.
    """


@elementwise(view=None, x=ZERO, domain=Domain(without=(0.5,), period=1))
def round(x: Any, /) -> Tensor:
    """Nearest integer, the even one of two that are equally near.

    Parameters
    ----------
    x : Tensor
        Of any dtype but bool; of a complex number both parts are rounded.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Notes
    -----
    Derivative 0. Array API: ``round``.
    """


@elementwise(view=None, x=ZERO, domain=Domain(without=(0,), period=1))
def trunc(x: Any, /) -> Tensor:
    """Nearest integer that is not farther from 0.

    Parameters
    ----------
    x : Tensor
        Real.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Notes
    -----
    Derivative 0. Array API: ``trunc``.
    """


@elementwise()
def signbit(x: Any, /) -> Tensor:
    """Whether the sign bit is set, as in -0.0 and in negative numbers.

    Parameters
    ----------
    x : Tensor
        Real floating.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and bool.

    Notes
    -----
    Not tracked. Array API: ``signbit``.
    """


@elementwise(
    weak=True,
    x1=lambda xp, g, x1, out: xp.multiply(g, xp.multiply(xp.sign(x1), xp.sign(out))),
    x2=ZERO,
    domain={"x1": NOT_ZERO, "x2": NOT_ZERO},
)
def copysign(x1: Any, x2: Any, /) -> Tensor:
    """Magnitude of ``x1`` with the sign of ``x2``.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Real floating, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Notes
    -----
    Derivatives 1 or -1, as the sign was kept or turned, and 0; at :math:`x_1 = 0` both are 0.
    Array API: ``copysign``.
    """


@elementwise(weak=True, x1=UNDEFINED, x2=UNDEFINED)
def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """Next representable number after ``x1`` towards ``x2``.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Real floating, of one dtype and of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape and the dtype of the operands.

    Notes
    -----
    There is no derivative: `backward` through it is an error. Array API: ``nextafter``.
    """
