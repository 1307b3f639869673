"""Snapshots of a function's state, to restore it or to find changes.

A snapshot refers to each object's parts: the items of a list, the attributes of an object, a
Tensor's array, gradient and node. Elements of arrays are copied on demand. Restoring puts the parts
back into the same objects.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from wengert.backends import backend_of, generators, registry
from wengert.compiler import messages
from wengert.compiler.capture.errors import several
from wengert.compiler.capture.places import PROGRAMS, Missing, Place, State, is_array, slots_of
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.interpreters.lifted import Lifted
from wengert.nn.hooks import changes
from wengert.ops.data_type import get_default_dtype, set_default_dtype
from wengert.tape.grad_mode import modes, set_modes
from wengert.tape.hooks import Hooked
from wengert.tape.tensor import Tensor

__all__ = ["Change", "Snapshot", "alike", "kinds_of", "same_states", "shown"]

#: Elements of the largest array that is copied. Correct programs do not write into arrays that
#: others refer to, as a snapshot does. The copies detect wrong programs, and functions that write
#: into raw arrays.
LARGEST = 1 << 16
#: Elements of Tensors' arrays that are copied in total.
COPIED = 1 << 18


class _Hooks(tuple[tuple[int, Any], ...]):
    """The hooks on a node, each with its kind and number."""

    __slots__ = ()

    def __repr__(self) -> str:
        return several(len(self), "hook")


#: Types that are compared by value.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), _Hooks)
#: Attributes of functions that may be replaced.
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")
#: Stands for the owner of modes, such as the recording mode.
_MODES: Final = type("Modes", (), {})()

Parts = Mapping[Any, Any]


class Change(NamedTuple):
    """A part of an object that differs from what it was.

    Attributes
    ----------
    owner, key : object
        The object, and its part: an item's key or index, an attribute's name, a set's element.
    before, now : object
        The values.
    """

    owner: Any
    key: Any
    before: Any
    now: Any

    def __str__(self) -> str:
        what = type(self.owner).__name__
        if self.owner is _MODES:
            return f"the mode {self.key} from {shown(self.before)} to {shown(self.now)}"
        if self.key is ...:
            return f"elements of a {what}"
        called = f".{self.key}" if isinstance(self.key, str) else f"[{self.key!r}]"
        return f"{what}{called} from {shown(self.before)} to {shown(self.now)}"


class Kind(NamedTuple):
    """How one kind of parts of an object is read and written."""

    read: Callable[[Any], Parts]
    write: Callable[[Any, Parts, Parts], None]  # the object, the old parts, the present parts


class Snapshot:
    """The parts of some objects as they are now, and the states of random generators.

    Of collectives, which can't be undone, it has the place among those that are noted.

    Parameters
    ----------
    objects : iterable
        Tensors, raw arrays, containers, other objects, functions. Immutable objects are ignored.
    places : iterable of Place
        Single places, such as globals.
    contents : bool
        Whether the elements of writable arrays are copied.
    """

    def __init__(
        self, objects: Iterable[Any], places: Iterable[Place] = (), *, contents: bool = False
    ) -> None:
        self._parts: list[tuple[Any, Kind, Parts]] = []
        self._elements: list[tuple[Any, Any]] = []
        arrays: list[Any] = []  # the Tensors'
        seen: set[int] = set()
        kept: set[int] = set()
        known = list(objects)
        for x in known:
            if id(x) in seen:
                continue
            seen.add(id(x))
            if is_array(x):
                if contents:
                    self._copy(x)
                continue
            for kind in kinds_of(x):
                self._keep(x, kind)
                kept.add(id(x))
                if kind is _ATTRIBUTES:
                    kept.add(id(x.__dict__))
            if isinstance(x, Tensor):
                if x._node is not None:
                    self._keep(x, Kind(partial(_hooks, x._node), partial(_set_hooks, x._node)))
                if x._grad is not None:
                    known.append(x._grad)
                if contents and id(x._array) not in seen:
                    seen.add(id(x._array))
                    arrays.append(x._array)
        left = COPIED
        for array in arrays:
            if math.prod(array.shape) <= min(left, LARGEST):
                self._copy(array)
                left -= math.prod(array.shape)
        for place in places:
            if id(place.owner) not in kept:  # otherwise the owner's parts have it
                self._keep(place.owner, Kind(partial(_at, place), partial(_set_at, place)))
        self._keep(_MODES, Kind(_modes, partial(_set_modes, registry.default)))
        self._random = generators.get_rng_state()
        self._exchanged = messages.position()
        self._version = changes[0]

    def _keep(self, x: Any, kind: Kind) -> None:
        self._parts.append((x, kind, kind.read(x)))

    @classmethod
    def of(cls, state: State, leaves: Sequence[Any], *, contents: bool = False) -> "Snapshot":
        """A snapshot of all that a call with these leaves can change."""
        at = [*state.arrays, *state.numbers, *[place for place, _ in state.held]]
        at += [each.place for each in (*state.tensors, *state.also) if each.place is not None]
        at += [each.place for each in state.tuples]
        at = [place.whole for place in at]
        tensors = [each.tensor for each in state.tensors]
        held = [x for place in state.arrays if is_array(x := place.get())]
        made = cls((*tensors, *leaves, *held, *state.objects), at, contents=contents)
        known = {id(array) for array, _ in made._elements}
        for x in state.raws:  # the user's code may write into them
            if id(x) not in known:
                made._copy(x, math.inf)  # the walk has limited its size
        return made

    def restore(self) -> None:
        """Restore all parts."""
        for owner, kind, before in self._parts:
            now = kind.read(owner)
            if any(_changed(before, now)) or [*map(hash, now)] != [*map(hash, before)]:
                kind.write(owner, before, now)
        for array, copy in self._elements:
            if not _same_elements(array, copy):
                backend = backend_of(array)
                with backend.on(backend.device(array)):
                    _untaped(array)[...] = copy
        self.rewind()
        if changes[0] != self._version:
            changes[0] += 1  # invalidates caches of the modules' changed attributes

    def rewind(self) -> None:
        """Restore the random generators, and the place among the noted collectives, alone."""
        generators.set_rng_state(self._random)
        messages.rewind(self._exchanged)

    def changes(self) -> Iterator[Change]:
        """The changes since, except of random generators."""
        for owner, kind, before in self._parts:
            for part in _changed(before, kind.read(owner)):
                yield Change(owner, *part)
        for array, copy in self._elements:
            if not _same_elements(array, copy):
                yield Change(array, ..., copy, array)

    def _copy(self, array: Any, largest: float = LARGEST) -> None:
        if isinstance(array, Lifted):
            return
        backend = backend_of(array)
        if not backend.immutable and math.prod(array.shape) <= largest:
            self._elements.append((array, backend.namespace.asarray(_untaped(array), copy=True)))


def _untaped(array: Any) -> Any:
    """The same memory, detached from the array library's own tape."""
    return array if isinstance(array, np.ndarray) else backend_of(array).adopt(array)


