"""Every public name of networks and training has a comparison with PyTorch, or says what it has."""

import ast
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from wengert import amp, nn, optim
from wengert.nn import functional, init, utils
from wengert.nn.utils import parametrizations
from wengert.optim import lr_scheduler, swa_utils

#: What has no counterpart in PyTorch, or none that can be compared number by number, and why.
OTHERWISE = {
    name: why
    for names, why in (
        (
            "Dropout Dropout1d Dropout2d AlphaDropout dropout dropout1d dropout2d alpha_dropout",
            "random numbers: the shares, means and deviations of their formulas",
        ),
        (
            (
                "uniform_ normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ "
                "orthogonal_ trunc_normal_"
            ),
            "random numbers: their distributions",
        ),
        ("constant_ ones_ zeros_", "one value, which the name says"),
        (
            ("ModuleList ModuleDict remove_parametrizations"),
            "what they hold and change, by tests of their own",
        ),
        ("LRScheduler", "a base: what derives from it is compared"),
        ("save summary master_weights", "not PyTorch's"),
        ("one_hot", "integers, by their formula"),
    )
    for name in names.split()
}
ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/nn", "tests/optim")
#: What tests call PyTorch and Wengert in turn.
LIBRARIES = ("torch", "lib", "library", "theirs", "theirs_of", "utils")
SPACES = (nn, functional, init, utils, parametrizations, amp)
NAMES = [
    (space, name)
    for space in (*SPACES, optim, lr_scheduler, swa_utils)
    for name in space.__all__
    if not isinstance(getattr(space, name), ModuleType)
]


@cache
def parts(path: Path) -> dict[str, ast.AST]:
    """What a file of tests defines: functions and tables, with those imported from other such."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found[ast.unparse(target)] = node
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            file = ROOT / f"{str(node.module).replace('.', '/')}.py"
            other = parts(file) if file.exists() and file != path else {}
            found |= {alias.name: other[alias.name] for alias in node.names if alias.name in other}
    return found


class Facts(NamedTuple):
    """What the source of a function or table says."""

    names: set[str]
    texts: set[str]
    #: Of PyTorch; an attribute of ``lib`` is one of each library.
    attributes: set[str]
    #: Whether it looks up names in PyTorch.
    looks_up: bool


@cache
def facts(part: ast.AST) -> Facts:
    names, texts, attributes, looks_up = set(), set(), set(), False
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts |= {*node.value.split()}
        elif isinstance(node, ast.JoinedStr):
            whole = [p.value if isinstance(p, ast.Constant) else "*" for p in node.values]
            texts.add("".join(map(str, whole)))
        elif isinstance(node, ast.Attribute) and is_pytorch(node.value):
            attributes.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            looks_up |= is_pytorch(node.args[0])
    return Facts(names, texts, attributes, looks_up)


def is_pytorch(node: ast.AST) -> bool:
    """Whether an expression is PyTorch, or a part of it."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in LIBRARIES


def compared(test: ast.AST, of: dict[str, ast.AST]) -> set[str]:
    """The names that a test compares: attributes of PyTorch, and those that it looks up there.

    What it looks up is in its text, and in that of the functions and tables that it uses.
    """
    seen, waiting = {test}, [test]
    while waiting:
        used = {of[name] for name in facts(waiting.pop()).names if name in of} - seen
        seen |= used
        waiting += used
    found = [facts(part) for part in seen]
    names = set().union(*[each.attributes for each in found])
    return names.union(*[each.texts for each in found]) if any(f.looks_up for f in found) else names


@cache
def everything() -> set[str]:
    """All names that some test compares."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("test_*.py"))]
    found = set()
    for defined in (parts(file) for file in files if file != Path(__file__)):
        for key, test in defined.items():
            if key.startswith("test_"):
                found |= compared(test, defined)
    return found


@cache
def patterns() -> list[str]:
    """Names that tests put together, of which most letters are there."""
    return [name for name in everything() if "*" in name and len(name.replace("*", "")) > 10]


@cache
def of_layers() -> set[str]:
    """Layers that are compared, by the names of the functions that they call."""
    names = [name.lower() for name in nn.__all__ if name in everything()]
    return {name.removesuffix(end) for name in names for end in ("", "loss", "1d")}


@pytest.mark.slow  # reads the text of all tests
@pytest.mark.parametrize(("space", "name"), NAMES)
def test_a_public_name_is_compared_with_pytorch(space: ModuleType, name: str) -> None:
    found = name in everything() or any(fnmatch(name, pattern) for pattern in patterns())
    if space is functional:
        found |= name.replace("_", "") in of_layers()
    assert found != (name in OTHERWISE), f"no test compares {name} with PyTorch's, or it is listed"
