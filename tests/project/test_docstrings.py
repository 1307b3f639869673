"""Docstrings: public functions say all that a reader has to know, and examples are right."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import wengert as wg
from wengert.backends import backend, registry
from wengert.nn import functional as F
from wengert.ops.late import LATER
from wengert.tape.families import Family
from wengert.tape.primitive import PRIMITIVES

#: numpydoc's sections, in their order.
SECTIONS = [
    "Parameters",
    "Attributes",
    "Returns",
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
#: Settings of Wengert's own, which come from nowhere else.
OWN = {"get_default_dtype", "get_rng_state", "manual_seed", "set_default_dtype", "set_rng_state"}
NAMESPACES: dict[str, tuple[Any, Iterable[str]]] = {"": (wg, [*wg.ops.__all__, *LATER])} | {
    f"{name}.": (getattr(wg, name), getattr(wg, name).__all__)
    for name in ("data", "fft", "func", "linalg", "optim", "random", "special")
}
LOSSES = [name for name in wg.nn.__all__ if name.endswith("Loss")]
NAMESPACES |= {"nn.functional.": (F, F.__all__), "nn.": (wg.nn, LOSSES)}


def documented() -> Iterator[Any]:
    for space, (home, names) in NAMESPACES.items():
        for name in names:
            found = getattr(home, name)
            if inspect.isfunction(found) or (inspect.isclass(found) and home in (wg.nn, wg.optim)):
                yield pytest.param(found, id=space + name)


def sections(function: Any) -> tuple[str, dict[str, str]]:
    """The summary of a docstring, and its sections in their order."""
    text = inspect.getdoc(function)
    assert text
    parts = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-{4,}\n", text)
    return parts[0], dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.whole
@pytest.mark.parametrize("function", [*documented()])
def test_docstring_is_complete(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text and "$" not in text and "\n\n\n" not in text
    assert max(map(len, text.splitlines())) <= 100
    head, found = sections(function)
    assert re.fullmatch(r"[A-Z`0-9][^\n]*\.", head.split("\n\n")[0])
    assert [*found] == [title for title in SECTIONS if title in found]
    entries = re.findall(r"^(\S.*?)(?: :.*)?$", found.get("Parameters", ""), flags=re.MULTILINE)
    described = [name.lstrip("*") for names in entries for name in names.split(", ")]
    signature = inspect.signature(function)
    assert described == [name for name in signature.parameters if name != "wrong"]
    bad = set(re.findall(r"``(\w+)``", found.get("Raises", "")))
    assert bad <= signature.parameters.keys()
    if inspect.isclass(function):
        assert "Returns" not in found
        return
    assert ("Returns" in found) == (signature.return_annotation not in (None, "None"))
    if function.__name__ not in OWN and not function.__module__.startswith("wengert.func"):
        assert any(source in text for source in SOURCES), f"its notes name one of {SOURCES}"


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
