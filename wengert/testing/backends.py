"""Which backends tests run on."""

from wengert.backends import builtin_backends, get_backend, plugin_backends

#: The order of checks: libraries that compile or schedule each call come last.
ORDER = ("numpy", "array_api_strict", "torch", "jax", "dask", "cupy")


def installed_backends() -> list[str]:
    """Return the names of the backends that can be used here, NumPy first.

    Those of entry points come last, and are named whether or not they can be imported: one that
    is broken is an error where it is used, and not left out.
    """
    installed = builtin_backends()
    own = [name for name in ORDER if installed[name] and (name != "cupy" or has_gpu())]
    return own + sorted(set(plugin_backends()) - set(ORDER))


def has_gpu() -> bool:
    """Whether CuPy, where it is installed, finds a GPU."""
    try:
        return bool(get_backend("cupy").devices())
    except Exception:  # CuPy's own, which cannot be named without it
        return False
