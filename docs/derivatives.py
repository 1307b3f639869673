"""The tables of derivatives, written from the primitives and their tests' rows."""

import re
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from conventions import conventions

from backend_check.calls import FUNCTIONS
from tests.catalogue.derived import smooth
from tests.catalogue.table import TABLE
from tests.ops.cases import Entry
from tests.ops.parameters import kinds
from tests.ops.points.several import COMPLEX_LINES, LINES
from tests.ops.points.table import COMPLEX_ROWS, ROWS
from wengert.backends.backend import composites
from wengert.interpreters.duals import declaration
from wengert.ops.domain import EVERYWHERE
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive

#: Where users find the functions of a chapter, and the module that lists them.
CHAPTERS = {
    "Elementwise functions": ("wengert", "wengert.ops.elementwise"),
    "Statistics": ("wengert", "wengert.ops.statistical"),
    "Manipulation": ("wengert", "wengert.ops.manipulation"),
    "Linear algebra": ("wengert", "wengert.ops.linear_algebra"),
    "Extension linalg": ("wengert.linalg", "wengert.ops.linalg"),
    "Extension fft": ("wengert.fft", "wengert.ops.fft"),
    "Indexing": ("wengert", "wengert.ops.indexing"),
    "Searching": ("wengert", "wengert.ops.searching"),
    "Sorting": ("wengert", "wengert.ops.sorting"),
    "Sets": ("wengert", "wengert.ops.set"),
    "Utilities": ("wengert", "wengert.ops.utility"),
    "Beyond the standard": ("wengert", "wengert.ops.beyond"),
    "Special functions": ("wengert.special", "wengert.ops.special"),
}
#: Where else there are functions and classes with parameters.
MORE_CHAPTERS = {
    "Creation": ("wengert", "wengert.ops.creation"),
    "Triangles and grids": ("wengert", "wengert.ops.grids"),
    "Conversion": ("wengert", "wengert.ops.conversion"),
    "Data types": ("wengert", "wengert.ops.data_type"),
    "Limits of data types": ("wengert", "wengert.ops.limits"),
    "Random numbers": ("wengert.random", "wengert.ops.random"),
    "Layers and losses as functions": ("wengert.nn.functional", "wengert.nn.functional"),
    "Layers and losses": ("wengert.nn", "wengert.nn"),
    "Initialisers": ("wengert.nn.init", "wengert.nn.init"),
    "Optimisers": ("wengert.optim", "wengert.optim"),
}
PARAMETERS_HEAD = ["function", "differentiable", "constant", "undefined", "options"]
HEAD = [
    *("function", "kind", "first derivative", "higher", "forward", "complex"),
    *("smooth in", "backends"),
]
#: What is judged at hard points.
KNOWN = (*ROWS, *COMPLEX_ROWS, *LINES, *COMPLEX_LINES)
#: What is said of most.
ALL = str(EVERYWHERE)
WIDTHS = "20 12 14 9 13 9 13 10"


def of_scipy(name: str) -> bool:
    """Whether a primitive is one of `wengert.scipy`."""
    return getattr(composites.get(name), "__module__", "").startswith("wengert.scipy")


def tables() -> list[str]:
    """A section for each chapter, and one for the primitives that are in none, as lines of text."""
    # Those of SciPy's room are on its page, and here if something has imported it.
    left = dict.fromkeys(name for name in PRIMITIVES if not of_scipy(name))
    lines: list[str] = []
    for title, (public, module) in CHAPTERS.items():
        chapter, rows = import_module(module), []
        for name in sorted(chapter.__all__):
            primitive = primitive_of(public, name)
            if primitive is not None:
                left.pop(primitive.name, None)
            elif not takes_arrays(getattr(chapter, name)):
                continue
            rows.append(row(f":py:obj:`~{public}.{name}`", primitive))
        lines += table(title, rows)
    return lines + table("Other primitives", [row(f"``{n}``", PRIMITIVES[n]) for n in sorted(left)])


def takes_arrays(function: Any) -> bool:
    """Whether a function's first argument is an array, or a sequence of them."""
    if isinstance(function, type):
        return False
    first = next(iter(signature(function).parameters.values()))
    return "Any" in str(first.annotation)


def primitive_of(public: str, name: str) -> Primitive | None:
    """The primitive of a public function; None for a function that is composed of others."""
    extension = public.removeprefix("wengert").removeprefix(".")
    names = [f"{extension}.{name}", name, f"{name}_arrays"]
    return next((PRIMITIVES[each] for each in names if each in PRIMITIVES), None)


def row(function: str, primitive: Primitive | None) -> list[str]:
    """The cells of a function's row."""
    if primitive is None:
        return [function, "composition", "of its parts", "", "", "", "", ""]
    entry = TABLE.get(primitive.name) or smooth(primitive)
    return [
        *(function, kind(primitive)),
        *derivatives(primitive, entry),
        *(domains(primitive), backends(entry)),
    ]


def kind(primitive: Primitive) -> str:
    """What a function's derivative is like."""
    linear = {None: None, "together": "linear", "each": "multilinear"}[primitive.linear]
    words = ["elementwise" if primitive.elementwise else None, linear]
    return ", ".join(filter(None, words)) or "irregular"


def derivatives(primitive: Primitive, entry: Entry) -> list[str]:
    """First and higher derivatives, the forward rule, and whether complex numbers have them."""
    if not primitive.rules:
        return ["not tracked", "", "", ""]
    known = {ZERO: "zero", UNDEFINED: "undefined", NOT_IMPLEMENTED: "not implemented"}
    first = {name: known.get(rule, "yes") for name, rule in primitive.rules.items()}
    forward = {name: how(primitive, name) for name in primitive.rules}
    higher = "any order" if "yes" in first.values() and entry.order == 3 else ""
    is_complex = "yes" if entry.complex is not None else "no"
    return [by_input(first), higher, by_input(forward), is_complex]


