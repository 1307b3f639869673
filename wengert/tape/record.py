"""How operations are put on the tape, and told of."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wengert.backends import dtype_of
from wengert.tape.node import Node, Output, Several, tick
from wengert.tape.observers import tell
from wengert.tape.plan import Plan
from wengert.tape.tensor import Tensor, placed

if TYPE_CHECKING:
    from wengert.tape.primitive import Primitive

_new_node = Node.__new__
_new_tensor = Tensor.__new__


def record(
    plan: Plan, parents: tuple[Node | None, ...], saved: tuple[Any, ...], out: Any
) -> Tensor:
    """Put an operation on the tape and return its result, of which the caller tells observers."""
    node = _new_node(Node)
    node.number = tick()
    node.plan = plan
    node.parents = parents
    node.saved = saved
    node.shape = out.shape
    node.dtype = out.dtype
    node.watch = None
    tensor = _new_tensor(Tensor)
    tensor._array = out
    tensor._grad = None
    tensor._node = node
    return tensor


def record_several(
    plan: Plan, parents: tuple[Node | None, ...], saved: tuple[Any, ...], outs: Sequence[Any]
) -> tuple[Tensor, ...]:
    """As `record`, of an operation with several results."""
    node = Several()
    node.number = tick()
    node.plan = plan
    node.parents = parents
    node.saved = saved
    node.shape = tuple(out.shape for out in outs)
    node.dtype = tuple(out.dtype for out in outs)
    node.watch = None
    return tuple(
        placed(out, Output(node, i) if inexact(out) else None) for i, out in enumerate(outs)
    )


def inexact(array: Any) -> bool:
    """Whether a raw array is floating or complex."""
    return dtype_of(array.dtype).inexact


def observe(name: str, primitive: "Primitive | None", inputs: Iterable[Any], results: Any) -> None:
    """Tell observers of an operation; called only if there are any.

    Parameters
    ----------
    name, primitive
        As for `Observer.operated`.
    inputs : iterable
        All that it was called with, in which lists and tuples may stand.
    results : Tensor or tuple
        What it gave.
    """
    tell("operated", name, primitive, tensors_in(inputs), tensors_in((results,)))


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """The Tensors among some values, and in the lists and tuples among them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(tensors_in(value))
    return found
