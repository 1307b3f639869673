"""Running a recorded program: what it is given, and where what it gives goes."""

from _thread import allocate_lock
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from wengert.backends import backend_of, namespaces, selection
from wengert.compiler.emit import emit
from wengert.compiler.finish import finish
from wengert.compiler.passes import optimise
from wengert.compiler.passes.flatten import flatten
from wengert.compiler.places import State
from wengert.compiler.recording import Recording, Ref
from wengert.compiler.report import Report
from wengert.func.trees import TreeDef
from wengert.nn.module import changes
from wengert.tape.node import Node, Output, Several, tick
from wengert.tape.recording import is_inference_mode_enabled, recording
from wengert.tape.tensor import Tensor, placed, untracked

__all__ = ["MISS", "Replay"]


class _Miss:
    def __repr__(self) -> str:
        return "MISS"


#: What a replay answers to a call that it is not for.
MISS: Final = _Miss()

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
    ) -> None:
        self.signature, self.recording, self.report = signature, found, report
        self.names, self.static = names, static
        self.used = _now()
        self._lock = allocate_lock()
        program = optimise(found.program)
        #: On NumPy each call costs as much as it computes.
        self.program = flatten(program) if _on(found.backend, "numpy") else program
        read = {value for step in self.program.instructions for value in step.used()}
        read.update(x for x in self.program.outputs if x in set(self.program.inputs))
        #: Gradients that are there before, and that the program does not look at.
        self._unread = {
            ref.index
            for ref, value in zip(found.refs, self.program.inputs, strict=True)
            if ref.kind == "grad" and value not in read
        }
        self._function: Callable[..., tuple[Any, ...]] | None = None
        self._backward: Callable[..., tuple[Any, ...]] | None = None
        self._source = ""
        args, kwargs = structure.children
        #: Whether all arguments are leaves, given by position.
        self._flat = not kwargs.children and all(child.cls is None for child in args.children)
        self._count = structure.num_leaves
        self._tensors_traced = sum(ref.kind == "tensor" for ref in found.refs)

    # -- the program ---------------------------------------------------------------------------

    def _prepare(self) -> Callable[..., tuple[Any, ...]]:
        backend = self.recording.backend
        emitted = emit(self.program, backend)
        self._source = emitted.source
        self._function = finish(self.program, emitted.function, backend, self.report)
        if self.recording.backward is not None:
            behind = optimise(self.recording.backward.program)
            later = emit(behind, backend, name="adjoint")
            self._source += "\n\n" + later.source
            self._backward = finish(behind, later.function, backend, self.report)
        return self._function

    @property
    def source(self) -> str:
        """The program as Python source."""
        if self._function is None:
            self._prepare()
        return self._source

    # -- state ---------------------------------------------------------------------------------

    def bind(self, state: State) -> None:
        """Run with the objects of this state from now on."""
        self.state = state
        self._version = changes[0]

    def fits(self, signature: dict[str, Any], state: State, leaves: Sequence[Any]) -> bool:
        """Whether the program is for a call of this signature."""
        for what, value in self.signature.items():
            if what == "which gradients there are":
                known = state.tensors
                for i, (a, b) in enumerate(zip(value, signature[what], strict=True)):
                    if a != b and not (i < len(known) and i in self._unread):
                        return False
            elif value != signature[what]:
                return False
        return all(
            self._read(ref, self.tensors(leaves, state), state, leaves) == value
            for ref, value in self.recording.pinned.items()
        ) and all((t := ref()) is None or t._array is x for ref, x in self.recording.captured)

    def tensors(self, leaves: Sequence[Any], state: State) -> list[Tensor]:
        """The Tensors that references count: those of the state, then those among the leaves."""
        tensors = [at.tensor for at in state.tensors]
        known = {id(tensor) for tensor in tensors}
        for leaf in leaves:
            if isinstance(leaf, Tensor) and id(leaf) not in known:
                known.add(id(leaf))
                tensors.append(leaf)
        return tensors

    def _read(
        self, ref: Ref, tensors: Sequence[Tensor], state: State, leaves: Sequence[Any]
    ) -> Any:
        kind, index = ref.kind, ref.index
        if kind == "tensor":
            return tensors[index]._array
        if kind == "grad":
            grad = tensors[index]._grad
            # One that the program does not look at may be missing: anything stands for it.
            return tensors[index]._array if grad is None else grad._array
        if kind == "array":
            return state.arrays[index].get()
        if kind == "number":
            return state.numbers[index].get()
        return leaves[index]

    def _same(self) -> bool:
        """Whether the function reaches the same objects as when this was bound."""
        state = self.state
        if changes[0] != self._version:
            return False
        for place, x in state.links:
            if place.get() is not x:
                return False
        for place, x in state.statics:
            now = place.get()
            if now is not x and (type(now) is not type(x) or now != x):
                return False
        return all(len(x) == n for x, n, _ in state.lengths)

    # -- running -------------------------------------------------------------------------------

    def call(self, *args: Any) -> Any:
        """Run the program on arguments given by position, or answer `MISS`."""
        if not self._flat or len(args) != self._count or not self._same():
            return MISS
        signature = self.signature
        if (recording(), is_inference_mode_enabled()) != signature["the recording mode"]:
            return MISS
        for x, kind, fixed in zip(args, signature["an argument"], self.static, strict=True):
            if not _is(x, kind, fixed):
                return MISS
        state = self.state
        for at, kind in zip(state.tensors, signature["a Tensor of the state"], strict=True):
            if not _is(at.tensor, kind, False):
                return MISS
        where = selection()
        backend, device, _ = signature["where new arrays are made"]
        if where.backend.name != backend or str(where.device) != device:
            return MISS
        tensors = self.tensors(args, state)
        if len(tensors) != self._tensors_traced:
            return MISS
        gradients = signature["which gradients there are"]
        for i, x in enumerate((*(at.tensor for at in state.tensors), *args)):
            there = x._grad is not None if isinstance(x, Tensor) else None
            if there != gradients[i] and i not in self._unread:
                return MISS
        for place, shared in zip(state.numbers, state.shares, strict=True):
            if place.get() != state.numbers[shared].get():
                return MISS
        for ref, value in self.recording.pinned.items():
            if self._read(ref, tensors, state, args) != value:
                return MISS
        for weak, array in self.recording.captured:
            held = weak()
            if held is not None and held._array is not array:
                return MISS
        return self._run(args, tensors, state)

    def run(self, leaves: Sequence[Any], state: State) -> Any:
        """Run the program for a call that it fits, on this state."""
        self.bind(state)
        return self._run(leaves, self.tensors(leaves, state), state)

    def _run(self, leaves: Sequence[Any], tensors: Sequence[Tensor], state: State) -> Any:
        found = self.recording
        with self._lock:
            self.used = _now()
            function = self._function or self._prepare()
            inputs = [self._read(ref, tensors, state, leaves) for ref in found.refs]
            outputs = function(*inputs)
            for effect in found.effects:
                ref = effect.ref
                if effect.output is None:
                    tensors[ref.index]._grad = None
                    continue
                new = outputs[effect.output]
                if ref.kind == "tensor":
                    tensors[ref.index]._array = new
                elif ref.kind == "grad":
                    tensor = tensors[ref.index]
                    if effect.new or tensor._grad is None:
                        tensor._grad = untracked(new)
                    else:
                        tensor._grad._array = new
                elif ref.kind == "array":
                    state.arrays[ref.index].set(new)
                elif ref.kind == "number":
                    state.numbers[ref.index].set(new)
                else:
                    state.tensors[ref.index].place.set(untracked(new))  # type: ignore[union-attr]
            answer = []
            for kind, what in found.leaves:
                if kind == "tensor":
                    answer.append(untracked(outputs[what]))
                elif kind == "same":
                    answer.append(tensors[what.index])
                else:
                    answer.append(what if kind == "plain" else outputs[what])
        if found.backward is not None:
            kept = [outputs[i] for i in found.backward.kept]
            self.attach(answer, kept, tensors)
        return found.answer.unflatten(answer)

    def attach(
        self, answer: list[Any], kept: Sequence[Any], tensors: Sequence[Tensor]
    ) -> None:
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


def _on(backend: Any, name: str) -> bool:
    return backend is not None and backend.name == name


def _is(x: Any, kind: Any, fixed: bool) -> bool:
    """Whether an argument or part of the state is of the kind that a signature says."""
    if isinstance(x, Tensor):
        array = x._array
        return (
            len(kind) == 5
            and type(array) is kind[0]
            and array.shape == kind[1]
            and array.dtype == kind[2]
            and (x._node is None) == (kind[4] is None)
            and (x._node is None or x.is_leaf == kind[4])
            and str(backend_of(array).device(array)) == kind[3]
        )
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return isinstance(kind, tuple) and len(kind) == 4 and (
            type(x) is kind[0] and tuple(x.shape) == kind[1] and x.dtype == kind[2]
        )
    if isinstance(kind, type):
        return type(x) is kind and not fixed
    return len(kind) == 2 and type(x) is kind[0] and x == kind[1]
