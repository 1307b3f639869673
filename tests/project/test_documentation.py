"""What the README and the pages show is what happens."""

import ast
import doctest
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from inspect import cleandoc
from math import inf, nan
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import ROOT, load, python
from tests.walking import walk
from wengert.backends import Backend
from wengert.nn import functional as F

from .public import public_names

listing = load("docs", "listing")
conventions = load("docs", "conventions").conventions
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]
SHOWN = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]

#: Pages whose examples take long.
LONG = {"testing"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if p.stem in LONG else (), id=p.stem) for p in SHOWN],
)
def test_examples_in_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("```", "")  # a fence ends what is printed
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    runner = doctest.DocTestRunner(optionflags=flags)
    with wg.use_backend("numpy"), np.errstate(invalid="ignore", divide="ignore"):  # nans are shown
        result = runner.run(examples)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.whole
@pytest.mark.parametrize(("expression", "point", "gradient", "second"), conventions())
def test_conventions(expression: str, point: str, gradient: str, second: str, backend: Any) -> None:
    names, _, values = point.partition(" = ")
    known = {"inf": inf, "nan": nan}
    at, expected, again = (eval(text, known) for text in (values, gradient, second))
    leaves = names.split(", ")
    if len(leaves) == 1:
        at, expected, again = (at,), (expected,), (again,)
    dtype = wg.complex128 if leaves == ["z"] else wg.float64
    tensors = {
        name: wg.asarray(value, dtype=dtype).requires_grad_()
        for name, value in zip(leaves, at, strict=True)
    }
    with np.errstate(all="ignore"):  # some of the gradients are infinite
        wg.sum(eval(expression, {"wg": wg, "F": F, **tensors})).backward()
        gradients = [tensor.grad.numpy() for tensor in tensors.values()]  # dask computes here
        result = wg.sum(eval(expression, {"wg": wg, "F": F, **tensors}))
        given = [*tensors.values()]
        options = {"allow_unused": True, "materialize_grads": True}
        slopes = wg.autograd.grad(result, given, create_graph=True, **options)
        weight, along = 0, wg.asarray(0.0, dtype=wg.float64)
        for slope in slopes:
            numbers = np.arange(weight + 1.0, weight + slope.size + 1).reshape(slope.shape)
            along = along + wg.sum(wg.real(slope * wg.asarray(numbers, dtype=dtype)))
            weight += slope.size
        seconds = [np.zeros(x.shape) for x in given]
        if along.requires_grad:
            seconds = [x.numpy() for x in wg.autograd.grad(along, given, **options)]
        # Where second derivatives are missing they are so in forward mode, too.
        own = tuple(x.detach() for x in given)
        some = tuple(wg.cumulative_sum(wg.ones_like(x).reshape(-1)).reshape(x.shape) for x in own)
        some = tuple(x + i for i, x in enumerate(some))

        def tangent(*xs: Any) -> Any:
            def function(*xs: Any) -> Any:
                named = dict(zip(leaves, xs, strict=True))
                return wg.sum(eval(expression, {"wg": wg, "F": F, **named}))

            return wg.func.jvp(function, xs, some)[1]

        twice = wg.func.jvp(tangent, own, some)[1].numpy()
        assert np.isnan(twice) == any(np.isnan(np.asarray(one)).any() for one in again), twice
    for founds, rights, rtol in ((gradients, expected, 1e-15), (seconds, again, 1e-12)):
        for found, right in zip(founds, rights, strict=True):
            if np.isnan(right).all():
                assert np.isnan(found).all(), found
            else:
                np.testing.assert_allclose(found, right, rtol=rtol, atol=1e-15)


def messages() -> Iterator[str]:
    """The strings in the package's code, with … for what is put in, and its classes' names."""
    for path in (ROOT / "wengert").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.JoinedStr(values=parts):
                    yield "".join(p.value if isinstance(p, ast.Constant) else "…" for p in parts)
                case ast.Constant(value=str(text)) | ast.ClassDef(name=text):
                    yield text


def test_the_inventory_of_numpy_names_what_is_there() -> None:
    text = (ROOT / "docs" / "inventories" / "numpy.txt").read_text(encoding="utf-8")
    links = re.findall(r"^numpy\.(\S+) function (\S+)$", text, re.MULTILINE)
    assert len(links) == text.count("\n") - 3  # less the heading
    for name, address in links:
        assert callable(attrgetter(name)(np))
        assert address.endswith(f"generated/numpy.{name}.html")


