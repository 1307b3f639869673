"""Whose code it is: the user's, or that of a library, which is taken to be as it is."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wengert.backends.registry import is_library

__all__ = ["class_of_user", "of_user", "package_of"]

#: Packages whose code is not looked through.
_FOREIGN = frozenset({
    *("array_api_compat", "array_api_strict", "attr", "attrs", "cloudpickle", "cupy", "cupyx"),
    *("cytoolz", "dask"),
    *("distributed", "fsspec", "hypothesis", "jax", "jaxlib", "matplotlib", "ml_dtypes", "mpmath"),
    *("numba", "numpy", "opt_einsum", "pandas", "partd", "pytest", "_pytest", "scipy", "sklearn"),
    *("sympy", "tlz", "toolz", "torch", "tqdm", "triton"),
})  # fmt: skip
#: The modules that made classes may name as theirs.
_MAKERS = ("types", "builtins", "abc")
#: The directory of the standard library.
_LIBRARY = str(Path(os.__file__).parent)


@functools.cache
def package_of(module: Any) -> str:
    """The package of a module's name."""
    package = str(module or "").partition(".")[0]
    if package.startswith("namedtuple_") and package not in sys.modules:
        return "collections"  # the globals of a constructor that `collections.namedtuple` makes
    return package


def of_user(module: str | None) -> bool:
    """Whether code of a module, by its name, is the user's."""
    return _unknown(module) and not is_library(str(module or ""))


@functools.cache
def _unknown(module: str | None) -> bool:
    """Whether a module is no part of Wengert, of the standard library, or of those named above."""
    package = package_of(module)
    if package == "wengert":
        return False
    if package not in _FOREIGN and package not in sys.stdlib_module_names:
        return True
    # A user's file may have such a name.
    found = sys.modules.get(package)
    file = getattr(found, "__file__", None) or next(iter(getattr(found, "__path__", ())), _LIBRARY)
    places = (_LIBRARY, "site-packages", "dist-packages")
    return package == "__main__" or not any(place in file for place in places)


def _class_of_user(kind: type) -> bool:
    if of_user(kind.__module__):
        return True
    name, made = kind.__module__, bool(kind.__flags__ & 1 << 9)  # while it runs, and not in C
    return made and name in _MAKERS and kind.__qualname__ not in vars(sys.modules[name])


#: Whether a class is the user's, also one that a library's function or `exec` has made.
class_of_user: Callable[[type], bool] = functools.lru_cache(maxsize=1024)(_class_of_user)
