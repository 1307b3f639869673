"""The normal distribution, and the inverses and the scaled form of the error function."""

import math
from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.domain import Domain
from wengert.ops.special.error import (
    BORDER,
    HALF,
    exponential_of_square,
    gaussian,
    ndtr,
    near,
    scaled_tail,
)
from wengert.ops.special.series import of_reals, rational
from wengert.tape.tensor import Tensor

__all__ = ["erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

# Rational approximations of the normal quantile by M. J. Wichura, Algorithm AS 241, Applied
# Statistics 37 (1988) 477-484: numerator and denominator, highest power first. Relative errors
# stay below 1e-15.
#: The quantile over q = p - 1/2 in 0.425**2 - q**2.
_CENTRE = (
    (
        2.50908092873012266727e3, 3.34305755835881281051e4, 6.72657709270087008534e4,
        4.59219539315498714570e4, 1.37316937655094611250e4, 1.97159095030655144268e3,
        1.33141667891784377448e2, 3.38713287279636660805e0,
    ),
    (
        5.22649527885285456106e3, 2.87290857357219426744e4, 3.93078958000927106102e4,
        2.12137943015865958673e4, 5.39419602142475110768e3, 6.87187007492057908296e2,
        4.23133307016009112516e1, 1.0,
    ),
)  # fmt: skip
#: The quantile in r - 1.6, where r**2 is minus the logarithm of the tail, for r up to 5.
_SIDE = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
        1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
        4.63033784615654529590e0, 1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
        1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
        2.05319162663775882187e0, 1.0,
    ),
)  # fmt: skip
#: The quantile in r - 5 beyond.
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
        5.46378491116411436990e0, 6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
        7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922737805310e-1,
        5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip


def _quantile(xp: Any, q: Any, tail: Any) -> Any:
    """The normal quantile of ``1/2 + q``; ``tail`` is ``1/2 - abs(q)``, with its own digits."""
    close = xp.abs(q) <= 0.425
    inside = xp.where(close, q, 0)
    centre = inside * rational(xp, 0.180625 - xp.square(inside), _CENTRE)
    there = ~close & (tail > 0)
    depth = xp.sqrt(-xp.log(xp.where(there, tail, 0.075)))
    side = rational(xp, xp.minimum(depth, 5.0) - 1.6, _SIDE)
    far = rational(xp, xp.maximum(depth, 5.0) - 5.0, _FAR)
    outer = xp.where(depth <= 5.0, side, far)
    outer = xp.where(tail == 0, math.inf, outer)
    outer = xp.where(tail < 0, math.nan, outer)
    outer = xp.where(q < 0, -outer, outer)
    return xp.where(xp.isnan(q), q, xp.where(close, centre, outer))


# -- inverses of the error functions -------------------------------------------------------------


@elementwise(
    dtypes="real floating",
    composite=of_reals("erfinv")(
        lambda xp, x: _quantile(xp, x * 0.5, (1 - xp.abs(x)) * 0.5) * HALF
    ),
    x=lambda xp, g, out: gaussian(xp, g, out, math.sqrt(math.pi) / 2, 1.0),
    domain=Domain(-1, 1),
)
def erfinv(x: Any, /) -> Tensor:
    r"""Inverse of `erf`.

    -1 gives -inf, 1 gives inf, and values outside :math:`[-1, 1]` give nan. Derivative
    :math:`\frac{\sqrt\pi}{2} e^{y^2}` with the result :math:`y`. Source: M. J. Wichura, "Algorithm
    AS 241: The percentage points of the normal distribution", Applied Statistics 37 (1988). Real
    floating dtypes. SciPy: ``scipy.special.erfinv``.

    Examples
    --------
    >>> wg.special.erfinv(wg.asarray([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    >>> round(wg.grad(wg.special.erfinv)(0.0), 4)  # sqrt(pi) / 2
    0.8862
    """


