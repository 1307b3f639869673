"""The backends of `examples/backends`, as the package there registers them."""

import tomllib
from pathlib import Path

import pytest

from tests.scripts import ROOT, installed, python

EXAMPLES = ROOT / "examples" / "backends"
PROJECT = tomllib.loads((EXAMPLES / "pyproject.toml").read_text())
POINTS = PROJECT["project"]["entry-points"]["wengert.backends"]


def test_the_package_has_every_file_and_every_entry_point() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert {*PROJECT["tool"]["setuptools"]["py-modules"]} == files
    assert {point.partition(":")[0] for point in POINTS.values()} == files


@pytest.mark.slow
def test_entry_points_give_the_backends(tmp_path: Path) -> None:
    """Of a library that is there, and of one that is not."""
    lines = [f"{name} = {point}" for name, point in POINTS.items()]
    installed(tmp_path, "wengert_backends", "\n".join(["[wengert.backends]", *lines]))
    code = (
        "import sys, array_api_strict\n"
        "sys.modules['sparse'] = array_api_strict\n"
        "sys.modules['dpnp'] = None\n"
        "import wengert as wg\n"
        "from wengert.backends import backend_of\n"
        "assert wg.get_backend('sparse').immutable\n"
        "assert backend_of(array_api_strict.ones(2)).name == 'sparse'\n"
        "try:\n    wg.get_backend('dpnp')\n"
        "except wg.BackendError as error:\n    print(error)\n"
    )
    done = python("-c", code, path=[tmp_path, EXAMPLES], WENGERT_BACKEND="numpy")
    assert done.stdout.startswith("the backend 'dpnp' of an entry point cannot be imported"), done


@pytest.mark.oracle
@pytest.mark.slow
def test_a_dtensor_without_its_backend_is_refused() -> None:
    """PyTorch's functions would take the part of one process for the whole."""
    pytest.importorskip("torch")
    code = (
        "import torch.distributed.tensor as t, wengert as wg\n"
        "from wengert.backends.registry import namespaces\n"
        "try:\n    namespaces[t.DTensor]\n"
        "except wg.BackendError as error:\n    print(error)\n"
    )
    done = python("-c", code, WENGERT_BACKEND="numpy")
    assert done.stdout.startswith("there is no backend 'dtensor'"), done
