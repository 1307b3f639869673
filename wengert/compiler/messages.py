"""What processes exchange: who carries a program's collectives, and who follows them.

A collective is the kernel of a primitive whose row says ``exchanges``. All of them come here, as
random draws come to `wengert.backends.generators`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["Carrier", "ExchangeError", "apart", "carrier_for", "connect", "connection", "exchange"]


class ExchangeError(Exception):
    """The processes of a program differ in what they exchange, or one of them has ended.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> try:
    ...     wd.all_reduce(wg.ones(2))
    ... except wd.ExchangeError:
    ...     print("another process has ended")
    tensor([1., 1.])
    """


class Carrier:
    """The processes of a program. This class is for one process, which holds all there is.

    Attributes
    ----------
    rank, size : int
        The number of this process, from 0, and how many there are.
    number : int
        The collectives so far.
    """

    rank, size, number = 0, 1, 0

    def carry(self, xp: Any, name: str, x: Any, how: Mapping[str, Any]) -> Any:
        """Run a collective on a raw array."""
        self.number += 1
        return replicate(xp, name, x, how, self)

    def texts(self, what: str, text: str) -> list[str]:
        """The texts that all processes give, by rank; ``what`` says what for."""
        self.number += 1
        return [text]


#: What carries the program's collectives; None before `wengert.distributed.init`.
_carrier: Carrier | None = None
#: What runs the collectives of this thread or task in the carrier's place; None for nothing.
follower: ContextVar[Any] = ContextVar("wengert_messages", default=None)


def connect(carrier: Carrier | None) -> None:
    """Let a carrier run all collectives from now on."""
    global _carrier
    _carrier = carrier


def connection() -> Carrier | None:
    """The carrier; None if there is none yet."""
    return _carrier


def carrier_for(what: str) -> Carrier:
    """The carrier, for what needs one; raise if there is none yet."""
    if _carrier is None:
        raise RuntimeError(f"{what} needs to know the processes: call wengert.distributed.init()")
    return _carrier


def exchange(xp: Any, name: str, x: Any, **how: Any) -> Any:
    """Run a collective on a raw array: the kernel of its primitive."""
    carry = follower.get() or carrier_for(name).carry
    return carry(xp, name, x, how)


def replicate(xp: Any, name: str, x: Any, how: Mapping[str, Any], carrier: Carrier) -> Any:
    """What a collective gives where all processes hold the same array, in new memory."""
    size = carrier.size
    if name == "all_gather":
        return xp.concat([x] * size)
    if name == "reduce_scatter":
        x = x[: x.shape[0] // size, ...]
    sums = name in ("reduce", "reduce_scatter") or how.get("op") == "sum"
    if name == "reduce" and carrier.rank != how["root"]:
        return xp.zeros_like(x)
    return xp.multiply(x, size) if sums and size > 1 else xp.asarray(x, copy=True)


# -- instead of the carrier ------------------------------------------------------------------------


@contextmanager
def apart() -> Iterator[None]:
    """Compute in a ``with`` block what no other process takes part in.

    Collectives then answer as if all processes held the same array. Only shapes, dtypes and what is
    computed twice may depend on that.
    """
    token = follower.set(lambda xp, name, x, how: replicate(xp, name, x, how, carrier_for(name)))
    try:
        yield
    finally:
        follower.reset(token)
