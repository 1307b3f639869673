"""The result of a recording: programs, and the meaning of their inputs and outputs."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert.backends import Backend
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.program import Program, Value
from wengert.func.trees import TreeDef
from wengert.tape.node import AccumulateGrad, Node, Output
from wengert.tape.sweep import ancestors

__all__ = ["Arithmetic", "Effect", "Recording", "Ref", "Swept", "swept"]


class Ref(NamedTuple):
    """The source of a program's input, or the target of an output.

    Attributes
    ----------
    kind : {"leaf", "tensor", "grad", "array", "number", "spot", "part", "new"}
        A leaf of the arguments (a raw array or a number); a Tensor's array or its gradient's; an
        array or a number of the state. Tensors of the state are counted first, then those among
        the leaves. Effects are on what is at a spot and its parts, too, and on the gradient of the
        new Tensor of an output.
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
    #: The Tensor, or gradient, from before the call that a place gets; None for a new one.
    same: Ref | None = None
    #: Whether a Tensor's new array is of the same kind (`kind_of`) as the old one.
    alike: bool = False
    #: Whether it is the old gradient's array that changes.
    inside: bool = False
    #: The leaves of what is put at a spot.
    parts: "tuple[Any, ...]" = ()


class Arithmetic(NamedTuple):
    """A program of comparisons of Python numbers."""

    #: The sources of its inputs.
    refs: tuple[Ref, ...]
    program: Program
    #: For each output the required outcome.
    gives: tuple[Any, ...]


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
    #: Outputs that require grad: of a function that differentiates inside, each with the Tensors
    #: that it was computed from, and whether there are others.
    swept: dict[int, list[int]]
    tracked: bool
    #: Comparisons on which control flow depends.
    decided: Arithmetic
    #: For each Tensor its gradient before the call, which may be another's or another Tensor.
    grads: tuple[Ref | None, ...]
    #: Of all calls; None if there are several.
    backend: Backend | None
    #: Whether the program has collectives.
    exchanges: bool
    #: The numbers of ``pinned``, with the lines that ask for their values.
    fixed: str

    @property
    def inputs(self) -> dict[Ref, Value]:
        """The program's inputs by their sources."""
        return dict(zip(self.refs, self.program.inputs, strict=True))

    def read(self) -> set[Ref]:
        """The sources of the inputs that the program uses."""
        read = self.program.read()
        return {ref for ref, value in self.inputs.items() if value in read}


class Swept(Node):
    """The node of a result of a function that differentiates inside."""

    __slots__ = ()

    operation = "compiled"

    def values(self) -> tuple[Any, ...]:
        raise CompileError(
            "a compiled function that changes gradients keeps no graph of its results: "
            "differentiate all of it inside, or return what is detached"
        )


def swept(root: Node) -> bool:
    """Whether a part of a result's graph has been differentiated and freed."""
    # Leaves are left out, because a sweep clears `saved` of leaves with hooks.
    nodes = [x for x in ancestors([root]) if not isinstance(x, Output | AccumulateGrad)]
    return any(node.saved is None for node in nodes)
