"""Random generators that draw where arrays are: one for each backend and device."""

import os
from _thread import RLock  # threading's own, without the rest of it
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import numpy as np

from wengert.backends.states import check_names

#: A generator of some library; its attribute ``state`` can be taken and given back.
S = TypeVar("S")

#: Held while a generator in host memory draws, or states change.
lock = RLock()
#: Who has to know which states this thread or task takes, goes back to, and starts from: an object
#: with the methods ``taken``, ``given`` and ``seeded``, or None.
follower: ContextVar[Any] = ContextVar("wengert_follower", default=None)
_seed = int.from_bytes(os.urandom(7))
_streams: dict[tuple[str, str], Any] = {}
_waiting: dict[tuple[str, str], Any] = {}  # states of streams that nothing has drawn from yet


def stream(backend: str, device: Any, make: Callable[[int], S]) -> S:
    """Return the stream of one device of a backend, made by ``make(seed)`` when first asked for."""
    key = backend, str(device)
    found: Any = _streams.get(key)
    if found is None:
        with lock:
            found = _streams.get(key)
            if found is None:
                found = make(_seed)
                if key in _waiting:
                    found.state = _waiting.pop(key)
                _streams[key] = found
    return found  # type: ignore[no-any-return]


def reseed(seed: int) -> None:
    """Start every stream again from ``seed``."""
    global _seed
    with lock:
        _seed = seed
        _streams.clear()
        _waiting.clear()


@cache
def host() -> "np.random.Generator":  # naming it imports np.random, which costs 10 ms
    """The generator in host memory, which initialises models: the same for every backend."""
    return np.random.Generator(np.random.PCG64())


def as_generator(given: Any) -> "np.random.Generator":
    """NumPy's generator of a seed; of None, seeded by Wengert's own."""
    if isinstance(given, np.random.Generator):
        return given
    if given is None:
        if (known := follower.get()) is not None:
            known.refuse_seed()
        with lock:
            given = int(host().integers(2**63))
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise TypeError(
            "generator is a seed or NumPy's Generator (np.random.default_rng(seed)), which are "
            f"the same for every backend, and not a {type(given).__name__}"
        )
    if given < 0:
        raise ValueError(f"a seed can't be negative, and is {given}")
    return np.random.Generator(np.random.PCG64(int(given)))


def get_rng_state() -> dict[str, Any]:
    """Return the state of all random generators, a dict for `set_rng_state` and for pickles.

    Examples
    --------
    >>> state = wg.random.get_rng_state()
    >>> first = wg.random.rand(2)
    >>> wg.random.set_rng_state(state)
    >>> wg.all(wg.random.rand(2) == first)
    tensor(True)
    """
    with lock:
        drawn = {key: each.state for key, each in _streams.items()}
        devices = {"seed": _seed, "streams": _waiting | drawn}
        state = {"host": host().bit_generator.state, "devices": devices}
    if (known := follower.get()) is not None:
        known.note_saved(state)
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Set the state of all random generators to one from `get_rng_state`.

    Raises KeyError, TypeError or ValueError for anything else. Nothing has changed then.

    Examples
    --------
    >>> wg.random.manual_seed(1)
    >>> state = wg.random.get_rng_state()
    >>> first = wg.random.randn(3)
    >>> wg.random.set_rng_state(state)
    >>> wg.all(wg.random.randn(3) == first)
    tensor(True)
    """
    check_names("the random generators", state, ("host", "devices"))
    check_names("the devices' generators", state["devices"], ("seed", "streams"))
    np.random.PCG64().state = state["host"]  # one that can't be set is refused here
    if (known := follower.get()) is not None:
        known.note_restored(state)
    with lock:
        host().bit_generator.state = state["host"]
        reseed(state["devices"]["seed"])
        _waiting.update(state["devices"]["streams"])


class HostStream:
    """NumPy's generator, for arrays in host memory and for libraries without one of their own."""

    def __init__(self, seed: int) -> None:
        # The constant keeps these numbers apart from those that initialise a model.
        # The annotation of `uniform` is quoted: naming np.random imports it, which costs 10 ms.
        self.generator = np.random.Generator(np.random.SFC64([seed, 1]))

    @property
    def state(self) -> Any:
        return self.generator.bit_generator.state

    @state.setter
    def state(self, value: Any) -> None:
        self.generator.bit_generator.state = value


def uniform(
    generator: "np.random.Generator", shape: tuple[int, ...], dtype: str
) -> np.ndarray[Any, Any]:
    """Return numbers of ``[0, 1)``; those for bfloat16 are in float32.

    Both parts of a complex number are drawn.
    """
    if dtype in ("complex64", "complex128"):
        real = "float32" if dtype == "complex64" else "float64"
        return uniform(generator, (*shape, 2), real).view(dtype)[..., 0]
    if dtype in ("float32", "float64"):
        return np.asarray(generator.random(shape, dtype=np.dtype(dtype).type))
    # Rounding to a short dtype could give 1, so the numbers are made of as many bits as it has.
    bits = 8 if dtype == "bfloat16" else 11
    values = generator.integers(0, 2**bits, shape).astype("float32") / np.float32(2**bits)
    return values if dtype == "bfloat16" else values.astype(dtype)


def normal(
    generator: "np.random.Generator", shape: tuple[int, ...], dtype: str
) -> np.ndarray[Any, Any]:
    """Return numbers of variance 1, which the two parts of a complex number share.

    Those for shorter dtypes are in float32.
    """
    if dtype in ("complex64", "complex128"):
        real = "float32" if dtype == "complex64" else "float64"
        parts: np.ndarray[Any, Any] = normal(generator, (*shape, 2), real) * 0.5**0.5
        return parts.view(dtype)[..., 0]
    wide = np.float64 if dtype == "float64" else np.float32
    return np.asarray(generator.standard_normal(shape, dtype=wide))


def integers(
    generator: "np.random.Generator", low: int, high: int, shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Return integers from ``low`` to below ``high``."""
    return np.asarray(generator.integers(low, high, shape))


def permutation(generator: "np.random.Generator", n: int) -> np.ndarray[Any, Any]:
    """Return the numbers below ``n`` in any order."""
    return generator.permutation(n)
