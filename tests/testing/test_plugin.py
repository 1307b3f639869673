"""The pytest plugin, as another project has it: run by a pytest of its own."""

import re

import pytest

from tests.scripts import ROOT, installed, python

pytestmark = pytest.mark.slow

USERS_TESTS = """
import pytest

import wengert as wg
from wengert.testing import check_gradients


def test_each(wengert_backend):
    assert wg.ones(2).backend is wengert_backend


SEEN = set()


@pytest.mark.filterwarnings("error")
@check_gradients(("n",), examples=3)
def test_right(x):
    SEEN.add(x.backend.name)
    return wg.sin(x)


def test_alone():
    assert SEEN == {"array_api_strict"}


@check_gradients(("n",), examples=20, backends=["numpy", "array_api_strict"])
def test_wrong(x):
    return x * x.detach()


class TestClass:
    test_right = check_gradients(..., examples=2)(wg.exp)
"""


def run(folder, *options, plugin=True, path=()):
    apart = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist")
    named = ["-p", "wengert_pytest"] if plugin else []
    done = python(*apart, *named, *options, code=None, folder=folder, path=path)
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path):
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    return tmp_path


def test_the_fixture_and_checks_run_on_each_backend_that_is_asked_for(project):
    out = run(project, "-v", "-k", "not alone", "--wengert-backends=numpy,array_api_strict")
    for name in ("numpy", "array_api_strict"):
        for test in ("test_each", "test_right", "TestClass::test_right"):
            assert f"{test}[{name}] PASSED" in out
        assert f"test_wrong[{name}] FAILED" in out
    assert "6 passed" in out
    assert "2 failed" in out


def test_one_backend_what_was_drawn_and_the_counterexample(project):
    out = run(project, "-v", "--wengert-backend=array_api_strict")
    assert "test_wrong[numpy]" not in out  # which the check names, too
    assert "4 passed" in out
    assert "1 failed" in out
    _, _, end = out.partition("arguments that check_gradients drew")
    for name in ("test_right", "TestClass::test_right"):
        line = rf"test_users.py::{name}\[\w+\]: \d+ calls: .*float64.*; shapes \(.*; "
        assert re.search(line + "(magnitudes |zeros)", end), out  # few, on a machine that is busy
    assert "verdict:   wrong" in out
    lines = [line.removeprefix("E").strip() for line in out.splitlines() if line.startswith("E  ")]
    code = "\n".join(lines[lines.index("import wengert as wg") :])
    code = re.match(r"(?s).*?^wg\.testing\.gradcheck\(.*?$", code, re.MULTILINE)[0]
    assert "from test_users import test_wrong" in code
    assert "wg.set_backend('array_api_strict')" in code
    done = python("-c", code, code=1, folder=project)
    wrong = "WrongGradientError: the gradient is wrong: d result 0[0] / d inputs[0][0]"
    assert wrong in done.stderr


def test_nothing_is_imported_before_it_is_used(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_other():\n"
        "    assert 'wengert_pytest' in sys.modules\n"
        "    assert 'wengert' not in sys.modules\n    assert 'numpy' not in sys.modules\n"
    )
    assert "1 passed" in run(tmp_path, "-p", "no:hypothesispytest")


def test_it_can_be_installed_and_named_by_a_conftest(project):
    """The entry point has the module's name, so that pytest registers it once."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nwengert_pytest = "wengert_pytest"\n' in pyproject
    installed(project / "site", "wengert", "[pytest11]\nwengert_pytest = wengert_pytest\n")
    (project / "conftest.py").write_text('pytest_plugins = ["wengert_pytest"]\n')
    options = {"plugin": False, "path": [project / "site"]}
    assert "1 passed" in run(project, "--wengert-backend=numpy", "-k", "each", **options)
    (project / "conftest.py").unlink()
    assert "1 passed" in run(project, "--wengert-backend=numpy", "-k", "each", **options)
