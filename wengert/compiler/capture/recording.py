"""Recording: one traced call of a function gives its program, inputs, effects and answer.

During the call every Tensor among the arguments and in the state holds a traced array. Afterwards
they hold the values that the call has computed, so that its result is that of an eager call.
"""

import gc
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from wengert.backends import DType
from wengert.backends.references import held_elsewhere, holders
from wengert.compiler.capture.calls import Layout, taken_apart, tensors_of
from wengert.compiler.capture.containers import tuple_parts, whole
from wengert.compiler.capture.effects import (
    check_arguments,
    check_asked,
    check_kept,
    check_side_effects,
    looks_at_gradients,
    place_effects,
    tensor_effects,
    untraced,
)
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.foreign import is_immutable, of_user
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.places import NUMBERS, PLAIN, State, is_array
from wengert.compiler.capture.raw import RawArray, check_class, shared
from wengert.compiler.capture.recorded import (
    Arithmetic,
    Outside,
    Recording,
    Ref,
    Swept,
    behind,
    swept,
)
from wengert.compiler.capture.snapshot import Snapshot
from wengert.compiler.capture.sweeps import programs
from wengert.compiler.capture.trace import Trace, copied
from wengert.compiler.capture.traced import Traced, inner_array
from wengert.compiler.capture.traced_number import SymbolicNumber, TracedNumber
from wengert.compiler.capture.watch import Stopped, Watch, check_names, functions_of, needed
from wengert.compiler.program import Program, Value
from wengert.compiler.restoring import restoring
from wengert.func.trees import TreeDef, node_kind, tree_flatten
from wengert.tape.hooks import Hooked
from wengert.tape.node import AccumulateGrad, Node
from wengert.tape.tensor import Tensor, with_node

__all__ = ["raised_inside", "record_call", "seldom_collected"]


T = TypeVar("T")

#: The threshold of the garbage collector while programs are made.
SELDOM: Final = 50_000


class _Held(NamedTuple):
    """A Tensor before the trace, and the node that replaces its own."""

    tensor: Tensor
    node: Node | None
    grad: Tensor | None

    outside: Outside | None


