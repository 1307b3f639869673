"""The public names: listed in a fresh process, importable as modules, and each at home."""

import json
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest

import wengert as wg
from tests.scripts import python
from wengert.names import HINTS
from wengert.ops.late import LATER

NAMESPACES = [
    *("wengert", "wengert.autograd", "wengert.func", "wengert.nn", "wengert.nn.functional"),
    *("wengert.nn.init", "wengert.nn.utils", "wengert.random", "wengert.tape"),
    *("wengert.amp", "wengert.dask", "wengert.data", "wengert.export", "wengert.inspection"),
    *("wengert.optim", "wengert.optim.lr_scheduler", "wengert.optim.swa_utils", "wengert.optimize"),
    *("wengert.testing", "wengert.linalg", "wengert.fft", "wengert.special"),
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


def test_names_that_went_and_those_of_another_namespace_have_hints() -> None:
    for name, told in {
        "tape.global_tape": "no attribute 'global_tape'; use wg.global_tape$",
        "tape.Entries": "no attribute 'Entries'; use wengert.inspection.listing.Entries$",
        "tape.sweeps": "no attribute 'sweeps'$",
        "func.jit": "; use wg.compile(,|$)",
        "linalg.inverse": "; use wg.linalg.inv(,|$)",
        "optim.tanh": "; use wg.tanh(,|$)",
    }.items():
        with pytest.raises(AttributeError, match=told):
            attrgetter(name)(wg)
    import_module("wengert.inspection.listing")
    for written in HINTS["wengert.tape"].values():
        attrgetter(written.partition(".")[2])(wg)


@pytest.mark.slow
def test_a_fresh_process_lists_every_public_name_and_no_others() -> None:
    for name, listed in json.loads(python("-c", LISTED).stdout).items():
        public = namespace(name).__all__
        assert sorted(listed) == sorted(n for n in public if not n.startswith("__")), name
        assert len(set(public)) == len(public)


@pytest.mark.parametrize("name", NAMESPACES)
def test_every_listed_name_is_there(name: str) -> None:
    module = namespace(name)
    for one in dir(module):
        getattr(module, one)


#: The extensions, and a function of each.
HOMES = {"fft": "rfft", "linalg": "solve", "random": "randn", "special": "digamma"}


@pytest.mark.slow
def test_extensions_are_modules_by_whatever_name_they_are_imported_first() -> None:
    """And submodules need no import of their own."""
    lines = ["import sys, wengert as wg"]
    for name, function in HOMES.items():
        lines += [
            f"first = wg.{name}" if name == "linalg" else "",
            f"import wengert.{name} as by_name, wengert.ops.{name} as home",
            f"from wengert.{name} import {function} as function",
            f"assert by_name is wg.{name} is home is sys.modules['wengert.{name}']",
            f"assert function is wg.{name}.{function}",
            "assert by_name is first" if name == "linalg" else "",
        ]
    lines += [f"wg.{name}.__all__" for name in ("nn", "func", "optim", "testing")]
    python("-c", "\n".join(lines))


def test_stub_of_the_namespace_is_current() -> None:
    """What type checkers read names the same as what runs."""
    from tests.project.stubs import exported

    for module in ("wengert", "wengert.ops", "wengert.linalg", "wengert.fft", "wengert.special"):
        running: Any = import_module(module)
        names = {*running.__all__, *(wg.ops.__all__ if module == "wengert" else ())}
        if module == "wengert.ops":
            names |= {*LATER}
        assert exported(module) - {"__all__"} == names, module
