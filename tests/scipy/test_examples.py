"""The room's examples, and the page's."""

import doctest
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import wengert as wg

PAGE = Path(__file__).parents[2] / "docs" / "coming_from" / "scipy.md"


@pytest.mark.parametrize(
    "name",
    ["", ".integrate", ".interpolate", ".linalg", ".optimize", ".signal", ".special", ".stats"],
)
def test_docstrings(name: str) -> None:
    module = import_module(f"wengert.scipy{name}")
    test = doctest.DocTestParser().get_doctest(module.__doc__ or "", {"wg": wg}, name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
    assert len(test.examples) > 2


def test_the_pages_program_runs() -> None:
    *lines, last = (
        re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0].strip().splitlines()
    )
    given: dict[str, Any] = {}
    exec("\n".join(lines), given)
    assert eval(last, given).shape == (2,)
