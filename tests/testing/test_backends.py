"""Backends of entry points are among those that tests run on, whether they are whole or broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TINY = """
from wengert.backends import Backend


class TinyBackend(Backend):
    name = "tiny"
    module = "tests.backends.tiny"

    def devices(self):
        return ["tiny"]

    def from_numpy(self, array, device=None):
        return self.xp.Array(array)
"""

TESTS = """
import wengert as wg
from wengert.testing import check_gradients


def test_each(wengert_backend):
    assert wengert_backend.name


@check_gradients((2,), order=1, examples=2, single=False, forward=False)
def test_own(x):
    return x * x
"""


@pytest.fixture
def installed(tmp_path):
    """A whole entry point, and two broken ones, installed in a path of their own."""
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[wengert.backends]\n"
        "tiny = tiny_backend:TinyBackend\n"
        "missing = no_such_library:Backend\n"
        "failing = failing_backend:Backend\n"
    )
    (tmp_path / "tiny_backend.py").write_text(TINY)
    (tmp_path / "failing_backend.py").write_text("raise RuntimeError('no driver')\n")
    (tmp_path / "test_users.py").write_text(TESTS)
    return tmp_path


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_all_that_is_installed_includes_entry_points(installed):
    code = "from wengert.testing.backends import installed_backends as f; print(f()[-3:], f()[0])"
    assert run(installed, "-c", code) == "['failing', 'missing', 'tiny'] numpy\n"


@pytest.mark.slow
def test_pytest_runs_on_them_and_tells_which_is_broken(installed):
    out = run(
        installed,
        *("-m", "pytest", "-p", "no:cacheprovider", "-p", "wengert_pytest", "-v", "-k", "each"),
        *("-p", "no:xdist"),
    )
    assert "test_each[numpy] PASSED" in out
    assert "test_each[tiny] PASSED" in out
    for name, why in (("missing", "no_such_library"), ("failing", "RuntimeError: no driver")):
        assert f"test_each[{name}] ERROR" in out
        assert f"the backend '{name}' of an entry point cannot be imported" in out
        assert why in out


@pytest.mark.slow
def test_a_check_runs_on_them_and_tells_which_is_broken(installed):
    code = (
        "import wengert.testing.backends as b, wengert.testing.check as c\n"
        "from test_users import test_own as test\n"
        "c.installed_backends = lambda: [n for n in b.installed_backends() if n in {names}]\n"
        "seen = []\n"
        "right = test.wengert_check.function\n"
        "test.wengert_check.function = lambda x: (seen.append(x.backend.name), right(x))[1]\n"
        "try:\n    test()\n"
        "except Exception as error:\n    print(error, error.__notes__)\n"
        "print(sorted(set(seen)))"
    )
    whole = code.replace("{names}", "('numpy', 'tiny')")
    assert run(installed, "-c", whole).splitlines()[-1] == "['numpy', 'tiny']"
    out = run(installed, "-c", code.replace("{names}", "('numpy', 'failing')"))
    assert "the backend 'failing' of an entry point cannot be imported" in out
    assert "backends=[...]" in out
    assert "['numpy']" in out  # which was checked before
