"""Snapshots: what a function can reach, as it was, to be put back or compared.

A snapshot holds each object's parts, not copies of them: the items of a list, the attributes of an
object, a Tensor's array, gradient and place on the tape. An array's elements are copied where that
is asked for. Objects stay who they are when their parts are put back.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, FunctionType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from wengert.backends import backend_of, generators, registry
from wengert.compiler.capture.places import PROGRAMS, Place, State
from wengert.interpreters.lifted import Lifted
from wengert.nn.module import changes
from wengert.ops.data_type import get_default_dtype, set_default_dtype
from wengert.tape import recording
from wengert.tape.hooks import Hooked
from wengert.tape.tensor import Tensor

__all__ = ["Change", "Snapshot", "same_states"]

#: Elements of the largest array that is copied. Programs write into no array that they are given,
#: so the copies are for finding those that do, and for functions that write into raw arrays.
LARGEST = 1 << 16
#: What is compared by value: an equal number is no change.
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: Stands for what is not there.
_NOTHING: Any = type("Nothing", (), {"__repr__": lambda self: "nothing"})()
#: Attributes of functions that may be replaced.
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")


class Change(NamedTuple):
    """A part of an object that differs from what it was.

    Attributes
    ----------
    owner, key : object
        Whose part: an item's key or index, an attribute's name, an element of a set.
    before, now : object
        What was there, and what is.
    """

    owner: Any
    key: Any
    before: Any
    now: Any

    def __str__(self) -> str:
        what = type(self.owner).__name__
        if self.owner is MODES:
            return f"the mode {self.key} from {_shown(self.before)} to {_shown(self.now)}"
        if self.key is ...:
            return f"elements of a {what}"
        called = f".{self.key}" if isinstance(self.key, str) else f"[{self.key!r}]"
        return f"{what}{called} from {_shown(self.before)} to {_shown(self.now)}"


class Snapshot:
    """What there is now of some objects, and where random generators are.

    Parameters
    ----------
    objects : iterable
        Tensors, raw arrays, containers, other objects, functions; those of other kinds, which
        have no parts that may change, are left out.
    places : iterable of Place
        Names of which only what they stand for is kept, such as globals.
    contents : bool
        Whether elements of arrays in memory that can be written into are copied.
    """

    def __init__(
        self, objects: Iterable[Any], places: Iterable[Place] = (), *, contents: bool = False
    ) -> None:
        self._parts: list[_Parts] = []
        self._elements: list[tuple[Any, Any]] = []
        seen: set[int] = set()
        known = list(objects)
        for x in known:
            if id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, Tensor):
                self._parts.append(_OfTensor(x))
                if x._grad is not None:
                    known.append(x._grad)
                if contents and id(x._array) not in seen:
                    seen.add(id(x._array))
                    self._copy(x._array)
            elif _is_array(x):
                if contents:
                    self._copy(x)
            else:
                self._parts += [kind(x) for kind in _kinds_of(x)]
        # What is in the dict of an object above is kept with that.
        kept = {id(x.owner) for x in self._parts}
        kept |= {id(x.owner.__dict__) for x in self._parts if type(x) is _Attributes}
        self._parts += [_OfPlace(place) for place in places if id(place.owner) not in kept]
        self._parts.append(_OfModes(MODES))
        self._random = generators.get_rng_state()
        self._version = changes[0]

    @classmethod
    def of(cls, state: State, leaves: Sequence[Any], *, contents: bool = False) -> "Snapshot":
        """What a call with these leaves among its arguments can change."""
        at = [*state.arrays, *state.numbers, *state.absents]
        at += [place for place, _ in state.statics]
        at += [place for place, _ in state.links]
        at += [each.place for each in state.tensors if each.place is not None]
        tensors = [each.tensor for each in state.tensors]
        held = [x for place in state.arrays if _is_array(x := place.get())]
        lists = [x for x, _, _ in state.lengths]
        objects = (*tensors, *leaves, *held, *lists, *state.objects)
        made = cls(objects, at, contents=contents)
        known = {id(array) for array, _ in made._elements}
        for x in state.objects:  # what user's code gets as it is may be written into
            if _is_array(x) and id(x) not in known:
                made._copy(x, math.inf)  # the walk has let it pass
        return made

    def restore(self) -> None:
        """Put everything back."""
        for parts in self._parts:
            parts.restore()
        for array, copy in self._elements:
            if not _same_elements(array, copy):
                array[...] = copy
        self.rewind()
        if changes[0] != self._version:
            changes[0] += 1  # what modules were in between may have been remembered

    def rewind(self) -> None:
        """Put the random generators back alone."""
        generators.set_rng_state(self._random)

    def changes(self) -> Iterator[Change]:
        """What differs now, but for the generators."""
        for parts in self._parts:
            for key, before, now in parts.differences():
                yield Change(parts.owner, key, before, now)
        for array, copy in self._elements:
            if not _same_elements(array, copy):
                yield Change(array, ..., copy, array)

    def _copy(self, array: Any, largest: float = LARGEST) -> None:
        if isinstance(array, Lifted):
            return
        backend = backend_of(array)
        if not backend.immutable and math.prod(array.shape) <= largest:
            self._elements.append((array, backend.xp.asarray(array, copy=True)))


def same_states(one: Any, other: Any) -> bool:
    """Whether two states of random generators, nests of numbers and arrays, are the same."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_states(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_states, one, other))
    if _is_array(one):
        return _same_elements(one, other)
    return bool(one == other)


