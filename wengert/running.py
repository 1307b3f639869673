"""Runs other libraries' scripts: in a script's own files alone, `import` finds a room of Wengert.

`import torch` finds `wengert.torch`, and `import autograd` finds `wengert.hips`.
"""

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

_ROOMS = {"autograd": "wengert.hips", "torch": "wengert.torch"}
#: Libraries whose Tensors would be the other library's.
_NOT_THERE = {"torch": ("torchaudio", "torchtext", "torchvision")}


def main(library: str) -> None:
    """Run the script that the command line of ``python -m`` names."""
    if len(sys.argv) < 2:
        sys.exit(f"python -m {_ROOMS[library]} SCRIPT ARGUMENTS")
    run(sys.argv[1], sys.argv[2:], library)


def run(script: str, arguments: list[str], library: str = "torch") -> dict[str, Any]:
    """Run a script as ``__main__``, after a list of the names that it uses and that are not there.

    Returns the script's globals.
    Libraries that the script imports find the installed library, or none, as without the runner.
    """
    path = Path(script).resolve()
    for file, line, name in sorted(set(missing(path, library))):
        sys.stderr.write(f"{file.relative_to(path.parent)}:{line}: {name} is not there\n")
    sys.argv, argv = [script, *arguments], sys.argv
    sys.path[0], first = str(path.parent), sys.path[0]
    original = builtins.__import__
    builtins.__import__ = _importing(path.parent, original, library)
    try:
        return runpy.run_path(str(path), run_name="__main__")
    finally:
        builtins.__import__, sys.argv, sys.path[0] = original, argv, first


def _importing(folder: Path, original: Any, library: str) -> Any:
    room, absent = _ROOMS[library], _NOT_THERE.get(library, ())

    @cache
    def is_own(file: str) -> bool:
        path = Path(file).resolve()
        return path.is_relative_to(folder) and "site-packages" not in path.parts

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        first = name.partition(".")[0]
        asked = level == 0 and (first == library or first in absent)
        if not asked or not is_own((globals or {}).get("__file__") or ""):
            return original(name, globals, locals, fromlist, level)
        if first in absent:
            raise ModuleNotFoundError(f"{first} is not there: its tensors are PyTorch's", name=name)
        found = original(name.replace(library, room, 1), globals, locals, fromlist, 0)
        return found if fromlist else sys.modules[room]

    return importing


# -- names that are not there ----------------------------------------------------------------------


def missing(script: Path, library: str = "torch") -> Iterator[tuple[Path, int, str]]:
    """The library's names that a script and the files beside it use, and that are not there."""
    left, seen = [script], set()
    while left:
        path = left.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        tree = ast.parse(path.read_bytes())
        bound = dict(_imports(tree))
        for node in ast.walk(tree):
            for name in _uses(node, bound, library):
                first = name.partition(".")[0]
                if first in _NOT_THERE.get(library, ()):
                    yield path, node.lineno, first  # type: ignore[attr-defined]
                elif first == library and (lacking := _lacking(name)):
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


def _uses(node: ast.AST, bound: dict[str, str], library: str = "torch") -> list[str]:
    """The dotted names that a node imports, or reads of what was imported."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{a.name}" for a in node.names if a.name != "*")]
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if parts and isinstance(node, ast.Name) and bound.get(node.id, "").startswith(library):
        return [".".join([bound[node.id], *reversed(parts)])]
    return []


@cache
def _lacking(name: str) -> str:
    """The first part of a dotted name that is not there, with what stands before it."""
    parts = name.split(".")
    found: Any = import_module(_ROOMS[parts[0]])
    for i, part in enumerate(parts[1:], 2):
        if isinstance(found, ModuleType):
            if not hasattr(found, part):
                return ".".join(parts[:i])
            found = getattr(found, part)
    return ""
