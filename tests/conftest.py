"""What all tests share: the `backend` fixture and the Hypothesis profiles."""

import argparse
import gc
import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import wengert as wg
from tests import walking
from tests.restoring import restore
from wengert.backends import Backend, get_backend
from wengert.testing.backends import installed_backends

# The default profile runs the same examples every time, so that a failure is a change's doing. They
# come from a seed: `derandomize` would read the source of each test's function again for each case,
# which takes as long as five examples of a small function. The quick choice takes half of
# them, `--hypothesis-profile=thorough` five times as many; `few` is for what runs the same tests on
# another library or version. `--hypothesis-profile=wide` looks further, at many more, which are new
# each time.
SEED = "20"
settings.register_profile(
    "ci",
    derandomize=False,
    database=None,
    deadline=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=4)
settings.register_profile("few", settings.get_profile("ci"), max_examples=2)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=40)
settings.register_profile("wide", settings.get_profile("ci"), max_examples=400)
settings.load_profile("ci")


#: The plugin that users have by installing Wengert. A name is registered once, so that it does not
#: matter whether it is installed here.
pytest_plugins = ["wengert_pytest"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-backends",
        action="store_true",
        help="run all tests, on all libraries that are installed; without it, and without naming "
        "files or backends, a minute's choice of them runs on NumPy and array_api_strict",
    )
    parser.addoption(
        "--all-cases", action="store_true", help="run on all libraries what runs on NumPy"
    )
    parser.addoption(
        "--quick", action="store_true", help="choose as without files, also among named"
    )
    parser.addoption("--only", default="", metavar="NAME", help="the rows of one function alone")
    # Set where --wengert-backend names cupy-simulated, and handed on to xdist's processes.
    parser.addoption("--simulated-cupy", action="store_true", help=argparse.SUPPRESS)


#: Of the cases of one test, every so manieth runs on these backends: they walk the same functions
#: as on NumPy, and compare how the libraries carry them out.
SAMPLED = {"array_api_strict": 6, "cupy": 6, "dask": 32, "torch": 6, "jax": 16}
#: The same of the quick choice, which has no others; "" is for tests without a backend. What has
#: few cases has them for what they are, and not to walk a table: there all run on NumPy, unless
#: the test is marked `sampled`.
QUICK = {"numpy": 10, "array_api_strict": 40, "": 10}
FEW = 24
#: On these, every so manieth test has a case: in the quick choice, where all libraries run, and
#: where whole rooms run on one. A call takes a hundred times as long on dask and JAX as on NumPy:
#: beside these tests, a sample of the cases of each runs there.
SOME = {"quick": {"array_api_strict": 3}, "all": {"dask": 8}, "one": {"dask": 4, "jax": 5}}
#: So that each test has a case on one of them at least.
SECOND = "jax"


#: The name of CuPy's simulation, `tests.simulated_cupy`: the backend itself is called cupy.
SIMULATED = "cupy-simulated"


