"""Importing Wengert costs no more than NumPy and a little, and imports no other library."""

import statistics
import subprocess
import sys
import time

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
    def seconds(module: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", f"{SETUP}import {module}"], check=True)
        return time.perf_counter() - start

    # The interpreter's own start is no part of either.
    SETUP = f"import sys; sys.path[:] = {sys.path!r}; "
    rounds = [(seconds("sys"), seconds("numpy"), seconds("wengert")) for _ in range(15)]
    ratio = statistics.median(
        (wengert - bare) / (numpy - bare) for bare, numpy, wengert in sorted(rounds)[:10]
    )
    assert ratio < 1.3, f"import wengert takes {ratio:.2f} times import numpy"