@elementwise(
    dtypes="real floating",
    composite=of_reals("erfcinv")(
        lambda xp, x: _quantile(xp, (1 - x) * 0.5, xp.minimum(x, 2 - x) * 0.5) * HALF
    ),
    x=lambda xp, g, out: gaussian(xp, g, out, -math.sqrt(math.pi) / 2, 1.0),
    domain=Domain(0, 2),
)
def erfcinv(x: Any, /) -> Tensor:
    r"""Inverse of `erfc`, accurate for small ``x``.

    0 gives inf, 2 gives -inf, and values outside :math:`[0, 2]` give nan. Derivative
    :math:`-\frac{\sqrt\pi}{2} e^{y^2}` with the result :math:`y`. Source: as `erfinv`. Real
    floating dtypes. SciPy: ``scipy.special.erfcinv``.

    Examples
    --------
    >>> wg.special.erfcinv(wg.asarray([0.5, 1.5]))
    tensor([ 0.4769, -0.4769])
    """


@of_reals("erfcx")
def _erfcx_composite(xp: Any, x: Any) -> Any:
    y = xp.abs(x)
    scaled = scaled_tail(xp, xp.maximum(y, BORDER))
    left = x < 0
    grown = exponential_of_square(xp, xp.where(left, xp.minimum(y, 30.0), 0), 1)
    far = xp.where(left, grown * 2 - scaled, scaled)
    inside = xp.where(y < BORDER, x, 0)
    centre = xp.exp(xp.square(inside)) * (1 - near(xp, inside))
    return xp.where(y < BORDER, centre, far)


@elementwise(
    dtypes="real floating",
    composite=_erfcx_composite,
    x=lambda xp, g, x: g * xp.erfcx_slope(x, n=1),
)
def erfcx(x: Any, /) -> Tensor:
    r"""Scaled complementary error function, :math:`e^{x^2} \operatorname{erfc} x`.

    For large ``x`` it is about :math:`1 / (x \sqrt\pi)`. Derivative
    :math:`2 x \operatorname{erfcx} x - 2 / \sqrt\pi`, computed as an integral or a continued
    fraction where that difference has no digits. Source: as `erf`. Real floating dtypes.
    SciPy: ``scipy.special.erfcx``.

    Examples
    --------
    >>> wg.special.erfcx(wg.asarray([0.0, 1.0, 1000.0]))
    tensor([1.0000e+00, 4.2758e-01, 5.6419e-04])
    """


# -- the normal distribution ---------------------------------------------------------------------


@of_reals("log_ndtr")
def _log_ndtr_composite(xp: Any, x: Any) -> Any:
    left = x < -1
    low, high = xp.where(left, x, -1), xp.where(left, -1, x)
    scaled = xp.erfcx(low * -HALF)
    # -x**2 / 2 of an infinity is one, and the logarithm of 0 as well.
    safe = xp.where(xp.isinf(low), 1, scaled)
    tail = xp.log(safe * 0.5) - xp.square(low) * 0.5
    rest = xp.erfc(high * HALF) * -0.5
    return xp.where(left, tail, xp.log1p(rest))


@elementwise(
    dtypes="real floating",
    composite=_log_ndtr_composite,
    x=lambda xp, g, x: g * xp.log_ndtr_slope(x, n=1),
)
def log_ndtr(x: Any, /) -> Tensor:
    r"""Logarithm of the normal distribution function, :math:`\log \Phi(x)`, without underflow.

    Derivative :math:`\phi(x) / \Phi(x)`. It and the higher ones are cumulants of a truncated normal
    distribution for negative ``x``, where nothing cancels, over- or underflows. Real floating
    dtypes. SciPy: ``scipy.special.log_ndtr``.

    Examples
    --------
    >>> wg.special.log_ndtr(wg.asarray([0.0, -40.0]))
    tensor([-6.9315e-01, -8.0461e+02])
    """


@elementwise(
    dtypes="real floating",
    composite=of_reals("ndtri")(lambda xp, x: _quantile(xp, x - 0.5, xp.minimum(x, 1 - x))),
    x=lambda xp, g, out: gaussian(xp, g, out, math.sqrt(2 * math.pi), 0.5),
    domain=Domain(0, 1),
)
def ndtri(x: Any, /) -> Tensor:
    r"""Quantile of the normal distribution, the inverse of `ndtr`.

    0 gives -inf, 1 gives inf, and values outside :math:`[0, 1]` give nan. Derivative
    :math:`\sqrt{2 \pi} e^{y^2/2}` with the result :math:`y`. Source: as `erfinv`. Real floating
    dtypes. SciPy: ``scipy.special.ndtri``.

    Examples
    --------
    >>> wg.special.ndtri(wg.asarray([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """
