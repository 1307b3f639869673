"""Entropies and divergences, and products with logarithms beside `xlogy`."""

import math
from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.domain import POSITIVE
from wengert.ops.euclidean import without_slope
from wengert.ops.special.logistic import product_with
from wengert.ops.special.series import of_reals, polynomial
from wengert.tape.tensor import Tensor

__all__ = ["entr", "kl_div", "rel_entr", "xlog1py"]

#: (artanh(t) - t) / t**3 in t**2, which is up to 1/9.
_ARTANH = [1 / (2 * j + 3) for j in reversed(range(17))]


@elementwise(**product_with("log1p", -1))
def xlog1py(x: Any, y: Any, /) -> Tensor:
    r"""Product with a logarithm, :math:`x \log(1 + y)`: 0 where ``x`` is 0 and ``y`` is not nan.

    Derivatives :math:`\log(1 + y)` and :math:`x / (1 + y)`. At :math:`x = 0` the first is 0 for
    real :math:`y \le -1` (complex: :math:`y = -1`), and the second is 0 for :math:`y = -1`.
    SciPy: ``scipy.special.xlog1py``.

    Examples
    --------
    >>> wg.special.xlog1py(wg.asarray([0.0, 2.0]), wg.asarray([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """


@of_reals("entr")
def _entr_composite(xp: Any, x: Any) -> Any:
    value = -(x * xp.log(xp.where(x > 0, x, 1)))
    value = xp.where(x < 0, -math.inf, value)
    return xp.where(xp.isnan(x), math.nan, value)


@elementwise(
    dtypes="real floating",
    composite=_entr_composite,
    x=lambda xp, g, x: g * (-1 - xp.log(x)),
    domain=POSITIVE,
)
def entr(x: Any, /) -> Tensor:
    r"""Entropy's summand, :math:`-x \log x`.

    The value is 0 at 0, and -inf below. Derivative :math:`-1 - \log x`: inf at 0 and nan below, as
    in PyTorch. Real floating dtypes. SciPy: ``scipy.special.entr``.

    Examples
    --------
    >>> wg.special.entr(wg.asarray([0.0, 0.5, 0.9]))
    tensor([0.0000, 0.3466, 0.0948])
    >>> wg.grad(wg.special.entr)(1.0)
    -1.0
    """


def _log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """``log(x / y)`` of positive numbers; nan elsewhere, except that the logarithm of 0 is -inf."""
    inside = (x >= 0) & (y > 0)
    above = xp.where(inside, x, math.nan)
    below = xp.where(inside, y, 1)
    # Near 1 the quotient's rounding would be all of the logarithm; far from it, it may overflow.
    twice, half = below * 2, below * 0.5
    near = (above < twice) & (above > half)
    off = xp.where(near, above - below, 0) / below
    logs = xp.log(xp.where(near, 1, above)) - xp.log(xp.where(near, 1, below))
    between = xp.abs(logs) < 0.9 * math.log(xp.finfo(above.dtype).max)
    between = between & ~near
    quotient = xp.where(between, above, 1) / xp.where(between, below, 1)
    far = xp.where(between, xp.log(quotient), logs)
    return xp.where(near, xp.log1p(off), far)


def _relative(xp: Any, x: Any, y: Any) -> Any:
    """``x * log(x / y)``; outside its domain SciPy's values: 0 at 0, and inf elsewhere."""
    positive = (x > 0) & (y > 0)
    some, other = xp.where(positive, x, 1), xp.where(positive, y, 1)
    value = some * _log_ratio(xp, some, other)
    zero = (x == 0) & (y >= 0)
    value = xp.where(positive, value, xp.where(zero, xp.zeros_like(value), math.inf))
    return xp.where(xp.isnan(x) | xp.isnan(y), math.nan, value)


