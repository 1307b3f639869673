"""What all carriers have in common: they agree before each collective, and do not wait for ever."""

import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from hashlib import blake2b
from importlib import import_module
from typing import Any, Final

import numpy as np

from wengert.backends import BackendError, dtype_of
from wengert.backends.messages import Carrier, ExchangeError

__all__ = ["Connected"]

#: The backends whose arrays are in host memory, or may be.
HOSTED: Final = ("numpy", "array_api_strict", "torch", "jax")
#: The modules that move the arrays of other backends, each with a `Mover`.
ELSEWHERE: Final = {"cupy": "wengert.distributed.nccl"}
#: Seconds after which a process that waits tells so, and in which one that asks waits for answers.
SOON, GRACE = 0.05, 1.0
#: Collectives that move elements as they are.
MOVING: Final = ("all_gather", "broadcast")
#: Dtypes that are summed.
SUMMED: Final = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"float32", "float64", "complex64", "complex128"}
)
#: The real dtype of a complex one, whose two parts are summed.
_PARTS: Final = {"complex64": np.float32, "complex128": np.float64}


class Mover:
    """What moves arrays between processes that have agreed on a collective.

    Attributes
    ----------
    library : str
        What it is called.
    summed : frozenset of str
        The dtypes that it sums.
    """

    library: str
    summed = SUMMED

    @abstractmethod
    def start(self, name: str, x: Any, root: int) -> tuple[Callable[[], bool], Any]:
        """Begin a collective; return what tells whether it is done, and the result.

        ``x`` is flat and contiguous: complex numbers as pairs of real ones, and as bytes what is
        only moved. ``name`` is that of a primitive, or "largest" for the maximum of integers.
        """


