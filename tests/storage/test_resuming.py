"""A run that is killed goes on from its checkpoint, and ends with the same bits."""

import os
import signal

import pytest

from tests.scripts import python


def run(backend, path, prefetch, where="end", number=0):
    given = (backend, path, prefetch, where, number)
    code = 0 if where == "end" else -signal.SIGKILL
    return python("-m", "tests.storage.training", *given, code=code).stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills itself by a signal of POSIX")
def test_a_killed_run_ends_with_the_same_bits(backend, tmp_path):
    if backend.name not in ("numpy", "torch", "jax", "array_api_strict"):
        pytest.skip("three processes for each backend; those of the others are the same code")
    whole = run(backend.name, tmp_path / "whole", 0)
    assert whole.startswith("15 ")
    path = tmp_path / "broken"
    run(backend.name, path, 2, "step", 3)
    run(backend.name, path, 0, "write", 5)  # the last of an epoch
    beside = [each for each in tmp_path.iterdir() if each.suffix == ".tmp"]
    assert len(beside) == 1 and path.exists()
    run(backend.name, path, 3, "write", 9)
    assert run(backend.name, path, 2) == whole
