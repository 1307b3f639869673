"""The tape: Tensors, the nodes that record their operations, and the reverse sweep."""

from typing import TYPE_CHECKING, Never

from wengert.names import HINTS
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
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Never:
        instead = HINTS[__name__].get(name)
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(f"{text}; use {instead}" if instead else text, name=name)
