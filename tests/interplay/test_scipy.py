"""SciPy's and scikit-learn's functions on Tensors, where they are asked to follow the standard.

These tests are in `scipy_functions` and `sklearn_functions`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wengert.backends import builtin_backends

ROOT = Path(__file__).parents[2]
FUNCTIONS = [
    str(Path(__file__).with_name(f"{library}_functions.py")) for library in ("scipy", "sklearn")
]
#: The libraries that SciPy itself is tested on and that don't compile: JAX takes minutes.
BACKENDS = [name for name in ("numpy", "array_api_strict", "torch") if builtin_backends()[name]]


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
def test_scipy(name: str) -> None:
    scipy = pytest.importorskip("scipy")
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17):
        pytest.skip("an older SciPy takes fewer functions")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("--all-cases", f"--wengert-backends={name}", *FUNCTIONS),
        ],
        cwd=ROOT,
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= 110
