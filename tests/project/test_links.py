"""Links within the project lead somewhere, and those to elsewhere can be listed."""

from pathlib import Path

import pytest

from tests.scripts import load

ROOT = Path(__file__).parents[2]


LINKS = load("tools", "links")
TEXTS = [page for page in LINKS.pages() if page.suffix != ".py"]


@pytest.mark.whole
def test_internal_links_resolve() -> None:
    assert {page: broken for page in TEXTS if (broken := LINKS.broken(page))} == {}


def test_the_readme_reads_right_on_a_package_index() -> None:
    """Nothing there is relative: a package index has neither the files nor the pictures."""
    found = LINKS.links(ROOT / "README.md")
    assert len(found) > 10
    assert [target for target in found if not target.startswith("https://")] == []
    assert any(target.endswith(".png") for target in found)


def test_external_links_are_listed() -> None:
    listed = {str(page.relative_to(ROOT)): LINKS.external(page) for page in LINKS.pages()}
    assert listed["README.md"] == ["https://data-apis.org/array-api/latest/"]
    assert "https://hypothesis.readthedocs.io" in listed[str(Path("docs", "testing.rst"))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "[a](nowhere.md)"),
        ("page.md", "# A heading\n\n[a](#another)"),
        ("page.md", "[a](https://wengert.readthedocs.io/en/latest/nowhere.html)"),
        ("page.md", "[a](https://wengert.readthedocs.io/en/latest/mechanics.html#nowhere)"),
        ("page.md", "![a](https://raw.githubusercontent.com/wengert/wengert/main/docs/no.png)"),
        ("page.rst", "`a <https://github.com/wengert/wengert/blob/main/nowhere>`_"),
        ("page.rst", ".. image:: nowhere.png"),
        ("page.rst", ".. _a: nowhere.rst"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, name: str, text: str) -> None:
    page = tmp_path / name
    page.write_text(f"{text}\n\n# Here\n\n[b](#here)\n" if name.endswith(".md") else text)
    assert len(LINKS.broken(page)) == 1