class _Call:
    """A call that is traced."""

    def __init__(
        self, function: Callable[..., Any], state: State, layout: Layout, leaves: Sequence[Any]
    ) -> None:
        self.function, self.state, self.layout = function, state, layout
        self.trace = Trace()
        self.inputs: dict[Ref, Value] = {}
        self.before_of: dict[Ref, Any] = {}  # the arrays and numbers of inputs
        self.outputs: list[Any] = []  # traced arrays and numbers
        self.before = Snapshot.of(state, leaves)
        self.held: list[_Held] = []
        self.tensors = tensors_of(leaves, state)
        self.known = {id(tensor): i for i, tensor in enumerate(self.tensors)}
        self._made: dict[int, tuple[int, Any]] = {}  # the outputs of new Tensors and arrays
        self._raws: list[Traced] = []  # raw arrays among arguments and state
        self.over: dict[int, str] = {}  # outputs that were differentiated inside
        self.kept: list[Any] = []  # arrays of this run that the results' sweeps need
        self.leaves = list(leaves)
        self.names, self.static = layout.names, layout.static
        self.gone: frozenset[int] = frozenset()
        self.apart: dict[int, int] = {}  # which container among the arguments an object is

    def input(self, x: Any, kind: str, index: int, name: str, *, raw: bool = False) -> Any:
        """Make an array or a number an input; return what replaces it."""
        if raw and self.state.types:
            raise TraceError(
                f"{name} is a raw array, and the code asks for types by type(x), which is "
                "another class during a recording; use isinstance"
            )
        if raw:
            check_class(x, name)
        made = self.trace.input(x, name, RawArray if raw else Traced)
        self.trace.contents.share(x, name, self.state.raws)
        if raw:
            self._raws.append(made)
        self.inputs[Ref(kind, index)] = made.value
        self.before_of[Ref(kind, index)] = x
        return made

    def enter(self) -> None:
        """Put traced arrays and numbers into Tensors and places."""
        called = {id(x): name for x, name in zip(self.leaves[::-1], self.names[::-1], strict=True)}
        called |= {id(at.tensor): at.name for at in self.state.tensors if at.name}
        names = [called.get(id(x), "") for x in self.tensors]
        grads: dict[int, Any] = {}
        for i, (tensor, name) in enumerate(zip(self.tensors, names, strict=True)):
            node, outside = tensor._node, None
            tensor._array = self.input(tensor._array, "tensor", i, name)
            if node is not None and not isinstance(node, AccumulateGrad):
                tensor._node = outside = Outside(node, tensor._array, name or "a Tensor")
            self.held.append(_Held(tensor, node, tensor._grad, outside))
        for i, (held, name) in enumerate(zip(self.held, names, strict=True)):
            grad = held.grad
            if grad is None:
                continue
            if id(grad) in self.known or id(grad) in grads or grad._node is not None:
                raise TraceError(
                    f"the gradient of {name} is also another Tensor of the compiled function, or "
                    "requires grad itself; this can't be compiled"
                )
            grads[id(grad)] = grad
            grad._array = self.input(grad._array, "grad", i, f"{name}.grad")
        reached = {id(x) for x in self.state.reached_arrays()}
        for i, place in enumerate(self.state.arrays):
            place.set(self.input(place.get(), "array", i, place.name, raw=place.of_user))
        made: dict[int, Any] = {}
        for i, place in enumerate(self.state.numbers):
            first = self.state.shares[i]
            if first == i:
                made[i] = self.input(place.get(), "number", i, place.name)
            if self.state.types and place.of_user:  # as for numbers among the arguments
                self.trace.pin(made[first])
            else:
                place.set(made[first])
        raws: dict[int, Any] = {}
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, Tensor) or self.static[i]:
                continue
            if is_array(leaf):
                if id(leaf) in reached:
                    raise TraceError(
                        f"{self.names[i]} is an array that the compiled function also reaches "
                        "otherwise; pass it or use it by name, not both"
                    )
                if id(leaf) not in raws:
                    raws[id(leaf)] = self.input(leaf, "leaf", i, self.names[i], raw=True)
                self.leaves[i] = raws[id(leaf)]
            elif type(leaf) in NUMBERS:
                live = self.input(leaf, "leaf", i, self.names[i])
                if self.state.types:  # the type of a traced number differs
                    self.trace.pin(live)
                else:
                    self.leaves[i] = live

    def begun(self) -> None:
        """Note the gradients that were deleted before anything can fail."""
        gone = [i for i, x in enumerate(self.held) if x.grad is not None and x.tensor._grad is None]
        self.gone = frozenset(gone)

    def leave(self) -> None:
        """Replace traced arrays by the values of this run."""
        for held in self.held:
            tensor = held.tensor
            tensor._array = inner_array(tensor._array)
            if held.outside is not None:
                tensor._node = held.node
            for grad in (held.grad, tensor._grad):
                if grad is not None:
                    grad._array = inner_array(grad._array)

    def undo(self) -> None:
        """End the trace, and restore the state."""
        self.trace.close()
        self.before.restore()

    def graphs(self) -> dict[int, frozenset[int]]:
        """The caller's graphs that sweeps have searched, as of `Recording.behind`.

        From now on these graphs end at their Tensors.
        """
        nodes = {i: held.outside for i, held in enumerate(self.held) if held.outside is not None}
        seen = [i for i, node in nodes.items() if node.seen]
        found = {i: behind(self.tensors[i], self.tensors) for i in seen}
        for node in nodes.values():
            node.open = False
        return found

    def output(self, x: Any) -> int:
        """Add a traced array or number to the program's outputs; return its position."""
        if type(x) is float and x != x:  # NaN stays one object
            for i, other in enumerate(self.outputs):
                if other is x:
                    return i
        self.outputs.append(x)
        return len(self.outputs) - 1

    def made(self, x: Any) -> int:
        """Add the array of a new Tensor, or a new raw array, to the outputs once."""
        if id(x) not in self._made:
            array = x._array if isinstance(x, Tensor) else x
            if not isinstance(array, Traced):  # the library has made it
                check_class(array, "what the compiled function returns or keeps")
                array = RawArray(array, self.trace.constant(array).value, self.trace)
            self._made[id(x)] = self.output(array), x
        return self._made[id(x)][0]

    def arithmetic(self, program: Program, gives: Sequence[Any]) -> Arithmetic:
        """A program of numbers with the references of its inputs."""
        refs = {value: ref for ref, value in self.inputs.items()}
        return Arithmetic(tuple([refs[x] for x in program.inputs]), program, tuple(gives))

    def check_memory(self) -> None:
        """Raise if raw arrays share memory that a replay would not share."""
        raws = [(x.inner, x.value.name) for x in self._raws]
        called = self.state.called
        raws += [(x, called.get(id(x), "")) for x in self.state.raws]
        given = list(raws)
        for x in self.outputs:
            if isinstance(x, Traced):
                raw = type(x) is RawArray
                for other, name in given if raw else raws:
                    if shared(x.inner, other):
                        raise TraceError(
                            f"what the compiled function returns or keeps shares memory with "
                            f"{name or 'another raw array'}, which a replay would copy; return "
                            "or keep a copy"
                        )
                given.append((x.inner, ""))
                if raw:
                    raws.append((x.inner, ""))

    def forget(self) -> None:
        """Free what the call has made."""
        for held in (self.outputs, self._made, self._raws, self.before_of):
            held.clear()


