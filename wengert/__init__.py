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
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

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
from wengert.backends import EXTENSIONS, BackendError, DType, get_backend, set_backend, use_backend
from wengert.ops import *  # noqa: F403 -- its __all__ is the list
from wengert.ops import random
from wengert.tape.interpreter import LATER
from wengert.tape.listing import global_tape
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert import func, nn, optim
    from wengert import testing as testing
    from wengert.autograd import checkpoint, checkpoint_sequential
    from wengert.compiler.compiled import compile  # noqa: A004 -- PyTorch's name
    from wengert.drawing import draw
    from wengert.func import (
        custom_vjp,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        value_and_grad,
        vjp,
    )
    from wengert.ops import fft, linalg, special
    from wengert.ops.beyond import at as at
    from wengert.ops.beyond import einsum as einsum
    from wengert.ops.beyond import median as median
    from wengert.ops.beyond import one_hot as one_hot
    from wengert.ops.beyond import pad as pad
    from wengert.ops.beyond import quantile as quantile
    from wengert.ops.set import UniqueAllResult as UniqueAllResult
    from wengert.ops.set import UniqueCountsResult as UniqueCountsResult
    from wengert.ops.set import UniqueInverseResult as UniqueInverseResult
    from wengert.ops.set import isin as isin
    from wengert.ops.set import unique_all as unique_all
    from wengert.ops.set import unique_counts as unique_counts
    from wengert.ops.set import unique_inverse as unique_inverse
    from wengert.ops.set import unique_values as unique_values
    from wengert.ops.special.everyday import erf as erf
    from wengert.ops.special.everyday import erfc as erfc
    from wengert.ops.special.everyday import expit as expit
    from wengert.ops.special.everyday import gelu as gelu
    from wengert.ops.special.everyday import leaky_relu as leaky_relu
    from wengert.ops.special.everyday import log_expit as log_expit
    from wengert.ops.special.everyday import log_softmax as log_softmax
    from wengert.ops.special.everyday import logit as logit
    from wengert.ops.special.everyday import logsumexp as logsumexp
    from wengert.ops.special.everyday import relu as relu
    from wengert.ops.special.everyday import silu as silu
    from wengert.ops.special.everyday import softmax as softmax
    from wengert.ops.special.everyday import softplus as softplus
    from wengert.ops.special.everyday import xlogy as xlogy

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
    "checkpoint",
    "checkpoint_sequential",
    "compile",
    "custom_vjp",
    "detect_anomaly",
    "draw",
    "enable_grad",
    "fft",
    "func",
    "get_backend",
    "global_tape",
    "grad",
    "hessian",
    "hvp",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "jacobian",
    "jvp",
    "linalg",
    "nn",
    "no_grad",
    "optim",
    "random",
    "set_backend",
    "set_grad_enabled",
    "special",
    "tape",
    "use_backend",
    "value_and_grad",
    "vjp",
]
__all__ += ops.__all__
__all__.extend(LATER)

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return the namespace whose functions take this array: this module.

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
    return sys.modules[__name__]


Tensor.__array_namespace__ = _array_namespace  # type: ignore[method-assign]


#: Functions of modules that are imported late, like those of `LATER` beside the standard's.
_TOOLS = {
    "wengert.compiler.compiled": ("compile",),
    "wengert.autograd": ("checkpoint", "checkpoint_sequential"),
    "wengert.drawing": ("draw",),
    "wengert.func": (
        "custom_vjp",
        "grad",
        "hessian",
        "hvp",
        "jacobian",
        "jvp",
        "value_and_grad",
        "vjp",
    ),
}
_HOMES = {name: home for home, names in _TOOLS.items() for name in names}


def __getattr__(name: str) -> Any:
    # Each has imports of its own, which most programs do not need all of.
    if name in ("func", "nn", "optim", "testing"):
        found = importlib.import_module(f"wengert.{name}")
    elif name in EXTENSIONS or name == "special":
        found = importlib.import_module(f"wengert.ops.{name}")
    elif name in LATER:
        found = getattr(ops, name)
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
