"""The documentation's tables of derivatives say what is so."""

import re
import sys

import pytest

from tests.scripts import ROOT
from wengert.tape.primitive import PRIMITIVES

sys.path.insert(0, str(ROOT / "docs"))
try:
    import derivatives
    from derivatives import HEAD, PARAMETERS_HEAD, parameter_tables, tables
finally:
    sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def rows():
    """Cells by function, for each section."""
    found = {}
    for section in re.split(r"\n(?=.*\n-{3})", "\n" + "\n".join(tables())):
        title = section.strip().partition("\n")[0]
        cells = re.findall(r"^    [* ] - (.*)$", section, re.MULTILINE)
        lines = [cells[i : i + len(HEAD)] for i in range(0, len(cells), len(HEAD))]
        assert lines[:1] in ([], [HEAD])
        for first, *more in lines[1:]:
            found[title, re.sub(r".*[.`]([^.`]+)`+$", r"\1", first)] = more
    return found


def test_every_primitive_is_in_a_table(rows):
    shown = {name for _, name in rows}
    rooms = {name for name in PRIMITIVES if derivatives.of_scipy(name)}
    for name in PRIMITIVES.keys() - rooms:
        assert {name, name.rpartition(".")[2], name.removesuffix("_arrays")} & shown, name


def test_what_some_rows_say(rows):
    # kind, first, higher, forward, complex, smooth in, backends
    elementwise = "Elementwise functions"
    assert rows[elementwise, "exp"] == [
        "elementwise", "yes", "any order", "derived", "yes", "", "all"
    ]  # fmt: skip
    assert rows[elementwise, "floor"] == [
        "elementwise", "zero", "", "zero", "no", "all but 0 ± 1 k", "all"
    ]  # fmt: skip
    assert rows[elementwise, "less"] == ["elementwise", "not tracked", "", "", "", "", "all"]
    assert rows[elementwise, "nextafter"][1] == "undefined"
    assert rows[elementwise, "copysign"][1] == "yes: ``x1``; zero: ``x2``"
    assert rows["Sorting", "sort"][:4] == ["irregular", "yes", "any order", "explicit"]
    assert rows["Extension linalg", "outer"][0] == "composition"
    assert rows[elementwise, "divide"][5] == "``x2``: all but 0"
    assert "all but dask" in rows["Searching", "nonzero"][6]
    assert ("Manipulation", "broadcast_shapes") not in rows


def test_parameters_by_what_they_are():
    cells = re.findall(r"^    [* ] - ?(.*)$", "\n".join(parameter_tables()), re.MULTILINE)
    number = len(PARAMETERS_HEAD)
    rows = {cells[i]: cells[i + 1 : i + number] for i in range(0, len(cells), number)}
    assert rows[":py:obj:`~wengert.arange`"] == [
        "``start``, ``step``", "``stop``", "", "``dtype``, ``device``, ``requires_grad``"
    ]  # fmt: skip
    assert rows[":py:obj:`~wengert.nextafter`"] == ["", "", "``x1``, ``x2``", ""]
    assert rows[":py:obj:`~wengert.copysign`"] == ["``x1``", "``x2``", "", ""]
    assert rows[":py:obj:`~wengert.optim.SGD`"][3].startswith("``lr``, ``momentum``")
    assert rows[":py:obj:`~wengert.nn.LeakyReLU`"] == ["``negative_slope``", "", "", "``inplace``"]


def test_nothing_is_left_out_of_a_derivative(rows):
    for key, cells in rows.items():
        if cells[0] != "composition":
            assert "none" not in cells[3], f"{key} has no forward rule"
            assert cells[1] != "yes" or cells[2] == "any order", f"{key} is not closed"
