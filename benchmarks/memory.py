"""What a long training run leaves behind, measured in a process of its own."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["Usage", "measure"]

#: Live nodes on the tape, and resident bytes.
Usage = tuple[int, int]

STATM = Path("/proc/self/statm")


def measure(steps: tuple[int, ...]) -> list[Usage]:
    """Train the smallest row, and look after each of these numbers of steps."""
    command = [sys.executable, "-m", "benchmarks.memory", *map(str, steps)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return [(nodes, resident) for nodes, resident in json.loads(answer.stdout)]


def resident() -> int:
    """Resident bytes of this process now; at its peak where the system tells only that."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    """Print as JSON what is in use after each number of steps that the command line names."""
    import wengert as wg
    from benchmarks.mlp import ROWS, Problem, wengert

    train = wengert(Problem.make(*ROWS[0]))
    done = 0
    usage: list[Usage] = []
    for steps in map(int, sys.argv[1:]):
        train(steps - done)
        done = steps
        gc.collect()
        usage.append((len(wg.global_tape), resident()))
    print(json.dumps(usage))


if __name__ == "__main__":
    main()