def record_call(
    function: Callable[..., Any],
    state: State,
    layout: Layout,
    leaves: Sequence[Any],
    then: Callable[[list[Any], Recording, list[Any]], T],
    samples: dict[Value, Any] | None = None,
    watch: bool = True,
) -> T:
    """Run a function while it is traced.

    Parameters
    ----------
    function : callable
        The function.
    state : State
        What it can reach.
    layout, leaves : Layout, sequence
        The arguments. Static ones are not traced.
    then : callable
        Called at the end with the leaves of the return value, the recording, and the arrays of
        this run that the results' sweeps need. Its result is returned.
    samples : dict, optional
        Filled with the results of each instruction.
    watch : bool
        Whether calls are watched in any case; otherwise only if the code names something unknown.

    Raises
    ------
    TraceError
        If the function does something that a replay could not repeat. After this and any other
        error, arguments and state are as before.
    """
    call = _Call(function, state, layout, leaves)
    call.trace.samples = samples

    def run() -> T:
        recording, answer = _traced(call, function, watch)
        made = answer()
        call.leave()
        call.forget()
        call.leaves.clear()
        check_kept(call)
        return then(made, recording, call.kept)

    try:
        return restoring(run, call.undo)
    except Stopped as error:
        raise TraceError(str(error)) from None
    except Exception as error:
        # NumPy replaces a TraceError by its own when an array's element is assigned from a Tensor.
        if call.trace.refused and not isinstance(error, TraceError):
            raise call.trace.refused[0] from None
        raise
    finally:
        call.trace.refused.clear()  # whose tracebacks keep what the call has made


def _traced(
    call: _Call, function: Callable[..., Any], watch: bool
) -> tuple[Recording, Callable[[], list[Any]]]:
    """Trace a call; return the recording, and a function that makes the leaves of its answer."""
    with call.trace.running():
        call.enter()
        args, kwargs = call.layout.structure.unflatten(call.leaves)
        functions = functions_of(call.state.objects, function)
        if not looks_at_gradients(functions):
            call.trace.begun = call.begun
        check_names(functions)
        check_asked(call, functions)
        seen = call.trace.watched = watch or needed(call.state.objects, functions)
        with Watch(functions, stop=True).on() if seen else nullcontext():
            returned = function(*args, **kwargs)
        check_arguments(call, (args, kwargs))
        call.trace.contents.check()
        recording, answer = _recorded(call, returned, (args, kwargs))
        call.trace.draws.end()
    return recording, answer


def seldom_collected(run: Callable[[], T]) -> T:
    """Run a function with a higher threshold of garbage collection: instructions have no cycles."""
    before = gc.get_threshold()
    seldom = (max(before[0], SELDOM), *before[1:]) if before[0] else before

    def put_back() -> None:
        if gc.get_threshold() == seldom:
            gc.set_threshold(*before)

    def seldom_run() -> T:
        gc.set_threshold(*seldom)
        result = run()
        put_back()
        return result

    return restoring(seldom_run, put_back)


def raised_inside(error: BaseException) -> bool:
    """Whether an error was raised by the recorded function, and not by the compiler."""
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code is not _traced.__code__:
        at = at.tb_next
    if at is None or at.tb_next is None:
        return at is not None
    name = str(at.tb_next.tb_frame.f_globals.get("__name__"))
    return not name.startswith("wengert.compiler")


