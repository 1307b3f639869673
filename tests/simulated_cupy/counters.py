"""What the simulation counts: launches, synchronisations, and copies between host and device."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Counts:
    """How often what was asked of the devices, by what asked for it.

    Attributes
    ----------
    launches : Counter
        Work that is queued on a device: kernels, library calls, fills, and copies within devices.
    synchronisations : Counter
        The host waits for a device. A copy to the host is one too.
    copies : Counter
        Memory that goes from the host to a device or back.
    """

    launches: Counter[str] = field(default_factory=Counter)
    synchronisations: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)


_counting: list[Counts] = []


def launched(name: str, times: int = 1) -> None:
    for counts in _counting:
        counts.launches[name] += times


def synchronised(name: str) -> None:
    for counts in _counting:
        counts.synchronisations[name] += 1


def copied(name: str) -> None:
    for counts in _counting:
        counts.copies[name] += 1


@contextmanager
def counting() -> Iterator[Counts]:
    """Count what happens in the block, in all threads."""
    counts = Counts()
    _counting.append(counts)
    try:
        yield counts
    finally:
        _counting.remove(counts)
