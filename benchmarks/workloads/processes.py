"""What a process pays once: the first calls of compiled functions, and memory at its peak."""

import json
import statistics
import subprocess
import sys
from time import process_time

from benchmarks import costs
from benchmarks.report import table
from benchmarks.timing import Ratio
from benchmarks.workloads.rows import ROWS
from benchmarks.workloads.workload import Compute

__all__ = ["COMPILED", "deep", "first_calls"]

#: Programs whose first calls are timed.
COMPILED = ("autoencoder", "mixture", "heat", "ode", "lstm")
#: Batch and widths of the multi-layer perceptron whose memory is looked at.
DEEP = 256, (256,) * 20 + (10,)


def first_calls(rounds: int, *, markdown: bool) -> dict[str, Ratio]:
    """The first two calls of a compiled function together, in eager calls before them.

    In a process that has imported nothing else: beside PyTorch and JAX each full collection of
    Python's garbage takes as long as a dozen eager calls, in whichever of the calls it happens.
    """
    lines = [["eager calls that a compiled function's first two take", "together"]]
    found = {}
    for name in COMPILED:
        label = ROWS[name].label
        command = [sys.executable, "-m", "benchmarks.workloads.processes", name, str(rounds)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        low, middle, high = statistics.quantiles(json.loads(answer.stdout), n=4)
        found[label] = Ratio(low, middle, high)
        lines.append([label, f"{middle:.1f} ({low:.1f} – {high:.1f})"])
    print(table(lines, markdown=markdown), end="\n\n")
    return found


def _ratios(name: str, rounds: int) -> list[float]:
    """What the first two calls of a row's function take, in eager calls, in this process."""
    row = ROWS[name]
    for compute in row.make(*row.small).contestants(("Wengert compiled",)).values():
        compute()  # imports the compiler
    ratios = []
    for _ in range(rounds):
        made = row.make(*row.size).contestants(("Wengert", "Wengert compiled"))
        _seconds(made["Wengert"], 2)
        eager = _seconds(made["Wengert"], 5) / 5
        ratios.append(_seconds(made["Wengert compiled"], 2) / eager)
    return ratios


def _seconds(compute: Compute, calls: int) -> float:
    start = process_time()
    for _ in range(calls):
        compute()
    return process_time() - start


def deep(*, markdown: bool) -> dict[str, float]:
    """Megabytes that training a deep perceptron adds at its peak, by contestants."""
    found = costs.peaks(*DEEP)
    if found:
        lines = [["megabytes that training adds at its peak", *found]]
        lines.append(["20 layers of 256, batch 256", *[f"{x:.1f}" for x in found.values()]])
        print(table(lines, markdown=markdown), end="\n\n")
    return found


if __name__ == "__main__":
    print(json.dumps(_ratios(sys.argv[1], int(sys.argv[2]))))
