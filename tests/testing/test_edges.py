"""Edge values, other data types and parameters: what `check-backend` finds in a wrong library."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.testing.planted_library import MISTAKES, OTHERS, planted
from wengert.backends import namespaces, registry
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import library_command
from wengert.testing.edges import ELEMENTWISE, edges
from wengert.testing.libraries import SCENES, compare, names, scenes
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

    def install(mistakes: list[str], known: dict[str, Any] = MISTAKES) -> None:
        forget()
        monkeypatch.setitem(sys.modules, "planted_library", planted(mistakes, known))

    yield install
    forget()
    if before is not None:
        namespaces[KIND] = before


def told(out: str, name: str) -> bool:
    """Whether a report has the function in its list of edges."""
    _, _, rest = out.partition(library_command._EDGES)
    lines = rest.partition("\n\n")[0].splitlines()
    return any(line.startswith((f"  {name}(", f"  wg.{name}(")) for line in lines)


@pytest.mark.parametrize(
    ("name", "known"), [*((x, MISTAKES) for x in MISTAKES), *((x, OTHERS) for x in OTHERS)]
)
def test_a_mistake_is_found_by_name(
    name: str, known: dict[str, Any], library: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    library([name], known)
    assert main(["planted_library", "--only", name]) == 1
    assert told(capsys.readouterr().out, name)


UNARY = "abs ceil cos exp expm1 floor reciprocal sign sin sinh square tanh trunc"
BINARY = "add copysign divide maximum minimum multiply subtract"
MOVING = "flip permute_dims moveaxis tril matrix_transpose sort expand_dims"
REDUCING = "sum prod mean max min var std"
#: Where a library may be wrong, and functions that it is found in.
CLASSES: dict[str, tuple[Any, str]] = {
    "above one": (lambda x: x > 1, f"{UNARY} {BINARY} {MOVING} {REDUCING} linalg.det linalg.inv"),
    "negative": (lambda x: x < 0, f"{UNARY} {BINARY} {MOVING} {REDUCING} linalg.inv linalg.qr"),
    "large": (
        lambda x: np.isfinite(x) & (abs(x) > 100),
        f"{UNARY} {BINARY} {MOVING} sum mean max linalg.det linalg.inv linalg.svd fft.rfft",
    ),
    "infinite": (np.isinf, f"{UNARY} {BINARY} {MOVING} {REDUCING}"),
    "nan": (np.isnan, f"{UNARY} {BINARY} {MOVING} {REDUCING} atan2 hypot logaddexp"),
    "zero with a sign": (
        lambda x: (x == 0) & np.signbit(x),
        f"{UNARY} {BINARY} flip permute_dims moveaxis tril matrix_transpose expand_dims",
    ),
    "of single precision": (lambda x: x.dtype == "float32", f"{UNARY} {BINARY} {MOVING} matmul"),
    "strided": (
        lambda x: x.ndim > 0 and x.size > 1 and not x.flags.c_contiguous,
        f"{UNARY} {BINARY} {MOVING} {REDUCING} matmul linalg.inv argmax where take fft.rfft",
    ),
    "without axes": (lambda x: x.ndim == 0, f"{UNARY} {BINARY} {REDUCING}"),
    "empty": (lambda x: np.asarray(not x.size), f"{UNARY} {BINARY} {MOVING} sum prod matmul"),
    "below a cut": (
        lambda x: x.dtype.kind == "c" and (x.imag == 0) & np.signbit(x.imag),
        "acos acosh asin atanh log sqrt",
    ),
    "left of a cut": (
        lambda x: x.dtype.kind == "c" and (x.real == 0) & np.signbit(x.real),
        "asinh atan exp",
    ),
}


def wrong(function: Any, where: Any) -> Any:
    """A function that is wrong if an argument is somewhere, or its array anywhere."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        arrays = [np.asarray(x._array) for x in args if isinstance(x, KIND)]
        with np.errstate(invalid="ignore"):
            hit = any(np.any(where(x)) for x in arrays if x.dtype.kind in "fc")
        return damaged(found) if hit else found

    return call


