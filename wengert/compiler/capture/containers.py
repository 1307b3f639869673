"""The parts of the walk that visit lists, dicts, sets and other containers."""

import dataclasses
import functools
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.places import (
    PLAIN,
    Exact,
    Identity,
    Place,
    Replaced,
    dump,
    is_nan,
    same,
)
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert.compiler.capture.walk import Walk

__all__ = [
    "CONTAINERS",
    "item_name",
    "of_one_structure",
    "tuple_parts",
    "visit_container",
    "visit_tuple",
    "which_tuples",
    "whole",
]

CONTAINERS = (list, tuple, dict, set, frozenset, deque, MappingProxyType)

#: What looks at a tuple's parts.
_OF_TUPLES = ("__iter__", "__getitem__", "__len__")
#: Containers with more elements are refused as data.
LARGEST = 10_000
#: Lists with more elements are guarded by one comparison.
LONG = 64


def visit_container(walk: "Walk", x: Any, name: str) -> None:
    """Visit a container and its elements."""
    if len(x) > LARGEST:
        raise TraceError(
            f"{name} has {len(x)} elements, too many to be compared in each call; pass the "
            "elements that the function needs, or hold them in a Tensor"
        )
    cls = type(x)
    walk.extra_attributes(x, name)
    walk.fact(name, Identity(cls))
    walk.state.objects.append(x)
    if len(x) > LONG and _plain(walk, x, name):
        walk.fact(name, Exact(x))
        walk.test("dump({}) != {}", x, dump(x))
        return
    if cls.__name__ == "defaultdict":
        walk.visit(x.default_factory, f"{name}.default_factory", None)
    if isinstance(x, deque):
        walk.fact(name, x.maxlen)
    if isinstance(x, dict | MappingProxyType):
        _keys(walk, x, name)
    elif isinstance(x, set):
        _identities(walk, x)
    elif not isinstance(x, tuple | frozenset):
        walk.test("len({}) != {}", x, len(x))
    walk.fact(name, len(x))
    if len(x) > LONG and isinstance(x, list | deque):
        _long(walk, x, name)
        return
    held = isinstance(x, list | dict | deque)
    pairs = x.items() if isinstance(x, dict | MappingProxyType) else enumerate(x)
    for key, value in list(pairs):
        called = item_name(name, key)
        if held:
            walk.at(Place(x, key, called))
        else:
            walk.visit(
                value, called, Place(x, key, called) if isinstance(x, MappingProxyType) else None
            )


def visit_tuple(walk: "Walk", x: tuple[Any, ...], place: Place) -> None:
    """Visit a tuple that calls replace: its Tensors are read from its place."""
    parts: dict[tuple[int, ...], int] = {}
    walk.state.tuples.append(Replaced(place, x, parts))
    for path, part in tuple_parts(x):
        at = Place(place, path, place.name + "".join([f"[{index}]" for index in path]), "part")
        if isinstance(part, tuple):
            at = at if path else place
            walk.state.called.setdefault(id(part), at.name)
            if type(part) is not tuple:
                walk.found.of(part)
                walk.type_of(type(part), at.name)
            walk.fact(at.name, (Identity(type(part)), len(part)))
            walk.test(f"type({{}}) is not {{}} or len({{}}) != {len(part)}", at, type(part), at)
            continue
        if isinstance(part, Tensor):
            parts[path] = len(walk.state.parts)
            walk.state.parts.append(at)
        walk.visit(part, at.name, at)


def which_tuples(walk: "Walk") -> None:
    """Add which other tuples those are that calls replace, since code may ask by ``is``."""
    state = walk.state
    if not state.tuples:
        return
    known = [(state.called.get(id(x), ""), x) for x in state.objects if isinstance(x, tuple)]
    for place, held, _ in state.tuples:
        for path, x in tuple_parts(held):
            if isinstance(x, tuple):
                walk.fact(place.name, (path, tuple([name for name, other in known if other is x])))
                known.append((f"{place.name}{path}", x))


