"""Recording: one traced call of a function gives its program, inputs, changes and answer.

During the call, what the program takes as inputs is traced: the arrays of Tensors, NumPy arrays,
and numbers. Afterwards all of it has the values that the call has computed.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from wengert.compiler.calls import Layout
from wengert.compiler.capture.errors import GraphError, TraceError, UnrollError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.raw import RawArray, check_class
from wengert.compiler.capture.recorded import Arithmetic, Effect, Recording, Ref, swept
from wengert.compiler.capture.trace import Trace, effect_of
from wengert.compiler.capture.traced import Traced
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.changes import Before
from wengert.compiler.effects import check_arguments, check_found, check_memory, effects_of, move
from wengert.compiler.messages import apart
from wengert.compiler.state import Place, State, check_dtype, is_array, is_plain
from wengert.func.trees import still_parts, tree_flatten
from wengert.tape.node import AccumulateGrad, Node
from wengert.tape.sweep import ancestors
from wengert.tape.tensor import Tensor

__all__ = ["record"]


class Call:
    """A call that is recorded."""

    def __init__(
        self,
        function: Callable[..., Any],
        state: State,
        layout: Layout,
        leaves: Sequence[Any],
        loops: bool,
    ) -> None:
        self.function, self.state, self.layout = function, state, layout
        self.trace, self.start = Trace(loops), Before(state, leaves)
        self.tensors = self.start.tensors
        self.inputs: dict[Ref, Any] = {}  # values of the program
        self.before: dict[Ref, Any] = {}  # what they were made of
        self.outputs: list[Any] = []  # traced arrays and numbers
        self.held = self.start.held
        #: Tensors and gradients from before the call, by identity.
        self.refs = {id(x): Ref("tensor", i) for i, x in enumerate(self.tensors)}
        for i, held in enumerate(self.held):
            self.refs.setdefault(id(held.grad), Ref("grad", i))
        self.tracked: dict[int, Any] = {}  # outputs that require grad
        self.leaves = list(leaves)
        self.arguments: Any = None  # as the function gets them
        self.inside: list[Any] = []  # the state's tuples with traced numbers
        self.slopes: list[Effect] = []  # the gradients of new Tensors
        self._made: dict[int, tuple[int, Any]] = {}  # the outputs of new Tensors and arrays
        self._raws: dict[int, Any] = {}  # raw arrays by the identity of what they stand for

    def input(self, x: Any, ref: Any, name: str, *, raw: bool = False) -> Any:
        """Make an array or a number an input; return what replaces it."""
        if raw:
            check_class(x, name)
            check_dtype(x, name)
        made = self.trace.input(x, name, RawArray if raw else Traced)
        if raw:
            self._raws[id(x)] = made
            self.trace.lock(x)
        self.inputs[ref], self.before[ref] = made.value, x
        return made

    def enter(self) -> None:
        """Put traced arrays and numbers into Tensors and places."""
        state, names = self.state, self.layout.names
        called = {id(x): name for x, name in zip(self.leaves[::-1], names[::-1], strict=True)}
        called |= {id(at.tensor): at.name for at in state.tensors if at.name}
        for i, tensor in enumerate(self.tensors):
            name = called.get(id(tensor), "")
            if not tensor.is_leaf:
                raise GraphError(
                    f"{name or 'a Tensor'} has been computed outside, with a graph that a program "
                    "would not have; detach it, compute it inside, or compile the transform of the "
                    "function: wg.compile(wg.grad(f))"
                )
            tensor._array = self.input(tensor._array, Ref("tensor", i), name)
        for i, held in enumerate(self.held):
            grad, name = held.grad, called.get(id(held.tensor), "")
            if grad is not None and grad._node is not None:
                raise TraceError(
                    f"the gradient of {name} requires grad itself, which can't be compiled; make "
                    "it another Tensor"
                )
            if grad is not None and self.refs[id(grad)] == Ref("grad", i):
                grad._array = self.input(held.slope, Ref("grad", i), f"{name}.grad")
        for i, place in enumerate(state.arrays):
            x = place.get()
            self._put(place, self.input(x, Ref("array", i), place.name, raw=i in state.own))
        for place in state.twins:
            self._put(place, self._raws.get(id(place.get()), place.get()))
        numbers: dict[int, Any] = {}
        for i, place in enumerate(state.numbers):
            first = state.shares[i]
            if first == i:
                numbers[i] = self.input(place.get(), Ref("number", i), place.name)
            self._put(place, numbers[first])
        self.inside = [place.get() for place, _ in state.spots]
        for i, (leaf, static) in enumerate(zip(self.leaves, self.layout.static, strict=True)):
            if isinstance(leaf, Tensor) or (static and not is_array(leaf)):
                continue
            if is_array(leaf):
                if id(leaf) not in self._raws:
                    self.input(leaf, Ref("leaf", i), names[i], raw=True)
                self.leaves[i] = self._raws[id(leaf)]
            elif type(leaf) is float and math.isfinite(leaf):
                self.leaves[i] = self.input(leaf, Ref("leaf", i), names[i])

    def _put(self, place: Place, x: Any) -> None:
        try:
            place.set(x)
        except (AttributeError, TypeError) as error:
            raise TraceError(
                f"{place.name} can't be replaced while the compiled function is recorded, since "
                "what holds it is read-only; pass it as an argument, or make it a Tensor"
            ) from error

    def undo(self) -> None:
        """End the trace, and put back what there was before."""
        try:
            self.trace.close()
            self.trace.unlock()
        finally:
            self.start.restore()

    def output(self, x: Any) -> int:
        """Add a traced array or number to the program's outputs; return its position."""
        self.outputs.append(x)
        return len(self.outputs) - 1

    def result(self, x: Any) -> int:
        """Add the array of a new Tensor, or a new raw array, to the outputs once."""
        if id(x) not in self._made:
            array = x._array if isinstance(x, Tensor) else x
            if isinstance(x, Tensor) and not isinstance(array, Traced):
                array = self.trace.constant(array)
            elif not isinstance(array, Traced):  # the library has made it
                check_class(array, "what the compiled function returns or keeps")
                array = RawArray(array, self.trace.constant(array).value, self.trace)
            self._made[id(x)] = self.output(array), x
            if isinstance(x, Tensor) and x._grad is not None:
                ref, name = Ref("new", len(self.outputs) - 1), "the gradient of a new Tensor"
                self.slopes.append(move(self, ref, name, x._grad))
        return self._made[id(x)][0]

    def is_input(self, ref: Any, now: Any) -> bool:
        """Whether this is still the input of the call."""
        return isinstance(now, Traced | TracedNumber) and now.value is self.inputs[ref]

    def leaves_of(self, node: Node) -> list[int]:
        """The Tensors that were there before the call and a result was computed from."""
        found = set(ancestors([node]))
        return [i for i, tensor in enumerate(self.tensors) if tensor._node in found]

    def name(self, i: int) -> str:
        """The name of a Tensor, for an error."""
        return self.inputs[Ref("tensor", i)].name or "a Tensor"


