"""Collectives of CuPy's arrays: NCCL simulated on MPI, below CuPy's own simulation."""

import pytest

from tests.distributed.launching import mpi, needs_mpi

pytestmark = [
    needs_mpi,
    pytest.mark.simulated,
    pytest.mark.usefixtures("backend", "mpi_works"),
]


def test_on_two_processes() -> None:
    ended = mpi(2, "on_cupy+values+trainings+once+kept+of_nccl", limit=300)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("NCCL") == 2


def test_one_gpu_for_two_processes() -> None:
    ended = mpi(2, "on_one_gpu")
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("refused") == 2


FAILURES = {
    "batch_fewer": ["rank 0 in all_reduce(x: float64", "by NCCL; rank 1 in the end of the program"],
    "shapes_differ": ["rank 0 in all_reduce(x: float32 of shape (2,)", "rank 1 in all_reduce(x:"],
    "hangs": ["collective 2, all_reduce(x: float32 of shape (2,)", "rank 1 did not come"],
}


@pytest.mark.parametrize("program", FAILURES)
def test_failures(program: str) -> None:
    ended = mpi(2, f"on_cupy+{program}")
    assert ended.code != 0
    for text in FAILURES[program]:
        assert text in ended.err, ended.err[-3000:]
