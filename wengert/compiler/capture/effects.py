"""The changes that a traced call makes: effects of the program, or reasons to refuse it."""

import gc
import linecache
import sys
import time
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from wengert.compiler.capture.calls import kind_of
from wengert.compiler.capture.containers import item_name, of_one_structure, tuple_parts, whole
from wengert.compiler.capture.errors import ChangeError, DecisionError, TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.capture.places import NUMBERS, Missing, Place, State, same
from wengert.compiler.capture.reads import reads
from wengert.compiler.capture.recorded import Effect, Ref
from wengert.compiler.capture.snapshot import Change, kinds_of, shown
from wengert.compiler.capture.traced import Traced, inner_array
from wengert.compiler.capture.traced_number import SymbolicNumber, TracedNumber
from wengert.func.trees import tree_flatten
from wengert.tape.node import AccumulateGrad
from wengert.tape.tensor import Tensor

__all__ = [
    "check_arguments",
    "check_asked",
    "check_kept",
    "check_side_effects",
    "looks_at_gradients",
    "place_effects",
    "tensor_effects",
    "untraced",
]


#: Parts of a Tensor that `tensor_effects` handles.
_OF_TENSORS = frozenset({"_array", "grad", "_node", "watch"})
#: Attributes of Tensors that show their graph.
_ABOUT_GRAPHS = frozenset({"grad_fn", "retains_grad"})
#: Attributes of Tensors that show their gradient.
_GRADIENTS = frozenset({"grad", "_grad"})
#: Seconds to wait for other threads to release frames that they have sampled.
_PAUSES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)


def _is_input(call: Any, ref: Ref, now: Any) -> bool:
    """Whether this is still the input of the call."""
    return isinstance(now, Traced | TracedNumber) and now.value is call.inputs[ref]


def check_asked(call: Any, functions: Iterable[Any]) -> None:
    """Raise if code may read the caller's graph of a Tensor."""
    for i in [i for i, held in enumerate(call.held) if held.outside]:
        for function in functions:
            if not reads(function.__code__).every.isdisjoint(_ABOUT_GRAPHS):
                raise TraceError(
                    f"{_name(call, i)} has been computed outside the compiled function, whose code "
                    "asks for grad_fn or retains_grad; detach it, or ask outside"
                )


def looks_at_gradients(functions: Iterable[Any]) -> bool:
    """Whether code may read a Tensor's gradient, to keep it or to restore it."""
    found = [reads(function.__code__) for function in functions]
    return any(each.computed or not each.every.isdisjoint(_GRADIENTS) for each in found)


def tensor_effects(call: Any) -> list[Effect]:
    """The changes of the Tensors among arguments and state."""
    effects = []
    for i, held in enumerate(call.held):
        tensor = held.tensor
        ref, now = Ref("tensor", i), tensor._array
        if not _is_input(call, ref, now):
            alike = kind_of(inner_array(now)) == kind_of(call.before_of[ref])
            effects.append(Effect(ref, call.output(now), alike=alike))
        node, outside = tensor._node, held.outside
        if node is not None and node is not outside and not isinstance(node, AccumulateGrad):
            raise TraceError(
                f"{_name(call, i)} was changed in place and has kept the graph of what it was "
                "computed from, into which a later call would run; detach what it is assigned, or "
                "change it in wg.no_grad()"
            )
        if outside is not None and not outside.untouched:
            raise TraceError(
                f"{_name(call, i)} has been computed outside the compiled function, and gets a "
                "hook or retains its gradient inside; do it outside"
            )
        if (node is None) != (held.node is None):
            raise TraceError(
                f"requires_grad of {_name(call, i)} changes inside the compiled function; change "
                "it outside"
            )
        grad = tensor._grad
        if held.grad is not None:  # even if it was replaced, since others may hold it
            now, ref = held.grad._array, Ref("grad", i)
            if not _is_input(call, ref, now):
                effects.append(Effect(ref, call.output(now)))
        if grad is held.grad:
            continue
        if grad is None:
            effects.append(Effect(Ref("grad", i), None))
        else:
            if grad._node is not None:
                raise TraceError(
                    f"the gradient of {_name(call, i)} requires grad (create_graph=True); a "
                    "compiled function returns such gradients, by wg.autograd.grad"
                )
            effects.append(Effect(Ref("grad", i), call.made(grad), new=True))
    return effects


def _name(call: Any, i: int) -> str:
    return call.inputs[Ref("tensor", i)].name or "a Tensor"