def damaged(found: Any) -> Any:
    if isinstance(found, tuple):
        return type(found)(*map(damaged, found)) if hasattr(found, "_fields") else found
    values = np.array(found._array)
    if not values.size:
        return strict.asarray(values[None])
    odd = ~np.isfinite(values) if values.dtype.kind in "fc" else False
    return strict.asarray(np.where(odd, 1, values * 1.01 + 1).astype(values.dtype))


@pytest.mark.sampled(4)  # each tries thirty functions
@pytest.mark.parametrize("kind", CLASSES)
def test_wherever_a_library_is_wrong_it_is_found(kind: str, library: Any) -> None:
    where, chosen = CLASSES[kind]
    missed = []
    for name in chosen.split():
        home, _, short = name.rpartition(".")
        module = getattr(strict, home) if home else strict
        mistake = wrong(getattr(module, short), where)
        if home:
            own = ModuleType(f"planted_library.{home}")
            vars(own).update({key: getattr(module, key) for key in module.__all__})
            setattr(own, short, mistake)
        library([home or short], {home or short: own if home else mistake})
        library_command._backend("planted_library", None)
        found = edges(name, "planted_library", 60.0)
        if not found and compare(name, "planted_library")["float32"].verdict == "ok":
            missed.append(name)
    assert not missed


def test_a_function_that_is_wrong_at_edges_is_not_counted_as_right(
    library: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    library(["exp"], {"exp": wrong(strict.exp, lambda x: x > 1)})
    assert main(["planted_library", "--only", "exp"]) == 1
    table = capsys.readouterr().out.partition("values")[2]
    assert table.split()[:7][-1] == "edges"
    row = next(line for line in table.splitlines() if line.startswith("all"))
    assert row.split()[1] == "1/1" and row.split()[-1] == "0/1"


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
    assert page.startswith(f".. Made by Wengert {wg.__version__} with NumPy {np.__version__}, 20")
    for name in MISTAKES:
        assert told(out, name)
        assert f"- ``wg.{name}(" in page
    assert not any(told(out, name) for name in ("exp", "floor", "max"))
    assert main(["planted_library", "--keep", str(keep)]) == 1
    again = capsys.readouterr().out
    assert again[again.index("planted_library 1.0") :] == out[out.index("planted_library 1.0") :]


def test_slices_that_end_going_backwards_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in [other for other in SCENES if other != "indexing"]:
        monkeypatch.delitem(SCENES, other)
    assert [o.verdict for _, o in scenes("array_api_strict")] == ["ok"]
    getitem = KIND.__getitem__

    def endless(x: Any, key: Any) -> Any:
        for at, part in enumerate(key if isinstance(key, tuple) else ()):
            if isinstance(part, slice) and (part.step or 1) < 0:
                key = (*key[:at], slice(part.start, None, part.step), *key[at + 1 :])
        return getitem(x, key)

    monkeypatch.setattr(KIND, "__getitem__", endless)
    assert [o.verdict for _, o in scenes("array_api_strict")] != ["ok"]


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "arange", "linspace", "eye"])
def test_arrays_that_are_made_in_a_wrong_dtype_are_found(
    name: str, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ones only integers are wrong."""
    for other in [other for other in SCENES if other != "creation"]:
        monkeypatch.delitem(SCENES, other)

    def wrong(*given: Any, dtype: Any = None, **options: Any) -> Any:
        if name != "ones" or dtype == strict.int64:
            dtype = strict.int32
        return getattr(strict, name)(*given, dtype=dtype, **options)

    for mistakes, verdict in (([], "ok"), ([name], "differs")):
        library(mistakes, {name: wrong})
        library_command._backend("planted_library", None)
        assert [o.verdict for _, o in scenes("planted_library")] == [verdict]


#: Every so manieth function, where a library makes a program of each operation.
SPARSE = {"jax": 24, "dask": 3}
#: JAX takes the other side of a branch cut.
CUT = {"acos", "acosh", "asin", "asinh", "sqrt"}
UNSIGNED = {"cumulative_prod", "cumulative_sum", "prod", "sum", "linalg.trace"}


@pytest.mark.slow
def test_edges_of_the_backends(backend: Any) -> None:
    """All agree but for a data type that PyTorch has not, whatever the library itself does."""
    chosen = names()[:: SPARSE.get(backend.name, 1)]
    chosen = [name for name in chosen if backend.name != "jax" or name not in CUT]
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
