"""The directives of the gallery, which runs the programs of examples/ as their users do."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]
EXAMPLES, PAGES, PICTURES = ROOT / "examples", ROOT / "docs" / "gallery", ROOT / "docs" / "pictures"
#: Options that make a program short enough for a build; the others run as they are.
OPTIONS = {
    "autoencoder": "--epochs 40 --compile",
    "convolution": "--epochs 10 --compile",
    "search": "--trials 8 --epochs 5 --jobs 1",
    "transformer": "--epochs 3 --compile",
    "uncertainty": "--compile",
}
#: Programs that need what a build may lack (Graphviz's dot, onnxruntime). What they draw is kept in
#: docs/pictures, by `python examples/drawn_graph.py --output docs/pictures`, and, for one that
#: prints, by `python docs/gallery.py onnx_training`.
KEPT = {
    "drawn_graph": ["gradients.svg", "local.svg", "modules.svg"],
    "onnx_training": ["onnx_training.svg"],
}


@dataclass
class Run:
    """What a program has printed and drawn."""

    printed: str
    pictures: list[Path]


def command(name: str) -> str:
    """The command of one program, from the root of a clone."""
    return f"python examples/{name}.py {OPTIONS.get(name, '')}".strip()


def kept(name: str) -> Run:
    """What a program has drawn before."""
    return Run("", [PICTURES / file for file in KEPT[name]])


@cache
def run(name: str, folder: Path) -> Run:
    """Run a program in a folder of its own."""
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    script = [sys.executable, str(EXAMPLES / f"{name}.py"), *OPTIONS.get(name, "").split()]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        script,
        cwd=folder,
        env={**os.environ, "TQDM_DISABLE": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command(name)} has failed:\n{done.stderr}")
    printed = done.stdout.replace(f"{ROOT}{os.sep}", "")
    drawn = sorted(folder.rglob("*.png"))
    if not drawn:
        drawn = [folder / "printed.svg"]
        drawn[0].write_text("".join(text_as_picture(printed)), encoding="utf-8")
    return Run(printed, drawn)


def text_as_picture(printed: str, columns: int = 46, rows: int = 17) -> Iterator[str]:
    """An SVG of the first lines that a program prints: a picture for one that draws none."""
    keeps = {"drop_whitespace": False, "replace_whitespace": False}
    parts = [wrap(line, columns, **keeps) or [""] for line in printed.splitlines()]
    lines = list(chain.from_iterable(parts))[:rows]
    yield '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 500 375">'
    yield '<rect width="500" height="375" fill="#1f2430"/>'
    yield '<g font-family="monospace" font-size="17" fill="#e6e6e6">'
    for number, line in enumerate(lines):
        spaced = escape(line).replace(" ", "\N{NO-BREAK SPACE}")
        yield f'<text x="14" y="{28 + 21 * number}">{spaced}</text>'
    yield "</g></svg>\n"


class _Gallery(SphinxDirective):
    def ran(self, name: str) -> Run:
        """Run a program at most once in a build."""
        for path in (EXAMPLES / f"{name}.py", Path(__file__)):
            self.env.note_dependency(str(path))
        return (
            kept(name)
            if name in KEPT
            else run(name, Path(self.env.app.doctreedir).resolve() / "gallery" / name)
        )

    def place(self, picture: Path) -> str:
        """The address of a picture, as from the root of the pages."""
        return "/" + os.path.relpath(picture, self.env.app.srcdir).replace(os.sep, "/")


class Example(_Gallery):
    """``.. example:: digits``: what a program is for, draws and prints, and its source."""

    required_arguments = 1
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Show it."""
        (name,) = self.arguments
        ran = self.ran(name)
        source = f"/../examples/{name}.py"
        lines = ["\n\n".join(paragraphs(name)), ""]
        for picture in ran.pictures:
            if picture.name != "printed.svg":
                lines += [
                    f".. image:: {self.place(picture)}",
                    f"   :alt: {self.options['alt']}",
                    "",
                ]
        if name not in KEPT:
            lines += [f"``{command(name)}`` prints:", "", ".. code-block:: text", ""]
            lines += [f"   {line}" for line in ran.printed.splitlines()]
        lines += ["", f"The program, ``examples/{name}.py``:", ""]
        lines += [f".. literalinclude:: {source}", "   :language: python"]
        lines += [f"   :lines: {docstring(name).end_lineno + 2}-", ""]
        return self.parse_text_to_nodes("\n".join(lines))


class Gallery(_Gallery):
    """``.. gallery::`` with names: a card with a picture for each program."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw the cards."""
        lines = [".. grid:: 1 2 3 3", "    :gutter: 3", ""]
        for name in " ".join(self.content).split():
            title = (PAGES / f"{name}.rst").read_text(encoding="utf-8").partition("\n")[0]
            lines += [
                f"    .. grid-item-card:: {title}",
                f"        :img-top: {self.place(self.ran(name).pictures[0])}",
                f"        :link: {name}",
                "        :link-type: doc",
                "",
                f"        {paragraphs(name)[0]}",
                "",
            ]
        return self.parse_text_to_nodes("\n".join(lines))


def docstring(name: str) -> ast.Constant:
    """What a program says of itself, without running it."""
    first = ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")).body[0]
    assert isinstance(first, ast.Expr)
    assert isinstance(first.value, ast.Constant)
    return first.value


def paragraphs(name: str) -> list[str]:
    """The same as reStructuredText: indented blocks are code, and so are options."""
    return [
        f"::\n\n{each}"
        if each.startswith("    ")
        else re.sub(r"(?<!\S)--[\w-]+", r"``\g<0>``", each)
        for each in docstring(name).value.strip().split("\n\n")
    ]


if __name__ == "__main__":
    (name,) = sys.argv[1:]
    with TemporaryDirectory() as folder:
        (drawn,) = run(name, Path(folder)).pictures
        drawn.replace(PICTURES / f"{name}.svg")