def _is_array(x: Any) -> bool:
    kind = type(x)  # an object of the user's may answer any name
    return hasattr(kind, "dtype") and hasattr(kind, "shape") and not issubclass(kind, Tensor)


def _same_elements(array: Any, copy: Any) -> bool:
    """Whether elements are the same, to the bit."""
    to_numpy = backend_of(array).to_numpy
    one, other = to_numpy(array), to_numpy(copy)
    return bool(one.shape == other.shape and one.tobytes() == other.tobytes())


def _differs(before: Any, now: Any) -> bool:
    if now is before:
        return False
    if isinstance(before, _PLAIN) and type(now) is type(before):
        return bool(now != before and (now == now or before == before)) or repr(now) != repr(before)
    return True


def _shown(x: Any) -> str:
    return repr(x) if isinstance(x, _PLAIN) or x is _NOTHING else f"a {type(x).__name__}"


# -- the parts of one object ---------------------------------------------------------------------


class _Parts:
    """What one object is made of."""

    owner: Any

    def restore(self) -> None:
        raise NotImplementedError

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        raise NotImplementedError


class _OfTensor(_Parts):
    """A Tensor's array and gradient, and its place on the tape with the hooks on that."""

    def __init__(self, x: Tensor) -> None:
        self.owner = x
        self.array, self.grad, self.node = x._array, x._grad, x._node
        self.watch = None if x._node is None else x._node.watch
        self.hooks = _hooks(x._node)

    def restore(self) -> None:
        x = self.owner
        x._array, x._grad, x._node = self.array, self.grad, self.node
        if self.node is not None:
            self.node.watch = self.watch
            if _hooks(self.node) != self.hooks:
                for hooks, before in zip(_kinds(self.node), self.hooks or [()] * 4, strict=True):
                    hooks.clear()
                    hooks.update(before)

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        x = self.owner
        for key, before in (("_array", self.array), ("grad", self.grad), ("_node", self.node)):
            if getattr(x, "_grad" if key == "grad" else key) is not before:
                yield key, before, getattr(x, "_grad" if key == "grad" else key)
        if x._node is self.node and _hooks(x._node) != self.hooks:
            yield "hooks", self.hooks, _hooks(x._node)


def _hooks(node: Any) -> list[tuple[tuple[int, Any], ...]] | None:
    """The hooks on a node, by kind; None where there has never been one."""
    if not isinstance(node, Hooked) or node.extra is None:
        return None
    found = [tuple(hooks.items()) for hooks in _kinds(node)]
    return found if any(found) else None


def _kinds(node: Any) -> list[Any]:
    extra = node.extra
    return [extra.gradient, extra.before, extra.after, extra.accumulated]


class _Mapping(_Parts):
    """The items of a dict, or what else is read and written by keys."""

    def __init__(self, x: Any) -> None:
        self.owner = x
        self.items = dict(x.items())

    def current(self) -> Any:
        return self.owner

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        now = self.current()
        for key, before in self.items.items():
            if _differs(before, there := now.get(key, _NOTHING)):
                yield key, before, there
        if len(now) != len(self.items):
            for key, there in list(now.items()):
                if key not in self.items:
                    yield key, _NOTHING, there

    def restore(self) -> None:
        changed = any(True for _ in self.differences())
        if changed or list(self.owner) != list(self.items):
            kind = OrderedDict if isinstance(self.owner, OrderedDict) else dict
            kind.clear(self.owner)
            kind.update(self.owner, self.items)


class _Attributes(_Mapping):
    """What is in the ``__dict__`` of an object or class."""

    def __init__(self, x: Any) -> None:
        self.owner = x
        self.items = self.current()

    def current(self) -> Any:
        return {key: value for key, value in vars(self.owner).items() if key != PROGRAMS}

    def restore(self) -> None:
        if isinstance(self.owner, type):
            for key, before, _ in list(self.differences()):
                if before is _NOTHING:
                    type.__delattr__(self.owner, key)
                else:
                    type.__setattr__(self.owner, key, before)
            return
        held = vars(self.owner)
        if any(True for _ in self.differences()) or list(self.current()) != list(self.items):
            programs = {PROGRAMS: held[PROGRAMS]} if PROGRAMS in held else {}
            held.clear()
            held.update(self.items | programs)


