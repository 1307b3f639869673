"""What a recording has found: programs, and what they are given, change and answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert.backends import Backend
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.program import Program
from wengert.func.trees import TreeDef
from wengert.tape.autograd import ancestors
from wengert.tape.node import AccumulateGrad, Node, Output, tick
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
    """Where an input of a program is found, and an output goes.

    Attributes
    ----------
    kind : {"leaf", "tensor", "grad", "array", "number"}
        A leaf of the arguments (a Tensor's array, a raw array, a number); a Tensor's array or its
        gradient's; what an optimiser keeps. Tensors are those of the state, and after them those
        among the leaves.
    index : int
        Which one.
    """

    kind: str
    index: int  # type: ignore[assignment]  # which tuples have as a method


class Effect(NamedTuple):
    """What a call changes: a Tensor's array or gradient, a number, or the Tensor at a place.

    Attributes
    ----------
    ref : Ref
        What is changed; for ``"place"``, the Tensor's whose place gets a new Tensor.
    output : int or None
        Which output of the program it becomes; None for a gradient that is taken away.
    new : bool
        Whether a gradient comes in a Tensor of its own.
    tensor : int or None
        Which of the Tensors that there were a place gets; None for a new one.
    alike : bool
        Whether a Tensor's new array is of the kind of the one before, as `kind_of` says.
    """

    ref: Ref
    output: int | None
    new: bool = False
    tensor: int | None = None
    alike: bool = False


@dataclass(frozen=True)
class SweepProgram:
    """The sweep of some of the results, as a program.

    Attributes
    ----------
    program : Program
        From what the forward program leaves, and a cotangent of each result, to gradients.
    results : tuple of int
        Which of those that require grad.
    leaves : tuple of int
        Which Tensors of `Backward.leaves` the gradients belong to.
    kept : tuple of int
        Which parts of `Backward.kept` are the first inputs.
    """

    program: Program
    results: tuple[int, ...]
    leaves: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Backward:
    """The sweeps of results that the caller differentiates, and that don't need one another.

    Attributes
    ----------
    results : tuple of int
        Positions among the answer's leaves that require grad, of each Tensor the first.
    duplicates : tuple of (int, int)
        Further positions, and the first, of Tensors that are returned several times.
    leaves : tuple of Ref
        The Tensors that these were computed from: of the state, among the arguments, and other
        results (``"result"`` with the position among the answer's leaves), where sweeps end.
    kept : tuple of int
        Outputs of the forward program that some sweep needs.
    sweeps : tuple of SweepProgram
        The sweep of all results, and those of each where there are several: what reaches one
        result alone has no gradient, and not one of zeros, if another is differentiated.
    joined : tuple of frozenset of int
        For each result those, itself included, whose sweeps need what its sweep lets go.
    """

    results: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]
    leaves: tuple[Ref, ...]
    kept: tuple[int, ...]
    sweeps: tuple[SweepProgram, ...]
    joined: tuple[frozenset[int], ...]


class Arithmetic(NamedTuple):
    """What is computed of numbers alone, beside the program.

    Attributes
    ----------
    refs : tuple of Ref
        The numbers.
    program : Program
        Of these.
    gives : tuple
        For each of its outputs the outcome of a comparison for which the program is, or which
        output of the program it is.
    """

    refs: tuple[Ref, ...]
    program: Program
    gives: tuple[Any, ...]

    def fits(self, numbers: Sequence[Any]) -> bool:
        """Whether other numbers give the same."""
        try:
            return self.program(*numbers) == self.gives
        except Exception:  # what is computed only where another comparison has said so
            return False


@dataclass
class Recording:
    """What a traced call has shown.

    Attributes
    ----------
    program : Program
        Of arrays and numbers alone.
    refs : tuple of Ref
        For each of its inputs.
    effects : tuple of Effect
        In the order in which they are to be done.
    answer : TreeDef
        The structure of what is returned.
    leaves : tuple
        For each leaf of the answer ``("tensor", output)``, ``("array", output)``,
        ``("number", output)``, ``("same", Ref)`` for a Tensor that was given or reached, or its
        gradient, ``("given", Ref)`` for a raw array that was given or reached, or
        ``("plain", value)``.
    pinned : dict of Ref to number
        Numbers that the program is for.
    over : dict of int to str
        Outputs that the function has differentiated, and what their operations are called.
    decided : Arithmetic
        Comparisons by which the course was decided: it is for these outcomes.
    counting : Arithmetic
        What becomes of numbers that the user's code counts in.
    backward : tuple of Backward
        How results are differentiated outside: first those that are computed from no others.
    repeatable : bool
        Whether the state has the same structure after the call as before it.
    behind : dict of int to frozenset of int
        For Tensors that were computed outside and whose graphs sweeps inside have looked for their
        targets, which Tensors these lead to.
    gone : frozenset of int
        Which Tensors had a gradient, and had none before the first instruction that may fail.
    backend : Backend or None
        Whose functions are called; None if there are several.
    """

    program: Program
    refs: tuple[Ref, ...]
    effects: tuple[Effect, ...]
    answer: TreeDef
    leaves: tuple[tuple[str, Any], ...]
    pinned: dict[Ref, Any]
    over: dict[int, str]
    decided: Arithmetic
    counting: Arithmetic
    backward: tuple[Backward, ...]
    repeatable: bool
    behind: dict[int, frozenset[int]]
    gone: frozenset[int]
    backend: Backend | None


class Outside(Node):
    """Stands for the node of a Tensor that was computed outside, while a function is recorded.

    A sweep may look at the graph behind it for its targets. None may enter that graph: a replay
    has it not.

    Parameters
    ----------
    place : Node
        What it stands for.
    array : array
        The Tensor's, which is traced.
    called : str
        How a reader would call the Tensor.
    """

    __slots__ = ("_called", "_place", "open", "seen")

    def __init__(self, place: Node, array: Any, called: str) -> None:
        self.number, self.watch, self.saved = place.number, place.watch, ()
        self.shape, self.dtype = array.shape, array.dtype
        self._place, self._called, self.open, self.seen = place, called, True, False

    @property
    def parents(self) -> tuple[Node | None, ...]:  # type: ignore[override]
        """Those of the node, until the function has run."""
        self.seen |= self.open
        return self._place.parents if self.open else ()

    @property
    def untouched(self) -> bool:
        """Whether it has no hooks, and who retains its gradient is who did."""
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
        return self._place.name()

    @property
    def operation(self) -> str:
        return self._place.operation


def behind(tensor: Tensor, tensors: Sequence[Tensor]) -> frozenset[int]:
    """Which Tensors one was computed from."""
    assert tensor._node is not None, "it was computed from nothing"
    numbers = {node.number for node in ancestors([tensor._node]) if node is not tensor._node}
    found = [i for i, x in enumerate(tensors) if x._node is not None and x._node.number in numbers]
    return frozenset(found)


class Swept(Node):
    """The place on the tape of a result that was differentiated inside: nothing is behind it."""

    __slots__ = ("called",)

    called: str

    def __init__(self, array: Any, called: str) -> None:
        self.number = tick()
        self.parents, self.saved, self.watch = (), None, None
        self.shape, self.dtype, self.called = array.shape, array.dtype, called

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        self.values()  # which are there no more
        return []

    def name(self) -> str:
        return self.called

    @property
    def operation(self) -> str:
        return "swept"


class End(Node):
    """Cuts graphs, so that cotangents are complete there before they flow on.

    Parameters
    ----------
    place : Node
        What it stands for.
    number : int
        Its place on the tape.
    """

    __slots__ = ()

    def __init__(self, place: Node, number: int) -> None:
        self.number, self.parents, self.saved, self.watch = number, (), (), None
        self.shape, self.dtype = place.shape, place.dtype

    def cut(self, place: Node, roots: Sequence[Node], since: int = 0) -> None:
        """Take the place of a node in graphs, as far as they were made since then."""
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
    """Whether a part of the graph behind a result has been differentiated and let go."""
    # A sweep clears `saved` of leaves with hooks, too, which have saved nothing.
    nodes = [x for x in ancestors([root]) if not isinstance(x, Output | AccumulateGrad)]
    return any(node.saved is None for node in nodes)
