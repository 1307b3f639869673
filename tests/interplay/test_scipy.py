"""SciPy's functions on Tensors: `scipy_functions`, where SciPy is asked to follow the standard."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wengert.backends import builtin_backends

ROOT = Path(__file__).parents[2]
FUNCTIONS = Path(__file__).with_name("scipy_functions.py")
#: The libraries that SciPy itself is tested on and that don't compile: JAX takes minutes.
BACKENDS = [name for name in ("numpy", "array_api_strict", "torch") if builtin_backends()[name]]


@pytest.mark.parametrize("name", BACKENDS)
def test_scipy(name: str) -> None:
    scipy = pytest.importorskip("scipy")
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17):
        pytest.skip("an older SciPy takes fewer functions")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(f"--wengert-backends={name}", str(FUNCTIONS)),
        ],
        cwd=ROOT,
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= 110
