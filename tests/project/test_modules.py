"""The extensions are one module each, by whatever way they are imported."""

import importlib
import subprocess
import sys

import pytest

import wengert as wg

NAMES = ["fft", "linalg", "random", "special"]


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_that_of_the_functions(name: str) -> None:
    module = importlib.import_module(f"wengert.{name}")
    assert module is getattr(wg, name) is importlib.import_module(f"wengert.ops.{name}")
    assert sys.modules[f"wengert.{name}"] is module


@pytest.mark.slow
def test_in_a_new_process() -> None:
    code = "; ".join(
        ["import sys", *(f"import wengert.{name}" for name in NAMES)]
        + ["print([sys.modules['wengert.' + n] is getattr(wengert, n) for n in sys.argv[1:]])"]
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *NAMES], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{[True] * len(NAMES)}\n"