@pytest.mark.slow
def test_messages_of_troubleshooting_are_the_package_s() -> None:
    """A message that is worded anew is worded anew there, too."""
    text = (ROOT / "docs" / "troubleshooting.rst").read_text(encoding="utf-8")
    shown = re.findall(r"^``([^`]+)``$", text, re.MULTILINE)
    assert len(shown) > 50
    said = "\n\0".join(messages())
    unknown = [
        each
        for each in shown
        if not re.search("[^\0]*".join(map(re.escape, re.split(" ?… ?", each))), said)
    ]
    assert unknown == []


def test_every_example_is_in_the_gallery() -> None:
    folder = ROOT / "docs" / "gallery"
    index = (folder / "index.rst").read_text(encoding="utf-8")
    cards = " ".join(re.findall(r"\.\. gallery::\n\n +(.+)", index)).split()
    examples = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    assert sorted(cards) == examples
    for name in examples:
        page = (folder / f"{name}.rst").read_text(encoding="utf-8")
        assert re.findall(r"\.\. example:: (\w+)", page) == [name]


def directives(name: str) -> Iterator[tuple[list[str], dict[str, list[str]]]]:
    """The arguments and options of all directives of a name in the reference."""
    for page in sorted((ROOT / "docs" / "api").rglob("*.rst")):
        text = page.read_text(encoding="utf-8")
        for arguments, options in re.findall(
            rf"^\.\. {name}::(.*)\n((?:   :.*\n)*)", text, flags=re.MULTILINE
        ):
            found = re.findall(r":([\w-]+): (.*)", options)
            yield arguments.split(), {key: words.split() for key, words in found}


def test_every_public_name_is_in_the_reference() -> None:
    listed = [
        each
        for (public, chapter), options in directives("functions")
        for each in listing.listed(public, chapter, options)
    ]
    shown = {id(each.found) for each in listed}
    names = {each.name.split(".")[-1] for each in listed}  # of constants: None is one, too
    assert [
        name
        for name, found in public_names()
        if (id(found) not in shown if callable(found) else name.split(".")[-1] not in names)
    ] == []


@pytest.mark.parametrize("module", ["wengert.nn", "wengert.nn.functional", "wengert.optim"])
def test_names_are_in_one_group_of_the_reference(module: str) -> None:
    listed = Counter(
        each.name
        for (public, chapter), options in directives("functions")
        for each in listing.listed(public, chapter, options)
        if public == module
    )
    found = importlib.import_module(module)
    names = {name for name in found.__all__ if callable(getattr(found, name))}
    assert listed == Counter(f"{module}.{name}" for name in names)


def test_each_directive_of_the_reference_documents_something() -> None:
    for (public, chapter), options in directives("functions"):
        homes = {
            getattr(each.found, "__module__", "").rpartition(".")[2]
            for each in listing.listed(public, chapter, options)
        }
        assert homes and set(options.get("of", homes)) == homes


def test_every_member_of_a_tensor_is_on_its_page() -> None:
    listed = Counter(
        name for _, options in directives("members") for name in listing.members(options)
    )
    members = {name for name in dir(wg.zeros(())) if name[0] != "_"}
    assert listed == Counter(members)
    assert [name for name in members if not listing.summary(getattr(wg.Tensor, name))] == []


def test_the_whole_interface_of_a_backend_is_documented() -> None:
    """The reference has the attributes in the class's docstring, and each method with its own."""
    attributes, text = {*Backend.__annotations__}, cleandoc(Backend.__doc__ or "")
    assert {name for name in attributes if f"\n{name} : " not in text} == set()
    methods = {name for name in vars(Backend) if name[0] != "_"} - attributes
    assert {name for name in methods if not vars(Backend)[name].__doc__} == set()


#: Shown because there is no such function.
ABSENT = {"wg.cat"}