def place_effects(call: Any) -> tuple[list[Effect], list[Any]]:
    """The changes of optimisers' state, numbers and tuples, and the places with another Tensor."""
    effects: list[Effect] = []
    values: list[Any] = []
    arrays = [(Ref("array", i),) * 2 for i in range(len(call.state.arrays))]
    numbers = [(Ref("number", i), Ref("number", k)) for i, k in enumerate(call.state.shares)]
    for ref, first in (*arrays, *numbers):
        place, number = call.state.place(*ref), ref.kind == "number"
        now = place.get()
        now = now.plain_number() if isinstance(now, SymbolicNumber) else now
        if isinstance(now, Traced | TracedNumber):
            if not _is_input(call, first, now):
                effects.append(Effect(ref, call.output(now) if number else call.made(now)))
            values.append((place, now))
        elif number and type(now) in NUMBERS:
            # An effect even if it equals the old number: comparisons of numbers chose it.
            effects.append(Effect(ref, call.output(now)))
        elif now is call.before_of[first]:
            continue
        else:
            raise _changed(call, f"{place.name} to {shown(now)}", place.name)
        if number and place.of_user:
            _check_decision(call, ref, place.name, now)
    for kind, held in (("place", call.state.tensors), ("also", call.state.also)):
        for i, (tensor, _, place) in enumerate(held):
            if place is None or place.kind == "part":
                continue
            now = place.get()
            if isinstance(now, Tensor) and now is not tensor:
                effects.append(_moved(call, Ref(kind, i), place, now, values))
    effects += _of_tuples(call, values)
    return effects, values


def _of_tuples(call: Any, values: list[Any]) -> Iterator[Effect]:
    """The changes of tuples: which are new, and which are others that there are."""
    tuples = call.state.tuples
    before = {id(held): k for k, (_, held, _) in enumerate(tuples)}
    made: dict[int, int] = {}
    known = {id(x) for x in call.state.objects}
    known |= {id(x) for _, held, _ in tuples for _, x in tuple_parts(held)}
    for k, (place, held, parts) in enumerate(tuples):
        now = place.get()
        if now is held:
            continue
        if not of_one_structure(held, now):
            raise _changed(call, f"the structure of {place.name}", place.name)
        found = dict(tuple_parts(now))
        if id(now) in before:
            yield Effect(Ref("tuple", k), None, tensor=before[id(now)])
        elif id(now) in made:
            yield Effect(Ref("twin", k), None, tensor=made[id(now)])
        else:
            made[id(now)] = k
            own = [id(x) for x in found.values() if isinstance(x, tuple) and x]
            if not call.apart.keys().isdisjoint(own):
                raise TraceError(
                    f"{place.name} gets a tuple that is an argument, or a part of one, in whose "
                    "place a replay would put another one; store a new tuple of its parts"
                )
            if not known.isdisjoint(own) or len({*own}) < len(own):
                raise TraceError(
                    f"{place.name} gets a tuple, or a part, that is at another place, too, where a "
                    "replay would make two; make one for each"
                )
            known.update(own)
        for path, i in parts.items():
            yield _moved(call, Ref("part", i), call.state.parts[i], found[path], values)


def _moved(call: Any, ref: Ref, place: Place, now: Tensor, values: list[Any]) -> Effect:
    """The effect that there is another Tensor at a place; a new one is added to ``values``."""
    if id(now) in call.known:
        return Effect(ref, call.output(now._array), tensor=call.known[id(now)])
    if type(now) is not Tensor or isinstance(now._node, AccumulateGrad):
        what = "a leaf that requires grad" if type(now) is Tensor else f"a {type(now).__name__}"
        raise TraceError(
            f"{place.name} gets {what}, where a replay would put a Tensor; make it outside"
        )
    if now._node is not None:
        raise TraceError(
            f"{place.name} keeps a Tensor with the graph of what it was computed from, into which "
            "a later call would run; detach it"
        )
    values.append((place, now))
    return Effect(ref, call.made(now))


def _check_decision(call: Any, ref: Ref, name: str, now: Any) -> None:
    """Raise if the call changes a number that its control flow depends on."""
    line = call.trace.pinned.get(call.inputs[ref])
    if line is not None and (isinstance(now, TracedNumber) or not same(now, call.before_of[ref])):
        where = "the code asks by type(x) or `is` what numbers are" if call.state.types else line
        raise DecisionError(
            f"{where}: the control flow of the compiled function depends on {name}, which each "
            "call changes, so that each call would need its own program. Decide outside"
        )


def untraced(x: Any, kept: dict[int, Any]) -> Any:
    """Replace traced values in an object and its parts; ``kept`` collects what was visited."""
    if isinstance(x, Traced | TracedNumber):
        return x.inner if isinstance(x, Traced) else x.number
    if isinstance(x, Tensor):
        x._array = inner_array(x._array)
        kept[id(x)] = x
    elif not isinstance(x, type | FunctionType | ModuleType) and id(x) not in kept:
        kept[id(x)] = x
        for kind in kinds_of(x):
            now = kind.read(x)
            then = {key: untraced(part, kept) for key, part in now.items()}
            if any(then[key] is not part for key, part in now.items()):
                kind.write(x, then, now)
    return x


