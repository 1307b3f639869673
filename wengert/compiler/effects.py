"""What a recorded call has changed: Tensors, optimisers, and the Tensors at places."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wengert.compiler.calls import kind_of
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.recorded import Effect, Ref
from wengert.compiler.capture.traced import Traced, inner_array
from wengert.compiler.capture.traced_number import SymbolicNumber, TracedNumber
from wengert.compiler.changes import changed
from wengert.compiler.state import NUMBERS, Place, is_plain, same
from wengert.tape.node import AccumulateGrad
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert.compiler.recording import Call

__all__ = ["UNASKED", "Asked", "effects_of"]


class Asked(BaseException):
    """A function has used a gradient that was not there, and was assumed not to be looked at."""


class Unasked:
    """Stands for a gradient that is not there, while nothing has asked for it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__module__":  # which tells nothing
            return object.__getattribute__(self, name)
        raise Asked


#: In place of all gradients that are not there.
UNASKED: Any = Unasked()


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
        node, outside = tensor._node, held.outside
        if node is not None and node is not outside and not isinstance(node, AccumulateGrad):
            raise TraceError(
                f"{call.name(i)} was changed in place and has kept the graph of what it was "
                "computed from, into which a later call would run; detach what it is assigned, or "
                "change it in wg.no_grad()"
            )
        if outside is not None and not outside.untouched:
            raise TraceError(
                f"{call.name(i)} has been computed outside the compiled function, and gets a hook "
                "or retains its gradient inside; do it outside"
            )
        if (node is None) != (held.node is None):
            raise TraceError(
                f"requires_grad of {call.name(i)} changes inside the compiled function; change it "
                "outside"
            )
        grad = tensor._grad
        if held.grad is not None:  # even if it was replaced, since others may hold it
            now, ref = held.grad._array, Ref("grad", i)
            if not call.is_input(ref, now):
                yield Effect(ref, call.output(now), inside=True)
        if grad is held.grad or grad is UNASKED:
            continue
        if grad is None:
            yield Effect(Ref("grad", i), None)
            continue
        if grad._node is not None:
            raise TraceError(
                f"the gradient of {call.name(i)} requires grad (create_graph=True); a compiled "
                "function returns such gradients, by wg.autograd.grad"
            )
        yield Effect(Ref("grad", i), call.made(grad), new=True)


def _of_places(call: "Call") -> Iterator[Effect]:
    """The changes of optimisers' state and of numbers."""
    state = call.state
    arrays = [(place, place) for place in state.arrays]
    numbers = [
        (place, state.numbers[k]) for place, k in zip(state.numbers, state.shares, strict=True)
    ]
    late = {id(value): before for value, _, _, before in call.trace.kept}
    for value, held, key, _ in call.trace.kept:
        place = Place(held, key, f"{key} of an optimizer")
        call.inputs[place.spot], call.before[place.spot] = value, late[id(value)]
        (arrays if value.shape is not None else numbers).append((place, place))
    for place, first in (*arrays, *numbers):
        now = place.get()
        now = now.plain_number() if isinstance(now, SymbolicNumber) else now
        if isinstance(now, Traced):
            if not call.is_input(first.spot, now):
                alike = kind_of(now.inner) == kind_of(inner_array(call.before[first.spot]))
                yield Effect(place, call.made(now), alike=alike)  # type: ignore[arg-type]
        elif isinstance(now, TracedNumber):
            if not call.is_input(first.spot, now):
                yield Effect(place, call.output(now))  # type: ignore[arg-type]
        elif type(now) in NUMBERS and call.inputs[first.spot].shape is None:
            # A change even if it equals the old number: comparisons of numbers chose it.
            yield Effect(place, call.output(now))  # type: ignore[arg-type]
        else:
            raise changed(place.name, call.before[first.spot], now)


def _moved(call: "Call", ref: Ref, name: str, now: Tensor) -> Effect:
    """The effect that there is another Tensor at a place."""
    if id(now) in call.known:
        return Effect(ref, call.output(now._array), tensor=call.known[id(now)])
    if type(now) is not Tensor or isinstance(now._node, AccumulateGrad):
        what = "a leaf that requires grad" if type(now) is Tensor else f"a {type(now).__name__}"
        raise TraceError(f"{name} gets {what}, where a replay would put a Tensor; make it outside")
    if now._node is not None:
        raise TraceError(
            f"{name} keeps a Tensor with the graph of what it was computed from, into which a "
            "later call would run; detach it"
        )
    return Effect(ref, call.made(now))


def _of_spots(call: "Call") -> Iterator[Effect]:
    """The Tensors, and the tuples of Tensors and numbers, that others have replaced."""
    for k, ((place, held), inside) in enumerate(zip(call.state.spots, call.inside, strict=True)):
        now = place.get()
        if now is inside or now is held:
            continue
        parts: list[Effect] = []
        for name, old, new in _leaves(place.name, held, inside, now):
            if isinstance(new, Tensor) and isinstance(old, Tensor):
                parts.append(_moved(call, Ref("part", k), name, new))
            elif _is_number(old, new) or (is_plain(old) and is_plain(new) and same(old, new)):
                parts.append(Effect(Ref("part", k), call.output(new)))
            elif old is new:
                parts.append(Effect(Ref("part", k), None))
            else:
                raise changed(name, old, new)
        yield Effect(Ref("spot", k), None, parts=tuple(parts))


def _is_number(old: Any, new: Any) -> bool:
    """Whether a number takes the place of another."""
    return type(old) in NUMBERS and (is_plain(new) or isinstance(new, TracedNumber))


def _leaves(name: str, old: Any, inside: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves of what is at a spot, and of what replaces it."""
    if not isinstance(old, tuple):
        yield name, old, new
        return
    if type(old) is not type(new) or len(old) != len(new):
        raise changed(name, old, new)
    for i, (a, b, c) in enumerate(zip(old, inside, new, strict=True)):
        yield from _leaves(f"{name}[{i}]", a, b, c)
