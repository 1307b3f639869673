"""The pytest plugin, as another project has it: run by a pytest of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

USERS_TESTS = """
import sys

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
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(["-p", "wengert_pytest"] if plugin else []),
            *options,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *map(str, path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path):
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    return tmp_path


@pytest.mark.slow
def test_the_fixture_and_checks_run_on_each_backend_that_is_asked_for(project):
    for spelling in ("--wengert-backend", "--wengert-backends"):
        out = run(project, "-v", "-k", "not alone", f"{spelling}=numpy,array_api_strict")
        for name in ("numpy", "array_api_strict"):
            assert f"test_each[{name}] PASSED" in out
            assert f"test_right[{name}] PASSED" in out
            assert f"TestClass::test_right[{name}] PASSED" in out
            assert f"test_wrong[{name}] FAILED" in out
        assert "6 passed" in out
        assert "2 failed" in out


@pytest.mark.slow
def test_the_end_of_a_run_says_what_was_drawn(project):
    out = run(project, "--wengert-backend=numpy", "-k", "test_right")
    _, _, end = out.partition("arguments that check_gradients drew")
    for name in ("test_right", "TestClass::test_right"):
        line = rf"test_users.py::{name}\[numpy\]: \d+ calls: .*float64.*; shapes \(.*; "
        assert re.search(line + "(magnitudes |zeros)", end), out  # few, on a machine that is busy


@pytest.mark.slow
def test_a_backend_that_a_check_does_not_name_is_left_out(project):
    out = run(project, "-v", "--wengert-backend=array_api_strict", "-k", "wrong")
    assert "test_wrong[numpy]" not in out
    assert "1 failed" in out
    out = run(project, "--wengert-backend=array_api_strict", "-k", "test_right or alone")
    assert "3 passed" in out


@pytest.mark.slow
def test_the_counterexample_is_in_the_report_and_runs(project):
    out = run(project, "--wengert-backend=array_api_strict", "-k", "wrong")
    assert "verdict:   wrong" in out
    lines = [line.removeprefix("E").strip() for line in out.splitlines() if line.startswith("E  ")]
    start, end = (
        lines.index("import wengert as wg"),
        next(i for i, line in enumerate(lines) if line.startswith("wg.testing.gradcheck(")),
    )
    code = "\n".join(lines[start : end + 1])
    assert "from test_users import test_wrong" in code
    assert "wg.set_backend('array_api_strict')" in code
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        "WrongGradientError: the gradient is wrong: d result 0[0] / d inputs[0][0]" in done.stderr
    )


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_used(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_other():\n"
        "    assert 'wengert_pytest' in sys.modules\n"
        "    assert 'wengert' not in sys.modules\n    assert 'numpy' not in sys.modules\n"
    )
    assert "1 passed" in run(tmp_path, "-p", "no:hypothesispytest")


@pytest.mark.slow
def test_it_can_be_installed_and_named_by_a_conftest(project):
    """The entry point has the module's name, so that pytest registers it once."""
    installed = project / "site"
    info = installed / "wengert-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wengert\nVersion: 0\n")
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nwengert_pytest = "wengert_pytest"\n' in pyproject
    (info / "entry_points.txt").write_text("[pytest11]\nwengert_pytest = wengert_pytest\n")
    (project / "conftest.py").write_text('pytest_plugins = ["wengert_pytest"]\n')
    for path in ([], [installed]):
        out = run(project, "--wengert-backend=numpy", "-k", "each", "-q", plugin=False, path=path)
        assert "1 passed" in out
    (project / "conftest.py").unlink()
    out = run(
        project, "--wengert-backend=numpy", "-k", "each", "-q", plugin=False, path=[installed]
    )
    assert "1 passed" in out
