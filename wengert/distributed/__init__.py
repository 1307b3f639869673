"""Programs of several processes: collectives with derivatives, and training by parts of batches.

>>> import wengert.distributed as wd
>>> wd.init()
>>> wd.rank, wd.size  # a single process, without a launcher
(0, 1)
"""

from typing import Any

from wengert.compiler.messages import ExchangeError
from wengert.distributed.averaging import average, mean
from wengert.distributed.collectives import (
    all_gather,
    all_reduce,
    broadcast,
    reduce,
    reduce_scatter,
)
from wengert.distributed.launch import join
from wengert.distributed.training import load, replicate, save, shard

__all__ = [
    "ExchangeError",
    "all_gather",
    "all_reduce",
    "average",
    "broadcast",
    "init",
    "load",
    "mean",
    "reduce",
    "reduce_scatter",
    "replicate",
    "save",
    "shard",
]

rank: int
size: int


def init(timeout: float = 60) -> None:
    """Join the processes of this program, and set ``rank`` and ``size`` of this module.

    ``mpiexec`` and ``torchrun`` tell their processes who they are, by environment variables: under
    the first, arrays are carried by MPI, under the second by gloo. Without a launcher this process
    is alone, of rank 0 and size 1. From now on an error that ends one process ends all of them, and
    the end of the program waits for all.

    A process waits ``timeout`` seconds for the others, here and in each collective. Then
    `TimeoutError` names the ranks that have not come. Raises `ImportError` if a launcher has
    started the program, and ``mpi4py`` or ``torch`` can't be imported. MPI standard: ``MPI_Init``.
    PyTorch: ``torch.distributed.init_process_group``.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()  # without a launcher, one process
    >>> wd.rank, wd.size
    (0, 1)
    """
    global rank, size
    if not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, and not {timeout!r}")
    carrier = join(timeout)
    rank, size = carrier.rank, carrier.size


def __getattr__(name: str) -> Any:
    if name in ("rank", "size"):
        raise RuntimeError(f"wengert.distributed.{name} is known after wengert.distributed.init()")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in ("rank", "size") if name in globals())]
