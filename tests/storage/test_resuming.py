"""A run that is killed goes on from its checkpoint, and ends with the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(backend, path, prefetch, where="end", number=0):
    done = subprocess.run(
        [sys.executable, "-m", "tests.storage.training", backend, path, str(prefetch)]
        + [where, str(number)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if where == "end":
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("15 ")
        return done.stdout
    assert done.returncode == -9, done.stderr
    return None


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills itself by a signal of POSIX")
def test_a_killed_run_ends_with_the_same_bits(backend, tmp_path):
    if backend.name not in ("numpy", "torch", "jax", "array_api_strict"):
        pytest.skip("three processes for each backend; those of the others are the same code")
    whole = run(backend.name, tmp_path / "whole", 0)
    path = tmp_path / "broken"
    run(backend.name, path, 2, "step", 3)
    run(backend.name, path, 0, "write", 5)  # the last of an epoch
    beside = [each for each in tmp_path.iterdir() if each.suffix == ".tmp"]
    assert len(beside) == 1 and path.exists()
    run(backend.name, path, 3, "write", 9)
    assert run(backend.name, path, 2) == whole
