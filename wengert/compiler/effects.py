"""What a recorded call has changed, and what it may not have done."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.backends.references import held_elsewhere, holders
from wengert.compiler.calls import kind_of
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.raw import RawArray, share_memory
from wengert.compiler.capture.recorded import Effect, Ref
from wengert.compiler.capture.traced import Traced, inner_array
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.changes import change_error
from wengert.compiler.state import NUMBERS, is_plain, same
from wengert.func.trees import tree_flatten
from wengert.tape.node import AccumulateGrad
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert.compiler.recording import Call

__all__ = ["check_arguments", "check_found", "check_memory", "effects_of", "move"]


def effects_of(call: "Call") -> list[Effect]:
    """All changes of a call."""
    return [*_of_tensors(call), *_of_places(call), *_of_spots(call)]


def _of_tensors(call: "Call") -> Iterator[Effect]:
    """The changes of the Tensors among arguments and state."""
    for i, held in enumerate(call.held):
        tensor, ref = held.tensor, Ref("tensor", i)
        now = tensor._array
        if not call.is_input(ref, now):
            alike = kind_of(inner_array(now)) == kind_of(held.array)
            yield Effect(ref, call.output(now), alike=alike)
        node = tensor._node
        if not tensor.is_leaf:
            raise TraceError(
                f"{call.name(i)} was changed in place and has kept the graph of what it was "
                "computed from, into which a later call would run; detach what it is assigned, or "
                "change it in wg.no_grad()"
            )
        if (node is None) != (held.node is None):
            raise TraceError(
                f"requires_grad of {call.name(i)} changes inside the compiled function; change it "
                "outside"
            )
        grad = tensor._grad
        ref = Ref("grad", i)
        if held.grad is not None and ref in call.inputs:  # even if replaced: others may hold it
            now = held.grad._array
            if not call.is_input(ref, now):
                yield Effect(ref, call.output(now), inside=True)
        if grad is held.grad:
            continue
        if grad is None:
            yield Effect(ref, None)
            continue
        if grad._node is not None:
            raise TraceError(
                f"the gradient of {call.name(i)} requires grad (create_graph=True); a compiled "
                "function returns such gradients, by wg.autograd.grad"
            )
        yield move(call, ref, f"the gradient of {call.name(i)}", grad)


def _of_places(call: "Call") -> Iterator[Effect]:
    """The changes of optimisers' state and of numbers."""
    state = call.state
    places = [(Ref("array", i), Ref("array", i)) for i in range(len(state.arrays))]
    places += [(Ref("number", i), Ref("number", first)) for i, first in enumerate(state.shares)]
    for ref, first in places:
        place = state.place(*ref)
        now = place.get()
        if isinstance(now, Traced):
            if not call.is_input(first, now):
                alike = kind_of(now.inner) == kind_of(inner_array(call.before[first]))
                yield Effect(ref, call.result(now), alike=alike)
        elif isinstance(now, TracedNumber):
            if not call.is_input(first, now):
                yield Effect(ref, call.output(now))
        elif type(now) in NUMBERS and call.inputs[first].shape is None:
            # A change even if it equals the old number: comparisons of numbers chose it.
            yield Effect(ref, call.output(now))
        else:
            raise change_error(place.name, call.before[first], now)


def move(call: "Call", ref: Ref, name: str, now: Tensor) -> Effect:
    """The effect that there is another Tensor at a place."""
    if id(now) in call.refs:
        return Effect(ref, call.output(now._array), same=call.refs[id(now)])
    if type(now) is not Tensor or isinstance(now._node, AccumulateGrad):
        what = "a leaf that requires grad" if type(now) is Tensor else f"a {type(now).__name__}"
        raise TraceError(f"{name} gets {what}, where a replay would put a Tensor; make it outside")
    if now._node is not None:
        raise TraceError(
            f"{name} keeps a Tensor with the graph of what it was computed from, into which a "
            "later call would run; detach it"
        )
    return Effect(ref, call.result(now), new=True)


def _of_spots(call: "Call") -> Iterator[Effect]:
    """The Tensors, and the tuples of Tensors and numbers, that others have replaced."""
    for k, ((place, held), inside) in enumerate(zip(call.state.spots, call.inside, strict=True)):
        now = place.get()
        if now is inside or now is held:
            continue
        parts: list[Effect] = []
        for name, old, new in _leaves(place.name, held, inside, now):
            if isinstance(new, Tensor) and isinstance(old, Tensor):
                parts.append(move(call, Ref("part", k), name, new))
            elif _is_number(old, new) or (is_plain(old) and is_plain(new) and same(old, new)):
                parts.append(Effect(Ref("part", k), call.output(new)))
            elif old is new:
                parts.append(Effect(Ref("part", k), None))
            else:
                raise change_error(name, old, new)
        yield Effect(Ref("spot", k), None, parts=tuple(parts))


def _is_number(old: Any, new: Any) -> bool:
    """Whether a number takes the place of another."""
    return type(old) in NUMBERS and (is_plain(new) or isinstance(new, TracedNumber))


def _leaves(name: str, old: Any, inside: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves of what is at a spot, and of what replaces it."""
    if not isinstance(old, tuple):
        yield name, old, new
        return
    more = getattr(old, "__dict__", None) or getattr(new, "__dict__", None)
    if type(old) is not type(new) or len(old) != len(new) or more:
        raise change_error(name, old, new)
    for i, (a, b, c) in enumerate(zip(old, inside, new, strict=True)):
        yield from _leaves(f"{name}[{i}]", a, b, c)


# -- what a replay could not repeat ----------------------------------------------------------------


def check_arguments(call: "Call") -> None:
    """Raise if the call has changed containers among the arguments."""
    given = {id(leaf) for leaf in call.leaves}
    leaves, now = tree_flatten(call.arguments, lambda x: id(x) in given and x is not None)
    names = call.layout.names
    if now != call.layout.structure:
        raise TraceError(
            "the compiled function changes the structure of its arguments, which a replay would "
            "not do. Make a new container"
        )
    for name, leaf, given_ in zip(names, leaves, call.leaves, strict=True):
        if leaf is not given_:
            raise change_error(f"{name} among its arguments", given_, leaf)


def check_found(call: "Call", leaves: Sequence[Any]) -> None:
    """Raise if the function uses a Tensor that the walk has not found."""
    beside = [call.trace.constants[value] for value in call.trace.beside]
    beside = [x for x in beside if type(x) is not np.bool]  # of which there are but two
    # An array that only `constants` refers to was made in the trace.
    held = held_elsewhere(beside, known=1)
    arrays = {id(x) for x in held}
    known = {id(x) for x in (*call.tensors, *leaves)}
    if held and any(id(x._array) in arrays and id(x) not in known for x in holders(held, Tensor)):
        raise TraceError(
            "the compiled function uses a Tensor that is reached by none of the names in its code; "
            "pass it as an argument, or hold it in a variable or attribute"
        )


def check_memory(call: "Call") -> None:
    """Raise if what the caller gets shares memory with a raw array that he has, too."""
    inputs = {*call.inputs.values()}
    made = [x for x in call.outputs if isinstance(x, Traced) and x.value not in inputs]
    raw = [x for x in made if type(x) is RawArray]
    for x in made:
        others = [y for y in raw if y is not x] if type(x) is RawArray else raw
        for other in (*call._raws.values(), *others):
            if share_memory(x.inner, other.inner):
                raise TraceError(
                    "what the compiled function returns or keeps shares memory with "
                    f"{other.value.name or 'another raw array'}, which a replay would copy; "
                    "return or keep a copy"
                )
