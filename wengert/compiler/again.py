"""Derivatives of derivatives of what a program has given: the function itself is run again.

A sweep that is recorded needs a graph of the function's own operations, which a program has not.
So they are recorded when one is asked for: on the same arguments and state, or not at all.
"""

from collections.abc import Callable, Sequence
from typing import Any

from wengert.compiler.capture.containers import whole
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.places import How, State
from wengert.compiler.capture.recorded import Backward, End
from wengert.compiler.capture.recording import unhooked
from wengert.compiler.capture.walk import find_state
from wengert.compiler.turns import eagerly
from wengert.func.trees import TreeDef, tree_flatten
from wengert.tape.node import AccumulateGrad, Node, tick
from wengert.tape.recording import enable_grad
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor

__all__ = ["Again"]

_CHANGED = (
    "the results of a compiled function can't be differentiated twice from outside where {}; take "
    "the gradient inside the function that is compiled, or don't compile it"
)


class Again:
    """Runs a function for derivatives of derivatives.

    Parameters
    ----------
    function : callable
        It.
    structure, names
        Of its arguments.
    behind : Backward
        Which of its results are differentiated, and by what.
    same : callable
        ``same(leaves, state)``: whether a call would take the program that has run.
    obstacle : str
        Why this can't be done, or "".
    how : How
        Places are looked at.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        structure: TreeDef,
        names: Sequence[str],
        behind: Backward,
        same: Callable[[Sequence[Any], State], bool],
        obstacle: str,
        how: How,
    ) -> None:
        self._function, self._structure, self._names = function, structure, names
        self._behind, self._same, self._obstacle = behind, same, obstacle
        self._how = how

    def given(self, leaves: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """What of a call is kept."""
        return () if self._obstacle else (leaves, tensors, [x._array for x in tensors])

    def flows(self, node: Node, given: tuple[Any, ...], g: Any) -> list[tuple[int, Any]]:
        """What flows to the parents of a replay's node, by operations on the tape."""
        if self._obstacle:
            raise RuntimeError(_CHANGED.format(self._obstacle))
        leaves, tensors, arrays = given
        args, kwargs = self._structure.unflatten(list(leaves))
        # The graph ends at the parents, from which the caller's own sweep goes on.
        parents = [(i, x) for i, x in enumerate(node.parents) if x is not None]
        numbers = {x.number: i for i, x in parents if isinstance(x, AccumulateGrad)}
        ends = [(i, x, End(x, tick())) for i, x in parents if x.number not in numbers]
        since = tick()
        with eagerly(), enable_grad():
            moved = any(x._array is not array for x, array in zip(tensors, arrays, strict=True))
            if moved or not self._unchanged(leaves):
                raise RuntimeError(_CHANGED.format("what it reads has changed since"))
            answer, _ = tree_flatten(self._function(*args, **kwargs), whole)
        roots = [(answer[self._behind.results[i]]._node, x) for i, x in g.items.items()]
        for i, place, end in ends:
            ref = self._behind.leaves[i]
            if ref.kind == "result":
                place = answer[ref.index]._node
                end.number = place.number
            end.cut(place, [root for root, _ in roots], since)
            numbers[end.number] = i
        wanted = leading_to(set(numbers), [root for root, _ in roots])
        with unhooked(tensors):
            arrived = sweep(roots, keep=True, targets=numbers, wanted=wanted)
        for _, parent, end in ends:
            end.parents = (parent,)
        return [(numbers[end.number], x) for end, x in arrived if x is not None]

    def _unchanged(self, leaves: Sequence[Any]) -> bool:
        try:
            arguments = zip(self._names, leaves, strict=True)
            state = find_state(self._function, arguments, self._structure, how=self._how)
        except TraceError:
            return False
        return self._same(leaves, state)
