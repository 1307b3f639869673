"""The public names: listed in a fresh process, importable as modules, and each at home."""

import json
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest

import wengert as wg
from wengert.names import HINTS
from wengert.ops.late import LATER

NAMESPACES = [
    *("wengert", "wengert.autograd", "wengert.func", "wengert.nn", "wengert.nn.functional"),
    *("wengert.nn.init", "wengert.nn.utils", "wengert.random", "wengert.tape"),
    *(
        "wengert.amp",
        "wengert.dask",
        "wengert.data",
        "wengert.export",
        "wengert.inspection",
        "wengert.optim",
        "wengert.optim.lr_scheduler",
        "wengert.optim.swa_utils",
        "wengert.optimize",
        "wengert.testing",
        "wengert.linalg",
        "wengert.fft",
        "wengert.special",
        "wengert.random",
    ),
]

LISTED = f"""
import json, wengert
found = {{}}
for name in {NAMESPACES!r}:
    module = wengert
    for part in name.split('.')[1:]:
        module = getattr(module, part)
    found[name] = [one for one in dir(module) if not one.startswith("__")]
print(json.dumps(found))
"""


def namespace(name: str) -> Any:
    found: Any = wg
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_a_private_name_is_asked_for_by_tools_and_gets_no_hint() -> None:
    with pytest.raises(AttributeError) as caught:
        wg._matmul  # noqa: B018
    assert str(caught.value) == "module 'wengert' has no attribute '_matmul'"
    with pytest.raises(AttributeError, match=r"[Dd]id you mean"):
        wg.matmull  # noqa: B018


@pytest.mark.parametrize(
    ("name", "instead"),
    [("global_tape", "wg.global_tape"), ("Entries", "wengert.inspection.listing.Entries")],
)
def test_names_that_went_from_the_tape_have_hints(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use {instead}$"):
        getattr(wg.tape, name)
    import_module("wengert.inspection.listing")
    for written in HINTS["wengert.tape"].values():
        attrgetter(written.partition(".")[2])(wg)
    with pytest.raises(AttributeError, match=r"no attribute 'sweeps'$"):
        wg.tape.sweeps  # noqa: B018


@pytest.mark.parametrize(
    ("name", "instead"),
    [("func.jit", "wg.compile"), ("linalg.inverse", "wg.linalg.inv"), ("optim.tanh", "wg.tanh")],
)
def test_names_of_another_namespace_have_hints(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"; use {instead}(,|$)"):
        attrgetter(name)(wg)


@pytest.mark.slow
def test_a_fresh_process_lists_every_public_name_and_no_others() -> None:
    for name, listed in json.loads(run(LISTED)).items():
        public = namespace(name).__all__
        assert sorted(listed) == sorted(n for n in public if not n.startswith("__")), name
        assert len(set(public)) == len(public)


@pytest.mark.parametrize("name", NAMESPACES)
def test_every_listed_name_is_there(name: str) -> None:
    module = namespace(name)
    for one in dir(module):
        getattr(module, one)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["special", *(pytest.param(x, marks=pytest.mark.slow) for x in ("fft", "linalg"))]
)
def test_extensions_are_modules_by_their_public_names(name: str) -> None:
    code = (
        f"import wengert.{name} as by_name, wengert as wg, wengert.ops.{name} as home, sys\n"
        f"from wengert.{name} import {home(name)} as function\n"
        f"assert by_name is wg.{name} is home is sys.modules['wengert.{name}']\n"
        f"assert function is wg.{name}.{home(name)}\n"
    )
    run(code)
    run(f"import wengert as wg; first = wg.{name}; import wengert.{name} as m; assert m is first")


def home(name: str) -> str:
    return {"fft": "rfft", "linalg": "solve", "special": "digamma"}[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["nn", *(pytest.param(x, marks=pytest.mark.slow) for x in ("func", "optim", "testing"))]
)
def test_submodules_need_no_import_of_their_own(name: str) -> None:
    run(f"import wengert as wg; wg.{name}.__all__")


def test_stub_of_the_namespace_is_current() -> None:
    """What type checkers read names the same as what runs."""
    from tests.project.stubs import exported

    for module in ("wengert", "wengert.ops", "wengert.linalg", "wengert.fft", "wengert.special"):
        running: Any = import_module(module)
        names = {*running.__all__, *(wg.ops.__all__ if module == "wengert" else ())}
        if module == "wengert.ops":
            names |= {*LATER}
        assert exported(module) - {"__all__"} == names, module
