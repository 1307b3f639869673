"""Times of all rows, the bars, and what is printed."""

import argparse
import math
import statistics
from collections.abc import Iterable, Mapping
from time import process_time
from typing import Any

import wengert as wg
from benchmarks import importing, plot
from benchmarks.report import Verdict, bars_table, describe_machine, describe_threads, table
from benchmarks.timing import Ratio, Times, interleave, repeated
from benchmarks.workloads import processes
from benchmarks.workloads.rows import ROWS
from benchmarks.workloads.workload import LIBRARIES, Compute, agree

__all__ = ["add_arguments", "bars", "main", "measure"]

EAGER, COMPILED, BY_HAND = "Wengert", "Wengert compiled", "NumPy by hand"
TORCH, JIT = "PyTorch eager", "JAX jit"
#: Libraries that run eagerly.
PEERS = (TORCH, "HIPS/autograd")
#: What is no workload of its own.
PROCESSES = ("first-calls", "memory", "import")

#: Ratios that each row may have at most, and that a share of all rows has.
EAGER_BARS = 1.1, 0.9, 0.75
BY_HAND_BARS = 1.1, 0.9, 0.5
TORCH_BAR = 0.9
JIT_BAR = 1.15
MEMORY_BAR = 1.1
CALLS_BAR = 15
GRADIENT_BAR = 1.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command line takes."""
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*ROWS, *PROCESSES],
        default=[*ROWS, *PROCESSES],
        metavar="ROW",
        help=f"which to run: {', '.join([*ROWS, *PROCESSES])}; all by default",
    )
    parser.add_argument(
        "--peers",
        nargs="+",
        choices=[name for name in LIBRARIES if name != EAGER],
        default=list(LIBRARIES),
        metavar="PEER",
        help=f"whom to time beside {EAGER}: {', '.join(list(LIBRARIES)[1:])}; all by default",
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument(
        "--keep-freed-memory",
        action="store_true",
        help="let the process keep it, so that what one contestant frees is not taken from the "
        "system anew by chance",
    )
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument("--plot", metavar="PNG", help="also draw the ratios to NumPy by hand")


def main(options: argparse.Namespace) -> None:
    """Run what the command line asks for, and print it."""
    kept = "Memory that is freed is kept by the process."
    print(describe_machine(), describe_threads(), *[kept] * options.keep_freed_memory, sep="\n")
    print()
    if options.keep_freed_memory:
        wg.keep_freed_memory()
    names = [name for name in LIBRARIES if name == EAGER or name in options.peers]
    measured = {
        ROWS[name].label: measure(name, names, seconds=2.0 if options.quick else 9.0)
        for name in options.only
        if name in ROWS
    }
    if measured:
        print(table(lines(measured, names), markdown=options.markdown), end="\n\n")
    if options.plot:
        plot.draw(measured, options.plot)
    verdicts = bars(measured)
    if "first-calls" in options.only:
        found = processes.first_calls(3 if options.quick else 7, markdown=options.markdown)
        verdicts += [
            Verdict(f"first two calls of {label}, in eager ones", ratio, CALLS_BAR)
            for label, ratio in found.items()
        ]
    if "memory" in options.only:
        peaks = processes.deep(markdown=options.markdown)
        verdicts += [
            Verdict(f"peak memory of 20 layers, {name}, against {BY_HAND}", _exact(ratio), bar)
            for name, bar in ((EAGER, MEMORY_BAR), (COMPILED, MEMORY_BAR))
            if peaks and (ratio := peaks[name] / peaks[BY_HAND])
        ]
    if "import" in options.only:
        starts = importing.measure(5 if options.quick else 25)
        ratio = starts.ratio("gradient", "numpy")
        verdicts.append(Verdict("a first gradient, against import numpy", ratio, GRADIENT_BAR))
    if verdicts:
        print(table(bars_table(verdicts), markdown=options.markdown))


def measure(name: str, names: Iterable[str], *, seconds: float) -> Times:
    """Time a row in turns, after checking that the contestants compute the same.

    The contestants share ``seconds``, in at most 60 rounds and in at least 7.
    """
    row = ROWS[name]
    computes = row.make(*row.size).contestants(names)
    try:
        agree(computes)
    except AssertionError as error:
        raise AssertionError(f"{row.label}: {error}") from None
    units = [_seconds(compute) for compute in computes.values()]
    block = 0.004
    # A block is of one unit at least, and one or a quarter of a block goes before it.
    once = sum(max(2 * unit, 1.25 * block) for unit in units)
    rounds = max(7, min(60, int(seconds / once)))
    works = {name: repeated(compute) for name, compute in computes.items()}
    return interleave(works, rounds=rounds, block=block)


def _seconds(compute: Compute) -> float:
    start = process_time()
    compute()
    return process_time() - start


def lines(measured: Mapping[str, Times], names: list[str]) -> list[list[str]]:
    """The table: microseconds, and the quartiles of Wengert's two."""
    rows = [["microseconds", *names]]
    for label, times in measured.items():
        cells = []
        for name in names:
            if name not in times.rounds:
                cells.append("-")
                continue
            cell = _number(times.median(name) * 1e6)
            if name in (EAGER, COMPILED):
                low, _, high = statistics.quantiles(times.rounds[name], n=4)
                cell += f" ({_number(low * 1e6)} – {_number(high * 1e6)})"
            cells.append(cell)
        rows.append([label, *cells])
    return rows


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def bars(measured: Mapping[str, Times]) -> list[Verdict]:
    """The bars that the rows are held to."""
    eager: dict[str, Ratio] = {}
    for label, times in measured.items():
        there = [name for name in PEERS if name in times.rounds]
        if there:
            fastest = min(there, key=times.median)
            eager[f"{label}, eager, against {fastest}"] = times.ratio(EAGER, fastest)
    verdicts = _each(eager, *EAGER_BARS, what="eager, against the fastest eager peer")

    by_hand = _compiled(measured, BY_HAND)
    verdicts += _each(by_hand, *BY_HAND_BARS, what="compiled, against NumPy by hand")
    verdicts += [
        Verdict(what, ratio, TORCH_BAR) for what, ratio in _compiled(measured, TORCH).items()
    ]
    jit = _compiled(measured, JIT)
    if jit:
        mean = math.exp(statistics.fmean(math.log(ratio.median) for ratio in jit.values()))
        what = f"compiled, against {JIT}, geometric mean of {len(jit)} rows"
        verdicts.append(Verdict(what, _exact(mean), JIT_BAR))
    return verdicts


def _compiled(measured: Mapping[str, Times], peer: str) -> dict[str, Ratio]:
    """The compiled function's ratios to a peer."""
    return {
        f"{label}, compiled, against {peer}": times.ratio(COMPILED, peer)
        for label, times in measured.items()
        if peer in times.rounds and COMPILED in times.rounds
    }


def _each(
    ratios: Mapping[str, Ratio], limit: float, better: float, share: float, *, what: str
) -> list[Verdict]:
    """That each ratio is within ``limit``, and a share of them within the ``better`` one."""
    verdicts = [Verdict(label, ratio, limit) for label, ratio in ratios.items()]
    if verdicts:
        # The ratio that a share of the rows is within.
        ordered = sorted(ratio.median for ratio in ratios.values())
        reached = ordered[math.ceil(share * len(ordered)) - 1]
        label = f"{what}, the best {share:.0%} of {len(ordered)} rows"
        verdicts.append(Verdict(label, _exact(reached), better))
    return verdicts


def _exact(ratio: Any) -> Ratio:
    """One number, as a ratio without a spread."""
    return Ratio(ratio, ratio, ratio)
