"""Automatic differentiation for every Python Array API library."""

import importlib
from typing import Any

from wengert import autograd, ops, tape
from wengert.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from wengert.backends import BackendError, get_backend, set_backend, use_backend
from wengert.ops import *
from wengert.tape.listing import global_tape
from wengert.tape.tensor import Tensor

__version__ = "0.1.0"
__array_api_version__ = "2025.12"


def __getattr__(name: str) -> Any:
    if name in ("nn", "optim", "testing"):
        return importlib.import_module(f"wengert.{name}")
    raise AttributeError(f"module 'wengert' has no attribute {name!r}")
