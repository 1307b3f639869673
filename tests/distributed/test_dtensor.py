"""PyTorch's DTensors on two processes: `dtensors` has the checks."""

from pathlib import Path

import pytest

from tests.distributed.launching import gloo

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("torch")

PATH = Path(__file__).with_name("dtensors.py")


@pytest.mark.parametrize("names", ["programs", "placements+reading+drawing+training"])
def test_on_two_processes(names: str) -> None:
    ended = gloo(2, names, limit=300, path=PATH)
    assert ended.code == 0, ended.err[-3000:]
    for name in names.split("+"):
        assert f"rank 0: {name}" in ended.out and f"rank 1: {name}" in ended.out
    told = [line for line in ended.err.splitlines() if line and "alltoall" not in line]
    assert not told, ended.err  # gloo has no exchange of rows for columns, and says so
