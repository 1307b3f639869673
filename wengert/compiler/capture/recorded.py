"""The result of a recording: programs, and the meaning of their inputs and outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert.backends import Backend
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.program import Program, Value
from wengert.func.trees import TreeDef
from wengert.tape.node import AccumulateGrad, Node, Output, walk
from wengert.tape.sweep import ancestors

__all__ = [
    "Arithmetic",
    "Backward",
    "Effect",
    "End",
    "Outside",
    "Recording",
    "Ref",
    "Swept",
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
    """A change: of a Tensor's array or gradient, of a number, or of what is at a ``"spot"``."""

    ref: Ref
    #: The output of the program that is stored; None if a gradient is deleted.
    output: int | None
    #: Whether the gradient, or the part of a tuple, is a new Tensor.
    new: bool = False
    #: The known Tensor that a place gets; None for a new one.
    tensor: int | None = None
    #: Whether a Tensor's new array is of the same kind (`kind_of`) as the old one.
    alike: bool = False
    #: Whether it is the old gradient's array that changes.
    inside: bool = False
    #: The leaves of what is put at a spot.
    parts: "tuple[Any, ...]" = ()


@dataclass(frozen=True)
class Backward:
    """The sweep of a result that requires grad."""

    #: The Tensor's positions among the answer's leaves.
    results: tuple[int, ...]
    #: The Tensors at which it ends, other results too (``"result"``, with the position).
    leaves: tuple[Ref, ...]
    #: What it needs, among what the forward program keeps for all sweeps.
    kept: tuple[int, ...]
    #: Its inputs are what is kept and the cotangent, its outputs are gradients.
    program: Program


class Arithmetic(NamedTuple):
    """A program of Python numbers alone, for comparisons and counters."""

    #: The sources of its inputs.
    refs: tuple[Ref, ...]
    program: Program
    #: For each output the required outcome, or the main program's output that it computes.
    gives: tuple[Any, ...]

    def fits(self, numbers: Sequence[Any]) -> bool:
        """Whether all comparisons have the recorded outcomes for these numbers."""
        try:
            return self.program(*numbers) == self.gives
        except Exception:  # a later step may be valid only if an earlier comparison holds
            return False


@dataclass
class Recording:
    """The result of a traced call."""

    #: Of arrays and numbers alone, and the sources of its inputs.
    program: Program
    refs: tuple[Ref, ...]
    #: In the order in which they are applied.
    effects: tuple[Effect, ...]
    #: The structure of the return value, and for each leaf ``("tensor", output)``,
    #: ``("array", output)``, ``("number", output)``, ``("plain", value)``, ``("same", Ref)`` for a
    #: Tensor or a gradient that was there, ``("given", Ref)`` for a raw array,
    #: or ``("object", number)`` for one of the state's.
    answer: TreeDef
    leaves: tuple[tuple[str, Any], ...]
    #: Numbers that must have the recorded value.
    pinned: dict[Ref, Any]
    #: Outputs that the function itself has differentiated, with the names of their operations.
    over: dict[int, str]
    #: Comparisons on which control flow depends.
    decided: Arithmetic
    #: The sweeps of results, in topological order.
    backward: tuple[Backward, ...]
    #: For each Tensor whether it has a gradient before the call.
    grads: tuple[bool, ...]
    #: Of all calls; None if there are several.
    backend: Backend | None
    #: The numbers of ``pinned``, with the lines that ask for their values.
    fixed: str
    #: Why a scan is no loop.
    unrolled: str = ""

    @property
    def inputs(self) -> dict[Ref, Value]:
        """The program's inputs by their sources."""
        return dict(zip(self.refs, self.program.inputs, strict=True))

    def read(self) -> set[Ref]:
        """The sources of the inputs that the program uses."""
        read = self.program.read()
        return {ref for ref, value in self.inputs.items() if value in read}


class Outside(Node):
    """Stands for the node of a Tensor that was computed outside, during a recording.

    A replay has no graph behind it: what searches or enters that is refused.
    """

    __slots__ = ("_called", "place")

    def __init__(self, place: Node, array: Any, called: str) -> None:
        super().__init__((_Wall(place, self),), (), array.shape, array.dtype)
        self.number, self.watch = place.number, place.watch
        self.place, self._called = place, called

    def refused(self, what: str) -> TraceError:
        """The error for looking behind it."""
        return TraceError(
            f"{user_line()}: the compiled function {what} {self._called}, which has been computed "
            "outside; detach it, or compute it inside"
        )

    def close(self) -> None:
        """End what follows here: the function has run."""
        self.parents = ()

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        if self.parents:
            raise self.refused("differentiates")
        return []

    def name(self) -> str:
        if self.parents:
            raise self.refused("asks for the operation of")
        return self.place.name()

    @property
    def operation(self) -> str:
        return self.place.operation


class _Wall(Node):
    """Refuses a search of the graph behind a node."""

    __slots__ = ("_front",)

    def __init__(self, place: Node, front: Outside) -> None:
        self.number, self._front = place.number - 0.5, front  # type: ignore[assignment]

    @property
    def parents(self) -> Any:  # type: ignore[override]
        raise self._front.refused("differentiates by what is behind")


class Swept(Node):
    """The node of a result that was differentiated inside, whose graph is freed."""

    __slots__ = ("called",)

    called: str

    def __init__(self, array: Any, called: str) -> None:
        super().__init__((), None, array.shape, array.dtype)
        self.called = called

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

    def __init__(self, place: Node) -> None:
        super().__init__((), (), place.shape, place.dtype)
        self.number = place.number

    def cut(self, place: Node, roots: Sequence[Node]) -> None:
        """Replace a node in the graphs behind others."""
        for node in walk(roots, place.number + 1):
            if place in node.parents:
                node.parents = tuple([self if x is place else x for x in node.parents])

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        return []


def swept(root: Node) -> bool:
    """Whether a part of a result's graph has been differentiated and freed."""
    # Leaves are left out, because a sweep clears `saved` of leaves with hooks.
    nodes = [x for x in ancestors([root]) if not isinstance(x, Output | AccumulateGrad)]
    return any(node.saved is None for node in nodes)
