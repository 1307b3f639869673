"""What is judged by mpmath at hard points, and the larger errors that are known there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.ops.points.several import COMPLEX_LINES, LINES
from tests.ops.points.table import COMPLEX_ROWS, ROWS


def points() -> list[str]:
    """The functions of the sweep, and a table of the exceptions, as lines of text."""
    lines = []
    for what, rows in (
        ("Of real numbers", ROWS),
        ("Of complex ones", COMPLEX_ROWS),
        ("Of several elements, along lines", [*LINES, *COMPLEX_LINES]),
    ):
        lines += [f"{what}: {', '.join(f'``{row.name}``' for row in rows)}.", ""]
    lines += [".. list-table::", "    :header-rows: 1", "    :widths: 30 70", ""]
    lines += ["    * - function", "      - known larger error"]
    for row in [*ROWS, *COMPLEX_ROWS, *LINES, *COMPLEX_LINES]:
        if row.known is not None:
            lines += [f"    * - ``{row.name}``", f"      - {row.known[0]}"]
    return [*lines, ""]