def _recorded(
    call: _Call, returned: Any, arguments: Any
) -> tuple[Recording, Callable[[], list[Any]]]:
    call.trace.begun = None
    graphs = call.graphs()
    more = check_side_effects(call)
    leaves, structure = _taken_apart(call, returned, arguments)
    _check_found(call, leaves)
    reached = {id(x) for x in call.state.raws}  # which are guarded, and may be changed in place
    constants = call.trace.constants
    constants |= {value: copied(x) for value, x in constants.items() if id(x) in reached}
    effects, (others, values) = tensor_effects(call), place_effects(call)
    effects += others
    kinds = tuple([_leaf(call, leaf) for leaf in leaves])
    call.check_memory()
    pinned = call.trace.pinned
    numbers = {ref: call.before_of[ref] for ref, value in call.inputs.items() if value in pinned}
    program, backward = programs(call, leaves, kinds)
    counts = {
        effect.output: now.value
        for effect in effects
        if effect.ref.kind == "number" and call.state.numbers[effect.ref.index].of_user
        and effect.output is not None
        and isinstance(now := call.outputs[effect.output], TracedNumber)
        and call.trace.given(now)
    }  # fmt: skip
    recording = Recording(
        program, tuple(call.inputs), tuple(effects), structure, kinds, numbers, call.over,
        call.arithmetic(*call.trace.decisions()),
        call.arithmetic(call.trace.arithmetic([*counts.values()]), [*counts]), backward,
        not more, graphs, call.gone,
        next(iter(call.trace.backends)) if len(call.trace.backends) == 1 else None,
    )  # fmt: skip

    def answer() -> Any:
        made, copies = list[Any](), dict[int, Any]()
        # A Tensor that is both returned and stored stays one Tensor.
        same: dict[int, Tensor] = {
            id(x._grad): x._grad for x in call.tensors if x._grad is not None
        }
        for place, x in values:
            now = untraced(x, same)
            if now is not x:
                place.set(now)
        untraced(more, same)
        for leaf, (kind, what) in zip(leaves, kinds, strict=True):
            if kind == "tensor":
                if id(leaf) not in same:
                    array = inner_array(leaf._array)
                    node = Swept(array, call.over[what]) if what in call.over else None
                    same[id(leaf)] = with_node(array, node)
                made.append(same[id(leaf)])
            elif kind == "array":
                copies.setdefault(
                    id(leaf), inner_array(leaf) if isinstance(leaf, Traced) else copied(leaf)
                )
                made.append(copies[id(leaf)])
            elif kind == "given":
                made.append(inner_array(leaf))
            elif kind == "number":
                made.append(leaf.number if isinstance(leaf, TracedNumber) else leaf)
            elif kind == "same":
                tensor = call.tensors[what.index]
                made.append(tensor if what.kind == "tensor" else tensor._grad)
            elif kind == "held":
                made.append(call.state.tuples[what].place.get())
            elif kind == "object":
                made.append(call.state.objects[what])
            else:
                made.append(what)
        for held in (leaves, values, more):
            held.clear()
        return made

    return recording, answer


def _check_found(call: _Call, leaves: Sequence[Any]) -> None:
    """Raise if the function uses a Tensor that the walk has not found."""
    beside = [call.trace.constants[value] for value in call.trace.beside]
    # An array that only `constants` refers to was made in the trace.
    held = held_elsewhere(beside, known=1)
    arrays = {id(x) for x in held}
    known = {id(x) for x in (*call.tensors, *leaves)}
    if held and any(id(x._array) in arrays and id(x) not in known for x in holders(held, Tensor)):
        raise TraceError(
            "the compiled function uses a Tensor that is reached by none of the names in its code; "
            "pass it as an argument, or hold it in a variable or attribute"
        )


def _taken_apart(call: _Call, returned: Any, arguments: Any) -> tuple[list[Any], TreeDef]:
    """Flatten the return value; a replay makes its containers anew."""
    state = call.state
    held = {id(x) for x in state.objects if isinstance(x, tuple)}
    held |= {id(each.place.get()) for each in state.tuples}
    known = {id(x) for x in state.objects}
    for each in state.tuples:
        known |= {id(x) for old in (each.held, each.place.get()) for _, x in tuple_parts(old)}

    if not call.layout.plain:
        args, kwargs = arguments
        given = taken_apart(args, kwargs, {id(x) for x in call.leaves}, [])[2]
        call.apart = {id(x): i for i, x in enumerate(given)}

    def leaf(x: Any) -> bool:
        if whole(x) or id(x) in held or id(x) in call.apart:
            return True
        if x is not None and (type(x) is not tuple or x):
            if id(x) in known:
                raise TraceError(
                    f"the compiled function returns a {type(x).__name__} that existed before, or "
                    "one twice, where a replay would return copies; return a copy of your own"
                )
            known.add(id(x))
            _check_kept(x, objects)
        return False

    objects = {id(x) for x in state.objects if not (isinstance(x, tuple | type) or _lasts(type(x)))}
    return tree_flatten(returned, leaf)


