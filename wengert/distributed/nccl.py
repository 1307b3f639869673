"""Collectives of CuPy's arrays by NCCL, from GPU to GPU.

The processes agree on each collective, and find one another, by the carrier that the launcher
chose, in host memory. NCCL moves the arrays.
"""

import json
import socket
from ast import literal_eval
from collections.abc import Callable
from typing import Any, Final

import cupy
from cupy.cuda import nccl

from wengert.backends import BackendError
from wengert.distributed.carriers import SUMMED, Connected, Mover, ranks_of, texts_of

__all__ = ["MOVER"]

#: By name of a dtype the name of NCCL's; it sums no integers of 16 bits.
_NAMES: Final = "int8 int32 int64 uint8 uint32 uint64 float16 float32 float64"
_DTYPES: Final = {name: f"NCCL_{name.upper()}" for name in _NAMES.split()}


class _NCCL(Mover):
    """The GPUs of a program's processes, one each, which agree by a carrier."""

    library = "NCCL"
    summed = (SUMMED & _DTYPES.keys()) | {"float16", "complex64", "complex128"}

    def __init__(self, carrier: Connected) -> None:
        self._carrier = carrier
        self._comm: Any = None
        self._device = -1

    def start(self, name: str, x: Any, root: int) -> tuple[Callable[[], bool], Any]:
        comm, size = self._communicator(x.device), self._carrier.size
        length = {"all_gather": x.size * size, "reduce_scatter": x.size // size}.get(name, x.size)
        out = cupy.zeros(length, x.dtype)
        if not x.size:  # of which NCCL may refuse the address
            return lambda: True, out
        dtype, stream = getattr(nccl, _DTYPES[x.dtype.name]), cupy.cuda.get_current_stream()
        both, add = (x.data.ptr, out.data.ptr), nccl.NCCL_SUM
        if name == "all_gather":
            comm.allGather(*both, x.size, dtype, stream.ptr)
        elif name == "reduce_scatter":
            comm.reduceScatter(*both, length, dtype, add, stream.ptr)
        elif name == "broadcast":
            comm.broadcast(*both, x.size, dtype, root, stream.ptr)
        elif name == "reduce":
            comm.reduce(*both, x.size, dtype, add, root, stream.ptr)
        else:
            comm.allReduce(*both, x.size, dtype, add, stream.ptr)
        reached = cupy.cuda.Event(disable_timing=True)
        reached.record(stream)

        def done() -> bool:
            comm.check_async_error()
            return bool(reached.done)

        return done, out

    def _texts(self, text: str) -> list[str]:
        return texts_of(self._carrier.run, self._carrier.size, text)

    def _communicator(self, device: Any) -> Any:
        """The communicator, which the processes make at their first collective."""
        if self._comm is None:
            self._check(device)
            made = nccl.get_unique_id() if self._carrier.rank == 0 else None
            name = literal_eval(self._texts(repr(made))[0])
            self._comm = nccl.NcclCommunicator(self._carrier.size, name, self._carrier.rank)
            self._device = device.id
        if device.id != self._device:
            raise BackendError(
                f"NCCL carries the arrays of one GPU a process, here of cuda:{self._device}, and "
                f"was given one of cuda:{device.id}; move it with x.to(device=...)"
            )
        return self._comm

    def _check(self, device: Any) -> None:
        """Raise on all processes if NCCL can't connect them, which it would wait for."""
        found = [socket.gethostname(), device.pci_bus_id] if nccl.available else None
        every = [json.loads(each) for each in self._texts(json.dumps(found))]
        lacking = [rank for rank, each in enumerate(every) if each is None]
        if lacking:
            raise BackendError(
                f"CuPy finds no NCCL on {ranks_of(lacking)}: install nvidia-nccl-cu12 or -cu13, or "
                "move arrays with x.to_backend('numpy') before collectives"
            )
        for each in every:
            same = [rank for rank, other in enumerate(every) if other == each]
            if len(same) > 1:
                raise BackendError(
                    f"NCCL needs a GPU for each process, and {ranks_of(same)} use one: select "
                    'another on each, as by wg.set_backend(f"cupy:{wd.rank % count}")'
                )


MOVER = _NCCL
