"""Trigonometric and hyperbolic functions and their inverses."""

import math
from typing import Any

import numpy as np

from wengert.ops.define import elementwise
from wengert.ops.domain import ENTIRE, Domain, Joint
from wengert.ops.elementwise.rules import is_complex, over_radius
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "hypot",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


_OFF_THE_ORIGIN = Joint(np.hypot, "all but x1 = x2 = 0")
#: The angle jumps from -π to π.
_OFF_THE_CUT = Joint(
    lambda x1, x2: np.where(x2 > 0, np.hypot(x1, x2), abs(x1)), "all but x1 = 0 ≥ x2"
)


# 1 - x**2 in factors, which keep its digits near 1. Their derivative would be a difference without
# digits near 0.
Primitive(
    "one_minus_square",
    ("x",),
    {"x": lambda xp, g, x: g * (xp.conj(x) * -2)},
    elementwise=True,
    dtypes="floating",
    composite=lambda xp, x: (1 - x) * (x + 1),
)


def _root_of_one_minus_square(xp: Any, x: Any) -> Any:
    if not is_complex(x):
        return xp.sqrt(xp.one_minus_square(x))
    # Far out, where the square may overflow, the root is -ix, or ix below.
    far = xp.abs(x) > _FAR
    near = xp.sqrt(xp.one_minus_square(xp.where(far, 0, x)))
    return xp.where(far, x * -1j * _side(xp, xp.imag(x)), near)


def _side(xp: Any, x: Any) -> Any:
    return xp.copysign(xp.ones_like(x), x)


#: From here on 1 is lost beside the square, which does not overflow yet.
_FAR = 2.0**30


@elementwise(x=lambda xp, g, x: g * xp.conj(xp.cos(x)), domain=ENTIRE)
def sin(x: Any, /) -> Tensor:
    r"""Sine of an angle in radians, :math:`\sin x`.

    Derivative :math:`\cos x`. Array API standard.

    Examples
    --------
    >>> wg.sin(wg.asarray([0.0, wg.pi / 2]))
    tensor([0., 1.])
    >>> wg.grad(wg.sin)(0.0)
    1.0
    """


@elementwise(x=lambda xp, g, x: g * -xp.conj(xp.sin(x)), domain=ENTIRE)
def cos(x: Any, /) -> Tensor:
    r"""Cosine of an angle in radians, :math:`\cos x`.

    Derivative :math:`-\sin x`. Array API standard.

    Examples
    --------
    >>> wg.cos(wg.asarray([0.0, wg.pi]))
    tensor([ 1., -1.])
    >>> wg.grad(wg.grad(wg.cos))(0.0)
    -1.0
    """


@elementwise(
    x=lambda xp, g, out: g * xp.conj(xp.square(out) + 1),
    domain=Domain(without=(math.pi / 2,), period=math.pi),
)
def tan(x: Any, /) -> Tensor:
    r"""Tangent of an angle in radians, :math:`\tan x`.

    Derivative :math:`1 + \tan^2 x`. Array API standard.

    Examples
    --------
    >>> wg.tan(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    >>> wg.grad(wg.tan)(0.0)
    1.0
    """


@elementwise(x=lambda xp, g, x: g / xp.conj(_root_of_one_minus_square(xp, x)), domain=Domain(-1, 1))
def asin(x: Any, /) -> Tensor:
    r"""Inverse sine, :math:`\arcsin x`, between :math:`-\pi/2` and :math:`\pi/2` for a real x.

    Real values outside :math:`[-1, 1]` give nan. Derivative :math:`1 / \sqrt{1 - x^2}`, which is
    inf at -1 and 1. Array API standard.

    Examples
    --------
    >>> wg.asin(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    >>> wg.grad(wg.asin)(0.6)
    1.25
    """


@elementwise(
    x=lambda xp, g, x: -g / xp.conj(_root_of_one_minus_square(xp, x)), domain=Domain(-1, 1)
)
def acos(x: Any, /) -> Tensor:
    r"""Inverse cosine, :math:`\arccos x`, between 0 and :math:`\pi` for a real x.

    Real values outside :math:`[-1, 1]` give nan. Derivative :math:`-1 / \sqrt{1 - x^2}`, which is
    -inf at -1 and 1. Array API standard.

    Examples
    --------
    >>> wg.acos(wg.asarray([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    >>> wg.grad(wg.acos)(0.0)
    -1.0
    """


def _atan_rule(xp: Any, g: Any, x: Any) -> Any:
    if is_complex(x):
        return g / xp.conj(xp.square(x) + 1)
    return over_radius(xp, g, xp.ones_like(x), x)


@elementwise(x=_atan_rule)
def atan(x: Any, /) -> Tensor:
    r"""Inverse tangent, :math:`\arctan x`, between :math:`-\pi/2` and :math:`\pi/2` for a real x.

    Derivative :math:`1 / (1 + x^2)`. Array API standard.

    Examples
    --------
    >>> wg.atan(wg.asarray([0.0, 1.0, wg.inf]))
    tensor([0.0000, 0.7854, 1.5708])
    >>> wg.grad(wg.atan)(0.0)
    1.0
    """


