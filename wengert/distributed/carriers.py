"""What all carriers have in common: they agree before each collective, and do not wait for ever."""

import hashlib
import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

import numpy as np

from wengert.backends import BackendError, dtype_of
from wengert.compiler.messages import Carrier, ExchangeError

__all__ = ["Connected", "Mover", "join_error", "ranks_of", "texts_of"]

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
#: The dtypes that complex numbers are summed in, by parts, and integers that gloo lacks, by bits.
_PARTS: Final = {
    "complex64": np.float32,
    "complex128": np.float64,
    "uint32": np.int32,
    "uint64": np.int64,
}


class Mover:
    """What moves arrays between processes that have agreed on a collective."""

    #: What it is called, and the dtypes that it sums.
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

    Attributes
    ----------
    broken, lost : str, bool
        Why the processes can't go on together; whether that is since another one has ended.
    """

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.broken, self.lost = "", False
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
        backend = xp.backend
        mover = self._mover(name, backend.name)
        if mover is not self:
            _check_dtype(mover, name, x)
            self._agree(f"{describe_collective(name, x, how)} by {mover.library}")
            with backend.on(backend.device(x)):
                run = partial(self.run, mover=mover)
                return move_array(run, self.size, name, x, **how, library=xp.library)
        if backend.name not in HOSTED:
            raise BackendError(
                f"{name}: {self.library} carries arrays in host memory, of {', '.join(HOSTED)}, "
                f"and was given one of {backend.name}; move it with x.to_backend('numpy')"
            )
        host = np.asarray(backend.to_numpy(x))
        _check_dtype(self, name, x, host)
        self._agree(describe_collective(name, host, how))
        out = move_array(self.run, self.size, name, host, **how)
        return backend.from_numpy(out, backend.beside(x, alike=out.shape == host.shape))

    def _mover(self, name: str, backend: str) -> Mover:
        """What moves a backend's arrays."""
        if backend not in self._movers:
            found = ELSEWHERE.get(backend)
            self._movers[backend] = self if found is None else import_module(found).MOVER(self)
        return self._movers[backend]

    def run(self, name: str, x: Any, root: int, mover: Mover | None = None) -> Any:
        """A collective of which the processes have agreed, on a flat array."""
        done, out = (mover or self).start(name, x, root)
        self.wait(done)
        return out

    def texts(self, what: str, text: str) -> list[str]:
        self.number += 1
        self._agree(what)
        return texts_of(self.run, self.size, text)

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
        found = differences(self.run, self.size, what)
        if found:
            self.broken = f"collective {self.number}"
            raise ExchangeError(f"the processes differ in their collective {self.number}: {found}")

    def wait(self, done: Callable[[], bool]) -> None:
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


def _check_dtype(mover: Mover, name: str, x: Any, host: Any = None) -> None:
    """Raise if an array's dtype is not carried, also not as it is in host memory."""
    dtype = dtype_of(x.dtype).name
    held = (x if host is None else host).dtype.name
    if dtype != held or (name not in MOVING and dtype not in mover.summed):
        raise TypeError(f"{name}: {mover.library} carries no {dtype}; cast x to float32 or int64")


def join_error(rank: int, timeout: float, late: list[int]) -> TimeoutError:
    """The error for processes that have not called `init` in time."""
    return TimeoutError(
        f"wengert.distributed.init has waited for {timeout:g} s on rank {rank}: "
        f"{ranks_of(late) if late else 'another process'} did not come. If a process may take "
        "longer, give init a larger timeout"
    )


def ranks_of(ranks: list[int]) -> str:
    """Ranks in words."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


# -- what is compared and moved --------------------------------------------------------------------

#: Runs a collective on a flat array: ``run(name, x, root)``.
Run = Callable[[str, Any, int], Any]


def describe_collective(name: str, x: Any, how: Mapping[str, Any]) -> str:
    """A collective in words, the same on all processes."""
    options = "".join(f", {key}={value!r}" for key, value in how.items())
    return f"{name}(x: {x.dtype.name} of shape {tuple(x.shape)}{options})"


def move_array(
    run: Run, size: int, name: str, x: Any, op: str = "sum", root: int = 0, library: Any = np
) -> Any:
    """Run a collective on an array of NumPy's, or of a ``library`` with its names.

    The processes have agreed of it.
    """
    shape, dtype = x.shape, x.dtype
    if name == "all_gather":
        shape = size * shape[0], *shape[1:]
    elif name == "reduce_scatter":
        shape = shape[0] // size, *shape[1:]
    flat = library.ascontiguousarray(x).reshape(-1)
    # What only moves elements moves bytes, and complex numbers are summed by parts.
    flat = flat.view(np.uint8 if name in MOVING else _PARTS.get(dtype.name, dtype))
    # Open MPI's sums of short integers saturate here and wrap there. A dtype's own always wraps.
    short = library is np and name not in MOVING and dtype.kind in "iu" and dtype.itemsize < 4
    out = library.asarray(run(name, flat.astype(np.int64) if short else flat, root))
    out = out.astype(dtype) if short else out
    out = out.view(dtype).reshape(shape)
    return library.divide(out, size, dtype=dtype) if op == "mean" else out


def texts_of(run: Run, size: int, text: str) -> list[str]:
    """All processes' texts, by rank."""
    own = np.frombuffer(json.dumps(text).encode(), np.uint8)
    longest = int(move_array(run, size, "largest", np.asarray([own.size]))[0])
    padded = np.full(longest, ord(" "), np.uint8)
    padded[: own.size] = own
    every = move_array(run, size, "all_gather", padded).reshape(size, longest)
    return [json.loads(each.tobytes()) for each in every]


def differences(run: Run, size: int, what: str) -> str:
    """How the processes differ in what they are about to do, in words; "" if they don't."""
    code = code_of(what)
    both = np.asarray([code, -code])
    if (move_array(run, size, "largest", both) == both).all():
        return ""
    by_text: dict[str, list[int]] = {}
    for rank, text in enumerate(texts_of(run, size, what)):
        by_text.setdefault(text, []).append(rank)
    found = "; ".join(f"{ranks_of(ranks)} in {text}" for text, ranks in by_text.items())
    return (
        f"{found}. All have to call the same ones in the same order, with the same shapes and "
        "dtypes: as many batches on each, and no branch on the rank around them"
    )


@cache
def code_of(text: str) -> int:
    """A number that other texts do not have."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())
