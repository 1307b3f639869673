"""Docstrings: public functions say all that a reader has to know, and examples are right."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, get_origin

import pytest

import wengert as wg
from wengert.backends import backend, registry
from wengert.tape.families import Family
from wengert.tape.primitive import PRIMITIVES

from .public import public_names

#: numpydoc's sections, in their order.
SECTIONS = [
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "See Also",
    "Notes",
    "References",
    "Examples",
]
SOURCES = (
    "Array API standard",
    "SciPy: ",
    "NumPy: ",
    "PyTorch: ",
    "array-api-extra",
    "Wengert's own",
)
#: Packages whose functions follow a standard or another library, which their notes name.
FOLLOWING = ("wengert.ops.", "wengert.nn.functional.", "wengert.data.")
#: Words that tell the shapes of arguments and results.
SHAPES = re.compile(
    r"[Ss]hape|\b(axes|axis|elements?|batch|matri(x|ces)|vectors?|dimensions?)\b|\d-d\b"
    r"|\((\.\.\.|N|C|M)\b"
)
#: The text of parameters without a type, which another function has as well.
SHARED = re.compile(r"\n    (As|Further) ")
#: Settings of Wengert's own, which come from nowhere else.
OWN = {"manual_seed"}
#: Classes whose objects users are given, and do not make.
GIVEN = {
    *("AccumulateGrad", "DType", "Entries", "GraphBreak", "Program", "RemovableHandle", "TreeDef"),
    *("Dataset", "IterableDataset", "Sampler"),  # users write classes like these
}
#: What errors are about, beside parameters: packages, methods and functions that are given later.
CAUSES = {"backward", "forward", "ml_dtypes", "mpi4py", "safetensors", "source", "torch"}


def documented() -> Iterator[Any]:
    for name, found in public_names():
        if callable(found):
            yield pytest.param(found, id=name.removeprefix("wengert."))


def sections(function: Any) -> tuple[str, dict[str, str]]:
    """The summary of a docstring, and its sections in their order."""
    text = inspect.getdoc(function)
    assert text
    parts = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-{4,}\n", text)
    return parts[0], dict(zip(parts[1::2], parts[2::2], strict=True))


def is_made_by_users(found: Any) -> bool:
    """Whether its parameters are for users: not those of results and errors."""
    result = inspect.isclass(found) and issubclass(found, tuple | Exception)
    return not result and found.__name__ not in GIVEN


@pytest.mark.whole
@pytest.mark.parametrize("function", [*documented()])
def test_docstring_is_complete(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text and "$" not in text and "\n\n\n" not in text
    assert max(map(len, text.splitlines())) <= 100
    head, found = sections(function)
    assert re.fullmatch(r"[A-Z`0-9][^\n]*\.", head.split("\n\n")[0])
    assert [*found] == [title for title in SECTIONS if title in found]
    assert ">>> " in found.get("Examples", "")
    assert is_in_source(function)
    if is_made_by_users(function):
        entries = re.findall(r"^(\S.*?)(?: :.*)?$", found.get("Parameters", ""), flags=re.MULTILINE)
        described = [[name.lstrip("*") for name in names.split(", ")] for names in entries]
        names = [n for n in inspect.signature(function).parameters if n != "wrong"]
        assert sorted(name for group in described for name in group) == sorted(names)
        assert [first for first, *_ in described] == [
            name for name in names if name in {first for first, *_ in described}
        ]
        bad = set(re.findall(r"``(\w+)``", found.get("Raises", "")))
        assert bad <= {*names, *CAUSES}
        for entry in found.get("Parameters", "").split("\n"):
            assert entry[:1] in "* " or " : " in entry or SHARED.search(found["Parameters"])
    if inspect.isclass(function):
        assert "Returns" not in found
        return
    returns = inspect.signature(function).return_annotation
    if get_origin(returns) is Iterator:  # a context, or a generator
        assert "Returns" not in found
    else:
        assert ("Returns" in found) == (returns not in (None, "None"))
    text_of_values = f"{found.get('Parameters')}\n{found.get('Returns')}"
    if function.__module__.startswith(FOLLOWING) and "\nTensor" in text_of_values:
        assert SHAPES.search(text_of_values)
    if function.__module__.startswith(FOLLOWING) and function.__name__ not in OWN:
        assert any(source in text for source in SOURCES), f"its notes name one of {SOURCES}"


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
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def is_in_source(function: Any) -> bool:
    """Whether the module that a function or a class names as its own defines it."""
    home, name = function.__module__, function.__name__
    return home.startswith("wengert.") and name in definitions(home)


# -- families ------------------------------------------------------------------------------------

FAMILY = Family("""
Parameters
----------
x : array
    Family's $kind.
