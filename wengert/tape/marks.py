"""What a `Function`'s forward computes off the tape: nobody knows its derivative."""

import weakref
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from wengert.backends import FLOATING, dtype_of
from wengert.tape.grad_mode import recording
from wengert.tape.node import Inside, Node, running_forwards, walk
from wengert.tape.tensor import Tensor, untracked, with_node

_marks: ContextVar["Marks | None"] = ContextVar("wengert_marks", default=None)


class Marks:
    """What a `Function`'s forward computes from tracked Tensors: a context around the forward."""

    __slots__ = ("error", "made", "token")

    def __init__(self, name: str, moving: bool) -> None:
        self.error = NotImplementedError(
            f"a Tensor that {name}.forward computed is differentiated, and has no derivative, "
            "since it is neither an argument nor a result: return it as another result and give "
            "that to ctx.save_for_backward, compute it again in backward, or keep t.detach() "
            "where it is a constant"
        )
        #: Its Tensors, where tangents flow: forward mode does not meet their nodes.
        self.made: list[weakref.ref[Tensor]] | None = [] if moving else None

    def add(self, tensor: Tensor) -> None:
        if self.made is not None:
            self.made.append(weakref.ref(tensor))

    def lose(self, top: Any, kept: Iterable[Any], given: Iterable[Any]) -> None:
        """Let Tensors that were computed from given ones have no tangent at a level: an error."""
        nodes = {x._node for x in given if isinstance(x, Tensor) and x._node is not None}
        made = (tensor() for tensor in self.made or ())
        first = min((node.number for node in nodes), default=0)
        for tensor in {id(x): x for x in (*kept, *made) if x is not None}.values():
            if not nodes.isdisjoint(walk([tensor._node], first)):
                tensor._array = type(top)(tensor._array, self.error, top.level)

    def __enter__(self) -> None:
        self.token = _marks.set(self)
        running_forwards.append(self)

    def __exit__(self, *exception: object) -> None:
        running_forwards.remove(self)
        _marks.reset(self.token)


def off_tape(out: Any, primitive: Any, nodes: tuple[Node | None, ...], index: int = 0) -> Tensor:
    """A result that is not recorded; marked if a `Function`'s forward runs the operation.

    ``nodes`` are those of its inputs, and ``index`` says which of several results it is.
    """
    marks = _marks.get()
    dtype = out.dtype
    if marks is None or recording() or not (type(dtype) in FLOATING or dtype_of(dtype).inexact):
        return untracked(out)
    if primitive is not None and primitive.steady:
        nodes = tuple([n for i, n in enumerate(nodes) if primitive.has_slope(i, dtype, index)])
    if not any(nodes):
        return untracked(out)
    result = with_node(out, Inside(marks.error, nodes, out.shape, dtype))
    marks.add(result)
    return result
