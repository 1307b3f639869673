"""Importing Wengert costs no more than NumPy and a little, and imports no other library."""

import statistics
import subprocess
import sys

import pytest

OTHERS = [
    "torch",
    "jax",
    "jaxlib",
    "dask",
    "cupy",
    "scipy",
    "hypothesis",
    "pytest",
    "array_api_strict",
    "array_api_compat",
    "tqdm",
    "matplotlib",
    "safetensors",
    "sklearn",
]


def test_imports_numpy_and_no_other_library() -> None:
    code = (
        "import sys, wengert, wengert.nn, wengert.optim\n"
        f"print('numpy' in sys.modules, [n for n in {OTHERS!r} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_costs_at_most_1_3_times_numpy() -> None:
    resource = pytest.importorskip("resource")
    path = f"import sys; sys.path[:] = {sys.path!r}; "

    def seconds(module: str) -> float:
        """Processor time, which other programs on the machine change little."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-I", "-c", f"{path}import {module}"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    seconds("wengert")  # which writes the byte code where it is missing
    rounds = [(seconds("sys"), seconds("numpy"), seconds("wengert")) for _ in range(11)]
    start, numpy, wengert = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = (wengert - start) / (numpy - start)
    assert ratio < 1.3, f"import wengert takes {ratio:.2f} times import numpy"
