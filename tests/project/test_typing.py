"""What mypy and pyright say of a user's programs: nothing of a sound one, each fault of the other.

pyright runs as basedpyright, whose wheel brings all that it needs along.
"""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.scripts import ROOT, python

PROGRAMS = Path(__file__).with_name("typed")


def faults(name: str) -> set[int]:
    """The lines of a program that say that they have a fault."""
    lines = (PROGRAMS / name).read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if "  # fault" in line}


def by_mypy(directory: Path) -> dict[str, dict[int, str]]:
    settings = directory / "mypy.ini"
    settings.write_text(f"[mypy]\nmypy_path = {ROOT}\nstrict = True\nfollow_imports = silent\n")
    files = sorted(str(path) for path in PROGRAMS.glob("*.py"))
    done = python("-m", "mypy", f"--config-file={settings}", *files, code=1, folder=directory)
    found: dict[str, dict[int, str]] = {}
    for path, line, text in re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found.setdefault(Path(path).name, {})[int(line)] = text
    return found


def by_pyright(directory: Path) -> dict[str, dict[int, str]]:
    settings = directory / "pyrightconfig.json"
    asked = {
        "include": [str(PROGRAMS)],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",  # pyright's own
    }
    settings.write_text(json.dumps(asked))
    words = ("--outputjson", "--project", settings, "--pythonpath", sys.executable)
    done = python("-m", "basedpyright", *words, code=1, folder=directory)
    found: dict[str, dict[int, str]] = {}
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        line = one["range"]["start"]["line"] + 1
        found.setdefault(Path(one["file"]).name, {})[line] = one["message"]
    return found


@pytest.mark.parametrize(("checker", "module"), [(by_mypy, "mypy"), (by_pyright, "basedpyright")])
@pytest.mark.slow
def test_a_user_s_programs(checker, module: str, tmp_path: Path) -> None:
    if find_spec(module) is None:
        pytest.skip(f"needs {module}")
    found = checker(tmp_path)
    assert found.get("sound.py", {}) == {}
    assert found["faulty.py"].keys() == faults("faulty.py"), found["faulty.py"]


@pytest.mark.slow
def test_the_sound_program_runs() -> None:
    python(PROGRAMS / "sound.py")
