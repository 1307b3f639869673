"""Collectives and training on processes of torch.distributed's."""

import re

import pytest

from tests.distributed.launching import gloo

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("torch")


def test_on_several_processes(tmp_path) -> None:
    ended = gloo(2, "values+trainings+once+torch_arrays", tmp_path, limit=240)
    assert ended.code == 0, ended.err[-3000:]
    assert "rank 0: " in ended.out and "rank 1: " in ended.out


#: What each failure says, within the seconds after which `gloo` then ends all.
FAILURES = {
    "leaves_by_a_status": ["rank 1 ended without an error: killed, or by os._exit"],
    "comes_late": ["rank 1 did not come", "init has waited for 3 s on rank 0"],
    "first_comes_late": ["rank 0 did not come", "init has waited for 3 s on rank 1"],
    "batch_fewer": [r"rank 0 in all_reduce\(x: float64", "rank 1 in the end of the program"],
    "hangs": [
        re.escape("collective 2, all_reduce(x: float32 of shape (2,)"),
        "rank 1 did not come",
    ],
    # Of several that are gone it is not known who was the first, where rank 0 is one of them.
    "killed": ["on rank 0: rank 1 ended without an error", "on rank 2: (rank|ranks 0,) 1 ended"],
    "killed_first": ["on rank 1: ranks? 0", "on rank 2: ranks? 0", "unless it was killed"],
}


def test_one_line_says_last_who_has_failed() -> None:
    lines = gloo(3, "raises").err.strip().splitlines()
    assert sum("Traceback" in line for line in lines) == 1  # of the process that has failed
    assert "rank 1 of 3 ends all: ArithmeticError: of the second rank" in lines
    for rank in (0, 2):
        assert any(f"rank {rank} of 3 ends all: ExchangeError" in line for line in lines)
    assert "ends all" in lines[-1]


@pytest.mark.parametrize("program", FAILURES)
def test_failures(program: str) -> None:
    ended = gloo(3 if "killed" in program else 2, program)
    assert ended.code != 0
    for text in FAILURES[program]:
        assert re.search(text, ended.err), ended.err[-3000:]