def how(primitive: Primitive, name: str) -> str:
    """Where the forward derivative by an input comes from."""
    rule = declaration(primitive, name)
    if rule is not None:
        return {ZERO: "zero", UNDEFINED: "undefined"}.get(rule, "none")
    return "explicit" if name in primitive.jvps else "derived"


def domains(primitive: Primitive) -> str:
    """Where it is smooth, as its row says; nothing where that is everywhere."""
    if len(primitive.inputs) == 1:
        return "".join(str(domain) for domain in primitive.domain.values() if str(domain) != ALL)
    return "; ".join(
        f"``{name}``: {domain}" for name, domain in primitive.domain.items() if str(domain) != ALL
    )


def by_input(words: dict[str, str]) -> str:
    """One word for all inputs, or the inputs of each."""
    kinds = dict.fromkeys(words.values())
    if len(kinds) == 1:
        return next(iter(kinds))
    return "; ".join(
        f"{kind}: {', '.join(f'``{name}``' for name in words if words[name] == kind)}"
        for kind in kinds
    )


def backends(entry: Entry) -> str:
    """On which backends the tests run."""
    if not entry.not_on:
        return "all"
    reasons = "; ".join(dict.fromkeys(entry.not_on.values()))
    return f":abbr:`all but {', '.join(entry.not_on)} ({reasons})`"


#: The public modules whose functions have primitives, and how the conventions' table writes them.
SPACES = {
    "wengert.linalg": r"wg\.linalg\.",
    "wengert.fft": r"wg\.fft\.",
    "wengert.special": r"wg\.",
    "wengert.nn.functional": r"F\.",
    "wengert": r"wg\.",
}


def of_function(name: str) -> list[str]:
    """What is known of a public function's derivatives, as lines of text; nothing for others."""
    public, _, short = name.rpartition(".")
    if public not in SPACES:
        return []
    primitive = primitive_of(public, short)
    lines = []
    if primitive is not None and primitive.rules:
        first, higher, forward, is_complex = derivatives(
            primitive, TABLE.get(primitive.name) or smooth(primitive)
        )
        if primitive.inputs != (*primitive.rules,):
            lines.append(f"In {', '.join(f'``{each}``' for each in primitive.rules)} alone.")
        lines.append(f"{sentence(first, higher, forward, is_complex)} {where(primitive)}".rstrip())
    for expression, point, gradient, _ in conventions():
        if re.search(rf"\b{SPACES[public]}{short}\(", expression):
            lines += ["", f"- At ``{point}`` the gradient of ``{expression}`` is ``{gradient}``."]
    known = {row.name: row.known[0] for row in KNOWN if row.known is not None}
    if public in ("wengert", "wengert.special") and short in known:
        lines += ["", f"- Less exact at hard points: {known[short]}."]
    return lines


def sentence(first: str, higher: str, forward: str, is_complex: str) -> str:
    """The first cells of a row as words."""
    if first == "yes" and higher:
        numbers = "real and complex numbers" if is_complex == "yes" else "real numbers"
        return f"Of any order, in reverse and forward mode, for {numbers}."
    said = {"zero": "Zero wherever it exists.", "undefined": "Undefined: its use is an error."}
    return said.get(first) or f"First derivative: {first.replace('yes: ', 'there is one in ')}."


def where(primitive: Primitive) -> str:
    """The domain of smoothness as a sentence; nothing where the function is smooth everywhere."""
    parts = []
    for name, domain in primitive.domain.items():
        said = str(domain)
        if said == ALL:
            continue
        said = re.sub(r"^all but", "everywhere but at", said) if said[0] == "a" else f"in {said}"
        said += " (k = 0, 1, 2, …)" if said.endswith(" k") else ""
        inputs = ", ".join(f"``{each}``" for each in name.split())
        parts.append(said if len(primitive.inputs) == 1 else f"in {inputs} {said}")
    return f"Smooth {'; '.join(parts)}." if parts else ""


def parameter_tables() -> list[str]:
    """What every parameter of every public function is: a section for each chapter."""
    lines: list[str] = []
    names = {function: name for name, function in FUNCTIONS.items()}
    for title, (public, module) in (CHAPTERS | MORE_CHAPTERS).items():
        chapter = import_module(module)
        rows = []
        for name in sorted(chapter.__all__):
            function = getattr(chapter, name)
            if function.__hash__ is not None and function in names:
                rows.append(parameter_row(f":py:obj:`~{public}.{name}`", names[function]))
        lines += table(title, rows, PARAMETERS_HEAD, "~")
    return lines


def parameter_row(shown: str, name: str) -> list[str]:
    """The cells of a function's row: its parameters by what they are."""
    cells = {kind: [] for kind in PARAMETERS_HEAD[1:]}
    for parameter, kind in kinds(name).items():
        cells["options" if kind == "option" else kind].append(f"``{parameter}``")
    return [shown, *(", ".join(names) for names in cells.values())]


def table(
    title: str, rows: list[list[str]], head: list[str] = HEAD, underline: str = "-"
) -> list[str]:
    """A section with one table, as text."""
    lines = [title, underline * len(title), "", ".. list-table::", "    :header-rows: 1"]
    lines += [f"    :widths: {WIDTHS}", ""] if head is HEAD else [""]
    for cells in [head, *rows]:
        for at, cell in enumerate(cells):
            lines.append(f"    {'*' if not at else ' '} - {cell}")
    return [*lines, ""]
