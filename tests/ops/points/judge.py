"""How far from its value at high precision a result may be."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from tests.ops.points.jets import Jet


@dataclass
class Row:
    """A function of one argument: what computes it, what it is, and where it is looked at.

    ``exact`` is the function on jets. Real arguments lie strictly between ``low`` and ``high``,
    and ``singular`` are the points between them where there is no derivative.
    """

    name: str
    function: Callable[[Any], Any]
    exact: Callable[[Jet], Jet]
    low: float = -math.inf
    high: float = math.inf
    singular: Sequence[float] = ()
    #: Points beside those at which every function is looked at.
    more: Sequence[float] = ()
    #: Rounding errors that are allowed, of the value and the derivatives.
    units: Sequence[float] = (8, 16, 32, 64)
    #: How many bits more cancellation needs for each binary digit of a small or a large argument.
    small: int = 4
    large: int = 0
    #: A known larger error: why, at which points, and how many rounding errors it may be there
    #: (with inf, any number).
    known: tuple[str, Callable[[float], bool], float] | None = None
    #: Whether a derivative that overflows may be nan, as a difference of infinities.
    overflows: bool = False
    #: Where a complex function has branch cuts; None for a function of real numbers alone.
    cut: Callable[[complex], bool] | None = None
    #: The points themselves, where every function's are not wanted.
    at: Sequence[Any] | None = None
    #: Rounding errors of numbers of size 1, which cancel, that are allowed beside.
    floor: float = 0
    #: How many derivatives are judged.
    orders: int = 3


_KNOWN: dict[tuple[str, type, complex | float], list[Any]] = {}


def derivatives(row: Row, x: complex | float) -> list[Any]:
    """The function's value and derivatives at ``x``, and one more than is judged."""
    key = (row.name, type(x), x)
    if key not in _KNOWN:
        _KNOWN[key] = _derivatives(row, x)
    return _KNOWN[key]


def _derivatives(row: Row, x: complex | float) -> list[Any]:
    size = abs(float(abs(x)))
    log = math.log2(size) if size else 0.0
    with mpmath.workprec(260 + int(max(row.large * log, -row.small * log, 0))):
        return row.exact(Jet.variable(x)).derivatives


def shown(found: Any, want: Any) -> str:
    return f"{found} instead of {mpmath.nstr(want, 17)}"


def fault(row: Row, found: Any, exact: list[Any], x: Any, order: int, dtype: str) -> str | None:
    """What is wrong with a result, or None.

    It may differ by some rounding errors of its own, and by what a rounding error in the argument
    makes of it: ``units * eps * (abs(y) + abs(x * y'))``. Numbers below the smallest normal one
    may be flushed to zero.
    """
    info = np.finfo(dtype)
    largest, tiny, eps = (mpmath.mpf(float(v)) for v in (info.max, info.tiny, info.eps))
    want, after = exact[order], exact[order + 1]
    units = row.units[order]
    if row.known is not None and row.known[1](x):
        units = max(units, row.known[2])
    allowed = (
        min(units, 1e300) * eps * (abs(want) + abs(mpmath.mpmathify(x)) * abs(after))
        + 4 * tiny
        + row.floor * eps
    )
    if found != found:
        return None if row.overflows and abs(want) > largest else shown(found, want)
    if units == math.inf:
        return None
    if abs(want) > largest or not np.isfinite(found):
        # An infinity for what overflows, and nothing else; near the largest number, either.
        reaches = abs(want) + allowed >= largest * (1 - 8 * eps)
        huge = not np.isfinite(found) or abs(mpmath.mpmathify(found)) + allowed >= largest
        sign = isinstance(want, mpmath.mpc) or (found > 0) == (want > 0)
        return None if reaches and huge and sign else shown(found, want)
    error = abs(mpmath.mpmathify(found) - want)
    if error <= allowed:
        return None
    return f"{shown(found, want)}: {mpmath.nstr(units * error / allowed, 3)} units"
