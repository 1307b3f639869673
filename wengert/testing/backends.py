"""Which backends tests run on."""

from wengert.backends import builtin_backends, get_backend

__all__ = ["installed_backends"]

#: What finds mistakes soonest comes first, what compiles or schedules each call last.
ORDER = ("numpy", "array_api_strict", "torch", "jax", "dask", "cupy")


def installed_backends() -> list[str]:
    """Return the names of the built-in backends that can be used here, NumPy first."""
    installed = builtin_backends()
    return [name for name in ORDER if installed[name] and (name != "cupy" or has_gpu())]


def has_gpu() -> bool:
    """Whether CuPy, where it is installed, finds a GPU."""
    try:
        return bool(get_backend("cupy").devices())
    except Exception:  # CuPy's own, which cannot be named without it
        return False
