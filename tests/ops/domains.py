"""How far numbers are from where rows say that functions are not smooth."""

import math
from typing import Any

import numpy as np

from wengert.ops.domain import Domain, Joint

#: Recurrences of a point that are listed on each side.
_MANY = 100


def distance(domain: Domain | Joint, x: Any, *more: Any) -> Any:
    """How far NumPy's numbers are from an end or a point left out; negative beyond an end.

    Of a joint domain there is a number for each input. Complex ones are beyond an end where the
    function is not smooth in the plane.
    """
    if isinstance(domain, Joint):
        return domain.distance(x, *more)
    if np.iscomplexobj(x):
        found = np.full(np.shape(x), math.inf if domain.plane else -math.inf)
    else:
        found = np.minimum(np.subtract(x, domain.low), np.subtract(domain.high, x))
    for point in domain.without:
        off = np.subtract(x, point)
        if domain.period is not None:
            times = np.round(off / domain.period)
            off = off - domain.period * (np.maximum(times, 0) if domain.period < 0 else times)
        found = np.minimum(found, abs(off))
    return found


def points(domain: Domain, low: float, high: float) -> list[float]:
    """The excluded points and the ends from ``low`` to ``high``."""
    found = {domain.low, domain.high, *domain.without}
    if domain.period is not None:
        reach = range(0 if domain.period < 0 else -_MANY, _MANY + 1)
        found |= {point + k * domain.period for point in domain.without for k in reach}
    return sorted(point for point in found if low <= point <= high)
