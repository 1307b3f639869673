"""The room's examples, and the page's."""

import doctest
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import wengert as wg

PAGE = Path(__file__).parents[2] / "docs" / "coming_from" / "numpy.md"


def test_docstrings(room: Any) -> None:
    for name in ("wengert.numpy", "wengert.numpy.functions", "wengert.numpy.tensor"):
        found = doctest.testmod(import_module(name), extraglobs={"wg": wg})
        assert found.failed == 0
    assert doctest.testmod(room, extraglobs={"wg": wg}).attempted > 2


def test_the_pages_program_runs(room: Any) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    *lines, last = programs[1].strip().splitlines()
    given: dict[str, Any] = {}
    exec("\n".join(lines), given)
    assert eval(last, given).tolist() == pytest.approx([0.7, 0.0], abs=0.1)


def test_what_the_page_calls_an_error_is_one(room: Any) -> None:
    """And what it says to write instead changes the array."""
    _, _, table = PAGE.read_text().partition("| error | write |")
    rows = re.findall(r"^\| (`.*?`.*?) \| (`.*?`.*?) \|$", table.partition("\n\n")[0], re.MULTILINE)
    assert len(rows) == 7
    for error, _ in rows[:6]:
        for program in re.findall(r"`(.*?)`", error)[:2]:
            if program in ("b", "x"):
                continue
            a = room.arange(12.0).reshape(3, 4).copy()
            held = {"a": a, "v": 5.0, "np": room, "b": None}
            with pytest.raises(wg.ViewWarning if hasattr(wg, "ViewWarning") else UserWarning):
                exec(program, held)
