"""Sphinx's settings, and the directives of the tables of derivatives."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

import wengert as wg
from wengert.names import HINTS

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
    "reference",
]
exclude_patterns = ["_build", "design", "measured"]
default_role = "py:obj"
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
add_module_names = False
numpydoc_show_class_members = False
# The pages build without a network: what others' inventories say of the names used here is kept.
intersphinx_mapping = others.mapping()

# The pages of learn/ are notebooks, which run whenever the documentation is built.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
# An error is shown by its message, and no traceback.
folder = tempfile.TemporaryDirectory()  # which goes when Python ends
settings = Path(folder.name, "profile_default", "ipython_kernel_config.py")
settings.parent.mkdir()
settings.write_text('get_config().InteractiveShell.xmode = "Minimal"', encoding="utf-8")
os.environ["IPYTHONDIR"] = str(settings.parents[1])
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Prompts and results are not copied with the code.
copybutton_prompt_text = r">>> |\.\.\. |\$ |In \[\d*\]: "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"Wengert {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["moved"]  # at the addresses of pages that are gone
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_theme_options = {
    "source_repository": "https://github.com/wengert/wengert/",
    "source_branch": "main",
    "source_directory": "docs/",
}


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


class Hints(SphinxDirective):
    """``.. hints::``: names of other libraries, with what to write, as tables and in the index."""

    def run(self) -> list[nodes.Node]:
        """Write the tables, at every build: they come from code."""
        self.env.note_reread()
        lines = []
        for home, names in HINTS.items():
            lines += [home, "-" * len(home), "", ".. index::"]
            lines += [f"   single: {name}; {home}" for name in names]
            lines += ["", ".. list-table::", "   :header-rows: 1", "", "   * - name", "     - here"]
            for name in sorted(names, key=str.lower):
                lines += [f"   * - ``{name}``", f"     - ``{names[name]}``"]
            lines.append("")
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


class Labelled(HTML5Translator):
    """HTML in which each cell of a table's body has its column's heading, which phones show."""

    def visit_tgroup(self, node: nodes.Element) -> None:
        """Give the cells their headings."""
        for head in node.findall(nodes.thead):
            labels = [cell.astext() for cell in head[-1]]
            for row in node.findall(nodes.row):
                if row.parent is not head and len(row) == len(labels):
                    for cell, label in zip(row, labels, strict=True):
                        cell["label"] = label
        super().visit_tgroup(node)

    def starttag(self, node: Any, tagname: str, *rest: Any, **attributes: Any) -> str:
        """Write the heading as an attribute."""
        if tagname == "td" and node.get("label"):
            attributes["data-label"] = node["label"]
        return super().starttag(node, tagname, *rest, **attributes)


def setup(app: Sphinx) -> None:
    """Register them."""
    app.set_translator("html", Labelled)
    app.add_directive("derivatives", Derivatives)
    app.add_directive("parameters", Parameters)
    app.add_directive("points", Points)
    app.add_directive("hints", Hints)
    app.add_transform(others.Names)
    app.add_directive("example", Example)
    app.add_directive("gallery", Gallery)
