"""The cardinal sine."""

import math
from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.elementwise.rules import cast_like
from wengert.ops.special.series import polynomial
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["sinc"]


def _angle(xp: Any, x: Any) -> Any:
    """``pi * x`` less whole turns, which pi's own rounding would put elsewhere for large ``x``."""
    size = xp.real(x)
    finite = xp.where(xp.isfinite(size), size, 0)
    turns = xp.round(finite * 0.5) * 2
    return (x - cast_like(xp, turns, x)) * math.pi


def _sinc_composite(xp: Any, x: Any) -> Any:
    u = x * math.pi
    centre = u == 0
    safe = xp.where(centre, 1, u)
    return xp.where(centre, 1, xp.sin(_angle(xp, xp.where(centre, 1, x))) / safe)


def _derivative_composite(xp: Any, x: Any, *, order: int) -> Any:
    r"""The derivative of that order of :math:`\sin(u) / u` at :math:`u = \pi x`.

    With :math:`f_0 = \sin(u) / u` that is :math:`f_k = (\sin^{(k)} u - k f_{k-1}) / u`, whose
    errors grow where u is less than k: there the power series is better.
    """
    u = x * math.pi
    border = float(max(2, order))
    near = xp.abs(u) < border
    inside, outside = xp.where(near, u, 0), xp.where(near, border, u)
    angle = _angle(xp, xp.where(near, border / math.pi, x))
    first = (order + 1) // 2
    coefficients = [
        (-1.0) ** m / ((2 * m + 1) * math.factorial(2 * m - order))
        for m in range(first, first + 12 + 2 * order)
    ]
    low = polynomial(xp, xp.square(inside), coefficients[::-1])
    if order % 2:
        low = low * inside
    sine, cosine = xp.sin(angle), xp.cos(angle)
    turns = [sine, cosine, -sine, -cosine]
    high = sine / outside
    for k in range(1, order + 1):
        high = (turns[k % 4] - high * k) / outside
    return xp.where(near, low, high)


def _rule(xp: Any, g: Any, x: Any, order: int) -> Any:
    slope = xp.sinc_derivative(x, order=order + 1) * math.pi
    return g * xp.conj(slope)


Primitive(
    "sinc_derivative",
    ("x",),
    {"x": _rule},
    elementwise=True,
    dtypes="floating",
    composite=_derivative_composite,
)


@elementwise(composite=_sinc_composite, x=lambda xp, g, x: _rule(xp, g, x, 0))
def sinc(x: Any, /) -> Tensor:
    r"""Cardinal sine, :math:`\sin(\pi x) / (\pi x)`, and 1 at 0.

    Derivative :math:`(\cos(\pi x) - \operatorname{sinc} x) / x`. At 0 the derivatives of all orders
    are the function's own: 0, :math:`-\pi^2/3`, ... SciPy: ``scipy.special.sinc``.

    Examples
    --------
    >>> wg.special.sinc(wg.asarray([0.0, 0.5, 1.5]))
    tensor([ 1.0000,  0.6366, -0.2122])
    >>> round(wg.grad(wg.grad(wg.special.sinc))(0.0), 4)  # -pi^2 / 3
    -3.2899
    """