def _check_kept(x: Any, objects: set[int]) -> None:
    """Refuse a node of the answer that itself keeps what is another object in other states."""

    def moves(kept: Any) -> bool:
        if isinstance(kept, tuple):
            return any(map(moves, kept))
        if isinstance(kept, Tensor | Traced | TracedNumber):
            return True
        return id(getattr(kept, "__self__", kept)) in objects  # of a method

    kind = node_kind(type(x))
    if kind is None:
        return
    if isinstance(x, dict):
        what, kept = "in its keys or default factory", (*x, getattr(x, "default_factory", None))
    else:
        what, kept = "in what is constant of it", kind.take(x)[1]
    if moves(kept):
        raise TraceError(
            f"the compiled function returns a {type(x).__name__} with an argument, or an object of "
            f"the state, {what}, where a replay would put the recorded one; return it by itself"
        )


def _leaf(call: _Call, leaf: Any) -> tuple[str, Any]:
    """The kind of a leaf of the answer, as of `Recording.leaves`."""
    if id(leaf) in call.apart:
        return "argument", call.apart[id(leaf)]
    if isinstance(leaf, Tensor):
        at = call.known.get(id(leaf))
        if at is not None:
            return "same", Ref("tensor", at)
        for i, held in enumerate(call.held):
            if leaf is held.grad and leaf is held.tensor._grad:
                return "same", Ref("grad", i)
        if not isinstance(leaf._array, Traced):
            return "tensor", call.output(call.trace.constant(leaf._array))
        _check_result(leaf)
        output = call.made(leaf)
        if leaf._node is not None and swept(leaf._node):
            call.over[output] = leaf._node.name()
        return "tensor", output
    if isinstance(leaf, Traced):
        for ref, value in call.inputs.items():
            if value is leaf.value:
                return "given", ref
        return "array", call.made(leaf)
    if isinstance(leaf, SymbolicNumber):
        return "plain", leaf.plain_number()
    if isinstance(leaf, TracedNumber) or (type(leaf) is float and leaf != leaf):
        stored = [i for i, x in enumerate(call.outputs) if x is leaf]
        return "number", stored[0] if stored else call.output(leaf)
    if is_array(leaf) and not any(leaf is x for x in call.state.raws):
        return "array", call.made(leaf)
    if type(leaf) in PLAIN or _lasts(type(leaf)) or isinstance(leaf, type):
        return "plain", leaf
    for k, each in enumerate(call.state.tuples):
        if leaf is each.place.get():
            return "held", k
    for i, x in enumerate(call.state.objects):
        if leaf is x:
            return "object", i
    if any(leaf is x for x in call.leaves) or _is_global(leaf):
        return "plain", leaf
    raise TraceError(
        f"{user_line()}: the compiled function returns a {type(leaf).__name__} that it has made, "
        "and each replay would return the same one; return Tensors, arrays and plain values in "
        "lists, tuples, dicts or dataclasses"
    )


def _check_result(made: Tensor) -> None:
    """Raise for a result with hooks or the like, which a replay would not give."""
    node = made._node
    if isinstance(node, AccumulateGrad):
        what = "is a leaf that requires grad, made by it"
    elif isinstance(node, Hooked) and node.extra is not None and node.extra.gradient:
        what = "has hooks of its own"
    elif node is not None and node.watch is not None:
        what = "retains its gradient"
    else:
        return
    raise TraceError(
        f"{user_line()}: a Tensor that the compiled function returns {what}; a replay would return "
        "one without. Do it outside"
    )


def _is_global(x: Any) -> bool:
    """Whether this is a function that holds nothing of a call."""
    return isinstance(x, FunctionType) and not (
        x.__closure__ and of_user(x.__globals__.get("__name__"))
    )


def _lasts(kind: type) -> bool:
    """Whether objects of a class are immutable, so that all calls may return the same one."""
    return issubclass(kind, Enum | np.generic) or kind in (DType, ModuleType) or is_immutable(kind)
