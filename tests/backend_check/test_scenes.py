"""What the check finds in a library with a mistake."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from backend_check.checks import SCENES, scenes
from backend_check.command import find_backend, main
from wengert.backends import namespaces, registry
from wengert.tape.primitive import PRIMITIVES

strict = pytest.importorskip("array_api_strict")
KIND = type(strict.asarray(0))


def forget() -> None:
    registry._loaded.pop("planted_library", None)
    namespaces.pop(KIND, None)
    for primitive in PRIMITIVES.values():
        primitive.kernels.pop(KIND, None)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """What installs array_api_strict with other functions; its arrays are no other backend's."""
    monkeypatch.setattr(
        KIND, "__array_namespace__", lambda self, **_: sys.modules["planted_library"]
    )
    before = namespaces.pop(KIND, None)

    def install(**functions: Any) -> None:
        forget()
        module = ModuleType("planted_library")
        vars(module).update({name: x for name, x in vars(strict).items() if name[:2] != "__"})
        vars(module).update(functions, __version__="1.0")
        monkeypatch.setitem(sys.modules, "planted_library", module)

    yield install
    forget()
    if before is not None:
        namespaces[KIND] = before


def only(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in [other for other in SCENES if other != scene]:
        monkeypatch.delitem(SCENES, other)


def test_a_wrong_function_is_named_with_the_call_that_shows_it(
    library: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, status in (({}, 0), ({"exp": lambda x: strict.exp(x) * 1.01}, 1)):
        library(**wrong)
        assert main(["planted_library", "--only", "exp"]) == status
        out = capsys.readouterr().out
        assert ("differ from NumPy's:\n  exp(float64 (2, 3)): [" in out) == bool(wrong)
        row = next(line for line in out.splitlines() if line.startswith("all"))
        assert row.split()[1:3] == (["0/1"] * 2 if wrong else ["1/1"] * 2)


def test_slices_that_end_going_backwards_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    only("indexing", monkeypatch)
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
    only("creation", monkeypatch)

    def wrong(*given: Any, dtype: Any = None, **options: Any) -> Any:
        if name != "ones" or dtype == strict.int64:
            dtype = strict.int32
        return getattr(strict, name)(*given, dtype=dtype, **options)

    for functions, verdict in (({}, "ok"), ({name: wrong}, "differs")):
        library(**functions)
        find_backend("planted_library", None)
        assert [o.verdict for _, o in scenes("planted_library")] == [verdict]
