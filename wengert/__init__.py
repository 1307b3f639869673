"""Automatic differentiation for every Python Array API library.

The functions are those of the Array API standard, on Tensors that hold arrays of any library that
follows it; the names around differentiation are PyTorch's.

>>> import wengert as wg
>>> x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> wg.sum(x**2).backward()
>>> x.grad
tensor([2., 4., 6.])
"""

import importlib
from types import ModuleType
from typing import Any

from wengert import autograd, ops, tape
from wengert.autograd import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from wengert.backends import BackendError, DType, get_backend, set_backend, use_backend
from wengert.ops import *  # noqa: F403 -- its __all__ is the list
from wengert.ops import random
from wengert.ops.late import LATER
from wengert.ops.operators import Later
from wengert.tape.tensor import Tensor

__version__ = "0.1.0"
#: The version of the standard that this namespace follows.
__array_api_version__ = "2025.12"

__all__ = [
    "BackendError",
    "DType",
    "Tensor",
    "__array_api_version__",
    "__version__",
    "autograd",
    "detect_anomaly",
    "enable_grad",
    "get_backend",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "random",
    "set_backend",
    "set_grad_enabled",
    "tape",
    "use_backend",
]
__all__ += ops.__all__

#: Modules that are imported when they are first named: each has imports of its own.
_MODULES = (
    *("amp", "compiler", "dask", "data", "distributed", "export", "fft", "func", "inspection"),
    *("linalg", "nn", "optim", "optimize", "special", "testing"),
)
#: Functions of modules that are imported late, like those of `LATER` beside the standard's.
_TOOLS = {
    "wengert.backends.memory": ("keep_freed_memory",),
    "wengert.compiler.making": ("compile",),
    "wengert.autograd": ("checkpoint", "checkpoint_sequential"),
    "wengert.inspection": ("draw", "global_tape"),
    "wengert.storage": ("load", "save"),
    "wengert.tape.aliases": ("ViewWarning",),
    "wengert.func": (
        "custom_vjp",
        "grad",
        "hessian",
        "hvp",
        "jacobian",
        "jvp",
        "scan",
        "value_and_grad",
        "vjp",
        "vmap",
    ),
}
_HOMES = {name: home for home, names in _TOOLS.items() for name in names}
for _late in (LATER, _MODULES, _HOMES):
    __all__.extend(_late)

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return the namespace whose functions take this array, for code of any array library.

    It is this module, in which constants are of double precision, as such code expects: it is
    written for NumPy, and would lose digits by the default dtype float32.

    Parameters
    ----------
    api_version : str, optional
        A version of the standard, such as ``"2024.12"``.

    Raises
    ------
    ValueError
        If Wengert does not follow that version.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"wengert follows the Array API standard up to {__array_api_version__}, and not "
            f"{api_version!r}"
        )
    return importlib.import_module("wengert.ops.precise").namespace  # type: ignore[no-any-return]


Tensor.__array_namespace__ = _array_namespace  # type: ignore[method-assign]
for _late in ("__array_function__", "__array_ufunc__"):
    setattr(Tensor, _late, Later(_late, "wengert.protocols"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"wengert.{name}")
    if name in LATER:
        found = getattr(ops, name)
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        hints = importlib.import_module("wengert.ops.hints")
        raise hints.no_attribute(__name__, name, __all__, also="wengert.special")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
