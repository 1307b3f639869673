"""How long ``import wengert`` takes beside ``import numpy``, each in processes of its own."""

import os
import resource
import subprocess
import sys

from benchmarks.timing import Times

__all__ = ["measure"]


def measure(rounds: int) -> Times:
    """Time both imports in turns, less what Python itself takes to start."""
    seconds: dict[str, list[float]] = {"numpy": [], "wengert": []}
    _run("wengert")  # which writes the byte code where it is missing
    for _ in range(rounds):
        start = _run("sys")
        for module, times in seconds.items():
            times.append(_run(module) - start)
    return Times(seconds)


def _run(module: str) -> float:
    """Processor time of a process, which other programs on the machine change little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # With byte code, as an installed package has it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
