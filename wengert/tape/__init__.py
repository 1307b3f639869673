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
from wengert.tape.node import AccumulateGrad, Node
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive
from wengert.tape.tensor import Tensor

__all__ = [
    "NOT_IMPLEMENTED",
    "PRIMITIVES",
    "UNDEFINED",
    "ZERO",
    "AccumulateGrad",
    "Node",
    "Primitive",
    "Tensor",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


def __dir__() -> list[str]:
    return __all__
