"""The table of conventions, as it is read from its page."""

import re
from functools import cache
from pathlib import Path


@cache
def conventions() -> list[tuple[str, str, str, str]]:
    """The rows of the page of singular points: expression, point, gradient, second order."""
    page = Path(__file__).parent / "explanation" / "singular_points.rst"
    text = page.read_text(encoding="utf-8")
    table = text.partition(":name: conventions-table")[2].partition("\n**A trap")[0]
    rows = re.findall(r"^ +``(.+?)``; ``(.+?)``; ``(.+?)``; ``(.+?)``$", table, re.MULTILINE)
    if len(rows) != table.count("    ``"):
        raise ValueError("a row of the table of conventions can't be read")
    return rows
