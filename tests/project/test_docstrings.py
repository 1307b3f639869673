"""Docstrings: public functions say all that a reader has to know, and examples are right."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import wengert as wg
from tests.scripts import python
from tests.walking import walk
from wengert.backends import backend, registry
from wengert.nn.define import Stored
from wengert.optim.scheduler import Schedule
from wengert.tape.primitive import PRIMITIVES, Declared

from .public import public_names
from .test_structure import DOORS, MODULES

#: numpydoc's sections, in their order.
SECTIONS = [
    *("Parameters", "Attributes", "Returns", "Yields", "Raises", "See Also", "Notes"),
    *("References", "Examples"),
]
SOURCES = (
    *("Array API standard", "SciPy: ", "NumPy: ", "PyTorch: ", "array-api-extra"),
    "Wengert's own",
)
#: Packages whose functions follow a standard or another library, which their notes name.
FOLLOWING = ("wengert.ops.", "wengert.nn.functional.", "wengert.data.")
#: Words that tell a derivative.
DERIVATIVES = re.compile(
    "[Dd]erivative|[Cc]otangent|[Gg]radient|[Aa]djoint|[Dd]ifferentia(ble|ted)|[Ss]lope"
)
#: Settings of Wengert's own, which come from nowhere else.
OWN = {"manual_seed"}
#: Modules whose docstrings are made of their functions', which have the examples; and schedules,
#: each of which is its formula: that of their base has the example.
STORED = {
    one
    for space in (wg.nn, wg.optim.lr_scheduler)
    for one in vars(space).values()
    if inspect.isclass(one) and issubclass(one, Stored | Schedule)
}


def documented() -> list[Any]:
    return [(name.removeprefix("wengert."), x) for name, x in public_names() if callable(x)]


def sections(function: Any) -> tuple[str, dict[str, str]]:
    """The summary of a docstring, and its sections in their order."""
    text = inspect.getdoc(function)
    assert text
    parts = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-{4,}\n", text)
    return parts[0], dict(zip(parts[1::2], parts[2::2], strict=True))


def is_differentiated(function: Any) -> bool:
    """Whether a function's row has a rule."""
    row = PRIMITIVES.get(function.__name__)
    return row is not None and not all(isinstance(rule, Declared) for rule in row.rules.values())


def test_docstring_is_complete() -> None:
    def check(_: str, function: Any) -> None:
        text = inspect.getdoc(function)
        assert text and "\n\n\n" not in text
        assert max(map(len, text.splitlines())) <= 100
        head, found = sections(function)
        assert re.fullmatch(r"[A-Z`0-9][^\n]*\.", head.split("\n\n")[0])
        assert [*found] == [title for title in SECTIONS if title in found]
        assert ">>> " in found.get("Examples", "") or function in STORED
        assert is_in_source(function)
        if inspect.isclass(function) or function.__name__ in OWN:
            return
        if function.__module__.startswith(FOLLOWING):
            assert any(source in text for source in SOURCES), f"it names one of {SOURCES}"
            if is_differentiated(function):
                assert DERIVATIVES.search(text.partition("\n\nExamples\n")[0])

    walk(documented(), check, whole=True)


def test_described_parameters_are_there() -> None:
    def check(_: str, function: Any) -> None:
        _, found = sections(function)
        entries = re.findall(r"^(\S.*?)(?: :.*)?$", found.get("Parameters", ""), re.MULTILINE)
        described = [name.lstrip("*") for names in entries for name in names.split(", ")]
        names = [*inspect.signature(function).parameters] if described else []
        assert len({*described}) == len(described)
        assert {*described} <= {*names}
        first = [names.index(each.split(", ")[0].lstrip("*")) for each in entries]
        assert first == sorted(first)

    walk(documented(), check, whole=True)


def test_methods_have_docstrings() -> None:
    """Those without are left out of the reference."""
    bare = [
        f"{name}.{key}"
        for name, found in public_names()
        if inspect.isclass(found)
        for key, member in vars(found).items()
        if key[0] != "_" and (inspect.isroutine(member) or isinstance(member, property))
        if not inspect.getdoc(getattr(found, key, found))  # a name of NumPy's is an error
    ]
    assert bare == []


@cache
def definitions(module: str) -> set[str]:
    """The names of a module's functions and classes, as the reference's source links find them."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    kinds = (ast.FunctionDef, ast.ClassDef)
    rows = {n.targets[0] for n in tree.body if isinstance(n, ast.Assign)}
    names = {node.id for node in rows if isinstance(node, ast.Name)}
    return names | {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def is_in_source(function: Any) -> bool:
    """Whether the module that a function or a class names as its own defines it."""
    home, name = function.__module__, function.__name__
    return home.startswith("wengert.") and name in definitions(home)


@pytest.mark.slow
def test_without_docstrings() -> None:
    code = (  # no assert, which -OO leaves out
        "import wengert as wg\n"
        "found = wg.exp.__doc__, wg.sum.__doc__, wg.linalg.qr.__doc__, wg.exp(wg.zeros(1)).item()\n"
        "if found != (None, None, None, 1.0): raise SystemExit(found)\n"
    )
    python("-OO", "-c", code)


# -- examples ------------------------------------------------------------------------------------


def examples() -> Iterator[tuple[str, doctest.DocTest]]:
    parser = doctest.DocTestParser()
    for place in MODULES:
        # Their import changes Tensors, or their examples are SciPy's: they have tests of their own.
        if place.startswith((*DOORS, "wengert.scipy")):
            continue
        try:
            module = importlib.import_module(place)
        except ImportError:  # of a library that is not installed
            continue
        for name, found in vars(module).items():
            if getattr(found, "__module__", None) == place and callable(found):
                members = vars(found).items() if isinstance(found, type) else ()
                for at, one in ((name, found), *((f"{name}.{k}", v) for k, v in members)):
                    text = inspect.getdoc(one) if callable(one) else None
                    if text and ">>> " in text:
                        names = {"wg": wg, "__name__": "__main__"}
                        yield at, parser.get_doctest(text, names, at, None, None)


def test_examples() -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL

    def check(_: str, example: doctest.DocTest) -> None:
        sources = "".join(line.source for line in example.examples)
        imported = re.findall(r"^(?:import|from) (\w+)", sources, re.MULTILINE)
        if not all(map(importlib.util.find_spec, imported)):
            return
        printed: list[str] = []
        with pytest.MonkeyPatch.context() as patch, wg.use_backend("numpy"):
            patch.setattr(registry, "default", registry.default)
            result = doctest.DocTestRunner(optionflags=flags).run(example, out=printed.append)
        for table, name in ((PRIMITIVES, "cube"), (backend.composites, "soft_abs")):
            table.pop(name, None)  # which an example has added for the whole process
        assert result.attempted and not result.failed, "".join(printed)

    walk(examples(), check)
