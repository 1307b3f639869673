"""Edge values, other data types and parameters: what `check-backend` finds in a wrong library."""

import sys
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.testing.planted_library import MISTAKES, planted
from wengert.backends import namespaces, registry
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import library_command
from wengert.testing.edges import ELEMENTWISE, edges
from wengert.testing.libraries import SCENES, names
from wengert.testing.library_calls import difference
from wengert.testing.library_command import main

strict = pytest.importorskip("array_api_strict")
KIND = type(strict.asarray(0))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What installs the library with some mistakes; its arrays are no other backend's meanwhile."""
    monkeypatch.setattr(
        KIND, "__array_namespace__", lambda self, **_: sys.modules["planted_library"]
    )
    before = namespaces.pop(KIND, None)

    def forget() -> None:
        registry._loaded.pop("planted_library", None)
        namespaces.pop(KIND, None)
        for primitive in PRIMITIVES.values():
            primitive.kernels.pop(KIND, None)

    def install(mistakes: list[str]) -> None:
        forget()
        monkeypatch.setitem(sys.modules, "planted_library", planted(mistakes))

    yield install
    forget()
    if before is not None:
        namespaces[KIND] = before


def told(out: str, name: str) -> bool:
    """Whether a report has the function in its list of edges."""
    _, _, rest = out.partition(library_command._EDGES)
    lines = rest.partition("\n\n")[0].splitlines()
    return any(line.startswith((f"  {name}(", f"  wg.{name}(")) for line in lines)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_by_name(
    name: str, library: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    library([name])
    assert main(["planted_library", "--only", name]) == 1
    assert told(capsys.readouterr().out, name)


@pytest.mark.slow
def test_all_mistakes_are_listed_in_a_full_run(
    library: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    library([*MISTAKES])
    monkeypatch.setattr(library_command, "names", lambda: [*MISTAKES, "exp", "floor", "max"])
    for scene in [*SCENES][1:]:
        monkeypatch.delitem(SCENES, scene)
    path, keep = tmp_path / "report.rst", tmp_path / "kept"
    assert main(["planted_library", "--rst", str(path), "--keep", str(keep)]) == 1
    out, page = capsys.readouterr().out, path.read_text()
    for name in MISTAKES:
        assert told(out, name)
        assert f"- ``wg.{name}(" in page
    assert not any(told(out, name) for name in ("exp", "floor", "max"))
    assert main(["planted_library", "--keep", str(keep)]) == 1
    again = capsys.readouterr().out
    assert again[again.index("planted_library 1.0") :] == out[out.index("planted_library 1.0") :]


#: Every so manieth function, where a library makes a program of each operation.
SPARSE = {"jax": 24, "dask": 3}
UNSIGNED = {"cumulative_prod", "cumulative_sum", "prod", "sum", "linalg.trace"}


@pytest.mark.slow
def test_edges_of_the_backends(backend: Any) -> None:
    """All agree but for a data type that PyTorch has not, whatever the library itself does."""
    chosen = names()[:: SPARSE.get(backend.name, 1)]
    found = {name: each for name in chosen if (each := edges(name, backend.name, 600.0))}
    ours = {n for n, each in found.items() if any(f.call.startswith("wg.") for f in each)}
    assert ours == (UNSIGNED if backend.name == "torch" else set()), found
    if backend.name == "numpy":
        assert not found
    for name in ours:
        assert {f.told for f in found[name]} == {"int64 instead of uint64"}


def test_data_types_that_a_library_lacks_are_told_of_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend, tried = registry.get_backend("array_api_strict"), []
    known = backend.raw_dtype

    def raw_dtype(dtype: Any) -> Any:
        if dtype.name.startswith("complex"):
            tried.append(dtype)
            raise TypeError(f"no data type {dtype.name}")
        return known(dtype)

    monkeypatch.setattr(backend, "raw_dtype", raw_dtype)
    assert edges("astype", backend.name, 60.0) == []
    assert tried


def test_elementwise_functions_have_all_their_digits() -> None:
    assert {"log1p", "sin", "add", "round"} <= ELEMENTWISE
    assert not ELEMENTWISE & {"sum", "matmul", "sort"}
    tiny = np.asarray([1e-18, 1.0])
    assert difference(tiny * np.asarray([0, 1]), tiny) == ""
    assert difference(tiny * np.asarray([0, 1]), tiny, near=0.0) == "[0] instead of [1e-18]"


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool"])
@pytest.mark.parametrize("initial", [False, True])
def test_running_products_have_the_dtype_of_sums(dtype: str, initial: bool, backend: Any) -> None:
    if dtype == "bool" and backend.name == "array_api_strict":
        pytest.skip("it refuses bool")
    x = wg.asarray([1, 3, 2], dtype=dtype)
    found = wg.cumulative_prod(x, include_initial=initial)
    assert found.dtype == wg.sum(x).dtype
    expected = np.cumprod(np.asarray([1, 3, 2]).astype(dtype), dtype="int64")
    np.testing.assert_array_equal(found.numpy()[int(initial) :], expected)
