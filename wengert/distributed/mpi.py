"""Collectives by MPI, through mpi4py, which ``mpiexec`` starts."""

import atexit
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from wengert.distributed.carriers import GRACE, Connected, join_error

__all__ = ["CARRIER"]

#: Tags of messages beside collectives: a question, with what its sender waits for, and an answer.
_ASKS, _ANSWERS = 1, 2


class _MPI(Connected):
    """The processes of ``MPI_COMM_WORLD``."""

    library = "MPI"

    def __init__(self, timeout: float) -> None:
        world = MPI.COMM_WORLD
        super().__init__(world.Get_rank(), world.Get_size(), timeout)
        # Of its own, so that messages of the program's do not meet these.
        self._comm, self._beside = self._copy_communicator(world), self._copy_communicator(world)
        self._known: dict[int, str] = {}

    def _copy_communicator(self, world: Any) -> Any:
        """A communicator of the same processes, if all come in time."""
        comm, request = world.Idup()
        begin = time.monotonic()
        while not request.Test():
            if time.monotonic() > begin + self.timeout:
                atexit.register(world.Abort, 1)  # the end of MPI would wait for the others
                raise join_error(self.rank, self.timeout, [])
            time.sleep(1e-3)
        return comm

    def start(self, name: str, x: Any, root: int) -> tuple[Callable[[], bool], Any]:
        request, out = start_collective(self._comm, name, x, root)
        # MPI may not go on in the background: it does in each test.
        return request.Test, out

    def answer(self, what: str) -> None:
        while self._beside.Iprobe():
            self._read_message(what)

    def _read_message(self, what: str) -> None:
        status = MPI.Status()
        text = self._beside.recv(status=status)
        self._known[status.Get_source()] = text
        if status.Get_tag() == _ASKS:
            self._beside.isend(what, status.Get_source(), tag=_ANSWERS)

    def ask(self, what: str) -> dict[int, str]:
        self._known.clear()
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._sent = [self._beside.isend(what, rank, tag=_ASKS) for rank in others]
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            self.answer(what)
            time.sleep(1e-3)
        return self._known

    def abort(self) -> None:
        sys.stdout.flush()
        MPI.COMM_WORLD.Abort(1)


def start_collective(comm: Any, name: str, x: Any, root: int) -> tuple[Any, Any]:
    """Begin a collective on a C-contiguous array; return the request, and the result."""
    out = np.empty_like(x)
    if name in ("all_reduce", "largest"):
        request = comm.Iallreduce(x, out, op=MPI.MAX if name == "largest" else MPI.SUM)
    elif name == "all_gather":
        out = np.empty(x.size * comm.Get_size(), x.dtype)
        request = comm.Iallgather(x, out)
    elif name == "reduce_scatter":
        out = np.empty(x.size // comm.Get_size(), x.dtype)
        request = comm.Ireduce_scatter_block(x, out, op=MPI.SUM)
    elif name == "broadcast":
        out = x.copy()
        request = comm.Ibcast(out, root=root)
    else:
        mine = comm.Get_rank() == root
        out = out if mine else np.zeros_like(x)
        request = comm.Ireduce(x, out if mine else None, op=MPI.SUM, root=root)
    return request, out


CARRIER = _MPI
