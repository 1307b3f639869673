"""The sigmoid and its slope, which rules of the standard's functions ask for."""

from typing import Any

from wengert.backends import dtype_of, sigmoids
from wengert.ops.define import elementwise
from wengert.ops.elementwise.rules import is_complex
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor


def _expit_composite(xp: Any, x: Any) -> Any:
    if is_complex(x):
        return sigmoids.expit(xp, x)
    # Where 1 is lost beside the exponential, the quotient is 1. That is long before the exponential
    # overflows: in half precision beyond 11.09, in others beyond 88.
    small = xp.exp(xp.minimum(x, 11 if dtype_of(x.dtype).itemsize == 2 else 50))
    return small / (small + 1)


def _bell_composite(xp: Any, x: Any, *, width: int) -> Any:
    if is_complex(x):
        return sigmoids.bell(xp, x, width)
    small = xp.exp(xp.abs(x) * -width)
    return small / xp.square((small + 1) * (1 / width))


# The derivative of tanh(x) is this with the width 2, that of the sigmoid with the width 1:
# (width / (2 cosh(width x / 2)))**2. Made of tanh(x) itself it would be 0 where that is rounded to
# 1, and its own derivative would have no digits near 0.
Primitive(
    "logistic_bell",
    ("x",),
    {"x": lambda xp, g, x, out, width: g * xp.conj(out * xp.tanh(x * (width / 2)) * -width)},
    elementwise=True,
    dtypes="floating",
    composite=_bell_composite,
)


@elementwise(
    composite=_expit_composite, x=lambda xp, g, x: g * xp.conj(xp.logistic_bell(x, width=1))
)
def expit(x: Any, /) -> Tensor:
    r"""Logistic sigmoid, :math:`\sigma(x) = 1 / (1 + e^{-x})`, without overflow.

    Derivative :math:`\sigma (1 - \sigma)`. The inverse of `logit`. SciPy: ``scipy.special.expit``.

    Examples
    --------
    >>> wg.expit(wg.asarray([-2.0, 0.0, 2.0]))
    tensor([0.1192, 0.5000, 0.8808])
    >>> wg.grad(wg.expit)(0.0)
    0.25
    """