def check_side_effects(call: Any) -> list[Any]:
    """Raise for changes that a replay would not make.

    Returns objects that may hold traced values: new state of optimisers, and what has replaced
    Tensors.
    """
    trace, state = call.trace, call.state
    if trace.refused:
        raise trace.refused[0]
    if trace.failed:
        raise TraceError(trace.failed)
    values = {place.at for place in (*state.arrays, *state.numbers)}
    tensors = {at.place.at for at in (*state.tensors, *state.also) if at.place}
    values |= {each.place.at for each in state.tuples}
    more: list[Any] = []
    counted: dict[str, str] = {}
    changes = [*call.before.changes()]
    for change in changes:
        owner, key = change.owner, change.key
        if isinstance(owner, Tensor) and key in _OF_TENSORS:
            continue  # `tensor_effects` handles it
        if change.before is Missing and (
            (change.key == "__annotations__" and change.now == {})
            or change.key == "__annotations_cache__"
        ):
            continue  # Python puts it on a class that is asked for it, as protocols do
        owners = {id(owner), id(getattr(owner, "__dict__", None))}
        where = {(one, key) for one in owners}
        if not where.isdisjoint(values):
            continue  # `place_effects` handles it
        if not (where.isdisjoint(tensors) and owners.isdisjoint(state.growing)):
            if where.isdisjoint(tensors):
                more.append(owner)
            elif not isinstance(change.now, Tensor):
                more.append(change.now)
            continue
        what, name = _described(change, changes, state)
        before, now = change.before, change.now
        alike = isinstance(before, tuple) and of_one_structure(before, now)
        if not alike and not (_is_number(before) and _is_number(now)):
            raise _changed(call, what, name)
        counted[name] = what
    for name, what in counted.items():
        raise ChangeError(str(_changed(call, what, name)), counted)
    return more


def _described(change: Change, changes: list[Change], state: State) -> tuple[str, str]:
    """A description of a change, and the name of its place, or of its key."""
    called = state.called.get(id(change.owner))
    resized = change.before is Missing or change.now is Missing
    if called and resized and isinstance(change.owner, dict | list):
        length = len(change.owner)
        of = [x for x in changes if x.owner is change.owner]
        before = length + sum((x.now is Missing) - (x.before is Missing) for x in of)
        if length != before:
            return f"the length of {called} from {before} to {length}", ""
    owners = change.owner, getattr(change.owner, "__dict__", None)
    where = [(id(owner), change.key) for owner in owners]
    name = next((place.name for place, _ in state.held if place.at in where), "")
    if not name and called and isinstance(change.owner, dict | list):
        name = item_name(called, change.key)
    if not name:
        return str(change), str(change.key)
    return f"{name} from {shown(change.before)} to {shown(change.now)}", name


def _is_number(x: Any) -> bool:
    return type(x) in NUMBERS or isinstance(x, TracedNumber | SymbolicNumber)


def check_arguments(call: Any, arguments: Any) -> None:
    """Raise if the call has changed containers among the arguments."""
    if call.layout.plain:  # there are none
        return
    given = {id(leaf) for leaf in call.leaves}
    leaves, now = tree_flatten(arguments, lambda x: id(x) in given or whole(x))
    if now != call.layout.structure:
        raise _changed(call, "the structure of its arguments", "")
    for name, leaf, given in zip(call.names, leaves, call.leaves, strict=True):
        if leaf is not given:
            raise _changed(call, f"{name} among its arguments", name)


def _changed(call: Any, what: str, name: str) -> TraceError:
    return TraceError(
        f"{_line_that_sets(call.function, name)}: the compiled function changes {what}, which a "
        "replay would not do. Return the value, or hold it in a Tensor or a tuple of Tensors"
    )


def _line_that_sets(function: Any, name: str) -> str:
    """The line of a function that sets a name; its first line if none does."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return user_line()
    number = reads(code).setting.get(name.rpartition(".")[2], code.co_firstlineno)
    text = linecache.getline(code.co_filename, number).strip()
    return f"{code.co_filename.rpartition('/')[2]}, line {number} ({text})"


def check_kept(call: Any) -> None:
    """Raise if a traced array is still alive: replays would not store theirs there."""
    trace = call.trace
    alive = [ref for ref in trace.arrays if ref() is not None]
    if not alive:
        return
    gc.collect()
    # Another thread that samples frames, as profilers do, keeps locals alive for a moment.
    for pause in _PAUSES if len(sys._current_frames()) > 1 else ():
        if not any(ref() is not None for ref in alive):
            return
        time.sleep(pause)
    alive = [ref for ref in alive if ref() is not None]
    if alive:
        x: Any = alive[-1]()
        where = trace.made_at(x.value)
        raise TraceError(
            f"a Tensor that was made at {where} is kept outside the compiled function, which a "
            "replay would not do; return it instead"
        )