def record(
    function: Callable[..., Any],
    state: State,
    layout: Layout,
    leaves: Sequence[Any],
    loops: bool = True,
) -> tuple[Recording, Callable[[], Trace | None]]:
    """Run a function while it is recorded; afterwards all is as before.

    Scans are ``loops`` where they can be.
    Returns the recording, and what gives the trace as long as something holds a traced value.
    Raises `TraceError` if the function does what a replay could not repeat, `BegunError`, and the
    function's own errors.
    """
    call = Call(function, state, layout, leaves, loops)
    try:
        return _record(call), weakref.ref(call.trace)
    except Exception as error:
        if not any(isinstance(x, UnrollError) for x in call.trace.refused):
            if call.trace.refused and not isinstance(error, TraceError):
                raise call.trace.refused[0] from error
            raise
    finally:
        call.undo()
        call.trace.refused.clear()  # whose tracebacks keep what the call has made
    return record(function, state, layout, leaves, loops=False)


def _record(call: Call) -> Recording:
    trace = call.trace
    with trace.running(), apart():
        call.enter()
        call.arguments = args, kwargs = call.layout.structure.unflatten(call.leaves)
        returned = call.function(*args, **kwargs)
        if trace.refused:
            raise trace.refused[0]
        if trace.failed:
            raise TraceError(trace.failed)
        check_arguments(call)
        call.start.check()
        objects = {id(x): i for i, x in enumerate(call.state.objects) if not isinstance(x, tuple)}
        objects.pop(id(None), None)
        out, structure = tree_flatten(returned, lambda x: id(x) in objects)
        check_found(call, out)
        effects = effects_of(call)
        kinds = [_leaf(call, leaf, objects) for leaf in out]
        for _, x in still_parts(structure):
            _leaf(call, x, objects)  # an error unless it is plain
        effects += call.slopes
        check_memory(call)
        program = trace.program(call.outputs)
        trace.draws.end()
    # Of what is differentiated inside, results can't be outside.
    inside = any(x.ref.kind == "grad" for x in effects)
    over = {
        i: call.leaves_of(x)
        for i, x in call.tracked.items()
        if (inside and not isinstance(x, AccumulateGrad)) or swept(x)
    }
    inputs = {value: ref for ref, value in call.inputs.items()}
    decisions = trace.decisions()
    pinned = {
        inputs[value]: trace.numbers[value] for value in trace.inputs if value in trace.pinned
    }
    return Recording(
        program,
        tuple([inputs[value] for value in program.inputs]),
        tuple(effects),
        structure,
        tuple(kinds),
        pinned,
        over,
        len(over) < len(call.tracked),
        Arithmetic(tuple([inputs[x] for x in decisions[0].inputs]), *decisions),
        tuple([None if x.grad is None else call.refs[id(x.grad)] for x in call.held]),
        next(iter(trace.backends)) if len(trace.backends) == 1 else None,
        "exchanges" in map(effect_of, {step.name for step in program.instructions}),
        ", ".join([f"{x.name} ({line})" for x, line in trace.pinned.items() if x in inputs][:3]),
    )


# -- the answer ------------------------------------------------------------------------------------


def _leaf(call: Call, leaf: Any, objects: dict[int, int]) -> tuple[str, Any]:
    """The kind of a leaf of the answer, as of `Recording.leaves`."""
    if isinstance(leaf, Tensor):
        if id(leaf) in call.refs:
            return "same", call.refs[id(leaf)]
        if type(leaf) is not Tensor and not isinstance(leaf._node, AccumulateGrad):
            raise TraceError(
                f"the compiled function returns a new {type(leaf).__name__}, where a replay would "
                "return a Tensor; make it outside"
            )
        output = call.result(leaf)
        if leaf._node is not None:
            call.tracked[output] = leaf._node
        return "tensor", output
    if isinstance(leaf, Traced):
        for ref, value in call.inputs.items():
            if value is leaf.value:
                return "given", ref
        return "array", call.result(leaf)
    if isinstance(leaf, TracedNumber):
        return "number", call.output(leaf)
    if is_array(leaf):
        return "array", call.result(leaf)
    if id(leaf) in objects:
        return "object", objects[id(leaf)]
    if is_plain(leaf):
        return "plain", leaf
    raise TraceError(
        f"{user_line()}: the compiled function returns a {type(leaf).__name__}, and each replay "
        "would return the same one; return Tensors, arrays and plain values in "
        "lists, tuples, dicts or dataclasses"
    )