def same_states(one: Any, other: Any) -> bool:
    """Whether two states of random generators, nested numbers and arrays, are equal."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_states(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_states, one, other))
    if is_array(one):
        return _same_elements(one, other)
    return bool(one == other)


def _same_elements(array: Any, copy: Any) -> bool:
    """Whether elements are equal bitwise."""
    to_numpy = backend_of(array).to_numpy
    one, other = to_numpy(array), to_numpy(copy)
    return bool(one.shape == other.shape and one.tobytes() == other.tobytes())


def _changed(before: Parts, now: Parts) -> Iterator[tuple[Any, Any, Any]]:
    """The keys of parts that differ, each with the old and the present value."""
    for key, x in before.items():
        there = now.get(key, Missing)
        if there is not x and not alike(x, there):
            yield key, x, there
    if now.keys() != before.keys():
        yield from [(key, Missing, x) for key, x in now.items() if key not in before]


def alike(x: Any, y: Any) -> bool:
    """Whether two plain values are equal and print alike. NaN equals none."""
    if not isinstance(x, _PLAIN) or type(x) is not type(y):
        return False
    return bool(x == y) and repr(x) == repr(y)


def shown(x: Any) -> str:
    """A part as text for an error."""
    if type(x) is TracedNumber:  # `repr` would pin it
        return repr(x.number)
    return repr(x) if isinstance(x, _PLAIN) or x is Missing else f"a {type(x).__name__}"


# -- the parts of objects --------------------------------------------------------------------------


def kinds_of(x: Any) -> Sequence[Kind]:
    """The kinds of an object's parts."""
    if isinstance(x, type):
        return (_OF_CLASSES,) if x.__flags__ & (1 << 9) else ()  # if a class statement made it
    found = _by_class.get(type(x))
    if found is None:
        found = _by_class[type(x)] = _kinds_by_class(type(x))
    return found


_by_class: "WeakKeyDictionary[type, Sequence[Kind]]" = WeakKeyDictionary()


