"""The programs of the gallery in NumPy's and SciPy's names run, and find what they look for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.numpy.compare import plain
from tests.scripts import load


@pytest.mark.slow
@pytest.mark.parametrize("name", ["epidemic", "gaussian_process", "wave"])
def test_programs_of_the_gallery(name: str, tmp_path: Path, capsys: Any) -> None:
    for library in ("scipy", "matplotlib"):
        pytest.importorskip(library)
    program = load("examples", name)
    more = ["--iterations", "25"] if name == "wave" else []
    found = program.main(["--output", str(tmp_path), *more])
    said = capsys.readouterr().out
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    if name == "epidemic":
        assert "infected by each    3.92" in said
    if name == "gaussian_process":  # no other height is more likely
        x, y = program.measure(1)
        costs = [
            float(program.cost(program.np.array(np.log(plain(found.scales)) + h), x, y))
            for h in (0.0, 0.1, -0.1)
        ]
        assert min(costs) == costs[0]
    if name == "wave":
        true, drawn = map(plain, found)
        assert np.linalg.norm(drawn - true) < 0.25 * np.linalg.norm(true)
        assert "2304 pixels from 4400 numbers, after 25" in said
