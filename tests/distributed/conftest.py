"""What the tests of several processes need."""

import subprocess
import sys

import pytest

from tests.distributed.launching import MPIEXEC, run


@pytest.fixture(scope="module")
def mpi_works() -> None:
    """Skip where MPI itself, without Wengert, can't start two processes, as in some sandboxes."""
    program = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    try:
        ended = run([str(MPIEXEC), "--oversubscribe", "-n", "2", sys.executable, "-c", program])
    except subprocess.TimeoutExpired:
        pytest.skip("mpiexec does not end here")
    if ended.code:
        pytest.skip(f"mpiexec starts no processes here: {ended.err[-500:]}")
