"""Sphinx's settings, and the directives that document functions and their derivatives."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import wengert as wg

sys.path.insert(0, str(Path(__file__).parent))

import others
from derivatives import parameter_tables, tables
from gallery import Example, Gallery
from points import points

project = "Wengert"
author = "the Wengert developers"
copyright = f"2026, {author}"
version = release = wg.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "myst_nb",
    "numpydoc",
]
exclude_patterns = ["_build", "design", "libraries"]
default_role = "py:obj"
autodoc_default_options = {"members": True}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
add_module_names = False
numpydoc_show_class_members = False
# The pages build without a network: what others' inventories say of the names used here is kept.
intersphinx_mapping = others.mapping()

# The pages of learn/ are notebooks, which run whenever the documentation is built.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Prompts and results are not copied with the code.
copybutton_prompt_text = r">>> |\.\.\. |\$ |In \[\d*\]: "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"Wengert {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"


class Functions(Directive):
    """``.. functions:: wengert wengert.ops.set``: what a module lists, under its public name.

    The first argument is the namespace that users find the functions in; the second is the module
    whose ``__all__`` names them. ``:of:`` chooses those that modules of these names define.
    """

    required_arguments = 2
    option_spec: ClassVar = {"of": str.split}

    def run(self) -> list[nodes.Node]:
        """Document each name."""
        public, module = self.arguments
        lines = StringList()
        values = []
        chapter = import_module(module)
        for name in chapter.__all__:
            found = getattr(chapter, name)
            home = getattr(found, "__module__", "").rpartition(".")[2]
            if home not in self.options.get("of", [home]):
                continue
            if callable(found):
                kind = "class" if isinstance(found, type) else "function"
                lines.append(f".. auto{kind}:: {public}.{name}", source=module)
                lines.append("", source=module)
            else:
                values.append(f"``{name}``")
        if values:
            lines.append(", ".join(values), source=module)
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(lines, self.content_offset, section)
        return section.children


class Derivatives(SphinxDirective):
    """``.. derivatives::``: for every function and primitive, what of it can be differentiated."""

    def run(self) -> list[nodes.Node]:
        """Write the tables, at every build: they come from code."""
        self.env.note_reread()
        return self.parse_text_to_nodes("\n".join(tables()), allow_section_headings=True)


class Parameters(SphinxDirective):
    """``.. parameters::``: for every function, what its parameters are."""

    def run(self) -> list[nodes.Node]:
        """Write the tables, at every build: they come from code."""
        self.env.note_reread()
        return self.parse_text_to_nodes("\n".join(parameter_tables()), allow_section_headings=True)


class Points(SphinxDirective):
    """``.. points::``: what is judged at hard points, and what is known to be less exact there."""

    def run(self) -> list[nodes.Node]:
        """Write the lists, at every build: they come from code."""
        self.env.note_reread()
        return self.parse_text_to_nodes("\n".join(points()))


def skip(app: Sphinx, what: str, name: str, found: object, skipped: bool, options: Any) -> bool:
    """Leave out methods that are functions of the namespace: these have their own page."""
    return skipped or str(getattr(found, "__module__", "")).startswith("wengert.ops")


def without_wrong(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: Any, returns: Any
) -> tuple[Any, Any] | None:
    """A signature without the keywords that are there for their error alone."""
    if signature is None or "**wrong" not in signature:
        return None
    return re.sub(r",? \*\*wrong(: [\w.~]+)?", "", signature), returns


def setup(app: Sphinx) -> None:
    """Register them."""
    app.add_directive("functions", Functions)
    app.add_directive("derivatives", Derivatives)
    app.add_directive("parameters", Parameters)
    app.add_directive("points", Points)
    app.add_transform(others.Names)
    app.add_directive("example", Example)
    app.add_directive("gallery", Gallery)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", without_wrong)
