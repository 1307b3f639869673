"""Collectives of JAX's arrays, which go through host memory."""

import pytest

from tests.distributed.launching import mpi, needs_mpi

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("jax")


@needs_mpi
@pytest.mark.usefixtures("mpi_works")
def test_on_two_processes() -> None:
    flags = "--xla_force_host_platform_device_count=2"
    programs = "on_jax+values+training_compiled+once+kept+spread"
    ended = mpi(2, programs, limit=300, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.count("spread") == 2