def test_names_in_text_exist() -> None:
    def check(_: str, page: Path) -> None:
        text, unknown = page.read_text(encoding="utf-8"), set()
        for found in re.finditer(r"(?<![\w./:-])(?:wg|wengert)((?:\.[A-Za-z_]\w*)+)", text):
            home: Any = wg
            path = "wengert"
            for name in found[1][1:].split("."):
                path = f"{path}.{name}"
                try:
                    home = getattr(home, name)
                except AttributeError:
                    try:
                        home = importlib.import_module(path)
                    except ImportError:
                        unknown.add(found[0])
                        break
        assert unknown <= ABSENT, unknown - ABSENT

    pages = [*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    walk([(str(page.relative_to(ROOT)), page) for page in pages], check)


#: The most words of a sentence, and how many of them may be "which" or "that".
WORDS, RELATIVES = 22, 1
#: Code, tables, headings and options of Markdown and of reStructuredText, which are no sentences.
NO_PROSE = {
    ".md": r"\A---$.*?^---$|^(```|:::|\$\$).*?^\1$|^\|.*?$|^#.*?$|^:\w+:.*?$",
    ".rst": r"^( *)\.\. (?!list-table|note|warning|glossary|grid)[^\n]*\n(?:\1 +[^\n]*\n|\n)*"
    r"|^=+ [= ]+\n(?:[^\n]*\n)*?=+ [= ]+\n(?:[^\n]*\n)*?=+ [= ]+$"
    r"|^[^\n]+\n[=~-]{3,}$|^ *:[\w-]+:(?: [^\n]*)?$|^ *\.\. [^\n]*$",
}


def sentences(page: Path) -> Iterator[str]:
    """The sentences of a page, with x for code, formulas, links and quotations."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```{admonition}.*\n((?:.*\n)*?)```$", r"\1", text, flags=re.MULTILINE)
    block = r"^( *)(?!\.\. )(.*)::\n(?:\n|\1 +.*\n)+"
    text = re.sub(block, r"\1\2\n\n", text, flags=re.MULTILINE)
    text = re.sub(NO_PROSE[page.suffix], "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    code = r"(?::[\w:]+:|{\w+})?(``.+?``|`[^`]+`_*)|\$[^$]+\$|\"[^\"]*\""
    text = re.sub(code, "x", text, flags=re.DOTALL)
    indented = r"^( *)(?![-*\d ])(.+)\n(?=\1 +\S)|^( +)(.*)\n(?=\S)"
    text = re.sub(indented, r"\1\2\3\4\n\n", text, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n *(?:[-*]|\d+\.) (?:- )?|→", text):
        yield from re.split(r"(?<=[.!?])[)*]* +(?=[A-Zx*(])", " ".join(block.split()))


def test_sentences_are_short() -> None:
    pages = [page for end in ("*.rst", "*.md") for page in (ROOT / "docs").rglob(end)]
    apart = {"design", "measured"}
    found = [
        f"{page.name}: {one}"
        for page in [ROOT / "README.md", *(p for p in pages if not apart & {*p.parts})]
        for one in sentences(page)
        if len(re.findall(r"\S*\w\S*", one)) > WORDS
        or len(re.findall(r"\b(?:which|that)\b", one)) > RELATIVES
    ]
    assert found == []


def test_the_table_of_libraries_has_their_totals() -> None:
    page = (ROOT / "docs" / "libraries.rst").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^    (\w+) .*?((?:; \d+/\d+){7})$", page, flags=re.MULTILINE))
    files = {path.stem: path for path in (ROOT / "docs" / "measured" / "libraries").glob("*.rst")}
    assert shown.keys() == files.keys()
    for name, counts in shown.items():
        total = files[name].read_text(encoding="utf-8").partition("* - all\n")[2]
        assert re.findall(r"^      - (\S+)$", total.partition("\n\n")[0], re.MULTILINE) == (
            counts[2:].split("; ")
        )


def test_the_rows_of_the_benchmarks_page_are_measured() -> None:
    page = (ROOT / "docs" / "benchmarks.rst").read_text(encoding="utf-8")
    measured = (ROOT / "docs" / "measured" / "steps.md").read_text(encoding="utf-8")
    rows = re.findall(r"^    (\S.+?)((?:; \d+){5})$", page, flags=re.MULTILINE)
    assert len(rows) == 6
    for name, times in rows:
        cells = r" +\| +".join([re.escape(name), *times[2:].split("; ")])
        assert re.search(rf"^\| {cells} ", measured, flags=re.MULTILINE), name


@pytest.mark.slow
def test_a_build_leaves_no_folder_behind(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    program = "import runpy, sys; sys.path[:0] = ['docs', '.']; runpy.run_path('docs/conf.py')"
    python("-c", program, TMPDIR=str(tmp_path))
    assert [*tmp_path.iterdir()] == []
