"""JAX, as an array library: its own transformations are not used."""

import threading
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import Backend, Kernel, no_such_device
from wengert.backends.dtypes import DType, dtype_of
from wengert.backends.fused import jax_kernels
from wengert.backends.generators import stream
from wengert.backends.keys import check_integers, fill
from wengert.backends.special import jax_special
from wengert.backends.triangular import jax_triangular

__all__ = ["BACKEND"]


class JaxStream:
    """A key that is split for each draw."""

    def __init__(self, seed: int) -> None:
        self.lock = threading.Lock()
        self.keys = [BACKEND.jax.random.key(seed)]

    @property
    def state(self) -> Any:
        return np.asarray(BACKEND.jax.random.key_data(self.keys[0]))

    @state.setter
    def state(self, value: Any) -> None:
        self.keys[0] = BACKEND.jax.random.wrap_key_data(value)


def rand_like(x: Any, *, dtype: Any) -> Any:
    device, random = BACKEND.device(x), BACKEND.jax.random
    found = stream("jax", BACKEND.beside(x) or device, JaxStream)
    with found.lock:
        found.keys[0], key = random.split(found.keys[0])
        made = random.uniform(key, x.shape, dtype=dtype)
    return made if made.device == device else BACKEND.to_device(made, device)


# -- indexing ------------------------------------------------------------------------------------


def _key(key: tuple[Any, ...], indices: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The whole key. JAX takes the last element for an integer that is too large; here it fails."""
    key = fill(key, indices)
    check_integers(key, shape, lambda array: array.dtype == bool)
    return key


def getitem(x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    return x[_key(key, indices, x.shape)]


def setitem(x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    jnp = BACKEND.xp
    return x.at[_key(key, indices, x.shape)].set(jnp.asarray(value).astype(x.dtype))


def scatter_add(x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    short = x.dtype.kind in "fV" and x.dtype.itemsize < 4
    if indices and short:  # a running sum of ones ends at 2048, or 256
        return scatter_add(x.astype("float32"), *indices, key=key, shape=shape).astype(x.dtype)
    out = BACKEND.xp.zeros_like(x, shape=shape)  # in `jax.jit` no array says where it is
    return out.at[_key(key, indices, shape)].add(x)


def add_part(total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    return total.at[_key(key, (), total.shape)].add(value)


def scatter_extreme(name: str) -> Kernel:
    """The best of an array's own elements and of the values for their places."""
    return lambda x, value, rows: getattr(x.at[rows], name)(value)


def cumulative_prod(x: Any, *, dtype: Any = None, **options: Any) -> Any:
    """As the standard's: of integers it has the data type of their sum, where JAX keeps theirs."""
    if dtype is None and x.dtype.kind in "biu":
        dtype = "uint64" if x.dtype.kind == "u" else "int64"
    return BACKEND.xp.cumulative_prod(x, dtype=dtype, **options)


def searchsorted(x1: Any, x2: Any, **options: Any) -> Any:
    """Positions in int64, as the standard's are, where JAX takes the smallest type that does."""
    return BACKEND.xp.searchsorted(x1, x2, **options).astype("int64")


def of_lower(name: str) -> Kernel:
    """A function of the lower triangle; by default JAX takes the mean of the two."""
    return lambda x, /: getattr(BACKEND.xp.linalg, name)(x, symmetrize_input=False)


class JaxBackend(Backend):
    """JAX, whose ``jax.numpy`` is the namespace, with 64-bit types switched on."""

    name = "jax"
    module = "jax.numpy"
    immutable = True

    @cached_property
    def jax(self) -> Any:
        """JAX itself, with int64 and float64, without which it does not follow the standard."""
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:  # type: ignore[override]
        """Indexing, drawing, and what the library computes in one piece."""
        return {
            "add_part": add_part,
            "cumulative_prod": cumulative_prod,
            "getitem": getitem,
            **{f"linalg.{name}": of_lower(name) for name in ("cholesky", "eigh", "eigvalsh")},
            "linalg.solve_triangular": jax_triangular,
            "rand_like": rand_like,
            "scatter_add": scatter_add,
            "scatter_max": scatter_extreme("max"),
            "scatter_min": scatter_extreme("min"),
            "searchsorted": searchsorted,
            "setitem": setitem,
            **jax_kernels(self.jax),
            **jax_special(self.jax),
        }

    @cached_property
    def xp(self) -> Any:
        return self.jax.numpy

    def raw_dtype(self, dtype: DType) -> Any:
        return self.xp.dtype(dtype.name)

    def beside(self, array: Any, *, alike: bool = False) -> Any:
        # Of an array that was not put anywhere nothing should be bound to where it happens to be,
        # and in `jax.jit` none is anywhere.
        array = getattr(array, "bottom", array)
        if not getattr(array, "committed", False):
            return None
        device = array.device
        if alike or not isinstance(device, self.jax.sharding.Sharding):
            return device
        return self._whole(device, tuple(array.shape))

    def _automatic(self, sharding: Any) -> Any:
        """A sharding with which JAX itself finds how results are spread.

        On a mesh with explicit axes it refuses what leaves that open, such as a product that adds
        up a shared axis, and rules say nothing of it.
        """
        names = self.jax.sharding
        mesh = getattr(sharding, "mesh", None)
        if mesh is None or names.AxisType.Explicit not in mesh.axis_types:
            return sharding
        mesh = names.Mesh(mesh.devices, mesh.axis_names)
        return names.NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)

    def adopt(self, array: Any) -> Any:
        sharding = getattr(array, "sharding", None)
        automatic = self._automatic(sharding)
        return array if automatic is sharding else self.to_device(array, automatic)

    @cache  # noqa: B019 -- there is one backend
    def _whole(self, sharding: Any, shape: tuple[int, ...]) -> Any:
        """The sharding that keeps a copy on each device of another."""
        names = self.jax.sharding
        mesh = getattr(sharding, "mesh", None)
        if mesh is None:
            mesh = names.Mesh(list(sharding.devices_indices_map(shape)), ("devices",))
        return names.NamedSharding(mesh, names.PartitionSpec(), memory_kind=sharding.memory_kind)

    def parse_device(self, device: Any) -> Any:
        if isinstance(device, self.jax.sharding.Sharding):
            return self._automatic(device)
        if not isinstance(device, str):
            return super().parse_device(device)
        platform, _, number = device.partition(":")
        try:
            return self.jax.devices(platform)[int(number or 0)]
        except (RuntimeError, ValueError, IndexError):
            raise no_such_device(self, device) from None

    def devices(self) -> list[Any]:
        found = list(self.jax.devices())
        return found + [device for device in self.jax.devices("cpu") if device not in found]

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        if isinstance(device, self.jax.sharding.Sharding):
            return self.to_device(array, device)
        return super().from_numpy(array, device)

    def to_device(self, array: Any, device: Any) -> Any:
        try:
            return self.jax.device_put(array, device)
        except ValueError as error:
            if type(error).__name__ != "IndivisibleError":
                raise
            raise ValueError(
                f"the devices of {device} do not divide an array of shape {tuple(array.shape)}. "
                "Leave the last batch out by drop_last=True, or pad it, with weights of 0 in the "
                "loss"
            ) from error

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        found = np.asarray(array)
        dtype = dtype_of(array.dtype)
        return found if dtype.host == dtype.name else found.astype(dtype.host)

    def synchronize(self) -> None:
        self.jax.effects_barrier()


BACKEND = JaxBackend()
