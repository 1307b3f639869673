"""Interleaved timing: rounds of short blocks, and ratios taken within a round."""

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter, process_time

__all__ = ["Ratio", "Times", "Work", "interleave", "repeated"]

#: Runs a number of units of work, and waits until they are done.
Work = Callable[[int], None]


@dataclass(frozen=True)
class Ratio:
    """How much longer one contestant took than another: median and quartiles over the rounds."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Times:
    """Seconds a unit of work, for each contestant in each round."""

    rounds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return statistics.median(self.rounds[name])

    def ratio(self, name: str, peer: str) -> Ratio:
        """How ``name`` compares with ``peer``, round by round."""
        ratios = [a / b for a, b in zip(self.rounds[name], self.rounds[peer], strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4)
        return Ratio(low, median, high)


def repeated(compute: Callable[[], object]) -> Work:
    """Work whose unit is one call."""

    def work(units: int) -> None:
        for _ in range(units):
            compute()

    return work


def interleave(
    contestants: Mapping[str, Work], *, rounds: int, block: float, wall: bool = False
) -> Times:
    """Time every contestant in turns.

    Parameters
    ----------
    contestants : mapping of str to callable
        Each takes a number of units of work.
    rounds : int
        How often each is timed.
    block : float
        Seconds that one contestant works in one round, about.
    wall : bool
        Whether to measure by the wall's clock, as for work on a GPU. Otherwise the process's own
        time on the core counts, with all its threads: it does not see other processes.
    """
    clock = perf_counter if wall else process_time
    sizes = {name: _units(work, block, clock) for name, work in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    # What the libraries hold since their import is none of a contestant's garbage.
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name in order:
            work, units = contestants[name], sizes[name]
            # Its code and data come back into the caches, which one small step does not do.
            work(max(1, units // 4))
            start = clock()
            work(units)
            times[name].append((clock() - start) / units)
        order.append(order.pop(0))
    gc.unfreeze()
    return Times(times)


def _units(work: Work, block: float, clock: Callable[[], float]) -> int:
    """How many units take ``block`` seconds."""
    units = 1
    work(1)
    while True:
        start = clock()
        work(units)
        taken = clock() - start
        if taken > block / 4:
            return max(1, round(units * block / taken))
        units *= 4
