"""The attributes that reached code names: only these are guarded."""

import builtins
import dataclasses
from collections.abc import Iterable
from copy import copy
from types import FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from wengert.compiler.capture.places import NUMBERS, Missing, Place, is_array
from wengert.compiler.capture.reads import Chain, Reads, reads

__all__ = ["Named", "known"]


@dataclasses.dataclass
class Named:
    """The attributes that reached code names.

    An attribute read from an object that is known before the code runs (a global, ``self``) is
    relevant for that object alone; one read from anything else, for all objects.

    Attributes
    ----------
    names, asked, stored : set of str
        Attributes of any object, those of them that may be missing, and those that are set.
    marks : set of (int, str)
        Attributes of single objects, by identity.
    owners : set of (int, int)
        Identities of code and of its first argument's class; 0 if that may be any.
    paths : set of (int, tuple of str)
        Chains of attributes that methods read from ``self``, by the class's identity.
    made : set of int
        Classes of which code may make objects.
    shared : set of int
        Raw arrays that are in several places.
    computed, anywhere : bool
        Whether code computes names of attributes of objects, and of modules.
    typed : bool
        Whether code reads the type of a possible number or array, other than by `isinstance`.
    untyped : bool
        Whether code gets classes from their objects, and may call methods with other objects.
    """

    names: set[str] = dataclasses.field(default_factory=set)
    asked: set[str] = dataclasses.field(default_factory=set)
    stored: set[str] = dataclasses.field(default_factory=set)
    marks: set[tuple[int, str]] = dataclasses.field(default_factory=set)
    owners: set[tuple[int, int]] = dataclasses.field(default_factory=set)
    paths: set[tuple[int, tuple[str, ...]]] = dataclasses.field(default_factory=set)
    made: set[int] = dataclasses.field(default_factory=set)
    shared: set[int] = dataclasses.field(default_factory=set)
    computed: bool = False
    anywhere: bool = False
    typed: bool = False
    untyped: bool = False

    def branch(self) -> "Named":
        """A copy with its own sets."""
        return Named(**{key: copy(held) for key, held in vars(self).items()})

    def wants(self, x: object, key: str) -> bool:
        """Whether an attribute of an object, a class or a module is relevant."""
        every = self.anywhere if isinstance(x, ModuleType) else self.computed
        return every or key in self.names or (id(x), key) in self.marks

    @classmethod
    def by(cls, function: Any) -> "Named":
        """The attributes that a function's own code names."""
        named, held = cls(), getattr(function, "__self__", None)
        function = getattr(function, "__func__", function)
        if isinstance(function, FunctionType):
            named.owners.add((id(function.__code__), 0 if held is None else id(type(held))))
            named.add(function, reads(function.__code__))
            named.of(held)
        return named

    def add(self, function: FunctionType, used: Reads) -> None:
        """Add the attributes that a function's code names."""
        code = function.__code__
        self.names |= used.names
        self.asked |= used.asked
        self.stored |= used.stored
        self.computed |= used.computed
        self.anywhere |= used.anywhere
        owners = [cls for known, cls in self.owners if known == id(code)]
        self.typed |= any(
            not all(owners or [0]) or bool(chain.path)
            if chain.root == "self"
            # It may be replaced by a traced number or array during a recording.
            else (x := known(function, chain)) is Missing or type(x) in NUMBERS or is_array(x)
            for chain in used.typed
        ) or any(type(known(function, chain)) in NUMBERS for chain in used.told)
        self.untyped |= "type" in used.globals or "__class__" in used.names
        for root, name, path in used.chains:
            self.untyped |= "__class__" in path
            if root == "self":
                if self.untyped or 0 in owners:
                    self.names.update(path)
                self.paths.update((cls, path) for cls in owners)
            else:
                self.follow(_root(function, root, name), path)

    def reached(self, x: Any) -> None:
        """Add the attribute that a function reads which has its name, such as ``np.shape``."""
        if type(x) in _NAMED_AFTER:
            self.names.add(x.__name__)

    def of(self, x: object) -> None:
        """Mark the attributes that methods of an object's class read from it."""
        for cls in type(x).__mro__:
            for known, path in list(self.paths):
                if known == id(cls):
                    self.follow(x, path)

    def of_new(self, cls: type) -> None:
        """Mark the attributes that methods read from objects of a class which code makes."""
        owners = {id(base) for base in cls.__mro__}
        for owner, (key, *path) in list(self.paths):
            if owner in owners:
                self.marks.update((base, key) for base in owners)
                self.names.update(path)

    def follow(self, x: Any, path: Iterable[str]) -> None:
        """Mark a chain of attributes of an object, as far as the objects are known."""
        for key in path:
            if x is Missing:
                self.names.add(key)
                continue
            self.marks.add((id(x), key))
            if type(x) is not ModuleType:
                for cls in _classes(x):
                    self.marks.add((id(cls), key))
                    method = vars(cls).get(key) if isinstance(x, type) else None
                    if isinstance(method, FunctionType):  # called with any first argument
                        self.owners.add((id(method.__code__), 0))
            found = _attribute(x, key)
            if found is Missing and "__getattr__" in dir(type(x)):  # it may ask another object
                self.names.add(key)
            x = found


#: The classes of NumPy's functions and of slots.
_NAMED_AFTER = (type(np.shape), MemberDescriptorType)
#: Classes written in C with the usual attribute lookup.
_USUAL = (SimpleNamespace,)


def _root(function: FunctionType, root: str, name: str) -> Any:
    """The object at a chain's root; `Missing` if unknown."""
    if root == "free" and name in function.__code__.co_freevars:  # and not one of its own
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        return Place(cell, "cell_contents", name, "attribute").get()
    if root == "global":
        return function.__globals__.get(name, vars(builtins).get(name, Missing))
    return Missing


def known(function: FunctionType, chain: Chain) -> Any:
    """The object at a chain's end; `Missing` if unknown."""
    x = _root(function, chain.root, chain.name)
    for key in chain.path:
        x = Missing if x is Missing else _attribute(x, key)
    return x


def _classes(x: Any) -> tuple[type, ...]:
    """The classes in which attributes of an object are looked up."""
    kind: Any = type(x)
    found: tuple[type, ...] = kind.__mro__
    return x.__mro__ + found if isinstance(x, type) else found


def _attribute(x: Any, key: str) -> Any:
    """An attribute that is found without running code; `Missing` otherwise."""
    if type(x) is ModuleType:
        held = vars(x)
        if key not in held and x.__name__ == "wengert" and key in held["__all__"]:
            return getattr(x, key)  # Wengert imports it lazily
        return held.get(key, Missing)
    found = Missing
    for cls in _classes(x):
        if "__getattribute__" in vars(cls) and cls not in _USUAL and cls.__module__ != "builtins":
            return Missing
        if found is Missing and key in vars(cls):
            found = vars(cls)[key]
    if type(found).__name__ == "member_descriptor":
        return getattr(x, key, Missing)
    if found is not Missing and hasattr(type(found), "__get__"):
        return Missing
    held = getattr(x, "__dict__", {})
    return held[key] if key in held and not isinstance(x, type) else found
