"""NCCL between processes: what CuPy has compiled of it, with MPI in the place of NVLink.

Pointers are addresses of host memory here, as of the simulation's arrays.
"""

import ctypes
import importlib
import warnings
from typing import Any

import cupy
import numpy as np

from tests.simulated_cupy.counters import launched

_DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
#: The constants of ``nccl.h``.
CONSTANTS = {f"NCCL_{name.upper()}": i for i, name in enumerate(_DTYPES)} | {"NCCL_SUM": 0}


def _at(pointer: int, count: int, datatype: int) -> np.ndarray:
    dtype = np.dtype(_DTYPES[datatype])
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(memory, dtype)


def get_unique_id() -> Any:
    """128 bytes: up to CuPy 13 as a tuple of numbers with a sign."""
    name = bytes(range(56, 184))
    return name if cupy.__version__ >= "14" else tuple(np.frombuffer(name, np.int8).tolist())


class NcclCommunicator:
    """``cupy.cuda.nccl.NcclCommunicator``."""

    def __init__(self, ndev: int, commId: Any, rank: int) -> None:
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        assert (ndev, rank) == (world.Get_size(), world.Get_rank())
        assert commId == get_unique_id() and type(commId) is type(get_unique_id())
        self._comm, self._rank, self._size = world.Dup(), rank, ndev

    def _every(self, what: str, pointer: int, count: int, datatype: int) -> np.ndarray:
        launched(what)
        return np.stack(self._comm.allgather(_at(pointer, count, datatype).copy()))

    def allReduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
    ) -> None:
        every = self._every("allReduce", sendbuf, count, datatype)
        _at(recvbuf, count, datatype)[...] = every.sum(0, dtype=every.dtype)

    def reduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int
    ) -> None:
        every = self._every("reduce", sendbuf, count, datatype)
        if self._rank == root:
            _at(recvbuf, count, datatype)[...] = every.sum(0, dtype=every.dtype)

    def broadcast(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int
    ) -> None:
        _at(recvbuff, count, datatype)[...] = self._every("broadcast", sendbuff, count, datatype)[
            root
        ]

    def reduceScatter(
        self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int
    ) -> None:
        every = self._every("reduceScatter", sendbuf, recvcount * self._size, datatype)
        parts = every.sum(0, dtype=every.dtype).reshape(self._size, recvcount)
        _at(recvbuf, recvcount, datatype)[...] = parts[self._rank]

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        every = self._every("allGather", sendbuf, count, datatype)
        _at(recvbuf, count * self._size, datatype)[...] = every.reshape(-1)

    def check_async_error(self) -> None:
        pass


def install() -> None:
    with warnings.catch_warnings():  # that there is no NCCL
        warnings.simplefilter("ignore")
        nccl = importlib.import_module("cupy.cuda.nccl")
    vars(nccl).update(
        CONSTANTS, available=True, get_unique_id=get_unique_id, NcclCommunicator=NcclCommunicator
    )
