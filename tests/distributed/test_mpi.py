"""Collectives and training on processes of MPI's."""

from pathlib import Path

import numpy as np
import pytest

from tests.distributed.launching import mpi, needs_mpi
from tests.scripts import ROOT

pytestmark = [needs_mpi, pytest.mark.slow, pytest.mark.usefixtures("mpi_works")]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_on_several_processes(ranks: int, tmp_path: Path) -> None:
    ended = mpi(ranks, "values+trainings+once+kept", tmp_path, limit=240)
    assert ended.code == 0, ended.err[-3000:]
    for rank in range(ranks):
        assert f"rank {rank}: " in ended.out


@pytest.mark.parametrize("ranks", [1, 2])
def test_derivatives(ranks: int) -> None:
    """First and second derivatives of the collectives against differences, and forward mode."""
    ended = mpi(ranks, "derivatives")
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("derivatives") == ranks


def test_checkpoints(tmp_path: Path) -> None:
    ended = mpi(2, "saves", tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("saved ['run.safetensors']") == 2


def test_what_processes_have_to_have_alike() -> None:
    ended = mpi(2, "differ")
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("differ") == 2


#: What each failure says.
FAILURES = {
    "raises": ["rank 1 of 2 ends all: ArithmeticError: of the second rank", "in raises"],
    "file_is_missing": ["No such file", "rank 1"],
    "comes_late": ["rank 1 did not come", "init has waited for 3 s on rank 0"],
    "comes_late_in_mpi": ["rank 1 did not come", "init has waited for 3 s on rank 0"],
    "batch_fewer": ["rank 0 in all_reduce(x: float64", "rank 1 in the end of the program"],
    "shard_fewer": ["rank 0 in all_reduce(x: float64", "rank 1 in the end of shard, after 3"],
    "shapes_differ": ["rank 0 in all_reduce(x: float32 of shape (2,)", "rank 1 in all_reduce(x:"],
    "hangs": ["collective 2, all_reduce(x: float32 of shape (2,)", "rank 1 did not come"],
    "killed": ["rank 1", "signal 9"],
    "leaves": ["rank 1 in the end of the program"],
    "interrupts": ["KeyboardInterrupt"],
}


@pytest.fixture(scope="module")
def limit() -> float:
    """Seconds in which a failure ends all, beyond those in which two processes start and end."""
    ended = mpi(2, "starts")
    assert ended.code == 0, ended.err[-3000:]
    return 15 + ended.seconds


@pytest.mark.parametrize("program", FAILURES)
def test_failures_end_all_and_name_the_rank(program: str, limit: float) -> None:
    ended = mpi(2, program)
    assert ended.code != 0
    for text in FAILURES[program]:
        assert text in ended.err, ended.err[-3000:]
    assert ended.seconds < limit


def test_a_run_with_dropout_goes_on_as_it_was(tmp_path: Path) -> None:
    """Stopped after three of six steps and loaded, it has the bits of an unbroken run."""
    ended = [mpi(2, program, tmp_path, limit=120) for program in ("unbroken", "resumed")]
    for each in ended:
        assert each.code == 0, each.err[-3000:]
    lines = [sorted(x for x in each.out.splitlines() if "weights" in x) for each in ended]
    assert lines[0] == lines[1] and len(lines[0]) == 2
    for each in (mpi(1, "resumed", tmp_path), mpi(2, "loads_alone", tmp_path)):
        assert "the states of 2 process(es), and is loaded on 1" in each.err


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path, limit: float) -> None:
    ended = mpi(2, "killed_while_saving", tmp_path)
    assert ended.code != 0 and "signal 9" in ended.err and ended.seconds < limit
    assert "old file" in ended.out
    assert "new file" not in ended.out
    ended = mpi(1, "reads", tmp_path)
    assert "step 1" in ended.out, ended.err[-3000:]


@pytest.mark.parametrize("more", [[], ["--compile"]], ids=["eager", "compiled"])
def test_digits(tmp_path: Path, more: list[str]) -> None:
    """The example learns on two processes what it learns on one, in float32."""
    for library in ("sklearn", "tqdm", "matplotlib"):
        pytest.importorskip(library)
    from safetensors.numpy import load_file

    example = ROOT / "examples" / "digits.py"
    given = ["--steps", "14", "--hidden", "16", "--batch-size", "128", *more, "--output"]
    one = mpi(1, *given, tmp_path / "one", path=example)
    two = mpi(2, *given, tmp_path / "two", "--distributed", path=example)
    assert one.code == two.code == 0, two.err[-3000:]
    assert two.out.count("test accuracy") == 1
    alone, together = (load_file(tmp_path / n / "weights.safetensors") for n in ("one", "two"))
    for name, expected in alone.items():
        np.testing.assert_allclose(together[name], expected, rtol=1e-3, atol=1e-4)