@elementwise(
    dtypes="real floating",
    x1=lambda xp, g, x1, x2: over_radius(xp, g, x2, x1),
    x2=lambda xp, g, x1, x2: over_radius(xp, -g, x1, x2),
    domain={"x1 x2": _OFF_THE_CUT},
)
def atan2(x1: Any, x2: Any, /) -> Tensor:
    r"""Angle of the point :math:`(x_2, x_1)` from the first axis, in :math:`[-\pi, \pi]`.

    ``x1`` is the ordinate. Derivatives :math:`x_2 / (x_1^2 + x_2^2)` and
    :math:`-x_1 / (x_1^2 + x_2^2)`, both 0 at the origin. Real floating dtypes. Array API standard.

    Examples
    --------
    >>> wg.atan2(wg.asarray([1.0, 1.0]), wg.asarray([1.0, -1.0]))
    tensor([0.7854, 2.3562])
    >>> wg.grad(wg.atan2, argnums=(0, 1))(3.0, 4.0)
    (0.16, -0.12)
    """


@elementwise(
    dtypes="real floating",
    x1=lambda xp, g, x1, x2: g * xp.cosine_of(x1, x2),
    x2=lambda xp, g, x1, x2: g * xp.cosine_of(x2, x1),
    domain={"x1 x2": _OFF_THE_ORIGIN},
)
def hypot(x1: Any, x2: Any, /) -> Tensor:
    r"""Distance from the origin, :math:`\sqrt{x_1^2 + x_2^2}`, without overflow.

    Derivatives :math:`x_1 / y` and :math:`x_2 / y` of the result :math:`y`, both 0 at the origin.
    Real floating dtypes. Array API standard.

    Examples
    --------
    >>> wg.hypot(wg.asarray([3.0, 5.0]), wg.asarray([4.0, 12.0]))
    tensor([ 5., 13.])
    >>> wg.grad(wg.hypot, argnums=(0, 1))(3.0, 4.0)
    (0.6, 0.8)
    """


@elementwise(x=lambda xp, g, x: g * xp.conj(xp.cosh(x)), domain=ENTIRE)
def sinh(x: Any, /) -> Tensor:
    r"""Hyperbolic sine, :math:`\sinh x`.

    Derivative :math:`\cosh x`. Array API standard.

    Examples
    --------
    >>> wg.sinh(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    >>> wg.grad(wg.sinh)(0.0)
    1.0
    """


@elementwise(x=lambda xp, g, x: g * xp.conj(xp.sinh(x)), domain=ENTIRE)
def cosh(x: Any, /) -> Tensor:
    r"""Hyperbolic cosine, :math:`\cosh x`.

    Derivative :math:`\sinh x`. Array API standard.

    Examples
    --------
    >>> wg.cosh(wg.asarray([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    >>> wg.grad(wg.cosh)(0.0)
    0.0
    """


@elementwise(x=lambda xp, g, x: g * xp.conj(xp.logistic_bell(x, width=2)))
def tanh(x: Any, /) -> Tensor:
    r"""Hyperbolic tangent, :math:`\tanh x`.

    Derivative :math:`1 - \tanh^2 x`. Array API standard.

    Examples
    --------
    >>> wg.tanh(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    >>> wg.grad(wg.tanh)(0.0)
    1.0
    """


def _asinh_rule(xp: Any, g: Any, x: Any) -> Any:
    if is_complex(x):
        # Far out, where the square may overflow, the root is x itself, or -x to the left.
        far = xp.abs(x) > _FAR
        near = xp.sqrt(xp.square(xp.where(far, 0, x)) + 1)
        root = xp.where(far, x * _side(xp, xp.real(x)), near)
        return g / xp.conj(root)
    return g / xp.hypot(x, xp.ones_like(x))  # where the square may overflow


@elementwise(x=_asinh_rule)
def asinh(x: Any, /) -> Tensor:
    r"""Inverse hyperbolic sine, :math:`\operatorname{arsinh} x`.

    Derivative :math:`1 / \sqrt{1 + x^2}`. Array API standard.

    Examples
    --------
    >>> wg.asinh(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    >>> wg.grad(wg.asinh)(0.0)
    1.0
    """


# Two roots: the root of the product has the wrong sign in the left half of the complex plane.
@elementwise(x=lambda xp, g, x: g / xp.conj(xp.sqrt(x - 1) * xp.sqrt(x + 1)), domain=Domain(1))
def acosh(x: Any, /) -> Tensor:
    r"""Inverse hyperbolic cosine, :math:`\operatorname{arcosh} x`.

    Real values below 1 give nan. Derivative :math:`1 / (\sqrt{x - 1} \sqrt{x + 1})`, which is inf
    at 1. Array API standard.

    Examples
    --------
    >>> wg.acosh(wg.asarray([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    >>> round(wg.grad(wg.acosh)(2.0), 4)
    0.5774
    """


@elementwise(x=lambda xp, g, x: g / xp.conj(xp.one_minus_square(x)), domain=Domain(-1, 1))
def atanh(x: Any, /) -> Tensor:
    r"""Inverse hyperbolic tangent, :math:`\operatorname{artanh} x`.

    Real values outside :math:`[-1, 1]` give nan. Derivative :math:`1 / (1 - x^2)`, which is inf at
    -1 and 1. Array API standard.

    Examples
    --------
    >>> wg.atanh(wg.asarray([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    >>> wg.grad(wg.atanh)(0.0)
    1.0
    """
