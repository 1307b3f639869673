"""Tables that are looked up, with places that come more than once."""

from typing import Any

import numpy as np

from benchmarks.workloads.workload import Array, Workload

__all__ = ["items", "table"]


def _drawn(rows: int, wide: int, number: int) -> tuple[Array, Array, Array]:
    """A table, the rows that are looked up, and a weight for each element of these."""
    random = np.random.default_rng(0)
    table = random.standard_normal((rows, wide))
    return table, random.integers(0, rows, number), random.standard_normal((number, wide))


def table(rows: int, wide: int, number: int) -> Workload:
    """``take`` of rows, as of an embedding."""
    x, places, weights = _drawn(rows, wide, number)

    def program(xp: Any) -> Any:
        indices, factors = xp.asarray(places), xp.asarray(weights)

        def loss(x: Any) -> Any:
            return xp.sum(xp.take(x, indices, axis=0) ** 2 * factors)

        return loss

    return Workload(program, (x,), _by_hand(places, weights))


def items(rows: int, number: int) -> Workload:
    """``x[idx]`` of a vector."""
    x, places, weights = _drawn(rows, 1, number)

    def program(xp: Any) -> Any:
        indices, factors = xp.asarray(places), xp.asarray(weights[:, 0])

        def loss(x: Any) -> Any:
            return xp.sum(x[indices] ** 2 * factors)

        return loss

    return Workload(program, (x[:, 0],), _by_hand(places, weights[:, 0]))


def _by_hand(places: Array, weights: Array) -> Any:
    # The rows of equal places follow each other, so that one call sums them.
    order = np.argsort(places, kind="stable")
    kept, starts = np.unique(places[order], return_index=True)

    def by_hand(x: Array) -> Any:
        taken = x[places]
        scaled = taken * weights
        value = np.vdot(taken, scaled)
        scaled *= 2
        out = np.zeros_like(x)
        if x.ndim == 1:
            return value, (np.bincount(places, scaled, len(x)),)
        out[kept] = np.add.reduceat(scaled[order], starts, axis=0)
        return value, (out,)

    return by_hand
