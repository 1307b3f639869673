"""Collectives by gloo, through ``torch.distributed``, which ``torchrun`` starts."""

import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from wengert.compiler.messages import ExchangeError
from wengert.distributed.carriers import (
    GRACE,
    SOON,
    Connected,
    join_error,
    ranks_of,
)

__all__ = ["CARRIER"]


class _Gloo(Connected):
    """The processes of ``torch.distributed``'s default group, which is made if there is none."""

    library = "gloo"

    def __init__(self, timeout: float) -> None:
        if not dist.is_initialized():
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            time_limit, store = timedelta(seconds=max(timeout, 1)), _join_store(rank, size, timeout)
            dist.init_process_group(
                "gloo", store=store, rank=rank, world_size=size, timeout=time_limit
            )
        super().__init__(dist.get_rank(), dist.get_world_size(), timeout)
        # It waits longer than this carrier, which knows more to say.
        self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout + 60))
        self._store: Any = dist.distributed_c10d._get_default_store()
        # The system stops to listen when this process ends, however it does, and not before.
        self._life = _listening()
        self._store.set(f"lives/{self.rank}", "{} {}".format(*self._life.getsockname()[:2]))
        held = [self._store.get(f"lives/{rank}").decode().split() for rank in range(self.size)]
        self._addresses = [(host, int(port)) for host, port in held]

    def start(self, name: str, x: Any, root: int) -> tuple[Callable[[], bool], Any]:
        try:
            work, out = start_collective(self._group, name, x, root)
        except RuntimeError as error:
            raise self._loss_error(error) from error

        def done() -> bool:
            if not work.is_completed():
                return False
            try:
                work.wait()
            except RuntimeError as error:
                raise self._loss_error(error) from error
            return True

        return done, out

    def _loss_error(self, error: Exception) -> ExchangeError:
        """The error for a process that has ended meanwhile."""
        self.broken, self.lost = f"collective {self.number}", True
        end = time.monotonic() + GRACE
        while not (gone := self._ended_ranks()) and time.monotonic() < end:
            time.sleep(SOON)
        why = "the output of each says why"
        try:
            told = [rank for rank in gone if self._check(f"ended/{rank}")]
        except RuntimeError:  # the store has ended with rank 0, and what they told is not known
            told, why = gone, f"{why}, unless it was killed"
        if silent := [rank for rank in gone if rank not in told]:
            who = f"{ranks_of(silent)} ended without an error: killed, or by os._exit"
        else:
            who = f"{ranks_of(told) if told else 'another process'} ended: {why}"
        return ExchangeError(
            f"collective {self.number}, {self._what}, on rank {self.rank}: {who} "
            f"({str(error).splitlines()[0]})"
        )

    def _check(self, key: str) -> bool:
        """Whether there is a key in the store, which takes long to fail once it has ended."""
        if not _listens(_first()):
            raise RuntimeError("the store has ended")
        return bool(self._store.check([key]))

    def _ended_ranks(self) -> list[int]:
        """The processes that have ended: nobody listens at their addresses any more."""
        return [rank for rank, held in enumerate(self._addresses) if not _listens(held)]

    def answer(self, what: str) -> None:
        key = f"waits/{self.number}/{self.rank}"
        if key != getattr(self, "_told", ""):
            self._told = key
            self._store.set(key, what)

    def ask(self, what: str) -> dict[int, str]:
        self.answer(what)
        time.sleep(GRACE)
        found = {}
        for rank in range(self.size):
            with suppress(Exception):  # the store may have gone
                key = f"waits/{self.number}/{rank}"
                if self._store.check([key]):
                    found[rank] = self._store.get(key).decode()
        return found

    def abort(self) -> None:
        if _listens(_first()):
            with suppress(Exception):
                self._store.set(f"ended/{self.rank}", "1")
        sys.stdout.flush()
        end = time.monotonic() + 2 * GRACE
        # The others read in the store, which ends with rank 0, who has ended.
        while (
            self.rank == 0 and len(self._ended_ranks()) < self.size - 1 and time.monotonic() < end
        ):
            time.sleep(SOON)
        os._exit(1)  # the group's threads would wait for the others


def _join_store(rank: int, size: int, timeout: float) -> Any:
    """The store that all processes have reached in time."""
    of_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    limit = timedelta(seconds=timeout)
    try:
        store = dist.TCPStore(
            *_first(), None, rank == 0 and not of_agent, limit, wait_for_workers=False
        )
    except RuntimeError as error:
        raise join_error(rank, timeout, [0]) from error
    # Of this start: torchrun's store outlives processes that it starts again.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    own = dist.PrefixStore(f"wengert/{attempt}", store)
    own.set(f"joined/{rank}", "")
    begin = time.monotonic()
    while late := [r for r in range(size) if not own.check([f"joined/{r}"])]:
        if time.monotonic() > begin + timeout:
            raise join_error(rank, timeout, late)
        time.sleep(SOON)
    return own


def _first() -> tuple[str, int]:
    """Where the processes find one another: the address of the store."""
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def _listens(address: tuple[str, int]) -> bool:
    """Whether a process listens at an address, however busy it is."""
    try:
        socket.create_connection(address, timeout=GRACE).close()
    except OSError:
        return False
    return True


def _listening() -> socket.socket:
    """A socket at this host's address in the network of the first process."""
    found = socket.getaddrinfo(*_first(), type=socket.SOCK_DGRAM)[0]
    family, kind, protocol, _, address = found
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)  # which sends nothing
        own = probe.getsockname()[0]
    return socket.create_server((own, 0), backlog=128)


def start_collective(group: Any, name: str, x: Any, root: int) -> tuple[Any, Any]:
    """Begin a collective on a C-contiguous array; return the work, and the result."""
    given = torch.from_numpy(np.asarray(x).copy())
    rank, size = dist.get_rank(), dist.get_world_size()
    out = given
    if name in ("all_reduce", "reduce_scatter"):  # which gloo has not everywhere
        work = dist.all_reduce(out, group=group, async_op=True)
    elif name == "largest":
        work = dist.all_reduce(out, dist.ReduceOp.MAX, group=group, async_op=True)
    elif name == "all_gather":
        out = torch.empty(x.size * size, dtype=given.dtype)
        parts = list(out.chunk(size)) if x.size else [given] * size
        work = dist.all_gather(parts, given, group=group, async_op=True)
    elif name == "broadcast":
        work = dist.broadcast(out, root, group=group, async_op=True)
    else:
        work = dist.reduce(out, root, group=group, async_op=True)
    found = out.numpy()
    if name == "reduce_scatter":
        part = x.size // size
        found = found[rank * part : (rank + 1) * part]
    return work, np.zeros_like(x) if name == "reduce" and rank != root else found


CARRIER = _Gloo
