"""Polynomials, fractions and precision: shared by the composites of special functions."""

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any

from wengert.backends import dtype_of

#: Bernoulli's numbers B2, B4, ..., B20.
BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330,
)  # fmt: skip


def polynomial(xp: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """A polynomial in ``x`` by Horner's scheme, the coefficient of the highest power first."""
    return reduce(lambda value, coefficient: value * x + coefficient, coefficients)


def rational(xp: Any, x: Any, fraction: tuple[Sequence[float], Sequence[float]]) -> Any:
    """A quotient of two polynomials."""
    numerator, denominator = fraction
    return polynomial(xp, x, numerator) / polynomial(xp, x, denominator)


def of_reals(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a composite check its arrays' dtype, and compute in single precision at least."""

    def decorate(composite: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(composite)
        def check(xp: Any, *arrays: Any, **parameters: Any) -> Any:
            raw = xp.result_type(*arrays)
            dtype = dtype_of(raw)
            if dtype.complex:
                raise TypeError(f"{xp.backend.name} has no {name} of complex numbers")
            if not dtype.inexact:
                raise TypeError(f"{name} takes floating Tensors, not {dtype.name}")
            enough = xp.float32 if dtype.narrow else raw
            wide = [xp.astype(x, enough, copy=False) for x in arrays]
            return xp.astype(composite(xp, *wide, **parameters), raw, copy=False)

        return check

    return decorate
