"""How long ``import wengert`` and a first gradient take beside ``import numpy``.

Each runs in processes of its own.
"""

import os
import resource
import subprocess
import sys

from benchmarks.timing import Times

__all__ = ["measure"]


PROGRAMS = {
    "numpy": "import numpy",
    "wengert": "import wengert",
    "gradient": "import wengert as wg; (wg.ones(3, requires_grad=True) ** 2).sum().backward()",
}


def measure(rounds: int) -> Times:
    """Time these programs in turns, less what Python itself takes to start."""
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    _run(PROGRAMS["gradient"])  # which writes the byte code where it is missing
    for _ in range(rounds):
        start = _run("pass")
        for name, program in PROGRAMS.items():
            seconds[name].append(_run(program) - start)
    return Times(seconds)


def _run(program: str) -> float:
    """Processor time of a process, which other programs on the machine change little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # With byte code, as an installed package has it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", program], check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
