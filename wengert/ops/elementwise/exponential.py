"""Exponentials and logarithms."""

import math
from typing import Any

from wengert.ops.define import elementwise
from wengert.ops.domain import ENTIRE, POSITIVE, Domain
from wengert.ops.euclidean import without_slope
from wengert.tape.tensor import Tensor

__all__ = ["exp", "expm1", "log", "log1p", "log2", "log10", "logaddexp"]

LOG2 = math.log(2)
LOG10 = math.log(10)


@elementwise(x=lambda xp, g, out: g * xp.conj(out), domain=ENTIRE)
def exp(x: Any, /) -> Tensor:
    """Exponential, :math:`e^x`.

    Derivative :math:`e^x`. Array API standard.

    Examples
    --------
    >>> wg.exp(wg.asarray([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    >>> wg.grad(wg.exp)(0.0)
    1.0
    """


# exp(x), and not out + 1, which has lost its digits where x is very negative.
@elementwise(x=lambda xp, g, x: g * xp.conj(xp.exp(x)), domain=ENTIRE)
def expm1(x: Any, /) -> Tensor:
    """Exponential less one, :math:`e^x - 1`, accurate for small ``x``.

    Derivative :math:`e^x`. Array API standard.

    Examples
    --------
    >>> wg.expm1(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    >>> wg.expm1(wg.asarray(1e-10, dtype=wg.float64)).item()  # exp(x) - 1 has 8 digits here
    1.00000000005e-10
    """


@elementwise(x=lambda xp, g, x: g / xp.conj(x), domain=POSITIVE)
def log(x: Any, /) -> Tensor:
    r"""Natural logarithm, :math:`\log x`; the principal branch for complex ``x``.

    Negative real values give nan, and 0 gives -inf. Derivative :math:`1 / x`. Array API standard.

    Examples
    --------
    >>> wg.log(wg.asarray([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    >>> wg.grad(wg.log)(2.0)
    0.5
    """


@elementwise(x=lambda xp, g, x: g / xp.conj(x + 1), domain=Domain(-1))
def log1p(x: Any, /) -> Tensor:
    r"""Logarithm of one more, :math:`\log(1 + x)`, accurate for small ``x``.

    Real values below -1 give nan, and -1 gives -inf. Derivative :math:`1 / (1 + x)`.
    Array API standard.

    Examples
    --------
    >>> wg.log1p(wg.asarray([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    >>> wg.grad(wg.log1p)(1.0)
    0.5
    """


@elementwise(x=lambda xp, g, x: g / (xp.conj(x) * LOG2), domain=POSITIVE)
def log2(x: Any, /) -> Tensor:
    r"""Logarithm to base 2, :math:`\log_2 x`.

    Negative real values give nan, and 0 gives -inf. Derivative :math:`1 / (x \log 2)`.
    Array API standard.

    Examples
    --------
    >>> wg.log2(wg.asarray([1.0, 8.0]))
    tensor([0., 3.])
    >>> round(wg.grad(wg.log2)(1.0), 4)
    1.4427
    """


@elementwise(x=lambda xp, g, x: g / (xp.conj(x) * LOG10), domain=POSITIVE)
def log10(x: Any, /) -> Tensor:
    r"""Logarithm to base 10, :math:`\log_{10} x`.

    Negative real values give nan, and 0 gives -inf. Derivative :math:`1 / (x \log 10)`.
    Array API standard.

    Examples
    --------
    >>> wg.log10(wg.asarray([2.0, 50.0]))
    tensor([0.3010, 1.6990])
    >>> round(wg.grad(wg.log10)(1.0), 4)
    0.4343
    """


def _share(xp: Any, g: Any, x1: Any, x2: Any) -> Any:
    """``g`` times the share of ``x1`` in the sum of the exponentials, without overflow."""
    same = (x1 == x2) & xp.isinf(x1)
    excess = xp.where(same, 0, x1) - xp.where(same, 0, x2)
    found = g * xp.expit(excess)
    return without_slope(xp, found, lambda: (same & (g != 0), x1 + x2))


@elementwise(
    dtypes="real floating", weak=False, x1=_share, x2=lambda xp, g, x1, x2: _share(xp, g, x2, x1)
)
def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    r"""Logarithm of a sum of exponentials, :math:`\log(e^{x_1} + e^{x_2})`, without overflow.

    Derivatives :math:`1 / (1 + e^{x_2 - x_1})` and :math:`1 / (1 + e^{x_1 - x_2})`, each 1/2 where
    both operands are the same infinity. Real floating dtypes. Array API standard.

    Examples
    --------
    >>> wg.logaddexp(wg.asarray([0.0, 1000.0]), wg.asarray([0.0, 1000.0]))  # log(e^x + e^y)
    tensor([6.9315e-01, 1.0007e+03])
    >>> wg.grad(wg.logaddexp, argnums=(0, 1))(0.0, 0.0)
    (0.5, 0.5)
    """
