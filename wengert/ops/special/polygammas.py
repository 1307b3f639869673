"""Higher derivatives of the gamma function's logarithm, and the zeta function that they are."""

import math
from typing import Any

from wengert.backends.special import scipy
from wengert.ops.axes import number
from wengert.ops.define import operation
from wengert.ops.special.series import of_reals, polynomial
from wengert.tape.tensor import Tensor

__all__ = ["polygamma", "zeta"]


def _cotangent_derivative(n: int) -> list[float]:
    r"""The n-th derivative of :math:`\cot x` as a polynomial in it, the highest power first."""
    rising = [0.0, 1.0]
    for _ in range(n):
        slopes = [i * c for i, c in enumerate(rising)][1:]
        rising = [0.0] * (len(slopes) + 2)
        for i, c in enumerate(slopes):
            rising[i] -= c
            rising[i + 2] -= c
    return rising[::-1]


@of_reals("polygamma")
def _polygamma_composite(xp: Any, x: Any, *, n: int) -> Any:
    if n == 0:
        return xp.digamma(x)
    sign = (-1.0) ** (n + 1)
    factorial = math.gamma(n + 1) if n < 170 else math.inf
    left = x < 0
    size = xp.abs(x)
    finite = xp.where(xp.isinf(x), 0, x)
    off = finite - xp.round(finite)
    pole = (x <= 0) & (off == 0)
    right = xp.where(left, size + 1, xp.where(pole, 1, size))
    value = xp.zeta(xp.full_like(right, n + 1.0), right) * (sign * factorial)
    value = xp.where(xp.isinf(right), 0, value)  # where JAX's zeta is nan
    mirror = left & ~pole
    cotangent = xp.reciprocal(xp.tan(xp.where(mirror, off, 0.25) * math.pi))
    slope = polynomial(xp, cotangent, _cotangent_derivative(n))
    mirrored = value * (-1.0) ** n - slope * math.pi ** (n + 1)
    return xp.where(pole, sign * math.inf, xp.where(left, mirrored, value))


@operation(
    inputs=("x",),
    x=lambda xp, g, x, n: g * xp.polygamma(x, n=n + 1),
    elementwise=True,
    dtypes="real floating",
    composite=_polygamma_composite,
)
def polygamma(n: Any, x: Any) -> Tensor:
    r"""Polygamma function, the n-th derivative of `digamma`.

    At the poles 0, -1, -2, ... the value is inf for odd orders and -inf for even ones from 2 on.
    For positive ``x`` it is :math:`(-1)^{n+1} n! \zeta(n + 1, x)` with Hurwitz's `zeta`. Derivative
    with respect to ``x``: `polygamma` of order ``n + 1``. Source: M. Abramowitz and I. A. Stegun,
    "Handbook of Mathematical Functions", section 6.4. Real floating dtypes. Raises `ValueError` if
    an order is negative or no integer.
    SciPy: ``scipy.special.polygamma``.

    Examples
    --------
    >>> wg.special.polygamma(1, wg.asarray([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    n = number(n, "polygamma", "n")
    if n < 0 or int(n) != n:
        raise ValueError(f"polygamma takes orders 0, 1, 2, ..., and not {n!r}")
    return polygamma.run(x, n=int(n))


@of_reals("zeta")
def _zeta_composite(xp: Any, x: Any, q: Any) -> Any:
    """SciPy's, in host memory: all libraries but those for tests have their own."""
    found = scipy("special").zeta(*map(xp.backend.to_numpy, (x, q)))
    return xp.backend.from_numpy(found, xp.device(x))


@operation(
    inputs=("x", "q"),
    # The derivative by x is no elementary function: it is not implemented.
    q=lambda xp, g, x, q: g * -(x * xp.zeta(x + 1, q)),
    elementwise=True,
    dtypes="real floating",
    composite=_zeta_composite,
)
def zeta(x: Any, q: Any = None) -> Tensor:
    r"""Hurwitz's zeta function, :math:`\zeta(x, q) = \sum_{k=0}^\infty (k + q)^{-x}`.

    It is inf for ``x`` = 1, and nan for less. Zero and the negative integers as ``q`` give inf;
    what other negative numbers give is the library's. Derivative with respect to ``q``: :math:`-x
    \zeta(x + 1, q)`. That with respect to ``x`` is not implemented, as in PyTorch. Without
    ``q`` it is Riemann's function. SciPy: ``scipy.special.zeta``.

    Examples
    --------
    >>> wg.special.zeta(wg.asarray([2.0, 4.0]), 1.0)  # pi^2 / 6, pi^4 / 90
    tensor([1.6449, 1.0823])
    >>> round(wg.grad(wg.special.zeta, argnums=1)(2.0, 1.0), 4)
    -2.4041
    """
    return zeta.run(x, 1.0 if q is None else q)
