"""The reference: directives that list functions, and what is added to their docstrings."""

import builtins
import inspect
import re
from typing import Any, ClassVar

from derivatives import of_function
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from listing import Listed, is_function, listed, members, summary
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

import wengert as wg
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY

#: Where functions have other names than in their source.
SPACES = (wg.special, wg.nn.functional)
#: Methods of layers that say no more than the class's own docstring.
QUIET = {"forward", "extra_repr"}
#: What classes tell each other, and nobody else: optimisers, arguments of tests, samplers.
INTERNAL = {
    *("componentwise", "elementwise", "ranges"),
    *("around", "arrays", "generic", "specials"),
    *("batches", "order"),
}
#: How operators are written, by Python's names for them.
SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "neg": "-{}",
    "pos": "+{}",
    "abs": "abs({})",
    "invert": "~{}",
}


def summaries(rows: list[tuple[str, str]]) -> list[str]:
    """A table of names and their summaries, as lines of text."""
    if not rows:
        return []
    lines = [".. list-table::", "    :widths: 30 70", "    :width: 100%", ""]
    for name, said in rows:
        lines += [f"    * - {name}", f"      - {said}"]
    return [*lines, ""]


class Functions(SphinxDirective):
    """``.. functions:: wengert wengert.ops.set``: what a module lists, under its public name.

    The first argument is the namespace that users find the functions in; the second is the module
    whose ``__all__`` names them. ``:of:`` chooses those that modules of these names define,
    ``:names:`` chooses by name, ``:without:`` leaves names out, and ``:members:`` names the members
    of classes, where these are not all that have a docstring. ``:inherited:`` shows those of their
    bases, too.
    """

    required_arguments = 2
    option_spec: ClassVar = {
        **dict.fromkeys(("of", "names", "without", "members"), str.split),
        "inherited": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Write a table of the names, and document each."""
        public, chapter = self.arguments
        found = [*listed(public, chapter, self.options)]
        shown = [one for one in found if one.kind != "data"]
        lines = [f".. py:currentmodule:: {public}", ""]
        if len(shown) > 1:
            rows = [(f":py:obj:`~{one.name}`", summary(one.found)) for one in shown]
            lines += summaries(rows)
        for one in found:
            lines += self.data(one) if one.kind == "data" else self.entry(one)
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(StringList(lines, source=chapter), self.content_offset, section)
        return section.children

    def entry(self, one: Listed) -> list[str]:
        """The directive that documents a function or a class."""
        lines = [f".. auto{one.kind}:: {one.name}"]
        if one.kind != "function":
            members = [name for name in self.options.get("members", []) if hasattr(one.found, name)]
            lines.append(f"   :members: {', '.join(members)}")
            if "inherited" in self.options:
                lines.append("   :inherited-members:")
        return [*lines, ""]

    def data(self, one: Listed) -> list[str]:
        """The directive that documents a constant.

        One with the name of a Python type, ``bool``, is no target, or all parameters of that type
        would link to it.
        """
        value, name = repr(one.found), one.name.rpartition(".")[2]
        lines = [f".. py:data:: {name}"]
        lines += ["   :no-index:"] * hasattr(builtins, name)
        return [*lines, *([f"   :value: {value}"] if len(value) < 40 else []), ""]


class Members(SphinxDirective):
    """``.. members::``: attributes and methods of Tensors.

    ``:of:`` chooses those that modules of these names define, and ``:names:`` chooses by name. A
    method that is a function of the namespace is linked to the function's entry.
    """

    option_spec: ClassVar = dict.fromkeys(("of", "names"), str.split)

    def run(self) -> list[nodes.Node]:
        """Write a table of all, and document those that have no entry elsewhere."""
        rows, own = [], []
        self.env.ref_context["py:module"] = "wengert"
        for name in members(self.options):
            found = getattr(wg.Tensor, name)
            if is_function(name):
                rows.append((f":py:obj:`{name} <wengert.{name}>`", summary(found)))
                continue
            rows.append((f":py:obj:`{name} <wengert.Tensor.{name}>`", summary(found)))
            kind = "attribute" if isinstance(found, property) else "method"
            own += [f".. auto{kind}:: wengert.Tensor.{name}", ""]
        section = nodes.section()
        section.document = self.state.document
        lines = StringList([*summaries(rows), *own], source="wengert.Tensor")
        self.state.nested_parse(lines, self.content_offset, section)
        return section.children


class Operators(SphinxDirective):
    """``.. operators::``: Python's operators of Tensors, and the functions that they call."""

    def run(self) -> list[nodes.Node]:
        """Write the table from the lists that the operators are made of."""
        rows = [(f"``x1 {SIGNS[name]} x2``", function) for name, function, _ in BINARY]
        rows += [(f"``x1 {SIGNS[name]} x2``", function) for name, function in (*ORDER, *EQUALITY)]
        rows += [(f"``{SIGNS[name].format('x')}``", function) for name, function in UNARY]
        table = summaries([(sign, f":py:obj:`wengert.{function}`") for sign, function in rows])
        return self.parse_text_to_nodes("\n".join(table))


# -- what is added to, and left out of, autodoc's ------------------------------------------------


def skip(app: Sphinx, what: str, name: str, found: object, skipped: bool, options: Any) -> bool:
    """Leave out methods that have their own page, or that repeat what their class says."""
    home = str(getattr(found, "__module__", ""))
    text = inspect.getdoc(found) or ""
    is_field = text.startswith("Alias for field number")  # of a result
    if skipped or is_field or name in INTERNAL or home.startswith("wengert.ops"):
        return True
    is_layer = home.startswith(("wengert.nn", "wengert.optim"))
    of_module = getattr(found, "__qualname__", "").startswith("Module.")
    return is_layer and not of_module and name in QUIET and "---" not in text


def signature_of(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: Any, returns: Any
) -> tuple[Any, Any] | None:
    """A signature without the keywords that are there for their error alone.

    For a class whose type has a ``__call__`` autodoc has found the signature of that.
    """
    if what == "class" and signature == "(*args, **kwargs)":
        signature = stringify_signature(inspect.signature(obj), show_annotation=False)
    if signature is None:
        return None
    return re.sub(r",? \*\*wrong(: [\w.~]+)?", "", signature), returns


def add_derivatives(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Say before the examples of a function what is known of its derivatives."""
    said = of_function(name) if what == "function" else []
    if said:
        at = lines.index(".. rubric:: Examples") if ".. rubric:: Examples" in lines else len(lines)
        lines[at:at] = [".. rubric:: Derivatives", "", *said, ""]


def home(app: Sphinx, name: str, attribute: str) -> str | None:
    """The module that defines a property, which does not say so itself."""
    owner, _, member = attribute.partition(".")
    found = getattr(getattr(wg, owner, None), member, None) if member else None
    return found.fget.__module__ if isinstance(found, property) else None


def source(app: Sphinx, name: str) -> tuple[str, dict[str, tuple[str, int, int]]] | None:
    """A module's source and what it defines, with the other names that functions have."""
    if not name.startswith(("wengert.ops.", "wengert.tape.")):
        return None
    analyzer = ModuleAnalyzer.for_module(name)
    analyzer.analyze()
    tags = dict(analyzer.tags)
    others = [(each, getattr(space, each)) for space in SPACES for each in space.__all__]
    methods = [each for each in dir(wg.zeros(())) if each[0] != "_"]
    others += [(f"Tensor.{each}", getattr(wg.Tensor, each)) for each in methods]
    for other, found in others:
        function = getattr(found, "fget", found)
        if getattr(function, "__module__", None) == name and function.__name__ in tags:
            tags[other] = tags[function.__name__]
    return analyzer.code, tags


def setup(app: Sphinx) -> None:
    """Register them."""
    app.add_directive("functions", Functions)
    app.add_directive("members", Members)
    app.add_directive("operators", Operators)
    app.connect("viewcode-find-source", source)
    app.connect("viewcode-follow-imported", home)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", signature_of)
    app.connect("autodoc-process-docstring", add_derivatives, priority=900)
