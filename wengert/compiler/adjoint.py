"""Derivatives of a compiled function's results: each is one operation on the caller's tape.

The operation's derivative rule is a compiled program, too. A program has no graph, so that
derivatives of derivatives belong inside the compiled function.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from wengert.backends import namespaces
from wengert.compiler.capture.recorded import Backward
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.passes import optimise
from wengert.compiler.program import Program, order_of
from wengert.tape.node import Node, is_lifted
from wengert.tape.tensor import Tensor, with_node

__all__ = ["Adjoint", "attach"]


class Adjoint:
    """The sweep of a result that the caller differentiates, as a program."""

    def __init__(self, behind: Backward, copies: Any, number: int) -> None:
        self.behind, self._copies = behind, copies
        self._name = f"adjoint_{number}" if number else "adjoint"

    @cached_property
    def _program(self) -> Program:
        return optimise(self.behind.program)

    @cached_property
    def emitted(self) -> Emitted:
        """The sweep as calls of the library."""
        return emit(self._program, self._copies.backend, name=self._name)

    @cached_property
    def _pool(self) -> Any:
        return self._copies.pool(self._program, self.emitted.function)

    def run(self, saved: Sequence[Any], g: Any) -> Sequence[Any]:
        """The gradients of the leaves, for the result's cotangent."""
        # Only NumPy's programs have buffers, which fit one order of the cotangent in memory.
        if self._copies.needed and order_of(g) != self.behind.program.inputs[-1].order:
            return self.behind.program(*saved, g)
        return self._pool(*saved, g)  # type: ignore[no-any-return]


def attach(
    adjoints: Sequence[Adjoint], answer: list[Any], kept: Sequence[Any], tensors: Sequence[Tensor]
) -> None:
    """Put results on the tape, in topological order."""
    for adjoint in adjoints:
        behind = adjoint.behind
        held = [(answer if x.kind == "result" else tensors)[x.index] for x in behind.leaves]
        array, saved = answer[behind.results[0]]._array, [kept[i] for i in behind.kept]
        node = CompiledNode(tuple([x._node for x in held]), saved, array.shape, array.dtype)
        node.adjoint = adjoint
        made = with_node(array, node)
        for k in behind.results:
            answer[k] = made


class CompiledNode(Node):
    """A result of a replay on the tape."""

    __slots__ = ("adjoint",)

    adjoint: Adjoint

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        saved = self.values()
        if is_lifted(g) or namespaces[type(g)].records:
            raise RuntimeError(
                "the results of a compiled function can be differentiated once from outside, and "
                "not twice, or by batches: differentiate inside the compiled function"
            )
        return [
            (i, x)
            for i, x in enumerate(self.adjoint.run(saved, g))
            if (parent := self.parents[i]) is not None
            and (wanted is None or parent.number in wanted)
        ]

    def name(self) -> str:
        return "CompiledBackward0"

    @property
    def operation(self) -> str:
        return "compiled"
