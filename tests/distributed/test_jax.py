"""Collectives of JAX's arrays, which MPI and gloo carry in host memory."""

import pytest

from tests.distributed.launching import gloo, mpi, needs_mpi

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("jax")


@needs_mpi
@pytest.mark.usefixtures("mpi_works")
def test_on_two_processes() -> None:
    flags = "--xla_force_host_platform_device_count=2"
    programs = "on_jax+values+trainings+once+kept+spread"
    ended = mpi(2, programs, limit=300, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("spread") == 2


def test_by_gloo() -> None:
    pytest.importorskip("torch")
    ended = gloo(2, "on_jax+values", limit=120)
    assert ended.code == 0, ended.err[-3000:]