def _along_ratio(xp: Any, g: Any, x: Any, y: Any) -> Any:
    """``g x / y`` where `rel_entr` is finite: 0 where both are, and nan outside its domain."""
    inside = (x >= 0) & (y >= 0)
    both = (x == 0) & (y == 0)
    ratio = xp.where(inside, x, math.nan) / xp.where(both, 1, y)
    return without_slope(xp, g * ratio, lambda: (both, x + y))


def _along_logarithm(xp: Any, g: Any, x: Any, y: Any, *, more: int) -> Any:
    """``g (log(x / y) + more)``, and 0 where both are 0."""
    both = (x == 0) & (y == 0)
    ratio = _log_ratio(xp, xp.where(both, 1, x), xp.where(both, math.e if more else 1, y))
    found = g * (ratio + more if more else ratio)
    return without_slope(xp, found, lambda: (both, x + y))


@elementwise(
    dtypes="real floating",
    composite=of_reals("rel_entr")(_relative),
    x=lambda xp, g, x, y: _along_logarithm(xp, g, x, y, more=1),
    y=lambda xp, g, x, y: -_along_ratio(xp, g, x, y),
    domain={"x": POSITIVE, "y": POSITIVE},
)
def rel_entr(x: Any, y: Any, /) -> Tensor:
    r"""Relative entropy's summand, :math:`x \log(x / y)`.

    The value is 0 for ``x = 0`` and ``y >= 0``, and inf where ``x`` or ``y`` is negative, or ``y``
    alone is 0. Derivatives :math:`\log(x / y) + 1`, which is -inf for :math:`x = 0 < y`, and
    :math:`-x / y`; both 0 where both arguments are, and nan outside the domain. Real floating
    dtypes. SciPy: ``scipy.special.rel_entr``.

    Examples
    --------
    >>> p, q = wg.asarray([0.5, 0.5]), wg.asarray([0.25, 0.75])
    >>> wg.special.rel_entr(p, q).sum()  # the Kullback–Leibler divergence
    tensor(0.1438)
    """


@of_reals("kl_div")
def _kl_div_composite(xp: Any, x: Any, y: Any) -> Any:
    value = _relative(xp, x, y)
    finite = xp.isfinite(value)
    value = xp.where(finite, xp.where(finite, value, 0) - x + y, xp.abs(value))
    # Near x = y the three terms cancel. With t = (y - x) / (y + x), log(y / x) is 2 artanh(t), and
    # what remains of x (y / x - 1 - log(y / x)) are powers from the second on.
    safe = xp.where(x > 0, x, 1)
    more = xp.where(x > 0, y, 1) - safe
    near = (x > 0) & (xp.abs(more) < safe * 0.5)
    off = xp.where(near, more, 0) / safe
    t = off / (off + 2)
    square = xp.square(t)
    series = polynomial(xp, square, _ARTANH) * t
    close = xp.reciprocal(1 - t) - series
    return xp.where(near, close * (square * 2) * safe, value)


@elementwise(
    dtypes="real floating",
    composite=_kl_div_composite,
    x=lambda xp, g, x, y: _along_logarithm(xp, g, x, y, more=0),
    y=lambda xp, g, x, y: g - _along_ratio(xp, g, x, y),
    domain={"x": POSITIVE, "y": POSITIVE},
)
def kl_div(x: Any, y: Any, /) -> Tensor:
    r"""Kullback-Leibler divergence's summand, :math:`x \log(x / y) - x + y`.

    The value is ``y`` for ``x = 0`` and ``y >= 0``, and inf where ``x`` or ``y`` is negative, or
    ``y`` alone is 0. Derivatives :math:`\log(x / y)`, which is -inf for :math:`x = 0 < y`, and
    :math:`1 - x / y`; 0 and 1 where both arguments are 0, and nan outside the domain. Real floating
    dtypes. SciPy: ``scipy.special.kl_div``.

    Examples
    --------
    >>> wg.special.kl_div(wg.asarray([0.5, 0.0]), wg.asarray([0.25, 1.0]))
    tensor([0.0966, 1.0000])
    """
