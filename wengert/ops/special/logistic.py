"""The logistic function, its inverse and its logarithm, and products with logarithms."""

from functools import partial
from typing import Any

from wengert.backends import sigmoids
from wengert.ops.define import elementwise
from wengert.ops.domain import Domain
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.elementwise.sigmoid import expit
from wengert.ops.euclidean import without_slope
from wengert.tape.tensor import Tensor

__all__ = ["expit", "log_expit", "logit", "softplus", "xlogy"]


def _logit_composite(xp: Any, x: Any) -> Any:
    # Near 1/2, where both logarithms are almost equal, their difference is taken around 1/2:
    # there 2 x - 1 is exact.
    middle = xp.abs(x - 0.5) < 0.25
    offset = xp.where(middle, x * 2 - 1, 0)
    outside = xp.where(middle, 0.25, x)
    log1p = partial(sigmoids.log1p, xp) if is_complex(x) else xp.log1p
    return xp.where(middle, log1p(offset) - log1p(-offset), xp.log(outside) - log1p(-outside))


@elementwise(
    composite=_logit_composite,
    x=lambda xp, g, x: g * xp.conj(xp.reciprocal(x) + xp.reciprocal(1 - x)),
    domain=Domain(0, 1),
)
def logit(x: Any, /) -> Tensor:
    r"""Log-odds, :math:`\log(x / (1 - x))`, the inverse of `expit`.

    Real values outside :math:`[0, 1]` give nan, 0 gives -inf, and 1 gives inf. Derivative
    :math:`1 / (x (1 - x))`. SciPy: ``scipy.special.logit``.

    Examples
    --------
    >>> wg.logit(wg.asarray([0.1, 0.5, 0.9]))
    tensor([-2.1972,  0.0000,  2.1972])
    >>> wg.grad(wg.logit)(0.5)
    4.0
    """


def _softplus_composite(xp: Any, x: Any) -> Any:
    if is_complex(x):
        return sigmoids.softplus(xp, x)
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


@elementwise(
    composite=lambda xp, x: 0 - xp.softplus(-x),  # with no sign of zero
    x=lambda xp, g, x: g * xp.conj(xp.expit(-x)),
)
def log_expit(x: Any, /) -> Tensor:
    r"""Logarithm of the logistic sigmoid, :math:`\log \sigma(x) = -\log(1 + e^{-x})`.

    It is accurate also where :math:`\sigma` is rounded to 0 or 1, and the principal value of a
    complex logarithm. Derivative :math:`\sigma(-x)`. SciPy: ``scipy.special.log_expit``.

    Examples
    --------
    >>> wg.log_expit(wg.asarray([-1000.0, 0.0, 1000.0]))
    tensor([-1.0000e+03, -6.9315e-01,  0.0000e+00])
    >>> wg.grad(wg.log_expit)(0.0)
    0.5
    """


@elementwise(composite=_softplus_composite, x=lambda xp, g, x: g * xp.conj(xp.expit(x)))
def softplus(x: Any, /) -> Tensor:
    r"""Smooth rectifier, :math:`\log(1 + e^x)`, without overflow.

    It is the principal value of a complex logarithm. Derivative :math:`\sigma(x)`, the logistic
    sigmoid. SciPy: ``scipy.special.softplus``.

    Examples
    --------
    >>> wg.softplus(wg.asarray([-1.0, 0.0, 100.0]))
    tensor([  0.3133,   0.6931, 100.0000])
    >>> wg.grad(wg.softplus)(0.0)
    0.5
    """


def product_with(log: str, edge: int) -> dict[str, Any]:
    """The row of ``x`` times a logarithm of ``y - edge``, the function ``log`` of ``y``."""

    def composite(xp: Any, x: Any, y: Any) -> Any:
        nothing = (x == 0) & ~xp.isnan(y)
        return xp.multiply(x, getattr(xp, log)(xp.where(nothing, edge + 1, y)))

    def by_x(xp: Any, g: Any, x: Any, y: Any) -> Any:
        masked = (x == 0) & (y == edge if is_complex(y) else y <= edge)
        found = g * xp.conj(getattr(xp, log)(xp.where(masked, edge + 1, y)))
        return without_slope(xp, found, lambda: (masked & (y == edge), y))

    def by_y(xp: Any, g: Any, x: Any, y: Any) -> Any:
        both = (x == 0) & (y == edge)
        safe = xp.where(both, edge + 1, y)
        found = g * xp.conj(x / (safe - edge if edge else safe))
        return without_slope(xp, found, lambda: (both, x))  # 0 for all y where x is 0

    return {"composite": composite, "x": by_x, "y": by_y, "domain": {"y": Domain(edge)}}


@elementwise(**product_with("log", 0))
def xlogy(x: Any, y: Any, /) -> Tensor:
    r"""Product with a logarithm, :math:`x \log y`, which is 0 where ``x`` is 0 and ``y`` not nan.

    Derivatives :math:`\log y` and :math:`x / y`. At :math:`x = 0` the first is 0 for real
    :math:`y \le 0` (complex: :math:`y = 0`), and the second is 0 for :math:`y = 0`.
    SciPy: ``scipy.special.xlogy``.

    Examples
    --------
    >>> wg.xlogy(wg.asarray([0.0, 2.0]), wg.asarray([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    >>> wg.grad(wg.xlogy, argnums=(0, 1))(2.0, 1.0)
    (0.0, 2.0)
    """
