"""The tape: Tensors, the nodes that record their operations, and the reverse sweep."""

from wengert.tape.autograd import backward, grad
from wengert.tape.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from wengert.tape.listing import Entries, GlobalTape, global_tape
from wengert.tape.node import AccumulateGrad, Node
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive
from wengert.tape.tensor import Tensor

__all__ = [
    "NOT_IMPLEMENTED",
    "PRIMITIVES",
    "UNDEFINED",
    "ZERO",
    "AccumulateGrad",
    "Entries",
    "GlobalTape",
    "Node",
    "Primitive",
    "Tensor",
    "backward",
    "enable_grad",
    "global_tape",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


def __dir__() -> list[str]:
    return __all__
