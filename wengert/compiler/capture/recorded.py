"""The result of a recording: programs, and the meaning of their inputs and outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert.backends import Backend
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.program import Program, Value
from wengert.func.trees import TreeDef
from wengert.tape.node import AccumulateGrad, Node, Output, tick
from wengert.tape.sweep import ancestors
from wengert.tape.tensor import Tensor

__all__ = [
    "Arithmetic",
    "Backward",
    "Effect",
    "End",
    "Outside",
    "Recording",
    "Ref",
    "SweepProgram",
    "Swept",
    "behind",
    "swept",
]


class Ref(NamedTuple):
    """The source of a program's input, or the target of an output.

    Attributes
    ----------
    kind : {"leaf", "tensor", "grad", "array", "number"}
        A leaf of the arguments (a raw array or a number); a Tensor's array or its gradient's; an
        array or a number of the state. Tensors of the state are counted first, then those among
        the leaves.
    index : int
        Which one.
    """

    kind: str
    index: int  # type: ignore[assignment]  # tuples have a method of this name


class Effect(NamedTuple):
    """A change: of a Tensor's array or gradient, of a number, or of the Tensor at a place.

    Attributes
    ----------
    ref : Ref
        What is changed. ``"spot"`` means that a Tensor, or a tuple of them, is replaced.
    output : int or None
        The output of the program that is stored; None if a gradient is deleted.
    new : bool
        Whether the gradient is a new Tensor.
    tensor : int or None
        The known Tensor that a place gets; None for a new one.
    alike : bool
        Whether a Tensor's new array is of the same kind (`kind_of`) as the old one.
    inside : bool
        Whether it is the old gradient's array that changes.
    parts : tuple of Effect
        The leaves of what is put at a spot.
    """

    ref: Ref
    output: int | None
    new: bool = False
    tensor: int | None = None
    alike: bool = False
    inside: bool = False
    parts: "tuple[Any, ...]" = ()


@dataclass(frozen=True)
class SweepProgram:
    """The sweep of some of the results, as a program.

    Attributes
    ----------
    program : Program
        Its inputs are saved arrays and a cotangent of each result, its outputs are gradients.
    results : tuple of int
        Positions in `Backward.results`.
    leaves : tuple of int
        For each gradient the position in `Backward.leaves`.
    kept : tuple of int
        For each saved array the position in `Backward.kept`.
    """

    program: Program
    results: tuple[int, ...]
    leaves: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Backward:
    """The sweeps of results that require grad, none of which is computed from another.

    Attributes
    ----------
    results : tuple of int
        Their positions among the answer's leaves; the first one of a Tensor returned twice.
    duplicates : tuple of (int, int)
        For Tensors returned several times, each further position with the first.
    leaves : tuple of Ref
        The Tensors at which sweeps end: of the state, among the arguments, and other results
        (``"result"`` with the position among the answer's leaves).
    kept : tuple of int
        Outputs of the forward program that the sweeps need.
    sweeps : tuple of SweepProgram
        The joint sweep of all results, and if there are several the sweep of each: a leaf that
        does not affect a differentiated result gets no gradient instead of zeros.
    """

    results: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]
    leaves: tuple[Ref, ...]
    kept: tuple[int, ...]
    sweeps: tuple[SweepProgram, ...]


class Arithmetic(NamedTuple):
    """A program of Python numbers alone, for comparisons and counters.

    Attributes
    ----------
    refs : tuple of Ref
        The sources of its inputs.
    program : Program
        The program.
    gives : tuple
        For each of its outputs the outcome that is required, or the position of the main
        program's output that it computes.
    """

    refs: tuple[Ref, ...]
    program: Program
    gives: tuple[Any, ...]

    def fits(self, numbers: Sequence[Any]) -> bool:
        """Whether all comparisons have the recorded outcomes for these numbers."""
        try:
            return self.program(*numbers) == self.gives
        except Exception:  # a later step may be valid only if an earlier comparison holds
            return False


@dataclass
class Recording:
    """The result of a traced call.

    Attributes
    ----------
    program : Program
        Of arrays and numbers alone.
    refs : tuple of Ref
        The sources of its inputs.
    effects : tuple of Effect
        In the order in which they are applied.
    answer : TreeDef
        The structure of the return value.
    leaves : tuple
        For each leaf of the answer ``("tensor", output)``, ``("array", output)``,
        ``("number", output)``, ``("same", Ref)`` for a Tensor that was given or reached, or its
        gradient, ``("given", Ref)`` for a raw array that was given or reached,
        ``("object", number)`` for one of the state's objects, ``("leaf", number)`` for an
        argument's leaf, or ``("plain", value)``.
    pinned : dict of Ref to number
        Numbers that must have the recorded value.
    over : dict of int to str
        Outputs that the function itself has differentiated, with the names of their operations.
    decided : Arithmetic
        Comparisons on which control flow depends, with their outcomes.
    backward : tuple of Backward
        The sweeps of results, in topological order.
    grads : dict of int to bool
        For the Tensors whose gradients matter before the call whether they have one.
    repeatable : bool
        Whether a replay would leave what the call has left.
    behind : dict of int to frozenset of int
        For Tensors computed outside whose graphs a sweep inside has searched: the Tensors that
        they were computed from.
    gone : frozenset of int
        Tensors whose gradient was deleted before the first instruction that may fail.
    backend : Backend or None
        Of all calls; None if there are several.
    """

    program: Program
    refs: tuple[Ref, ...]
    effects: tuple[Effect, ...]
    answer: TreeDef
    leaves: tuple[tuple[str, Any], ...]
    pinned: dict[Ref, Any]
    over: dict[int, str]
    decided: Arithmetic
    backward: tuple[Backward, ...]
    grads: dict[int, bool]
    repeatable: bool
    behind: dict[int, frozenset[int]]
    gone: frozenset[int]
    backend: Backend | None

    @property
    def inputs(self) -> dict[Ref, Value]:
        """The program's inputs by their sources."""
        return dict(zip(self.refs, self.program.inputs, strict=True))

    def read(self) -> set[Ref]:
        """The sources of the inputs that the program uses."""
        read = self.program.read()
        return {ref for ref, value in self.inputs.items() if value in read}


class Outside(Node):
    """Replaces the node of a Tensor that was computed outside, during a recording.

    A sweep may search the graph behind it for targets, but not enter it: a replay has no graph.
    """

    __slots__ = ("_called", "_place", "open", "seen")

    def __init__(self, place: Node, array: Any, called: str) -> None:
        self.number, self.watch, self.saved = place.number, place.watch, ()
        self.shape, self.dtype = array.shape, array.dtype
        self._place, self._called, self.open, self.seen = place, called, True, False

    @property
    def parents(self) -> tuple[Node | None, ...]:  # type: ignore[override]
        """The node's parents until the function has run; then none."""
        self.seen |= self.open
        return self._place.parents if self.open else ()

    @property
    def untouched(self) -> bool:
        """Whether it has got no hooks, and its gradient is not newly retained."""
        return type(self) is Outside and self.watch is self._place.watch

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        if self.open:
            raise TraceError(
                f"{user_line()}: the compiled function differentiates {self._called}, which has "
                "been computed outside, and so goes on into the caller's graph; detach it, or "
                "differentiate outside"
            )
        return []

    def name(self) -> str:
        if self.open:
            raise TraceError(
                f"{user_line()}: the compiled function asks which operation {self._called} comes "
                "from, which differs from call to call; decide outside, and pass what was decided"
            )
        return self._place.name()

    @property
    def operation(self) -> str:
        return self._place.operation


def behind(tensor: Tensor, tensors: Sequence[Tensor]) -> frozenset[int]:
    """The positions of the Tensors that a Tensor was computed from."""
    assert tensor._node is not None, "it was computed from nothing"
    numbers = {node.number for node in ancestors([tensor._node]) if node is not tensor._node}
    found = [i for i, x in enumerate(tensors) if x._node is not None and x._node.number in numbers]
    return frozenset(found)


class Swept(Node):
    """The node of a result that was differentiated inside, whose graph is freed."""

    __slots__ = ("called",)

    called: str

    def __init__(self, array: Any, called: str) -> None:
        self.number = tick()
        self.parents, self.saved, self.watch = (), None, None
        self.shape, self.dtype, self.called = array.shape, array.dtype, called

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        self.values()  # raises: they are freed
        return []

    def name(self) -> str:
        return self.called

    @property
    def operation(self) -> str:
        return "swept"


class End(Node):
    """A node that ends a sweep, in place of another node of the graph."""

    __slots__ = ()

    def __init__(self, place: Node, number: int) -> None:
        self.number, self.parents, self.saved, self.watch = number, (), (), None
        self.shape, self.dtype = place.shape, place.dtype

    def cut(self, place: Node, roots: Sequence[Node], since: int = 0) -> None:
        """Replace a node in graphs, among the nodes newer than ``since``."""
        found, seen = [*roots], set[Node]()
        while found:
            node = found.pop()
            if node in seen or node.number <= since:
                continue
            seen.add(node)
            if place in node.parents:
                node.parents = tuple([self if x is place else x for x in node.parents])
            found += [x for x in node.parents if x is not None]

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        return [(0, g)] if self.parents else []

    def name(self) -> str:
        return "EndBackward0"

    @property
    def operation(self) -> str:
        return "end"


def swept(root: Node) -> bool:
    """Whether a part of a result's graph has been differentiated and freed."""
    # Leaves are left out, because a sweep clears `saved` of leaves with hooks.
    nodes = [x for x in ancestors([root]) if not isinstance(x, Output | AccumulateGrad)]
    return any(node.saved is None for node in nodes)
