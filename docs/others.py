"""Links from names of other projects to their documentation, without a network.

``python docs/others.py`` writes docs/inventories: for each project the names that the pages
mention and that the installed library has, with the address of their page there, in the first and
plain format of Sphinx's inventories. Sphinx's own extension `intersphinx` reads them.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import wengert as wg

ROOT = Path(__file__).parents[1]
INVENTORIES = Path(__file__).parent / "inventories"
SITES = {
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "array_api": "https://data-apis.org/array-api/latest/",
}
#: The page of a name, by the first pattern that it matches; those of no pattern have none.
ADDRESSES = [
    (r"numpy\.random\.\w+", r"reference/random/generated/\g<0>.html"),
    (r"numpy\.((linalg|fft|exceptions)\.)?\w+|scipy\..+", r"reference/generated/\g<0>.html"),
    (r"array_api\..+", r"API_specification/generated/\g<0>.html"),
    (r"torch\.(optim)\.swa_utils\.\w+", r"\1.html"),
    (r"torch\.(nn|optim|func|linalg|fft)\.[\w.]+", r"generated/\g<0>.html"),
    (r"torch\.utils\.(data|checkpoint)\.\w+", r"\1.html"),
    (r"torch\.(distributed|amp|special)\.\w+", r"\1.html"),
    (r"torch\.autograd\.Function", "autograd.html"),
    (r"torch\.[a-z]\w+", r"generated/\g<0>.html"),
]
#: What a docstring's Notes name without their module: ``NumPy: ``pad``.``
SOURCES = {"Array API standard": "array_api", "NumPy": "numpy"}
NAMED = re.compile(r"`((?:numpy|np|scipy|torch)(?:\.[A-Za-z_]\w*)+)(?:\(\))?`")
SOURCED = re.compile(rf"({'|'.join(SOURCES)})[^`\n]*: ``([\w.]+)``")


def mapping() -> dict[str, tuple[str, str]]:
    """What `intersphinx` is told."""
    return {name: (site, str(INVENTORIES / f"{name}.txt")) for name, site in SITES.items()}


def known() -> set[str]:
    """All names that have an address."""
    lines = "\n".join(path.read_text(encoding="utf-8") for path in INVENTORIES.glob("*.txt"))
    return set(re.findall(r"^([\w.]+) function ", lines, re.MULTILINE))


class Names(SphinxTransform):
    """Make a link of each literal that is a name of another project."""

    default_priority = 400
    found: ClassVar = known()

    def apply(self, **_: Any) -> None:
        """Wrap them."""
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext().removesuffix("()")
            said = literal.parent.astext()
            names = [re.sub(r"^np\.", "numpy.", text)]
            names += [f"{at}.{text}" for word, at in SOURCES.items() if said.startswith(word)]
            name = next((name for name in names if name in self.found), None)
            if name is not None and not isinstance(literal.parent, nodes.reference | pending_xref):
                link = pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=name, refexplicit=True
                )
                literal.replace_self(link)
                link += literal


def exists(name: str) -> bool:
    """Whether the installed library has a function or class of a name."""
    found: Any = None
    for part in name.split("."):
        try:
            found = import_module(part) if found is None else getattr(found, part)
        except AttributeError:
            try:
                found = import_module(f"{found.__name__}.{part}")
            except (AttributeError, ImportError):
                return False
    return callable(found)


def mentioned() -> set[str]:
    """The names in the pages and in docstrings."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.[rm][sd]*")]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "wengert").rglob("*.py")]
    modules = [wg, wg.linalg, wg.fft, wg.special, wg.random, wg.nn.functional]
    docs = [str(getattr(module, name).__doc__) for module in modules for name in dir(module)]
    named = {name for text in texts + docs for name in NAMED.findall(text)}
    return {re.sub(r"^np\.", "numpy.", name) for name in named} | {
        f"{SOURCES[word]}.{name}" for text in docs for word, name in SOURCED.findall(text)
    }


def main() -> None:
    """Write the inventories."""
    found = sorted(mentioned())
    INVENTORIES.mkdir(exist_ok=True)
    for project in SITES:
        lines = ["# Sphinx inventory version 1", f"# Project: {project}", "# Version: stable"]
        for name in found:
            if name.startswith(f"{project}."):
                real = name.replace("array_api", "array_api_strict", 1)
                fits = [match.expand(a) for p, a in ADDRESSES if (match := re.fullmatch(p, name))]
                if fits and exists(real):
                    lines.append(f"{name} function {fits[0]}")
        path = INVENTORIES / f"{project}.txt"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
