"""Where the elements of pooled windows are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Options", "Places", "adaptive_places", "pooled_places", "regular_places"]


class Places(NamedTuple):
    """Where the windows' elements are along one axis.

    Windows begin at ``first``, have up to ``length`` elements that are ``step`` apart, and places
    outside ``low`` and ``high``, of which each has its own, are replaced by these.
    """

    first: Any
    step: int
    length: int
    low: Any
    high: Any

    def table(self) -> Any:
        """The places of each window, as rows."""
        rows = self.first[:, None] + self.step * np.arange(self.length)
        return np.clip(rows, self.low[:, None], self.high[:, None])

    def counts(self) -> Any:
        """How many elements each window has."""
        return (self.high - self.low) // self.step + 1


def regular_places(n: int, count: int, k: int, s: int, p: int, d: int) -> Places:
    """The places of ``count`` windows of an axis of length ``n`` with a margin of ``p``."""
    first = np.arange(count) * s - p
    low = first + d * np.maximum(0, -(first // d))
    high = first + d * np.minimum(k - 1, (n - 1 - first) // d)
    return Places(first, d, k, low, high)


def adaptive_places(n: int, count: int) -> Places:
    """The places of ``count`` windows that cover an axis of length ``n``."""
    at = np.arange(count)
    first, end = at * n // count, -(-(at + 1) * n // count)
    return Places(first, 1, int((end - first).max()), first, end - 1)


#: Lengths, strides, margins and dilations of windows.
Options = tuple[tuple[int, ...], ...]


def pooled_places(lengths: Sequence[int], counts: Sequence[int], options: Options) -> list[Places]:
    """The places of windows along each axis."""
    return [regular_places(*axis) for axis in zip(lengths, counts, *options, strict=True)]