axis, step : int
    Family's.
dtype : dtype
    Family's.

Returns
-------
Tensor
    Family's.

Raises
------
TypeError
    Family's.
ValueError
    Family's.

Notes
-----
After ``$name``.
""")


def own(x: Any, *more: int, step: int, axis: int = 0, **keywords: Any) -> None:
    """Summary.

    More of it.

    Parameters
    ----------
    axis : int
        Own.

        Own, too.
    *more : int
        Own.
    **keywords
        Own.

    Raises
    ------
    ValueError
        Own.
    KeyError
        Own.

    Notes
    -----
    Own.

    Examples
    --------
    >>> 1
    """


class Own:
    """Summary.

    Returns
    -------
    int
        Own.
    """

    def __init__(self, step: int) -> None: ...


def test_a_family_completes_a_docstring() -> None:
    FAMILY(kind="word").complete(own)
    head, found = sections(own)
    assert head == "Summary.\n\nMore of it."
    assert [*found] == ["Parameters", "Returns", "Raises", "Notes", "Examples"]
    assert found["Parameters"].split("\n") == [
        *("x : array", "    Family's word.", "*more : int", "    Own."),
        *("step : int", "    Family's.", "axis : int", "    Own.", "", "    Own, too."),
        *("**keywords", "    Own."),
    ]
    assert found["Returns"] == "Tensor\n    Family's."
    assert found["Raises"].split("\n")[::2] == ["TypeError", "ValueError", "KeyError"]
    assert found["Raises"].split("\n")[1::2] == ["    Family's.", "    Own.", "    Own."]
    assert found["Notes"] == "Own.\n\nAfter ``own``."
    assert found["Examples"] == ">>> 1"


def test_a_section_of_a_class_s_own_is_kept() -> None:
    FAMILY.complete(Own)
    _, found = sections(Own)
    assert found["Parameters"] == "step : int\n    Family's."
    assert found["Returns"] == "int\n    Own."


@pytest.mark.slow
def test_without_docstrings() -> None:
    code = (  # no assert, which -OO leaves out
        "import wengert as wg\n"
        "found = wg.exp.__doc__, wg.sum.__doc__, wg.linalg.qr.__doc__, wg.exp(wg.zeros(1)).item()\n"
        "if found != (None, None, None, 1.0): raise SystemExit(found)\n"
    )
    subprocess.run([sys.executable, "-OO", "-c", code], check=True)


# -- examples ------------------------------------------------------------------------------------


def examples() -> Iterator[Any]:
    parser = doctest.DocTestParser()
    for info in pkgutil.walk_packages(wg.__path__, "wengert."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # of a library that is not installed
            continue
        for name, found in vars(module).items():
            if getattr(found, "__module__", None) == info.name and callable(found):
                members = vars(found).items() if isinstance(found, type) else ()
                for at, one in ((name, found), *((f"{name}.{k}", v) for k, v in members)):
                    text = inspect.getdoc(one) if callable(one) else None
                    if text and ">>> " in text:
                        test = parser.get_doctest(
                            text, {"wg": wg, "__name__": "__main__"}, at, None, None
                        )
                        yield pytest.param(test, id=at)


@pytest.mark.parametrize("example", [*examples()])
def test_examples(example: doctest.DocTest, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in example.examples:
        found = re.match(r"(?:import|from) (\w+)", line.source)
        if found:
            pytest.importorskip(found[1])
    monkeypatch.setattr(registry, "default", registry.default)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    with wg.use_backend("numpy"):
        result = doctest.DocTestRunner(optionflags=flags).run(example)
    for table, name in ((PRIMITIVES, "cube"), (backend._composites, "soft_abs")):
        table.pop(name, None)  # which an example has added for the whole process
    assert result.attempted and not result.failed
