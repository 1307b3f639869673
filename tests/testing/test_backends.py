"""Backends of entry points are among those that tests run on, whether they are whole or broken."""

import pytest

from tests.backends.test_others import TINY
from tests.scripts import installed, python

pytestmark = pytest.mark.slow

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
def folder(tmp_path):
    """Has a whole entry point, and two broken ones."""
    names = "tiny = tiny_backend:TinyBackend\nmissing = no_such_library:Backend\n"
    broken = "failing = failing_backend:Backend\n"
    installed(tmp_path, "others", "[wengert.backends]\n" + names + broken)
    (tmp_path / "tiny_backend.py").write_text(TINY)
    (tmp_path / "failing_backend.py").write_text("raise RuntimeError('no driver')\n")
    (tmp_path / "test_users.py").write_text(TESTS)
    return tmp_path


def run(folder, *arguments):
    done = python(*arguments, code=None, folder=folder, path=[folder])
    return done.stdout + done.stderr


def test_all_that_is_installed_includes_entry_points(folder):
    code = "from wengert.testing.backends import installed_backends as f; print(f()[-3:], f()[0])"
    assert run(folder, "-c", code) == "['failing', 'missing', 'tiny'] numpy\n"


def test_pytest_runs_on_them_and_tells_which_is_broken(folder):
    options = ("no:cacheprovider", "-p", "wengert_pytest", "-p", "no:xdist", "-v", "-k", "each")
    out = run(folder, "-m", "pytest", "-p", *options)
    assert "test_each[numpy] PASSED" in out
    assert "test_each[tiny] PASSED" in out
    for name, why in (("missing", "no_such_library"), ("failing", "RuntimeError: no driver")):
        assert f"test_each[{name}] ERROR" in out
        assert f"the backend '{name}' of an entry point cannot be imported" in out
        assert why in out


def test_a_check_runs_on_them_and_tells_which_is_broken(folder):
    code = (
        "import wengert.testing.check as c\n"
        "from test_users import test_own as test\n"
        "c.installed_backends = lambda: ['numpy', 'tiny', 'failing']\n"
        "seen = []\n"
        "right = test.wengert_check.function\n"
        "test.wengert_check.function = lambda x: (seen.append(x.backend.name), right(x))[1]\n"
        "try:\n    test()\n"
        "except Exception as error:\n    print(error, error.__notes__)\n"
        "print(sorted(set(seen)))"
    )
    out = run(folder, "-c", code)
    assert "the backend 'failing' of an entry point cannot be imported" in out
    assert "backends=[...]" in out
    assert out.splitlines()[-1] == "['numpy', 'tiny']"  # which were checked before