def _kinds_by_class(cls: type) -> Sequence[Kind]:
    found = [kind for base, kind in _CONTAINERS if issubclass(cls, base)]
    if any("__dict__" in vars(base) for base in cls.__mro__):
        found.append(_ATTRIBUTES)
    slots = [key for base in cls.__mro__ if base is not Tensor for key in slots_of(base)]
    names = _OF_FUNCTIONS if cls is FunctionType else slots
    if names:
        found.append(Kind(partial(_slots, names), _set_slots))
    return found


def _slots(names: Sequence[str], x: Any) -> Parts:
    found = {}
    for name in names:
        with suppress(AttributeError):
            found[name] = object.__getattribute__(x, name)
    return found


def _set_slots(x: Any, before: Parts, now: Parts, kind: str = "attribute") -> None:
    for name in {**now, **before}:
        held = before.get(name, Missing)
        if now.get(name, Missing) is not held:
            Place(x, name, "", kind).set(held)


def _items(x: Any) -> Parts:
    return dict(_mapping(x).items(x))


def _set_items(x: Any, before: Parts, now: Parts) -> None:
    _mapping(x).clear(x)
    _mapping(x).update(x, before)


def _mapping(x: Any) -> Any:
    """The base class whose methods bypass those of a subclass of dict."""
    return OrderedDict if isinstance(x, OrderedDict) else dict


def _elements(x: Any) -> Parts:
    return dict(enumerate(x))


def _set_elements(x: Any, before: Parts, now: Parts) -> None:
    x.clear()
    x.extend(before.values())


def _members(x: Any) -> Parts:
    return dict.fromkeys(x, "an element")


def _set_members(x: Any, before: Parts, now: Parts) -> None:
    x.clear()
    x.update(before)


#: Attributes that hold what is known anyway: the second is what `copy` keeps in classes.
_CACHES = frozenset({PROGRAMS, "__slotnames__"})


def _attributes(x: Any) -> Parts:
    return {key: held for key, held in vars(x).items() if key not in _CACHES}


def _set_attributes(x: Any, before: Parts, now: Parts) -> None:
    held = vars(x)
    caches = {key: held[key] for key in held.keys() & _CACHES}
    held.clear()
    held.update({**before, **caches})


def _of_tensor(x: Tensor) -> Parts:
    return {"_array": x._array, "grad": x._grad, "_node": x._node}


def _set_tensor(x: Tensor, before: Parts, now: Parts) -> None:
    x._array, x._grad, x._node = before.values()


def _hooks(node: Any, x: Tensor) -> Parts:
    """The hooks on a Tensor's node, and who retains its gradient."""
    extra = node.extra if isinstance(node, Hooked) else None
    kinds = () if extra is None else _kinds(extra)
    hooks = _Hooks([(i, *pair) for i, held in enumerate(kinds) for pair in held.items()])
    return {"hooks": hooks or None, "watch": node.watch}


def _set_hooks(node: Any, x: Tensor, before: Parts, now: Parts) -> None:
    node.watch = before["watch"]
    for i, hooks in enumerate(_kinds(node.extra) if isinstance(node, Hooked) else ()):
        hooks.clear()
        hooks.update({number: hook for kind, number, hook in before["hooks"] or () if kind == i})


def _kinds(extra: Any) -> tuple[Any, ...]:
    return extra.gradient, extra.accumulated


def _at(place: Place, x: Any) -> Parts:
    return {place.key: place.get()}


def _set_at(place: Place, x: Any, before: Parts, now: Parts) -> None:
    place.set(before[place.key])


def _modes(x: Any) -> Parts:
    recorded, inference = modes()
    return {
        "grad_enabled": recorded,
        "inference": inference,
        "default_dtype": get_default_dtype().name,
        "backend": getattr(registry.default, "reason", None),  # it names the backend
    }


def _set_modes(chosen: Any, x: Any, before: Parts, now: Parts) -> None:
    set_modes(before["grad_enabled"], before["inference"])
    if now["default_dtype"] != before["default_dtype"]:
        set_default_dtype(before["default_dtype"])
    registry.default = chosen


_ATTRIBUTES: Final = Kind(_attributes, _set_attributes)
_OF_CLASSES: Final = Kind(_attributes, partial(_set_slots, kind="class"))
_CONTAINERS: Final = (
    (Tensor, Kind(_of_tensor, _set_tensor)),
    (dict, Kind(_items, _set_items)),
    ((list, deque, bytearray), Kind(_elements, _set_elements)),
    (set, Kind(_members, _set_members)),
)
