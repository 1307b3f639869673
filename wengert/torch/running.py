"""Runs PyTorch's scripts: `import torch` finds `wengert.torch` in the script's own files alone."""

import ast
import builtins
import runpy
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = "wengert.torch"
_NOT_THERE = ("torchaudio", "torchtext", "torchvision")


def run(script: str, arguments: list[str]) -> dict[str, Any]:
    """Run a script as ``__main__``, after a list of the names that it uses and that are not there.

    Returns the script's globals.
    Libraries that the script imports find the installed PyTorch, or none, as without the runner.
    """
    path = Path(script).resolve()
    for file, line, name in sorted(set(missing(path))):
        sys.stderr.write(f"{file.relative_to(path.parent)}:{line}: {name} is not there\n")
    sys.argv, argv = [script, *arguments], sys.argv
    sys.path[0], first = str(path.parent), sys.path[0]
    original = builtins.__import__
    builtins.__import__ = _importing(path.parent, original)
    try:
        return runpy.run_path(str(path), run_name="__main__")
    finally:
        builtins.__import__, sys.argv, sys.path[0] = original, argv, first


def _importing(folder: Path, original: Any) -> Any:
    @cache
    def is_own(file: str) -> bool:
        path = Path(file).resolve()
        return path.is_relative_to(folder) and "site-packages" not in path.parts

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        first = name.partition(".")[0]
        asked = level == 0 and (first == "torch" or first in _NOT_THERE)
        if not asked or not is_own((globals or {}).get("__file__") or ""):
            return original(name, globals, locals, fromlist, level)
        if first in _NOT_THERE:
            raise ModuleNotFoundError(f"{first} is not there: its tensors are PyTorch's", name=name)
        found = original(f"wengert.{name}", globals, locals, fromlist, 0)
        return found if fromlist else sys.modules[_HERE]

    return importing


# -- names that are not there ----------------------------------------------------------------------


def missing(script: Path) -> Iterator[tuple[Path, int, str]]:
    """The names of PyTorch's that a script and the files beside it use, and that are not there."""
    left, seen = [script], set()
    while left:
        path = left.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        tree = ast.parse(path.read_bytes())
        bound = dict(_imports(tree))
        for node in ast.walk(tree):
            for name in _uses(node, bound):
                first = name.partition(".")[0]
                if first in _NOT_THERE:
                    yield path, node.lineno, first  # type: ignore[attr-defined]
                elif first == "torch" and (lacking := _lacking(name)):
                    yield path, node.lineno, lacking  # type: ignore[attr-defined]
                else:
                    beside = script.parent.joinpath(*name.split("."))
                    left += [beside.with_suffix(".py"), beside / "__init__.py"]


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            first = alias.name.partition(".")[0]
            if isinstance(node, ast.Import):
                yield (alias.asname, alias.name) if alias.asname else (first, first)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _uses(node: ast.AST, bound: dict[str, str]) -> list[str]:
    """The dotted names that a node imports, or reads of what was imported."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{a.name}" for a in node.names if a.name != "*")]
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if parts and isinstance(node, ast.Name) and bound.get(node.id, "").startswith("torch"):
        return [".".join([bound[node.id], *reversed(parts)])]
    return []


@cache
def _lacking(name: str) -> str:
    """The first part of a dotted name that is not there, with what stands before it."""
    found: Any = import_module(_HERE)
    parts = name.split(".")
    for i, part in enumerate(parts[1:], 2):
        if isinstance(found, ModuleType):
            if not hasattr(found, part):
                return ".".join(parts[:i])
            found = getattr(found, part)
    return ""
