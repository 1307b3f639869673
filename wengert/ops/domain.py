"""The domains of smoothness in primitives' rows, which tests and the documentation read."""

import math
from collections.abc import Callable
from typing import Any


class Domain:
    """An open interval without some points, in which a function has all derivatives.

    ``without`` has the points where a derivative does not exist: kinks, jumps and poles. They recur
    at the distance ``period``, in both directions; where it is negative, towards smaller numbers
    alone. ``plane`` says whether the function is smooth in the complex plane too, but at these.
    """

    __slots__ = ("high", "low", "period", "plane", "without")

    def __init__(
        self,
        low: float = -math.inf,
        high: float = math.inf,
        *,
        without: tuple[float, ...] = (),
        period: float | None = None,
        plane: bool = False,
    ) -> None:
        self.low, self.high, self.without, self.period = low, high, without, period
        self.plane = plane

    def __repr__(self) -> str:
        """As text: ``(0, inf)``, ``all but 0``, ``all but 1.571 ± 3.142 k``."""
        bounded = math.isfinite(self.low) or math.isfinite(self.high)
        text = f"({self.low:g}, {self.high:g})" if bounded else "all"
        if self.without:
            text += f" but {', '.join(f'{point:.4g}' for point in self.without)}"
        if self.period is not None:
            text += f" {'-' if self.period < 0 else '±'} {abs(self.period):.4g} k"
        return text


class Joint:
    """Where a function of several inputs together has all derivatives.

    Parameters
    ----------
    distance : callable
        Takes a NumPy array for each input, and gives the distance from the next singular point.
    text : str
        What the documentation shows.
    """

    __slots__ = ("distance", "text")

    def __init__(self, distance: Callable[..., Any], text: str) -> None:
        self.distance, self.text = distance, text

    def __repr__(self) -> str:
        return self.text


EVERYWHERE = Domain()
ENTIRE = Domain(plane=True)
POSITIVE = Domain(0)
NOT_ZERO = Domain(without=(0,), plane=True)
