"""How long ``import wengert`` takes beside ``import numpy``, each in processes of its own."""

import subprocess
import sys
from time import perf_counter

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
    before = perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return perf_counter() - before
