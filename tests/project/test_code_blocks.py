"""Python in the text pages that is no doctest and no notebook cell runs, too.

A block is a fragment: it names a model, or data, that the reader has. `GIVEN` is what a reader has.
Blocks of one page run in order, each with what those before it have defined.
"""

import re
import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import wengert as wg
from wengert.testing.verdicts import WrongGradientError

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(
    r"^( *)\.\. code-block:: python\n((?:\1 +:.*\n)*)\n((?:\1 +.*\n|\n)+)", re.MULTILINE
)

GIVEN = """
from pathlib import Path
from types import SimpleNamespace
import numpy as np
import pytest
import wengert as wg
from wengert.testing import check_gradients

def build():
    return wg.nn.Sequential(wg.nn.Linear(4, 3), wg.nn.Tanh(), wg.nn.Linear(3, 2))

model = build()
criterion = wg.nn.MSELoss()
optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
x, y = wg.ones((5, 4)), wg.zeros((5, 2))
loader = wg.data.DataLoader(wg.data.TensorDataset(x, y), batch_size=5)
"""
#: What stands between the blocks in words, by how the next block begins.
BEFORE = {
    "x = xr.": (
        "xr = pytest.importorskip('xarray'); import warnings\n"
        "measured, weights, names = np.ones((3, 2)), np.ones(2), ['a', 'b']"
    ),
    "units = pint.": "pint = pytest.importorskip('pint')",
    "x = wg.asarray(values": (
        "dask = pytest.importorskip('dask'); import dask.array\nvalues = np.ones((2000, 10))"
    ),
    "from einops": "images = wg.ones((2, 4, 4, 3))",
    "@pytest.mark.parametrize": "mylibrary = SimpleNamespace(transform=wg.exp, distance=wg.sin)",
    "import numpy as np\nimport onnxruntime": (
        "pytest.importorskip('onnxruntime')\n"
        "batches, schedule = [(x.numpy(), y.numpy())], lambda: 1e-3"
    ),
    "import wengert as wg\nfrom wengert.testing import Argument": (
        "entropy = lambda x, axis: -wg.sum(x * wg.log(x), axis=axis)"
    ),
    "from hypothesis import given": (
        "huber = lambda x: wg.sum(wg.where(abs(x) < 1, x**2 / 2, abs(x)))"
    ),
    '@check_gradients(("n", "m"), min_side=1)': (
        "LogSumExp = SimpleNamespace(apply=lambda x: wg.special.logsumexp(x, axis=1))"
    ),
    'path = "training.safetensors"': "import os; seed, epochs, train = 0, 2, lambda epoch: None",
    "def area(": "corners = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]",
}
#: Blocks that show what fails.
FAILING = {
    "import wengert as wg\nfrom wengert.testing import check_gradients\n\n\nclass Cube": (
        WrongGradientError
    ),
    "import math\n\nimport wengert as wg\nfrom wengert.testing import assert_diff": AssertionError,
    "w = wg.tensor([0.0], requires_grad=True)\ntotal": TypeError,
}
#: Blocks that need more than this process has, and what runs the same.
ELSEWHERE = {
    "@elementwise(": "wengert/ops has these very lines",
    "from hypothesis import settings": "tests/conftest.py has such profiles",
    "from scipy import integrate": "tests/interplay/test_scipy.py, with SCIPY_ARRAY_API=1",
    "mesh = jax.": "tests/backends/test_jax.py",
    'with wg.use_backend("torch:meta")': "tests/backends/test_meta.py",
    'model.to(device="cuda:1")': "tests/backends/test_cupy_devices.py, and two GPUs",
}


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page that are no doctests."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return FENCE.findall(text)
    found = (textwrap.dedent(match[3]) for match in DIRECTIVE.finditer(text))
    return [code for code in found if ">>> " not in code]


PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.*"))]
    if page.suffix in (".md", ".rst") and "design" not in page.parts and blocks(page)
]


def name(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix()


#: Pages whose blocks take long: they check gradients, or import much.
LONG = {"README", "duck_arrays", "operation", "testing"}


def at(block: str, table: dict[str, Any]) -> Any:
    """What a table has for a block, by how the block begins."""
    return next((found for start, found in table.items() if block.startswith(start)), None)


@pytest.mark.filterwarnings("ignore::UserWarning")  # a page tells of one
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=name(p), marks=pytest.mark.slow if p.stem in LONG else ()) for p in PAGES],
)
def test_python_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ndonnx") if page.stem == "onnx" else None
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("graphviz.rendering.Render.render", lambda self, *_, **__: self.source)
    monkeypatch.setattr("wengert.testing.check.installed_backends", lambda: ["numpy"])
    space: dict[str, Any] = {"__name__": "page"}
    with wg.use_backend("numpy"):
        exec(GIVEN, space)
        for code in blocks(page):
            compiled = compile(code, name(page), "exec")
            if at(code, ELSEWHERE):
                continue
            exec(at(code, BEFORE) or "", space)
            with pytest.raises(error) if (error := at(code, FAILING)) else nullcontext():
                exec(compiled, space)
                for test in re.findall(r"^(?:def )?(test_\w+)", code, re.MULTILINE):
                    if hasattr(space[test], "function"):  # of check_gradients
                        space[test]()


@pytest.mark.parametrize("table", [BEFORE, FAILING, ELSEWHERE])
def test_every_entry_is_of_a_block(table: dict[str, Any]) -> None:
    every = [code for page in PAGES for code in blocks(page)]
    assert [x for x in table if not any(code.startswith(x) for code in every)] == []


def test_the_readme_shows_what_the_tester_says(monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "README.md"
    (shown,) = re.findall(
        r"^```text\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    monkeypatch.setattr("wengert.testing.check.installed_backends", lambda: ["numpy"])
    (block,) = (code for code in blocks(page) if "class Cube" in code)
    space: dict[str, Any] = {"__name__": "page"}
    exec(block, space)
    with pytest.raises(WrongGradientError) as raised:
        space["test_cube"]()
    assert shown.removeprefix("WrongGradientError: ") in f"{raised.value}\n"
