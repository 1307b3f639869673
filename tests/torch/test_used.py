"""Each callable of PyTorch's that real programs use is compared with PyTorch.

``used.txt`` has the names that 3 or more of 582 public files use, with the number of files.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.catalogue.torch import REFUSED, ROWS
from tests.torch.test_running import BEGINNING, PROGRAMS
from wengert.running import _imports, _uses

HERE = Path(__file__).parent
NAMES = [line.split()[0] for line in (HERE / "used.txt").read_text().splitlines()]
ROOTS = {"t": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "D": "torch.distributions"}
#: Choices of PyTorch's own kernels, which do nothing: the page lists them.
NOTHING = {"torch.set_deterministic": "torch.use_deterministic_algorithms"}
NOTHING |= {f"torch.cuda.{name}": f"cuda.{name}" for name in ("empty_cache", "synchronize")}
NOTHING["torch.amp.autocast"] = "autocast"
#: Names that tell of a GPU.
OF_GPUS = {"torch.cuda.get_device_name"}


def find(name: str) -> Any:
    found = import_module("wengert.torch")
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def compared() -> Iterator[str]:
    """The names and the methods of all lines and programs that are compared."""
    texts = [(line, ROOTS) for line in [*ROWS, *REFUSED]]
    texts += [(BEGINNING + text, {}) for text in PROGRAMS.values()]
    for text, roots in texts:
        tree = ast.parse(text)
        bound = dict(_imports(tree)) | roots
        for node in ast.walk(tree):
            yield from _uses(node, bound)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield f"x.{node.func.attr}"


def test_what_three_programs_use_is_compared_with_pytorch(room: Any) -> None:
    names = set(compared())
    objects = [find(name) for name in names if name.startswith("torch.")]
    known = {id(found) for found in objects}
    left = []
    for name in NAMES:
        there = name in names if name.startswith("x.") else id(find(name)) in known
        counts = name.startswith("x.") or callable(find(name))
        if counts and not there and name not in NOTHING and name not in OF_GPUS:
            left.append(name)
    assert len(NAMES) > 250
    assert not left, f"no row of tests/catalogue/torch.py calls {left}"


def test_names_that_do_nothing_are_listed_on_the_page(room: Any) -> None:
    page = (HERE.parents[1] / "docs" / "coming_from" / "pytorch.md").read_text()
    for name, told in NOTHING.items():
        assert told.removeprefix("torch.") in page, name
        if name != "torch.amp.autocast":
            assert find(name) is find("torch.set_num_threads")