class Connected(Mover, Carrier):
    """Several processes, connected by a library that moves arrays in host memory.

    Before a collective moves anything, the processes compare what they are about to do, by one
    small reduction. So different collectives are an error on all of them, where the library would
    wait for ever or mix up memory.

    Parameters
    ----------
    rank, size : int
        This process, and how many there are.
    timeout : float
        Seconds that a process waits for the others.

    Attributes
    ----------
    broken : str
        Why the processes can't go on together; "" while they can.
    """

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.broken = ""
        self._codes: dict[str, int] = {}
        self._movers: dict[str, Mover] = dict.fromkeys(HOSTED, self)

    # -- what libraries do ---------------------------------------------------------------------

    @abstractmethod
    def answer(self, what: str) -> None:
        """Tell the processes that ask that this one waits, and for what."""

    @abstractmethod
    def ask(self, what: str) -> dict[int, str]:
        """Ask the processes what they wait for; return the answers of those that wait, by rank."""

    @abstractmethod
    def abort(self) -> None:
        """End all processes."""

    # -- collectives ---------------------------------------------------------------------------

    def carry(self, xp: Any, name: str, x: Any, how: Mapping[str, Any]) -> Any:
        self.number += 1
        backend, dtype = xp.backend, dtype_of(x.dtype).name
        mover = self._mover(name, backend.name)
        hosted = mover is self
        given = np.asarray(backend.to_numpy(x)) if hosted else x
        if dtype != given.dtype.name or (name not in MOVING and dtype not in mover.summed):
            raise TypeError(
                f"{name}: {mover.library} carries no {dtype}; cast x to float32 or an integer"
            )
        options = "".join(f", {key}={value!r}" for key, value in how.items())
        by = "" if hosted else f" by {mover.library}"
        self._agree(f"{name}(x: {dtype} of shape {tuple(given.shape)}{options}){by}")
        if not hosted:
            with backend.on(backend.device(x)):
                return self._run(name, x, **how, mover=mover, library=xp.library)
        out = self._run(name, given, **how)
        return backend.from_numpy(out, backend.beside(x, alike=out.shape == given.shape))

    def _mover(self, name: str, backend: str) -> Mover:
        """What moves a backend's arrays."""
        if backend not in self._movers:
            if backend not in ELSEWHERE:
                raise BackendError(
                    f"{name}: {self.library} carries arrays in host memory, of "
                    f"{', '.join(HOSTED)}, and was given one of {backend}; move it with "
                    "x.to_backend('numpy')"
                )
            self._movers[backend] = import_module(ELSEWHERE[backend]).MOVER(self)
        return self._movers[backend]

    def _run(
        self,
        name: str,
        x: Any,
        op: str = "sum",
        root: int = 0,
        mover: Mover | None = None,
        library: Any = np,
    ) -> Any:
        """A collective of which the processes have agreed, on a raw array of ``library``."""
        shape, dtype = x.shape, x.dtype
        if name == "all_gather":
            shape = self.size * shape[0], *shape[1:]
        elif name == "reduce_scatter":
            shape = shape[0] // self.size, *shape[1:]
        flat = library.ascontiguousarray(x).reshape(-1)
        # What only moves elements moves bytes, and complex numbers are summed by parts.
        flat = flat.view(np.uint8 if name in MOVING else _PARTS.get(dtype.name, dtype))
        done, out = (mover or self).start(name, flat, root)
        self._wait(done, name)
        out = library.asarray(out).view(dtype).reshape(shape)
        return library.divide(out, self.size, dtype=dtype) if op == "mean" else out

    def texts(self, what: str, text: str) -> list[str]:
        self.number += 1
        self._agree(what)
        return self._texts(text)

    def _texts(self, text: str) -> list[str]:
        """All processes' texts, by rank."""
        own = np.frombuffer(json.dumps(text).encode(), np.uint8)
        longest = int(self._run("largest", np.asarray([own.size]))[0])
        padded = np.full(longest, ord(" "), np.uint8)
        padded[: own.size] = own
        every = self._run("all_gather", padded).reshape(self.size, longest)
        return [json.loads(each.tobytes()) for each in every]

    def end(self) -> None:
        """Wait for all processes at the end of the program, however long the others take."""
        self.number += 1
        self.timeout = math.inf
        self._agree("the end of the program")

    # -- what may go wrong ---------------------------------------------------------------------

    def _agree(self, what: str) -> None:
        """Raise on all processes if these are about to do different things."""
        if self.broken:
            raise ExchangeError(
                f"{what}: the processes are no longer together, since {self.broken}. Start the "
                "program again"
            )
        self._what = what
        code = self._codes.get(what)
        if code is None:
            code = int.from_bytes(blake2b(what.encode(), digest_size=7).digest())
            self._codes[what] = code
        both = np.asarray([code, -code])
        if (self._run("largest", both) == both).all():
            return
        texts = self._texts(what)
        self.broken = f"collective {self.number}"
        by_rank: dict[str, list[int]] = {}
        for rank, each in enumerate(texts):
            by_rank.setdefault(each, []).append(rank)
        found = "; ".join(f"{ranks_of(ranks)} in {each}" for each, ranks in by_rank.items())
        raise ExchangeError(
            f"the processes differ in their collective {self.number}: {found}. All have to call "
            "the same ones in the same order, with the same shapes and dtypes: as many batches on "
            "each, and no branch on the rank around them"
        )

    def _wait(self, done: Callable[[], bool], name: str) -> None:
        """Wait until a collective is done; raise if that takes too long."""
        begin = time.monotonic()
        while not done():
            waited = time.monotonic() - begin
            if waited > SOON:
                self.answer(self._what)
            if waited > self.timeout:
                raise self._late()
            # Others may need this processor, all the more the longer it takes.
            time.sleep(0 if waited < 1e-3 else min(waited / 20, 2e-3))

    def _late(self) -> TimeoutError:
        """The error for processes that have not come."""
        found = self.ask(self._what) | {self.rank: self._what}
        late = [rank for rank in range(self.size) if rank not in found]
        self.broken = f"collective {self.number}"
        waiting = "; ".join(f"rank {rank} in {found[rank]}" for rank in sorted(found))
        who = f"{ranks_of(late)} did not come" if late else "all have come by now"
        return TimeoutError(
            f"collective {self.number}, {self._what}, has taken more than {self.timeout:g} s on "
            f"rank {self.rank}: {who}. Waiting: {waiting}. If a process may take longer, give "
            "wengert.distributed.init a larger timeout"
        )


def ranks_of(ranks: list[int]) -> str:
    """Ranks in words."""
    listed = ", ".join(map(str, ranks))
    return f"rank{'s' if len(ranks) > 1 else ''} {listed}"