def tuple_parts(x: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Each part of nested tuples with its path, the tuple itself first."""
    yield path, x
    if isinstance(x, tuple):
        for i, part in enumerate(x):
            yield from tuple_parts(part, (*path, i))


def of_one_structure(x: Any, y: Any) -> bool:
    """Whether two objects are tuples of Tensors and plain values, which differ in Tensors alone.

    Named tuples are some, unless they have more attributes, or a constructor of their own.
    """
    if isinstance(x, Tensor) or isinstance(y, Tensor):
        return isinstance(x, Tensor) and isinstance(y, Tensor)
    if not isinstance(x, tuple):
        return type(x) in PLAIN and same(x, y)
    named = hasattr(x, "_fields") and not hasattr(x, "__dict__") and not whole(x)
    return (
        type(x) is type(y)
        and (type(x) is tuple or named)
        and len(x) == len(y)
        and all(map(of_one_structure, x, y))
    )


def whole(x: Any) -> bool:
    """Whether a dataclass or named tuple is a leaf, because its parts can't rebuild it.

    So it is if the constructor does more than store its arguments, or if it has more attributes.
    """
    kind: Any = type(x)
    if not hasattr(kind, "__dataclass_fields__"):
        return issubclass(kind, tuple) and kind is not tuple and _makes_more(kind)
    return _makes_more(kind) or len(getattr(x, "__dict__", ())) > len(kind.__dataclass_fields__)


@functools.cache
def _makes_more(kind: Any) -> bool:
    if issubclass(kind, tuple):
        own = any(getattr(kind, key) is not getattr(tuple, key) for key in _OF_TUPLES)
        beneath = takewhile(lambda base: "_fields" not in vars(base), kind.__mro__)
        return own or (hasattr(kind, "_fields") and any("__new__" in vars(x) for x in beneath))
    known: Any = vars(kind)
    return (
        "__dataclass_params__" not in known
        or not known["__dataclass_params__"].init
        or hasattr(kind, "__post_init__")
        or any(not field.init for field in dataclasses.fields(kind))
    )


def _plain(walk: "Walk", x: Any, name: str) -> bool:
    """Whether a container holds plain values alone, of which calls change none."""
    values = [*x, *x.values()] if type(x) is dict else x
    return (
        type(x) in (list, dict, tuple)
        and all(map(_is_plain, values))
        and not any(changed.startswith(f"{name}[") for changed in walk.state.options.changed)
    )


def _is_plain(x: Any) -> bool:
    """Whether a value is compared bitwise: NaN is not."""
    return type(x) in PLAIN and not is_nan(x)


def _identities(walk: "Walk", x: Any) -> None:
    """Guard the identities of all elements at once, and keep the elements alive."""
    kept = [*x]
    walk.test("[*map(id, {})] != {}", x, [*map(id, kept)], kept)


def _long(walk: "Walk", x: Any, name: str) -> None:
    """Visit a long list, whose elements are guarded at once."""
    _identities(walk, x)
    plain = [*map(_is_plain, x)]
    walk.fact(name, Exact([None if not plain[i] else value for i, value in enumerate(x)]))
    for i, value in enumerate(x):
        if not plain[i]:
            called = item_name(name, i)
            walk.visit(value, called, Place(x, i, called), looked_at=True)


def _keys(walk: "Walk", x: Mapping[Any, Any], name: str) -> None:
    keys = [*x]
    if all(type(key) is str for key in keys):
        walk.test("[*{}] != {}", x, keys)
    else:
        _identities(walk, x)
    for key in keys:
        walk.visit(key, f"a key of {name}", None)


def item_name(name: str, key: Any) -> str:
    """A readable name of an item."""
    return f"{name}[{repr(key) if type(key) in PLAIN else f'a {type(key).__name__}'}]"
