"""What the comparison before each collective costs.

``mpiexec -n 2 python -m benchmarks.collectives`` measures it.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
import wengert.distributed as wd
from wengert.distributed import carriers

#: Bytes of the arrays, and calls that are timed together.
SIZES = {8: 400, 8_000: 400, 8_000_000: 20}
ROUNDS = 9


def microseconds(call: Callable[[], Any], times: int) -> list[float]:
    """The time of a call in each round, sorted."""
    found = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        found.append((time.perf_counter() - begin) / times * 1e6)
    return sorted(found)


def main() -> None:
    """Print the times of sums over the processes, with and without the comparison."""
    wd.init()
    compared = carriers.differences
    for size, times in SIZES.items():
        x = wg.asarray(np.ones(size // 8))
        for name, comparison in (("with", compared), ("without", lambda *given: "")):
            carriers.differences = comparison
            found = microseconds(lambda: wd.all_reduce(x), times)  # noqa: B023
            if wd.rank == 0:
                span = f"({found[0]:.1f} – {found[-1]:.1f})"
                print(f"{size:9} bytes, {name:7}: {found[ROUNDS // 2]:8.1f} µs {span}")
    carriers.differences = compared


if __name__ == "__main__":
    main()
