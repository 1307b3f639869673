"""The distribution's metadata and what it says."""

import re
import tomllib
from pathlib import Path

import wengert as wg

ROOT = Path(__file__).parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, TOOLS = METADATA["project"], METADATA["tool"]


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_version_is_the_package_s() -> None:
    """It is written once, in the package, where the build finds it."""
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    assert TOOLS["hatch"]["version"]["path"] == "wengert/__init__.py"
    source = (ROOT / "wengert" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r"^__version__ = \"(.+)\"$", source, re.MULTILINE) == [wg.__version__]


def test_run_time_dependencies() -> None:
    assert names(PROJECT["dependencies"]) == {"numpy", "array-api-compat"}


def test_typed() -> None:
    assert (ROOT / "wengert" / "py.typed").exists()


def test_pytorch_is_never_a_loose_requirement_of_the_tests() -> None:
    extras = PROJECT["optional-dependencies"]
    assert "torch" not in names(extras["test"]) | names(extras["examples"]) | names(extras["docs"])
    assert [r for r in extras["oracles"] if r.startswith("torch")] == ["torch==2.13.0"]


def test_readme_has_the_test_command_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 .*pytest.*$", readme, flags=re.MULTILINE)
    assert len(commands) == 1
    assert '".[test]"' in commands[0]


def test_every_python_that_is_claimed_is_tested() -> None:
    """The workflow runs on each, and lets only those fail that are not claimed."""
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^ +python: \[(.+)\]$", workflow, flags=re.MULTILINE)
    (may_fail,) = re.findall(r"continue-on-error: \$\{\{ matrix\.python == '(.+)' \}\}", workflow)
    prefix = "Programming Language :: Python :: "
    claimed = {c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)}
    assert set(re.findall(r'"(.+?)"', listed)) - {may_fail} == claimed - {"3 :: Only"}


def test_the_addresses_are_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'repository-code: "{PROJECT["urls"]["Repository"]}"' in citation
    assert f'url: "{PROJECT["urls"]["Documentation"]}"' in citation
    assert set(PROJECT["urls"]) >= {"Changelog", "Documentation", "Issues", "Repository"}
