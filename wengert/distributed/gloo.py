"""Collectives by gloo, through ``torch.distributed``, which ``torchrun`` starts."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from wengert.backends.messages import ExchangeError
from wengert.distributed.carriers import GRACE, Connected, ranks_of

__all__ = ["CARRIER"]


class _Gloo(Connected):
    """The processes of ``torch.distributed``'s default group, which is made if there is none."""

    library = "gloo"

    def __init__(self, timeout: float) -> None:
        self._own = not dist.is_initialized()
        if self._own:
            dist.init_process_group("gloo", timeout=timedelta(seconds=max(timeout, 1)))
        super().__init__(dist.get_rank(), dist.get_world_size(), timeout)
        # The group waits longer than this carrier, which knows more to say.
        self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout + 60))
        self._store: Any = dist.distributed_c10d._get_default_store()

    def start(self, name: str, x: Any, root: int) -> tuple[Callable[[], bool], Any]:
        given, group = torch.from_numpy(np.array(x)), self._group
        out = given
        try:
            if name in ("all_reduce", "reduce_scatter"):  # which gloo has not everywhere
                work = dist.all_reduce(out, group=group, async_op=True)
            elif name == "largest":
                work = dist.all_reduce(out, dist.ReduceOp.MAX, group=group, async_op=True)
            elif name == "all_gather":
                out = torch.empty(x.size * self.size, dtype=given.dtype)
                parts = list(out.chunk(self.size)) if x.size else [given] * self.size
                work = dist.all_gather(parts, given, group=group, async_op=True)
            elif name == "broadcast":
                work = dist.broadcast(out, root, group=group, async_op=True)
            else:
                work = dist.reduce(out, root, group=group, async_op=True)
        except RuntimeError as error:
            raise self._lost(error) from error

        def done() -> bool:
            if not work.is_completed():
                return False
            try:
                work.wait()
            except RuntimeError as error:
                raise self._lost(error) from error
            return True

        found = out.numpy()
        if name == "reduce_scatter":
            part = x.size // self.size
            found = found[self.rank * part : (self.rank + 1) * part]
        if name == "reduce" and self.rank != root:
            return done, np.zeros_like(x)
        return done, found

    def _lost(self, error: Exception) -> ExchangeError:
        """The error for a process that has ended meanwhile."""
        try:
            gone = [rank for rank in range(self.size) if self._store.check([f"ended/{rank}"])]
        except Exception:  # the store ends with rank 0
            gone = [0]
        who = ranks_of(gone) if gone else "another process"
        self.broken = f"collective {self.number}"
        return ExchangeError(
            f"collective {self.number}, {self._what}, on rank {self.rank}: {who} has ended. Its "
            f"own output says why ({str(error).splitlines()[0]})"
        )

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
        with suppress(Exception):
            self._store.set(f"ended/{self.rank}", "1")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # the group's threads would wait for the others


CARRIER = _Gloo
