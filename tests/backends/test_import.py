"""Importing Wengert imports NumPy and no other library."""

import subprocess
import sys

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