class _Slots(_Parts):
    """What is in the slots of an object, and what a function is made of."""

    def __init__(self, x: Any) -> None:
        self.owner = x
        self.items = {name: _slot(x, name) for name in _slots(x)}

    def restore(self) -> None:
        for name, before, _ in list(self.differences()):
            if before is _NOTHING:
                object.__delattr__(self.owner, name)
            else:
                object.__setattr__(self.owner, name, before)

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        for name, before in self.items.items():
            if _differs(before, now := _slot(self.owner, name)):
                yield name, before, now


class _Modes:
    """Stands for what is set for the running thread, or for all."""


MODES: Final = _Modes()


class _OfModes(_Mapping):
    """The recording mode, the backend and the dtype of new arrays."""

    def __init__(self, x: Any) -> None:
        self.owner = x
        self.items = self.current()
        self.chosen = registry._default

    def current(self) -> Any:
        return {
            "grad_enabled": recording._recording.get(),
            "inference": recording._inference.get(),
            "default_dtype": get_default_dtype().name,
            "backend": str(registry._default),
        }

    def restore(self) -> None:
        changed = {key for key, _, _ in self.differences()}
        if "grad_enabled" in changed:
            recording._recording.set(self.items["grad_enabled"])
        if "inference" in changed:
            recording._inference.set(self.items["inference"])
        if "default_dtype" in changed:
            set_default_dtype(self.items["default_dtype"])
        if "backend" in changed:
            registry._default = self.chosen


def _slot(x: Any, name: str) -> Any:
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return _NOTHING


def _slots(x: Any) -> Sequence[str]:
    return _OF_FUNCTIONS if isinstance(x, FunctionType) else _slots_of(type(x))


def _slots_of(kind: type) -> Sequence[str]:
    """The names of the slots of a class's objects."""
    found: list[str] = []
    for cls in kind.__mro__:
        given = cls.__dict__.get("__slots__", ())
        names = (given,) if isinstance(given, str) else given
        for name in names:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{cls.__name__.lstrip('_')}{name}"
            if hasattr(cls.__dict__.get(name), "__set__"):
                found.append(name)
    return found


class _Sequence(_Parts):
    """The items of a list or deque."""

    def __init__(self, x: Any) -> None:
        self.owner = x
        self.items = list(x)

    def restore(self) -> None:
        if any(True for _ in self.differences()):
            self.owner.clear()
            self.owner.extend(self.items)

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        now = list(self.owner)
        for i in range(max(len(now), len(self.items))):
            before = self.items[i] if i < len(self.items) else _NOTHING
            there = now[i] if i < len(now) else _NOTHING
            if _differs(before, there):
                yield i, before, there


class _Set(_Parts):
    """The elements of a set."""

    def __init__(self, x: Any) -> None:
        self.owner = x
        self.items = set(x)

    def restore(self) -> None:
        if self.owner != self.items:
            self.owner.clear()
            self.owner.update(self.items)

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        for x in self.items - self.owner:
            yield x, x, _NOTHING
        for x in self.owner - self.items:
            yield x, _NOTHING, x


class _Bytes(_Sequence):
    """What a bytearray holds."""


class _OfPlace(_Parts):
    """What a name stands for."""

    def __init__(self, place: Place) -> None:
        self.owner, self.key, self.name = place.owner, place.key, place.name
        self.place = place
        self.before = place.get()

    def restore(self) -> None:
        if self.place.get() is not self.before:
            self.place.set(self.before)

    def differences(self) -> Iterator[tuple[Any, Any, Any]]:
        if _differs(self.before, now := self.place.get()):
            yield self.key, self.before, now


def _kinds_of(x: Any) -> Iterable[Callable[[Any], _Parts]]:
    """What an object consists of, which may be of several kinds."""
    if isinstance(x, type):
        return (_Attributes,) if x.__flags__ & (1 << 9) else ()  # if a class statement made it
    kind = type(x)
    known = _by_class.get(kind)
    if known is None:
        known = _by_class[kind] = _kinds_by_class(kind)
    return known


_by_class: "WeakKeyDictionary[type, list[Callable[[Any], _Parts]]]" = WeakKeyDictionary()


def _kinds_by_class(kind: type) -> list[Callable[[Any], _Parts]]:
    found = [parts for base, parts in _CONTAINERS if issubclass(kind, base)]
    if any("__dict__" in vars(cls) for cls in kind.__mro__):
        found.append(_Attributes)
    if kind is FunctionType or (kind is not CellType and _slots_of(kind)):
        found.append(_Slots)
    return found


_CONTAINERS: Sequence[tuple[type, Callable[[Any], _Parts]]] = (
    (dict, _Mapping),
    (list, _Sequence),
    (deque, _Sequence),
    (set, _Set),
    (bytearray, _Bytes),
)
