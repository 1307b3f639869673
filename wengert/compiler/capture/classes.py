"""The parts of the walk that visit classes and modules."""

import abc
import builtins
import enum
import os
import typing
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wengert.compiler.capture.containers import CONTAINERS, visit_container
from wengert.compiler.capture.foreign import of_user, reads_by_name, refuse
from wengert.compiler.capture.optimizers import REPLACEABLE
from wengert.compiler.capture.places import PLAIN, Identity, Place
from wengert.func.trees import node_kind

if TYPE_CHECKING:
    from wengert.compiler.capture.walk import Walk

__all__ = ["visit_class", "visit_module"]

#: Class attributes that do not affect behaviour.
_ABOUT_CLASSES = frozenset(
    {
        *("__abstractmethods__", "__annotations__", "__dataclass_fields__", "__dataclass_params__"),
        *("__dict__", "__doc__", "__firstlineno__", "__match_args__", "__module__"),
        *("__orig_bases__", "__parameters__", "__qualname__", "__slots__", "__weakref__"),
        *("__static_attributes__", "__replace__"),
        *("__annotate_func__", "__annotations_cache__", "__classdictcell__"),
        "__conditional_annotations__",
    }
)
#: Where Python 3.14 has what gives `__annotations__` when it is asked for, and what that gave.
_ANNOTATIONS = frozenset({"__annotate_func__", "__annotations_cache__"})
#: Methods that run when an object is made.
_MAKING = frozenset({"__init__", "__init_subclass__", "__new__", "__post_init__", "__set_name__"})


def visit_module(walk: "Walk", x: ModuleType, name: str) -> None:
    """Visit the attributes of a module that code names."""
    refuse(x)
    if of_user(type(x).__module__):  # a module subclass with attributes of its own
        walk.found.of(x)
        walk.type_of(type(x), name)
        walk.test("type({}) is not {}", x, type(x))
    walk.fact(name, Identity(x))
    held = vars(x)
    if x is builtins and walk.named.wants(x, "type"):
        walk.state.types = True
    if x is os and any(walk.named.wants(x, key) for key in ("environ", "getenv")):
        walk.visit(os.environ, "os.environ", None)
    if not of_user(x.__name__):
        _foreign_module(walk, x, held, name)
        return
    for key, value in list(held.items()):
        special = key[:2] == "__" and key != "__getattr__" and type(value) not in PLAIN
        if not special and (key == "__getattr__" or walk.named.wants(x, key)):
            walk.at(Place(held, key, f"{name}.{key}"))
    if walk.named.anywhere or "__getattr__" in held or of_user(type(x).__module__):
        walk.test("[*{}] != {}", held, [*held])
    for key in sorted((walk.named.asked | walk.named.stored) - held.keys()):
        walk.at(Place(held, key, f"{name}.{key}"))


def _foreign_module(walk: "Walk", x: ModuleType, held: dict[str, Any], name: str) -> None:
    """Visit the attributes that code names of a module that is not the user's."""
    at, marks = id(x), walk.named.marks
    for key, value in list(held.items()):
        if (at, key) in marks and not isinstance(value, ModuleType):
            place = Place(held, key, f"{name}.{key}")
            refuse(value)
            if type(value) in (*PLAIN, *CONTAINERS):
                walk.at(place)
            else:
                walk.fact(place.name, Identity(value))
                walk.state.held.append((place, value))
                walk.found.reached(value)
                if isinstance(value, abc.ABCMeta):
                    walk.abstract()
        elif type(value) in PLAIN and walk.named.wants(x, key) and key[:2] != "__":
            walk.at(Place(held, key, f"{name}.{key}"))


def visit_class(walk: "Walk", cls: type, name: str) -> None:
    """Visit the attributes that code names of a class and its bases."""
    walk.fact(name, Identity(cls))
    if isinstance(cls, abc.ABCMeta):
        walk.abstract()
    if vars(cls).get("_is_protocol"):  # `isinstance` asks for its members
        members = typing._get_protocol_attrs(cls)  # type: ignore[attr-defined]
        walk.found.names |= members
        walk.found.asked |= members
    if reads_by_name(cls):
        walk.found.computed = walk.found.anywhere = True
    foreign = [base for base in cls.__mro__ if not of_user(base.__module__)]
    if len(foreign) == len(cls.__mro__):
        return _foreign_class(walk, cls)
    walk.visit(node_kind(cls), f"how objects of {name} are taken apart", None)
    if issubclass(cls, enum.Enum):
        visit_container(walk, cls._member_map_, name)
    walk.test("{}.__mro__ is not {}", cls, cls.__mro__)
    walk.found.of(cls)
    if id(cls) in walk.found.made:
        walk.found.of_new(cls)
    if of_user(type(cls).__module__):
        walk.type_of(type(cls), name)
    for base in cls.__mro__:
        if base in foreign:
            _foreign_class(walk, base)
        elif base is cls:
            _class_attributes(walk, cls, foreign)
        else:
            walk.type_of(base, base.__name__, made=id(cls) in walk.named.made)
    return None


def _class_attributes(walk: "Walk", cls: type, foreign: list[type]) -> None:
    held = vars(cls)
    walk.state.objects.append(cls)
    walk.test("[*{}] != {}", held, [*held])
    walk.texts(cls, cls.__name__)
    for key, x in list(held.items()):
        spelled = "__annotations__" if key in _ANNOTATIONS else key
        asked = spelled in walk.named.names or (id(cls), spelled) in walk.named.marks
        asked |= walk.named.computed and key.startswith("__dataclass_")  # by `dataclasses.fields`
        if type(x).__name__ in ("member_descriptor", "_abc_data") or (
            key in _ABOUT_CLASSES and not asked
        ):
            continue
        made = id(cls) in walk.named.made or key in walk.named.names
        if key in _MAKING and not made:
            continue
        if (
            walk.named.wants(cls, key)
            or (key.startswith("__") and key.endswith("__"))
            or any(key in vars(base) for base in foreign)  # overrides, which the base calls
        ):
            walk.at(Place(cls, key, f"{cls.__name__}.{key}", "class"))
            if isinstance(x, property):
                for part in (x.fget, x.fset, x.fdel):
                    walk.visit(part, f"{cls.__name__}.{key}", None, owner=cls)


def _foreign_class(walk: "Walk", cls: type) -> None:
    if cls.__module__.startswith(("wengert.nn", "wengert.optim")):
        for key in REPLACEABLE:
            if key in vars(cls):
                walk.at(Place(cls, key, f"{cls.__name__}.{key}", "class"))
        for key in sorted(walk.named.asked):
            if not hasattr(cls, key):
                walk.at(Place(cls, key, f"{cls.__name__}.{key}", "class"))
