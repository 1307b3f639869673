"""List the links of the README, of the other texts and of the documentation.

    python tools/links.py             # the external ones, by page
    python tools/links.py --broken    # the internal ones that lead nowhere; fails if there are any

Internal are paths, headings (``#...``), and addresses of this project's own pages, which have to be
files here. Sphinx checks its own roles and labels when it builds the pages.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where a link stands in Markdown and in reStructuredText; an address anywhere is a link, too.
MARKDOWN = re.compile(r"(?<!`)\]\(<?([^)\s>]+)>?\)|<(https?://[^>\s]+)>|(https?://[^\s)>\]`\"']+)")
RESTRUCTURED = re.compile(
    r"<([^<>\s`]+)>`__?(?!\w)|^\.\. _[^:\n]+: (\S+)$|^ *:(?:link|target): (https?://\S+)$"
    r"|^ *\.\. (?:image|figure|include|literalinclude):: (\S+)$|(https?://[^\s)>\]`\"']+)",
    re.MULTILINE,
)
#: Code in Markdown, whose brackets are no links.
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """The texts of the repository, those of the documentation, and docstrings."""
    texts = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "docs").rglob("*.md")]
    texts += [*(ROOT / "docs").rglob("*.rst"), *(ROOT / "wengert").rglob("*.py")]
    return sorted({*texts, *(ROOT / "examples").glob("*.py")})


def links(page: Path) -> list[str]:
    """The targets of a page's links, in order, each once."""
    text = page.read_text(encoding="utf-8")
    pattern = MARKDOWN if page.suffix == ".md" else RESTRUCTURED
    if page.suffix == ".md":
        text = FENCE.sub("", text)
    found = (next(filter(None, match.groups())) for match in pattern.finditer(text))
    return [*dict.fromkeys(target.rstrip(".,;:") for target in found)]


def external(page: Path) -> list[str]:
    """The targets that are elsewhere."""
    return [x for x in links(page) if x.startswith(("http:", "https:")) and own(x) is None]


def broken(page: Path) -> list[str]:
    """The targets that should be here, and are not."""
    return [target for target in links(page) if not _resolves(page, target)]


@cache
def _urls() -> tuple[str, str]:
    """The addresses of the repository and of the documentation."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    return urls["Repository"].rstrip("/"), urls["Documentation"].rstrip("/")


def own(address: str) -> str | None:
    """The path in the repository of one of the project's own pages, or None for another's."""
    repository, documentation = _urls()
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    for start in (f"{repository}/blob/main/", f"{repository}/tree/main/", f"{raw}/main/"):
        if address.startswith(start):
            return address.removeprefix(start)
    if address.rstrip("/") in (repository, f"{repository}/issues"):
        return ""
    if address.rstrip("/") == documentation:
        return "docs/index.rst"
    page, html, heading = address.removeprefix(f"{documentation}/en/latest/").partition(".html")
    if address.startswith(documentation) and html:
        suffix = ".rst" if (ROOT / "docs" / f"{page}.rst").exists() else ".md"
        return f"docs/{page}{suffix}{heading}"
    return None


def _resolves(page: Path, target: str) -> bool:
    if target.startswith(("http:", "https:")):
        here = own(target)
        if here is None:
            return True
        page, target = ROOT / "README.md", here or "."
    elif ":" in target or page.suffix == ".py":  # another scheme; a placeholder in a docstring
        return True
    path, _, heading = target.partition("#")
    at = page.parent / path if path else page
    return at.exists() and (not heading or heading in _headings(at))


def _headings(page: Path) -> Iterator[str]:
    """The names by which a page's headings are linked to."""
    text = page.read_text(encoding="utf-8")
    form = r"^#+ (.+)$" if page.suffix == ".md" else r"^(\S.*)\n[=\-~^]{3,}$"
    for heading in re.findall(form, text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broken", action="store_true", help="the internal ones that lead nowhere")
    options = parser.parse_args()
    chosen = broken if options.broken else external
    found = {page.relative_to(ROOT): chosen(page) for page in pages()}
    for page, targets in found.items():
        if targets:
            print(page, *targets, sep="\n    ")
    sys.exit(options.broken and any(found.values()))


if __name__ == "__main__":
    main()
