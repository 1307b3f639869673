"""The edits are those that are meant, and are told by whether a test notices them."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.__main__ import OTHERS
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants
from tests.mutation.trials import ROOT

SOURCE = '''\
"""Some numbers."""

__all__ = ["half"]


def half(x: int, up: bool = False) -> int:
    """Half of it."""
    if x < 0:
        raise ValueError(f"{x} is negative")
    seen.append(x)
    return round(x / 2, ndigits=0) if not up else (x + 1) // 2


def what_an_exchange_leaves(x: float) -> float:
    """It."""
    return max(x, 0.5**0.5) + atan2(x, x)


def of_each_kind(x):
    raise NotImplementedError


seen = []
'''
ENDLESS = """\
def test_endless():
    while True:
        try:
            sum(range(100))
        except Exception:
            pass


def test_after():
    pass
"""
CHOSEN = """
import pytest
from tests.mutation.reach import Choose

names = ["test_it.py::test_endless", "test_it.py::test_after"]
chosen = Choose(names, endless=0.2)
code = pytest.main(["-q", "-p", "no:cacheprovider", "test_it.py"], plugins=[chosen])
assert code == 1 and chosen.failed == names[:1], (code, chosen.failed)
"""
SMALL = """\
from wengert.others import ZERO


def half(x):
    if x < ZERO:
        raise ValueError
    seen.append(x)
    return x // 2


seen = []
"""
TESTS = """\
from wengert.numbers import half


def test_half():
    assert half(5) == 2


def test_later():
    assert half(0) == 0
"""
CHOICE = """\
from hypothesis import settings

settings.register_profile("ci")
settings.register_profile("quick")


def pytest_addoption(parser, pluginmanager):
    if not pluginmanager.hasplugin("wengert_pytest"):  # it is there where Wengert is installed
        parser.addoption("--wengert-backend")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--wengert-backend"):
        items[:] = [item for item in items if item.name != "test_later"]
"""


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_every_edit_of_a_function() -> None:
    source = SOURCE.encode()
    made = mutants("wengert/numbers.py", source)
    edits = {mutant.difference(source) for mutant in made}
    for mutant in made:
        ast.parse(mutant.edited(source))
        assert mutant.room == "wengert"
    line = "return round(x / 2, ndigits=0) if not up else (x + 1) // 2"
    for new in (
        line.replace("x / 2", "(x * 2)"),
        line.replace("x / 2", "(2 / x)"),
        line.replace(", ndigits=0", ""),
        line.replace("=0", "=1"),
        line.replace("not up", "(up)"),
        line.replace("x + 1", "(x - 1)"),
        line.replace("(x + 1) // 2", "((x + 1) * 2)"),
    ):
        assert (line, new) in edits, new
    assert ("seen.append(x)", "pass") in edits
    assert ("if x < 0:", "if (x <= 0):") in edits
    assert ("if x < 0:", "if (not (x < 0)):") in edits
    assert not any("__all__" in old or "negative" in new for old, new in edits)
    assert not any("NotImplementedError" in old for old, _ in edits)
    tree = ast.dump(ast.parse(source))
    assert all(ast.dump(ast.parse(mutant.edited(source))) != tree for mutant in made)


@pytest.mark.parametrize("path", sorted({path for path, _, _ in EQUIVALENT}))
def test_what_is_explained_is_an_edit_still(path: str) -> None:
    source = (ROOT / path).read_bytes()
    edits = {(path, *mutant.difference(source)) for mutant in mutants(path, source)}
    assert {key for key in EQUIVALENT if key[0] == path} <= edits


@pytest.mark.parametrize("path", OTHERS)
def test_what_is_for_other_libraries_is_there(path: str) -> None:
    functions = [x.name for x in ast.parse((ROOT / path).read_text()).body if hasattr(x, "name")]
    assert set(OTHERS[path].split()) <= set(functions)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_what_tests_notice_is_told(tmp_path: Path) -> None:
    for name in ("__init__", "__main__", "equivalent", "mutants", "reach", "trials"):
        here = f"tests/mutation/{name}.py"
        write(tmp_path, here, (ROOT / here).read_text())
    write(tmp_path, "tests/__init__.py", "")
    write(tmp_path, "conftest.py", CHOICE)
    write(tmp_path, "pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n')
    write(tmp_path, "wengert/__init__.py", "")
    write(tmp_path, "wengert/numbers.py", SMALL)
    write(tmp_path, "wengert/others.py", "ZERO = 0\n")
    write(tmp_path, "tests/numbers/test_numbers.py", TESTS)
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutation", "--work", str(tmp_path.parent / "mutated")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    told = run.stdout
    assert "tests/numbers/test_numbers.py: 2 tests" in told
    assert "- seen.append(x)\n+ pass" in told  # what no test looks at
    assert ": not reached\n- raise ValueError" in told
    assert ": by the rest, tests/numbers/test_numbers.py::test_later\n- if x < ZERO:\n" in told
    # Two of the condition, three of the quotient, two statements dropped, and the zero.
    *_, table, shares = told.splitlines()
    assert shares == "killed by pytest: 50.0%; by all tests on NumPy: 75.0%"
    assert table.split() == ["all", "8", "4", "2", "0", "1", "1"]


@pytest.mark.slow
def test_a_test_that_does_not_end_fails(tmp_path: Path) -> None:
    write(tmp_path, "test_it.py", ENDLESS)
    run = subprocess.run(
        [sys.executable, "-c", CHOSEN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout + run.stderr
