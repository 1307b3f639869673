"""Programs of the repository that are no part of a package, and programs in their own processes."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]


def load(folder: str, name: str) -> ModuleType:
    """The module of a file, such as ``load("examples", "digits")``."""
    path = ROOT / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def python(
    *arguments: Any, code: int | None = 0, folder: Path = ROOT, path: Any = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder``, which has to end with ``code`` if that is a number.

    It finds what is in ``path`` and in the repository; ``more`` is of its environment.
    """
    given = filter(None, [*map(str, path), str(ROOT), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(given), **more},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert code in (done.returncode, None), done.stdout + done.stderr
    return done


def installed(folder: Path, name: str, points: str) -> None:
    """Let a folder have a distribution with entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