def _is_quick(config: pytest.Config) -> bool:
    return config.getoption("--quick") or not (
        config.getoption("--all-cases")
        or config.getoption("--all-backends")
        or config.getoption("wengert_backends")
        or config.getoption("markexpr")
        or config.args_source is pytest.Config.ArgsSource.ARGS
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("wengert_backends") or ""
    if SIMULATED in chosen and importlib.util.find_spec("cupy") is not None:
        config.option.wengert_backends = chosen.replace(SIMULATED, "cupy")
        config.option.simulated_cupy = True
    if config.getoption("simulated_cupy"):
        from tests import simulated_cupy

        simulated_cupy.install()
    quick, everything = _is_quick(config), config.getoption("--all-cases")
    walking.chosen.only = config.getoption("--only")
    walking.chosen.shares = QUICK if quick else {} if everything else SAMPLED
    from wengert_pytest import INSTALLED  # which pytest has imported to rewrite its assertions

    gc.set_threshold(10_000)  # fewer looks at the many objects of tests, which mostly stay
    if quick:  # what is not collected need not be left out
        config.stash[INSTALLED] = [name for name in installed_backends() if name in QUICK]
        if not config.getoption("--hypothesis-profile"):
            config.option.hypothesis_profile = "quick"
    if config.option.hypothesis_profile != "wide" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = SEED  # Hypothesis's plugin reads both after this


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say how many tests there are, and about how long they take on two cores."""
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    if _is_quick(config) and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.get_terminal_writer().line("A choice of 8 000 tests takes about two minutes.")
    elif config.getoption("--all-backends"):
        config.get_terminal_writer().line("16 000 tests take at most ten minutes on two cores.")


def pytest_sessionfinish() -> None:
    gc.freeze()  # pytest looks five times for what has an error when it is collected


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector rest while tests are found, which all stay.

    It stays enabled: dask, where it is imported now, leaves it off for good if it is off.
    """
    threshold = gc.get_threshold()
    gc.set_threshold(0)
    try:
        return (yield)
    finally:
        gc.set_threshold(*threshold)
        restore()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose among the cases, and mark what runs on every backend."""
    everything, quick = config.getoption("--all-cases"), _is_quick(config)
    some = {} if everything else _some(config)
    lacks_oracles = not any(map(importlib.util.find_spec, ("torch", "jax")))
    named = [(item, _backend_of(item)) for item in items]
    cases = Counter((item.nodeid.partition("[")[0], name) for item, name in named)
    kept, left, begun = [], [], set()
    only = config.getoption("--only")
    for item, name in named:
        if name:
            item.add_marker("backend")
        if name in ("cupy", "numpy"):
            item.add_marker(name)
        if not name and {"torch", "jax"} & {*map(str, _parameters_of(item))}:
            item.add_marker("oracle")  # or no step of CI would run it
        if SIMULATED in (config.getoption("wengert_backends") or ""):
            item.add_marker(pytest.mark.skip(reason="no wheel of CuPy is installed"))
        if name == "cupy" and "linalg.eig" in item.nodeid.replace("vals", "") and _lacks_eig():
            item.add_marker(pytest.mark.skip(reason="CuPy has linalg.eig from version 14 on"))
        # Each test has one case at least, so that none is forgotten, but where only some have.
        test = item.nodeid.partition("[")[0], name
        turn = crc32(test[0].encode()) + (name == SECOND)
        always = item.get_closest_marker("whole") is not None
        first = test not in begun and (always or not turn % some.get(name, 1))
        out = lacks_oracles and item.get_closest_marker("oracle") is not None
        out = out or bool(only and not walking.concerns(item, only))
        if quick:
            out = out or name not in QUICK or _is_for_later(item)
            share = 1 if out else _share(item, name, cases[test])
        else:
            share = 1 if everything else SAMPLED.get(name, 1)
        named = config.args_source is pytest.Config.ArgsSource.ARGS or config.getoption("markexpr")
        out = out or bool(item.get_closest_marker("ci") and not named)
        if item.get_closest_marker("simulated") is not None:
            simulated = config.getoption("simulated_cupy") and name in ("", "cupy")
            out = not (simulated or name == SIMULATED)
            out = out or bool(quick and item.get_closest_marker("slow"))
        out = out or bool(not first and crc32(item.nodeid.encode()) % share)
        if out:
            left.append(item)
        else:
            begun.add(test)
            kept.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _some(config: pytest.Config) -> dict[str, int]:
    """On which backends only some tests run."""
    if _is_quick(config):
        return SOME["quick"]
    if config.getoption("--all-backends"):
        return SOME["all"]
    return {} if config.args_source is pytest.Config.ArgsSource.ARGS else SOME["one"]


def _share(item: pytest.Item, name: str, cases: int) -> int:
    """Of the cases of a test on a backend, the quick choice takes one of so many."""
    sampled = item.get_closest_marker("sampled")
    if name == "array_api_strict":
        return QUICK[name]
    if item.get_closest_marker("whole") is not None or (sampled is None and cases <= FEW):
        return 1
    return int(sampled.args[0]) if sampled is not None and sampled.args else QUICK[name]


@cache
def _lacks_eig() -> bool:
    return not hasattr(get_backend("cupy").namespace.linalg, "eig")


def _backend_of(item: pytest.Item) -> str:
    """The name of the backend that a test runs on, if it takes one."""
    taken = "wengert_backend" in getattr(item, "fixturenames", ())
    return item.callspec.params["wengert_backend"].partition(":")[0] if taken else ""


def _parameters_of(item: pytest.Item) -> list[object]:
    return [*item.callspec.params.values()] if hasattr(item, "callspec") else []


def _is_for_later(item: pytest.Item) -> bool:
    """Whether the quick choice leaves a test out: it is slow, or takes another library.

    What is compared with PyTorch alone is marked `whole` and `oracle`, and stays where that is.
    """
    others = SAMPLED.keys() - QUICK.keys()
    slow, oracle, whole = map(item.get_closest_marker, ("slow", "oracle", "whole"))
    return bool(slow or (oracle and not whole)) or any(
        isinstance(value, str) and value in others for value in _parameters_of(item)
    )


@pytest.fixture(autouse=True)
def meanings() -> Iterator[None]:
    """Keep the core's methods where a test imports all modules or runs a page."""
    yield
    restore()


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Let no test that calls the garbage collector wait until it has seen all earlier tests."""
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """Let each test draw the same random numbers every time, in whatever order tests run."""
    wg.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    oracle = request.node.get_closest_marker("oracle") is not None
    if "torch" in sys.modules or (oracle and importlib.util.find_spec("torch") is not None):
        import torch

        torch.manual_seed(0)


@pytest.fixture
def backend(wengert_backend: Backend) -> Iterator[Backend]:
    """Run the test once for each installed backend, with new arrays made on it."""
    if wengert_backend.name != "dask":
        yield wengert_backend
        return
    import dask

    # Threads take longer to start than the arrays of tests take to compute.
    with dask.config.set(scheduler="synchronous"):
        yield wengert_backend
