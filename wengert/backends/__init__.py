"""The array libraries that Wengert runs on."""

from wengert.backends import generators
from wengert.backends.backend import EXTENSIONS, Backend, BackendError, add_composite
from wengert.backends.dtypes import DTYPES, FLOATING, DType, as_dtype, dtype_of
from wengert.backends.registry import (
    Selection,
    backend_of,
    builtin_backends,
    get_backend,
    namespaces,
    plugin_backends,
    selection,
    set_backend,
    target_device,
    use_backend,
)

__all__ = [
    "DTYPES",
    "EXTENSIONS",
    "FLOATING",
    "Backend",
    "BackendError",
    "DType",
    "Selection",
    "add_composite",
    "as_dtype",
    "backend_of",
    "builtin_backends",
    "dtype_of",
    "generators",
    "get_backend",
    "namespaces",
    "plugin_backends",
    "selection",
    "set_backend",
    "target_device",
    "use_backend",
]
