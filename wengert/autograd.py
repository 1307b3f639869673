"""Gradients and recording: what PyTorch has under ``torch.autograd``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert.tape.anomaly import detect_anomaly, set_detect_anomaly
from wengert.tape.autograd import backward, grad
from wengert.tape.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

if TYPE_CHECKING:
    from wengert.func.checkpoint import CheckpointError, checkpoint, checkpoint_sequential
    from wengert.tape import hooks as graph
    from wengert.tape.function import Function, once_differentiable

__all__ = [
    "CheckpointError",
    "Function",
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]

#: What is imported when it is first named: most programs need none of it.
_LATER = {
    "CheckpointError": "wengert.func.checkpoint",
    "Function": "wengert.tape.function",
    "checkpoint": "wengert.func.checkpoint",
    "checkpoint_sequential": "wengert.func.checkpoint",
    "once_differentiable": "wengert.tape.function",
}


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Any:
        if name == "graph":
            found = import_module("wengert.tape.hooks")
        elif name in _LATER:
            found = getattr(import_module(_LATER[name]), name)
        else:
            raise import_module("wengert.ops.hints").no_attribute(__name__, name, __all__)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return __all__
