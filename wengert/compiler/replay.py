"""Running a recorded program: what it is given, and where what it gives goes."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from wengert.backends import namespaces
from wengert.compiler.capture.places import State, same
from wengert.compiler.capture.recording import Recording
from wengert.compiler.emission.emit import emit
from wengert.compiler.emission.finish import finish
from wengert.compiler.emission.glue import MISS, Glue
from wengert.compiler.emission.saving import save
from wengert.compiler.passes import optimise
from wengert.compiler.passes.flatten import flatten
from wengert.compiler.program import Program, Value, values_in
from wengert.compiler.report import Report
from wengert.func.trees import TreeDef
from wengert.tape.node import Node, Output, Several, tick
from wengert.tape.tensor import Tensor, placed

__all__ = ["Replay", "tensors_of"]


_now: Callable[[], int] = count(1).__next__


class Replay:
    """A recorded program, bound to the objects that hold its state.

    Attributes
    ----------
    signature : dict
        Of the calls that it is for.
    used : int
        When it ran last, by a clock of its own.
    """

    def __init__(
        self,
        found: Recording,
        signature: dict[str, Any],
        structure: TreeDef,
        names: Sequence[str],
        static: Sequence[bool],
        report: Report,
        torch_compile: bool | str = False,
    ) -> None:
        self.signature, self.recording, self.report = signature, found, report
        self.names, self.static = names, static
        self._torch_compile = torch_compile
        self.used = _now()
        self._function: Callable[..., tuple[Any, ...]] | None = None
        self._backward: Callable[..., tuple[Any, ...]] | None = None
        self._source = ""
        self.structure = structure
        #: Whether all arguments are leaves, given by position.
        args, kwargs = structure.children
        self.plain = not kwargs.children and all(child.cls is None for child in args.children)
        self.call: Callable[..., Any] = lambda *leaves: MISS

    # -- the program ---------------------------------------------------------------------------

    @cached_property
    def _unread(self) -> set[int]:
        """Gradients that are there before, and that the program does not look at."""
        program = self.recording.program
        read = {value for step in program.instructions for value in step.used()}
        read.update(values_in(program.outputs))
        return {
            ref.index
            for ref, value in zip(self.recording.refs, program.inputs, strict=True)
            if ref.kind == "grad" and value not in read
        }

    @cached_property
    def whole(self) -> Program:
        """What the passes for every library have made of it."""
        return optimise(self.recording.program)

    @cached_property
    def program(self) -> Program:
        """What is emitted: on NumPy each call costs as much as it computes."""
        numpy = self.recording.backend is not None and self.recording.backend.name == "numpy"
        return flatten(self.whole, self._becomes()) if numpy else self.whole

    def _becomes(self) -> dict[Value, Value]:
        """The outputs that are the next values of inputs, and these."""
        inputs = dict(zip(self.recording.refs, self.whole.inputs, strict=True))
        return {
            self.whole.outputs[effect.output]: inputs[effect.ref]
            for effect in self.recording.effects
            if effect.output is not None and effect.ref in inputs
        }

    def _prepare(self) -> Callable[..., tuple[Any, ...]]:
        backend, how = self.recording.backend, self._torch_compile
        emitted = emit(self.program, backend)
        self._source = emitted.source
        self._function = finish(self.program, emitted.function, backend, self.report, how)
        if self.recording.backward is not None:
            behind = optimise(self.recording.backward.program)
            later = emit(behind, backend, name="adjoint")
            self._source += "\n\n" + later.source
            self._backward = finish(behind, later.function, backend, self.report, how)
        return self._function

    @property
    def source(self) -> str:
        """The program as Python source."""
        if self._function is None:
            self._prepare()
        return self._source

    def save(self, path: str | Path, name: str, state: State) -> None:
        """Write the program, and the state that there is now, into files."""
        if state.structure() != self.signature["the state"]:
            raise RuntimeError(f"the state of {name} has changed since it ran: call it again first")
        save(path, name, self.whole, self.recording, state, self.names)

    # -- running -------------------------------------------------------------------------------

    def fits(self, signature: dict[str, Any], state: State, leaves: Sequence[Any]) -> bool:
        """Whether the program is for a call of this signature."""
        for what, value in self.signature.items():
            if what == "which gradients there are":
                for i, (a, b) in enumerate(zip(value, signature[what], strict=True)):
                    if a != b and not (i < len(state.tensors) and i in self._unread):
                        return False
            elif value != signature[what]:
                return False
        for ref, value in self.recording.pinned.items():
            number = state.numbers[ref.index].get() if ref.kind == "number" else leaves[ref.index]
            if not same(number, value):
                return False
        return all((t := ref()) is None or t._array is x for ref, x in self.recording.captured)

    def run(self, leaves: Sequence[Any], state: State) -> Any:
        """Run the program for a call that it fits, on this state, and be ready for the next."""
        function = self._function or self._prepare()
        attach = self.attach if self.recording.backward is not None else None
        glue = Glue(self.recording, self.signature, self._unread, function, attach)
        _, self.call = glue.function(state, leaves)
        self.used = _now()
        return self.call(*leaves)

    def attach(self, answer: list[Any], kept: Sequence[Any], tensors: Sequence[Tensor]) -> None:
        """Put results that are differentiated outside on the tape."""
        behind: Any = self.recording.backward
        if self._backward is None:
            self._prepare()
        parents = tuple([tensors[ref.index]._node for ref in behind.leaves])
        results = [answer[k]._array for k in behind.results]
        node = CompiledNode(parents, tuple(kept), results, self._backward)
        for i, k in enumerate(behind.results):
            answer[k] = placed(answer[k]._array, Output(node, i))


class CompiledNode(Several):
    """A replay as one operation on the tape: its rule is a program, too."""

    __slots__ = ("function",)

    function: Any

    def __init__(
        self,
        parents: tuple[Node | None, ...],
        saved: tuple[Any, ...],
        results: Sequence[Any],
        function: Any,
    ) -> None:
        self.number = tick()
        self.parents, self.saved, self.function = parents, saved, function
        self.watch = None
        self.shape = tuple([x.shape for x in results])
        self.dtype = tuple([x.dtype for x in results])

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        like = next(iter(g.items.values()))
        xp = namespaces[type(like)]
        if not xp.plain:
            raise RuntimeError(
                "the results of a compiled function can't be differentiated twice from outside; "
                "take the gradient inside the function that is compiled, or don't compile it"
            )
        cotangents = [
            g.items[i] if i in g.items else xp.zeros(shape, dtype=dtype, device=xp.device(like))
            for i, (shape, dtype) in enumerate(zip(self.shape, self.dtype, strict=True))
        ]
        made = self.function(*self.values(), *cotangents)
        return [
            (i, x)
            for i, (parent, x) in enumerate(zip(self.parents, made, strict=True))
            if parent is not None and (wanted is None or parent.number in wanted)
        ]

    def name(self) -> str:
        return "CompiledBackward0"

    @property
    def operation(self) -> str:
        return "compiled"


def tensors_of(leaves: Sequence[Any], state: State) -> list[Tensor]:
    """The Tensors that references count: those of the state, then those among the leaves."""
    tensors = [at.tensor for at in state.tensors]
    known = {id(tensor) for tensor in tensors}
    for leaf in leaves:
        if isinstance(leaf, Tensor) and id(leaf) not in known:
            known.add(id(leaf))
            tensors.append(leaf)
    return tensors
