"""What compiling costs: the first calls, what surrounds a program, and memory at its peak.

``python -m benchmarks.costs`` prints this section alone.
"""

import argparse
import dis
import json
import statistics
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.report import Verdict, bars_table, describe_machine, installed, table
from benchmarks.timing import Ratio, interleave, repeated

__all__ = ["first_calls", "peaks", "report", "surround"]

#: How many eager steps the first call of a compiled step may take.
LIMIT = 20
#: What surrounds the program of the smallest step, as a share of that: comparing and storing.
AROUND = 0.1
#: Training steps of a process whose memory is looked at.
STEPS = 60
STATUS = Path("/proc/self/status")


def first_calls(row: int, rounds: int) -> tuple[Ratio, Ratio]:
    """The first and the second call of a compiled step, in eager steps before and after them.

    The first is recorded, and the second is checked.
    """
    from benchmarks.mlp import ROWS, Problem, wengert, wengert_compiled

    problem = Problem.make(*ROWS[row])
    eager = wengert(problem)
    eager(20)
    ratios: list[list[float]] = [[], []]
    wengert_compiled(problem)(2)  # imports the compiler
    for _ in range(rounds):
        compiled = wengert_compiled(problem)
        start = process_time()
        eager(20)
        step = (process_time() - start) / 20
        for found in ratios:
            start = process_time()
            compiled(1)
            found.append((process_time() - start) / step)
    first, second = [Ratio(*statistics.quantiles(found, n=4)) for found in ratios]
    return first, second


def surround(row: int, rounds: int) -> tuple[int, float, Ratio]:
    """How many comparisons a compiled step makes, what surrounds its program, and the share of it.

    The share is that of the program's time.
    """
    from benchmarks.mlp import ROWS, Problem, wengert_compiled

    trainer = wengert_compiled(Problem.make(*ROWS[row]))
    trainer(20)
    step: Any = trainer.step
    batch = trainer.batches[0]
    space, given = step._calls[0].__globals__, list[Any]()
    program = space["step"]
    space["step"] = lambda *inputs: given.append(inputs) or program(*inputs)
    step(*batch)
    space["step"] = program
    (inputs,) = given
    contestants = {
        "program": repeated(lambda: program(*inputs)),
        "step": repeated(lambda: step(*batch)),
    }
    times = interleave(contestants, rounds=4 * rounds, block=0.004)
    ratio = times.ratio("step", "program")
    around = times.median("step") - times.median("program")
    names = [each.opname for each in dis.get_instructions(step._calls[0])]
    comparisons = sum(map(names.count, ("IS_OP", "COMPARE_OP", "CONTAINS_OP")))
    return comparisons, around, Ratio(ratio.low - 1, ratio.median - 1, ratio.high - 1)


def peaks(batch: int, widths: tuple[int, ...]) -> dict[str, float]:
    """Megabytes that training adds to what a process has, at its peak; by contestants."""
    names = {"Wengert": "numpy", "Wengert compiled": "numpy", "PyTorch eager": "torch"}
    names = {"NumPy by hand": "numpy", **names, "JAX jit": "jax"}
    found = {}
    for name, library in names.items():
        if not installed(library) or not STATUS.exists():
            continue
        sizes = map(str, (batch, *widths))
        command = [sys.executable, "-m", "benchmarks.costs", "--peak", name, "--sizes", *sizes]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        found[name] = json.loads(answer.stdout)
    return found


def _status(name: str) -> int:
    """A number of kilobytes from what the system says of this process."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(name)


def _peak(name: str, batch: int, widths: tuple[int, ...]) -> float:
    """Train, and say how much memory the process has had at its peak beyond what it began with."""
    from benchmarks.mlp import CONTESTANTS, ROWS, Problem

    make, _ = CONTESTANTS[name]
    small = make(Problem.make(*ROWS[0]))  # imports, and what is made once
    small(3)
    problem = Problem.make(batch, widths)
    before = _status("VmRSS")
    # The peak starts again from here.
    Path("/proc/self/clear_refs").write_text("5")
    trainer = make(problem)
    trainer(STEPS)
    return (_status("VmHWM") - before) / 1024


def report(rounds: int, *, markdown: bool) -> list[Verdict]:
    """Measure everything, print the tables, and return the bars."""
    from benchmarks.mlp import ROWS

    lines = [["eager steps that a call takes", "the first", "the second"]]
    verdicts = []
    for row in (0, len(ROWS) - 1):
        batch, widths = ROWS[row]
        label = f"{batch}, {'-'.join(map(str, widths))}"
        first, second = first_calls(row, rounds)
        lines.append(
            [label, *[f"{x.median:.0f} ({x.low:.0f} – {x.high:.0f})" for x in (first, second)]]
        )
        what = f"first call of a compiled step, {label}, in eager steps"
        verdicts.append(Verdict(what, first, LIMIT))
    print(table(lines, markdown=markdown), end="\n\n")
    lines = [["what surrounds the program", "comparisons", "ns each", "µs", "share"]]
    for row in (0, len(ROWS) - 1):
        batch, widths = ROWS[row]
        label = f"{batch}, {'-'.join(map(str, widths))}"
        count, seconds, share = surround(row, rounds)
        each = [f"{seconds / count * 1e9:.0f}", f"{seconds * 1e6:.1f}", f"{share.median:.1%}"]
        lines.append([label, str(count), *each])
        if not row:
            verdicts.append(
                Verdict(f"what surrounds a compiled step's program, {label}, of it", share, AROUND)
            )
    print(table(lines, markdown=markdown), end="\n\n")
    memory: list[dict[str, Any]] = []
    labels = []
    for row in (0, len(ROWS) - 1):
        batch, widths = ROWS[row]
        labels.append(f"{batch}, {'-'.join(map(str, widths))}")
        memory.append(peaks(batch, widths))
    if memory[0]:
        lines = [["megabytes that training adds at its peak", *memory[0]]]
        lines += [
            [label, *[f"{x:.1f}" for x in found.values()]]
            for label, found in zip(labels, memory, strict=True)
        ]
        print(table(lines, markdown=markdown), end="\n\n")
    return verdicts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", nargs="+", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        batch, *widths = options.sizes
        print(json.dumps(_peak(options.peak, batch, tuple(widths))))
    else:
        print(describe_machine(), end="\n\n")
        found = report(7 if options.quick else 25, markdown=options.markdown)
        print(table(bars_table(found), markdown=options.markdown))
