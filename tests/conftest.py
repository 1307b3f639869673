"""What all tests share: the `backend` fixture and the Hypothesis profiles."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from wengert.backends import Backend, builtin_backends, get_backend, use_backend

#: In the order of their tests; an entry point's backend joins when the option names it.
BACKENDS = ("numpy", "array_api_strict", "torch", "jax", "dask", "cupy")

# The default profile runs the same examples every time, so that a failure is a change's doing.
# `--hypothesis-profile=wide` looks further: new examples each time, and many more of them.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.register_profile("wide", settings.get_profile("ci"), derandomize=False, max_examples=400)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--wengert-backends",
        metavar="NAMES",
        help="run tests on these backends alone, as in --wengert-backends=numpy,torch",
    )


def wanted_backends(config: pytest.Config) -> list[str]:
    """The backends that tests run on: those named by the option, or all that are installed."""
    named = config.getoption("--wengert-backends")
    if named:
        return [name.strip() for name in named.split(",")]
    installed = builtin_backends()
    return [name for name in BACKENDS if installed[name]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize(
            "backend",
            [
                pytest.param(name, marks=pytest.mark.cupy if name == "cupy" else ())
                for name in wanted_backends(metafunc.config)
            ],
            indirect=True,
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs on every backend: with others installed, the rest need not run again."""
    for item in items:
        if "backend" in getattr(item, "fixturenames", ()):
            item.add_marker("backend")


@pytest.fixture
def backend(request: Any) -> Iterator[Backend]:
    """Run the test once for each installed backend, with new arrays made on it."""
    name: str = request.param
    chosen = get_backend(name)
    if name == "cupy" and not _has_gpu(chosen):
        pytest.skip("CuPy is installed, and there is no GPU")
    with use_backend(name):
        yield chosen


def _has_gpu(cupy: Backend) -> bool:
    try:
        return bool(cupy.xp.cuda.runtime.getDeviceCount())
    except cupy.xp.cuda.runtime.CUDARuntimeError:
        return False
