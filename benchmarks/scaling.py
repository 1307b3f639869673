"""Data-parallel training on many ranks, on paper: ``python -m benchmarks scaling``.

How long a step takes whose gradients are summed by one all-reduce, from the time to compute, a
network's latency and its bandwidth. ``docs/measured/scaling.rst`` has the
formulas and their sources. ``--measure`` measures MPI between two processes here.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import CORES
from benchmarks.report import describe_machine, table

__all__ = [
    "ALGORITHMS", "CASES", "RANKS", "Network", "Training", "add_arguments", "draw", "halving",
    "main", "measure", "recursive_doubling", "ring", "step",
]  # fmt: skip

#: The numbers of ranks in the table.
RANKS = (1, 2, 8, 64, 1000)
#: Bytes by which processes agree on a collective before it, see `wengert.distributed`.
AGREEMENT = 8


class Network(NamedTuple):
    """What it takes to send and to add.

    Attributes
    ----------
    latency : float
        Seconds of a message without content.
    byte : float
        Seconds for each byte that is sent: one over the bandwidth.
    adding : float
        Seconds for each byte that is added.
    """

    latency: float
    byte: float
    adding: float


class Training(NamedTuple):
    """A training step on one rank.

    Attributes
    ----------
    fixed, rows : float
        Seconds whatever the batch, and for the batch of a rank.
    gradient : int
        Bytes.
    divided : bool
        Whether ranks divide the batch of one rank; otherwise each has as many rows.
    """

    fixed: float
    rows: float
    gradient: int
    divided: bool

    def compute(self, ranks: int) -> float:
        """Seconds without communication."""
        return self.fixed + self.rows / (ranks if self.divided else 1)


Algorithm = Callable[[int, float, Network], float]


def recursive_doubling(ranks: int, size: float, network: Network) -> float:
    """Seconds of an all-reduce in which pairs exchange all bytes, at distances 1, 2, 4, ….

    Of a number of ranks that is no power of two, those beyond the next smaller one hand their bytes
    to others first, and get the sum at the end.
    """
    rounds = int(math.log2(ranks))
    beyond = ranks > 2**rounds
    sent = network.latency + size * network.byte
    return (rounds + 2 * beyond) * sent + (rounds + beyond) * size * network.adding


def ring(ranks: int, size: float, network: Network) -> float:
    """Seconds of an all-reduce in which parts go round a ring, twice."""
    part = size / ranks
    sent = network.latency + part * network.byte
    return 2 * (ranks - 1) * sent + (ranks - 1) * part * network.adding


def halving(ranks: int, size: float, network: Network) -> float:
    """Seconds of Rabenseifner's all-reduce: halves are exchanged and added, then gathered.

    Ranks beyond a power of two hand their bytes to others, as in `recursive_doubling`.
    """
    rounds = int(math.log2(ranks))
    beyond, share = ranks > 2**rounds, 1 - 1 / 2**rounds
    inside = 2 * rounds * network.latency + size * share * (2 * network.byte + network.adding)
    outside = 2 * (network.latency + size * network.byte) + size * network.adding
    return inside + beyond * outside


ALGORITHMS: dict[str, Algorithm] = {
    "recursive doubling": recursive_doubling,
    "ring": ring,
    "halving and doubling": halving,
}


def step(training: Training, ranks: int, network: Network, algorithm: Algorithm) -> float:
    """Seconds of a step, in which gradients are summed after the backward pass."""
    compute = training.compute(ranks)
    if ranks == 1:
        return compute
    summed = algorithm(ranks, training.gradient, network)
    return compute + summed + recursive_doubling(ranks, AGREEMENT, network)


#: What the picture shows; docs/measured/scaling.rst says where the numbers are from.
CASES: dict[str, tuple[Training, Network]] = {
    "digits: 77 kB, one batch of 32 divided": (
        Training(fixed=150e-6, rows=150e-6, gradient=76_840, divided=True),
        Network(latency=3e-6, byte=1 / 2e9, adding=1 / 5e9),
    ),
    "25 million weights: 102 MB, a batch a rank": (
        Training(fixed=0, rows=0.2, gradient=102_000_000, divided=False),
        Network(latency=20e-6, byte=1 / 1.25e9, adding=1 / 5e9),
    ),
}

#: Times MPI's all-reduce between two processes, by the bytes.
_PROGRAM = """
import json, statistics, time
import numpy as np
from mpi4py import MPI
comm, found = MPI.COMM_WORLD, {}
for size in (8, 2**12, 2**16, 2**20, 2**24):
    x, out, times = np.ones(size // 8), np.empty(size // 8), []
    for _ in range(10 + min(1000, 2**30 // size // 8)):
        comm.Barrier()
        start = time.perf_counter()
        comm.Allreduce(x, out)
        times.append(time.perf_counter() - start)
    found[size] = statistics.median(times[5:])
if not comm.rank:
    print(json.dumps(found))
"""


def measure() -> dict[int, float]:
    """The seconds of MPI's all-reduce between two processes of this machine, by the bytes."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, CORES)  # one for each process
    beside = Path(sys.executable).with_name("mpiexec")
    launch = [str(beside) if beside.exists() else "mpiexec", "-n", "2"]
    command = [*launch, sys.executable, "-c", _PROGRAM]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return {int(size): seconds for size, seconds in json.loads(answer.stdout).items()}


def rows() -> list[list[str]]:
    """The table of milliseconds a step, the heading first."""
    found = [["milliseconds a step", *(f"{p} ranks" if p > 1 else "1 rank" for p in RANKS)]]
    for label, (training, network) in CASES.items():
        found.append([label, *[""] * len(RANKS)])
        for name, algorithm in ALGORITHMS.items():
            times = [step(training, p, network, algorithm) for p in RANKS]
            found.append([f"  {name}", *(f"{t * 1e3:.3g}" for t in times)])
    return found


def draw(path: str | Path) -> None:
    """Draw the time of a step by the number of ranks, for all algorithms, into a picture."""
    from matplotlib.figure import Figure

    colours = dict(zip(ALGORITHMS, ("#d0632b", "#1f5fa8", "#3a8f5c"), strict=True))
    # Algorithms jump beside powers of two: the curves are through these, and 1000 stands apart.
    powers = [2**k for k in range(11)]
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    for axes, (title, (training, network)) in zip(
        figure.subplots(1, 2), CASES.items(), strict=True
    ):
        for name, algorithm in ALGORITHMS.items():
            times = {p: 1e3 * step(training, p, network, algorithm) for p in (*powers, 1000)}
            line = [times[p] for p in powers]
            axes.plot(powers, line, label=name, color=colours[name], linewidth=1.6)
            axes.plot([1000], [times[1000]], "o", color=colours[name], markersize=4)
        computed = [1e3 * training.compute(p) for p in powers]
        axes.plot(powers, computed, ":", color="black", linewidth=1.4, label="computing alone")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        ticks = (1, 2, 8, 64, 256, 1000)
        axes.set_xticks(ticks, list(map(str, ticks)))
        low, high = axes.get_ylim()
        marks = [n * 10.0**k for k in range(-2, 5) for n in (1, 2, 3, 5)]
        marks = [mark for mark in marks if low <= mark <= high]
        axes.set_yticks(marks, [f"{mark:g}" for mark in marks])
        axes.minorticks_off()
        axes.set_xlabel("ranks")
        axes.set_ylabel("time of a step in ms")
        latency, speed = network.latency * 1e6, 1e-9 / network.byte
        axes.set_title(f"{title}\nlatency {latency:.3g} µs, bandwidth {speed:.3g} GB/s", size=10)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command line takes."""
    parser.add_argument("--measure", action="store_true", help="MPI between two processes here")
    parser.add_argument("--plot", metavar="PNG", help="also draw it; needs matplotlib")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")


def main(options: argparse.Namespace) -> None:
    """Run what the command line asks for, and print it."""
    if options.measure:
        found = measure()
        lines: list[Sequence[str]] = [["bytes that two processes sum", "µs", "ns a byte"]]
        lines += [[str(n), f"{t * 1e6:.1f}", f"{t / n * 1e9:.3f}"] for n, t in found.items()]
        print(describe_machine(), end="\n\n")
        print(table(lines, markdown=options.markdown), end="\n\n")
    print(table(rows(), markdown=options.markdown))
    if options.plot:
        draw(options.plot)
