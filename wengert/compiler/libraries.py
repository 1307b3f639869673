"""How programs write what the array libraries have."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from wengert.backends import Backend

__all__ = ["LIBRARIES", "Library", "library_of"]


class Library(NamedTuple):
    """One array library."""

    #: Where programs find the functions: the path of each module, and its name there.
    modules: tuple[tuple[str, str], ...]
    #: How a saved program makes an array of NumPy's, for which ``{}`` stands.
    of_numpy: str = "xp.asarray({})"
    #: A device as an expression of a saved program; "" where the library has none.
    device: Callable[[Any], str] = lambda device: ""


def _jax_device(device: Any) -> str:
    import jax

    same = jax.devices(device.platform)
    return f'jax.devices("{device.platform}")[{same.index(device)}]'


def _strict_device(device: Any) -> str:
    name = repr(device).split("'")[1]  # Device('no_float64')
    return f'xp.Device("{name}")'


#: The libraries that have more than a namespace. A backend outside the package may add its own.
LIBRARIES: Final[dict[str, Library]] = {
    "numpy": Library((("numpy", "np"),), "{}"),
    "cupy": Library(
        (("cupy", "cp"), ("array_api_compat.cupy", "xp")),
        "cp.asarray({})",
        lambda device: f"cp.cuda.Device({device.id})",
    ),
    "torch": Library(
        (("torch", "torch"), ("array_api_compat.torch", "xp")), "torch.from_numpy({})"
    ),
    "jax": Library((("jax.numpy", "jnp"), ("jax", "jax")), "jnp.asarray({})", _jax_device),
    "dask": Library(
        (("dask.array", "da"), ("array_api_compat.dask.array", "xp")), "da.from_array({})"
    ),
    "array_api_strict": Library((("array_api_strict", "xp"),), device=_strict_device),
    "ndonnx": Library((("ndonnx", "xp"),), device=lambda device: "None"),
}


def library_of(backend: Backend) -> Library:
    """The library of a backend: of one that is not listed, its namespace alone."""
    return LIBRARIES.get(backend.name) or Library(((backend.module, "xp"),))
