"""Programs of PyTorch's users run unchanged, and give PyTorch's numbers."""

import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import python

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = {path.stem: path.read_text() for path in sorted(FOLDER.glob("[!_]*.py"))}
BEGINNING = (FOLDER / "_beginning.py").read_text()
#: PyTorch is not to be found, as where it is not installed.
WITHOUT = """
import sys
sys.modules["torch"] = None
from wengert.running import run
found = run(sys.argv[1], sys.argv[2:])
print(repr([float(x) for x in found["losses"]]))
"""


@pytest.fixture
def path(tmp_path: Path, name: str) -> Path:
    """A program as a user has it."""
    path = tmp_path / f"{name}.py"
    path.write_text(BEGINNING + PROGRAMS[name])
    return path


def losses_of_torch(path: Path) -> list[float]:
    torch = pytest.importorskip("torch")
    try:
        return [float(x) for x in runpy.run_path(str(path), run_name="__main__")["losses"]]
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_pytorchs_numbers(room: Any, path: Path) -> None:
    """The losses of some twenty steps agree to 1e-9, in float64."""
    from wengert.running import run

    with warnings.catch_warnings():
        for text in (".*size_average", "enable_nested_tensor"):  # PyTorch's own
            warnings.filterwarnings("ignore", message=text, category=UserWarning)
        theirs = losses_of_torch(path)
        try:
            ours = [float(x) for x in run(str(path), [])["losses"]]
        finally:
            wg.set_default_dtype(wg.float32)
    assert len(ours) >= 20
    assert len(set(ours)) > 5
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "cnn", "micro_gpt", "actor_critic", "graph_convolution"])
def test_programs_run_without_pytorch(path: Path) -> None:
    ran = python("-W", "error", "-c", WITHOUT, path, WENGERT_BACKEND="numpy")
    np.testing.assert_allclose(eval(ran.stdout), losses_of_torch(path), rtol=1e-9, atol=1e-9)


SCRIPT = """
import torch, helper
from torch import nn, nonsense
import torch.nn.functional as F
print(torch.__name__, helper.name, helper.einops_torch)
if False:
    torch.jit.script(nn.Foo(F.bar(torch.zeros(2))))
"""
HELPER = """
import torch as t
import array_api_compat.torch
name = t.__name__
einops_torch = array_api_compat.torch.__name__
t.sparse_coo_tensor
"""


@pytest.mark.oracle
def test_missing_names_are_listed_with_their_lines(room: Any, tmp_path: Path) -> None:
    from wengert.running import missing

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    found = [(file.name, line, name) for file, line, name in missing(script)]
    assert sorted(set(found)) == [
        ("helper.py", 6, "torch.sparse_coo_tensor"),
        ("script.py", 3, "torch.nonsense"),
        ("script.py", 7, "torch.jit"),
        ("script.py", 7, "torch.nn.Foo"),
        ("script.py", 7, "torch.nn.functional.bar"),
    ]


LIBRARIES = """
import torch
import array_api_compat
import einops
import numpy as np
import scipy.special
import helper

x = torch.arange(6.0).view(2, 3)
assert torch.__name__ == helper.name == "wengert.torch"
assert array_api_compat.array_namespace(np.ones(2)) is not None
assert einops.rearrange(np.ones((2, 3)), "a b -> b a").shape == (3, 2)
assert scipy.special.expit(0.0) == 0.5
import array_api_compat.torch as real
print(real.__name__, real.ones(2).__class__.__module__, x.sum().item(), x.backend.name)
"""


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_libraries_find_the_real_pytorch(backend: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "script.py").write_text(LIBRARIES)
    (tmp_path / "helper.py").write_text("import torch as t\nname = t.__name__\n")
    command = ("-m", "wengert.torch", tmp_path / "script.py", "--epochs", "3")
    ran = python(*command, WENGERT_BACKEND=backend)
    assert ran.stdout == f"array_api_compat.torch torch 15.0 {backend}\n", ran.stderr
    assert not ran.stderr


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["torchvision", "torchaudio"])
def test_torchvision_is_named_as_not_there(
    room: Any, tmp_path: Path, name: str, capsys: Any
) -> None:
    from wengert.running import run

    (tmp_path / "script.py").write_text(f"import torch\nimport {name}\n")
    with pytest.raises(ModuleNotFoundError, match=f"{name} is not there"):
        run(str(tmp_path / "script.py"), [])
    assert capsys.readouterr().err == f"script.py:2: {name} is not there\n"
