"""The namespace that code of other libraries gets from a Tensor, such as SciPy's.

That code is written for the standard, whose libraries make constants in double precision, NumPy
first of all: ``xp.asarray(0.1)`` beside float64 data is to be 0.1, and not float32's neighbour.
Such code asks a Tensor for its namespace. Users' own programs name `wengert`, and so keep the
default dtype.
"""

import functools
import importlib
from types import ModuleType
from typing import Any

import numpy as np

from wengert.backends import DTYPES
from wengert.tape.promotion import at_least

#: What xarray asks any namespace for, and the standard has not: NumPy's own, for Tensors.
_NUMPYS = ("transpose",)


class Precise(ModuleType):
    """A namespace whose functions run with float64 as the default dtype."""

    def __init__(self, home: Any, name: str) -> None:
        super().__init__(name, home.__doc__)
        self.__dict__["_home"] = home

    def __getattr__(self, name: str) -> Any:
        home = self.__dict__["_home"]
        found = getattr(np if name in _NUMPYS and home.__name__ == "wengert" else home, name)
        if isinstance(found, ModuleType) and name in ("linalg", "fft", "special"):
            found = Precise(found, found.__name__)
        elif callable(found) and not isinstance(found, type):
            # Only functions of the standard's kind: transforms call functions of the user's own.
            of_arrays = str(getattr(found, "__module__", "")).startswith("wengert.ops")
            found = _precise(found) if of_arrays else found
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_home"])


def _precise(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with at_least(DTYPES["float64"]):
            found = function(*args, **kwargs)
        # The object that describes a namespace has functions of its own.
        return Precise(found, "info") if function.__name__ == "__array_namespace_info__" else found

    return call


#: One for all Tensors: a function of several of them finds that they have the same.
namespace = Precise(importlib.import_module("wengert"), "wengert")
