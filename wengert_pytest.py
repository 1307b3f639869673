"""Wengert's pytest plugin: the fixture ``wengert_backend``, its option, and what tests drew.

pytest imports the plugins of all installed packages in every project, so this module stands beside
the package, not in it: Wengert and NumPy are imported when a test asks for the fixture.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from types import FunctionType
from typing import Any

import pytest

#: The installed backends, which are looked for once, as that takes time.
INSTALLED = pytest.StashKey[list[str]]()
#: Lines of the terminal summary without ``-v``.
FEW = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("wengert").addoption(
        "--wengert-backend",
        "--wengert-backends",
        dest="wengert_backends",
        metavar="NAME[:DEVICE][,NAME]",
        help="run tests that take wengert_backend on these backends, not on all installed ones",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that take the fixture once for each backend."""
    if "wengert_backend" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("wengert_backends")
    named = [name.strip() for name in chosen.split(",")] if chosen else None
    check = vars(metafunc.function).get("wengert_check")
    if check is not None and check.backends is not None:
        takes = check.backends
        names = takes if named is None else [n for n in named if n.partition(":")[0] in takes]
    elif named is not None:
        names = named
    else:
        names = metafunc.config.stash.get(INSTALLED, [])
        if not names:
            from wengert.testing.backends import installed_backends

            names = metafunc.config.stash[INSTALLED] = installed_backends()
    metafunc.parametrize("wengert_backend", names, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> None:
    """Run tests that `wengert.testing.check_gradients` has made once for each backend, too."""
    if type(obj) is FunctionType and "wengert_check" in vars(obj):
        pytest.mark.usefixtures("wengert_backend")(obj)


@pytest.fixture
def wengert_backend(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Run the test once for each installed backend, with new arrays made on it."""
    from wengert.backends import get_backend, use_backend
    from wengert.testing.backends import has_gpu

    spec: str = request.param
    name = spec.partition(":")[0]
    backend = get_backend(name)
    if name == "cupy" and not has_gpu():
        pytest.skip("CuPy is installed, and there is no GPU")
    check = getattr(request.function, "wengert_check", None)
    with use_backend(spec), check.on(name) if check else nullcontext():
        yield backend
    if check:  # reports carry it from the workers of pytest-xdist, too
        request.node.user_properties.append(("wengert drew", str(check.drawn)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at what arguments derivatives were checked, a line for each test."""
    told = [
        f"{report.nodeid}: {drawn}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for key, drawn in report.user_properties
        if key == "wengert drew"
    ]
    if told:
        terminalreporter.section("arguments that check_gradients drew")
        for line in told if terminalreporter.verbosity > 0 else told[:FEW]:
            terminalreporter.write_line(line)
        if terminalreporter.verbosity <= 0 and len(told) > FEW:
            terminalreporter.write_line(f"... {len(told) - FEW} more tests: -v lists them")
