"""What containers hold: lists, dicts, sets and their relatives."""

from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.foreign import users
from wengert.compiler.capture.places import PLAIN, Exact, Identity, Place, dump

if TYPE_CHECKING:
    from wengert.compiler.capture.walk import Walk

__all__ = ["CONTAINERS", "visit_container"]

CONTAINERS = (list, tuple, dict, set, frozenset, deque, MappingProxyType)

#: Containers with more elements are data.
LARGEST = 10_000
#: Lists with more elements are looked at in one go.
LONG = 64


def visit_container(walk: "Walk", x: Any, name: str) -> None:
    """Visit a container and what is in it."""
    if len(x) > LARGEST:
        raise TraceError(
            f"{name} has {len(x)} elements, which are not compared from call to call; give the "
            "function those that it needs, or hold them in a Tensor"
        )
    cls = type(x)
    if users(cls.__module__):
        walk.object(x, name)
    walk.fact(name, Identity(cls))
    if cls in (list, dict):
        walk.state.lengths.append((x, len(x), name))
    nested: dict[int, Any] = {}
    if cls in (list, dict, tuple) and _all_plain(walk, x, nested):
        walk.fact(name, Exact(x))
        if nested:
            walk.test("dump({}) != {}", x, dump(x))
        walk.seen |= {key: (len(walk.seen), part) for key, part in nested.items()}
        walk.state.objects += nested.values()
        return
    walk.state.objects.append(x)
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
    if isinstance(x, list | deque) and len(x) > LONG:
        _long(walk, x, name)
        return
    held = isinstance(x, list | dict | deque)
    pairs = x.items() if isinstance(x, dict | MappingProxyType) else enumerate(x)
    for key, value in list(pairs):
        called = f"{name}[{_shown(key)}]"
        if held:
            walk.at(Place(x, key, called))
        else:
            walk.visit(
                value, called, Place(x, key, called) if isinstance(x, MappingProxyType) else None
            )


def _identities(walk: "Walk", x: Iterable[Any]) -> None:
    """Look at all objects of a container in one go, and keep them: an identity is theirs."""
    kept = [*x]
    walk.test("[*map(id, {})] != {}", x, [*map(id, kept)], kept)


def _long(walk: "Walk", x: Any, name: str) -> None:
    """Visit a list that is looked at in one go."""
    _identities(walk, x)
    plain = [type(value) in PLAIN for value in x]
    walk.fact(name, Exact([None if not plain[i] else value for i, value in enumerate(x)]))
    for i, value in enumerate(x):
        if not plain[i]:
            called = f"{name}[{i}]"
            walk.visit(value, called, Place(x, i, called), looked_at=True)


def _all_plain(walk: "Walk", x: Any, nested: dict[int, Any]) -> bool:
    """Whether a container is a nest of plain values, no part of which is known elsewhere."""
    return _plain(x, nested) and walk.seen.keys() & nested.keys() <= {id(x)}


def _keys(walk: "Walk", x: Mapping[Any, Any], name: str) -> None:
    keys = [*x]
    if all(type(key) is str for key in keys):
        walk.test("[*{}] != {}", x, keys)
    else:
        _identities(walk, x)
    for key in keys:
        walk.visit(key, f"a key of {name}", None)


def _plain(x: Any, found: dict[int, Any]) -> bool:
    """Whether a container holds plain values alone, or such containers, each once: ``found``."""
    if type(x) is not tuple:
        if id(x) in found or len(found) > LARGEST:
            return False
        found[id(x)] = x
    parts = (*x, *x.values()) if type(x) is dict else x
    return all(
        _plain(part, found) if type(part) in (list, dict, tuple) else type(part) in PLAIN
        for part in parts
    )


def _shown(key: Any) -> str:
    return repr(key) if type(key) in PLAIN else f"a {type(key).__name__}"
