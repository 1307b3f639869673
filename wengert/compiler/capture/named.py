"""Which attributes count: those that some code that is reached names."""

import builtins
import dataclasses
from collections.abc import Iterable
from copy import copy
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from wengert.compiler.capture.places import NUMBERS, Missing, Place, is_array
from wengert.compiler.capture.reads import Chain, Reads, reads

__all__ = ["Named", "known"]


@dataclasses.dataclass
class Named:
    """What the code that has been reached names.

    Where an attribute is read of what is known before the code runs (a global, ``self``), it
    counts for that object alone; where it is read of anything else, for all objects.

    Attributes
    ----------
    names, asked, stored : set of str
        Attributes of anything, those that need not be there, and those that are set.
    marks : set of (int, str)
        Attributes of objects, by their identities.
    owners : set of (int, int)
        Code by its identity, and the class of its first argument; 0 where that may be anything.
    paths : set of (int, tuple of str)
        Attributes of attributes that methods read of objects of a class.
    made : set of int
        Classes of which code may make objects.
    shared : set of int
        Raw arrays that are in several places.
    computed, anywhere : bool
        Whether code computes names of attributes, and those of modules, too.
    typed : bool
        Whether code asks for types of what may be a number or an array, otherwise than by
        `isinstance`.
    untyped : bool
        Whether code finds classes by their objects, and may call methods with others.
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
        """A copy with sets of its own, to be added to."""
        return Named(**{key: copy(held) for key, held in vars(self).items()})

    def wants(self, x: object, key: str) -> bool:
        """Whether an attribute of an object, a class or a module counts."""
        every = self.anywhere if isinstance(x, ModuleType) else self.computed
        return every or key in self.names or (id(x), key) in self.marks

    @classmethod
    def by(cls, function: Any) -> "Named":
        """What a function's own code names."""
        named, held = cls(), getattr(function, "__self__", None)
        function = getattr(function, "__func__", function)
        if isinstance(function, FunctionType):
            named.owners.add((id(function.__code__), 0 if held is None else id(type(held))))
            named.add(function, reads(function.__code__))
            named.of(held)
        return named

    def add(self, function: FunctionType, used: Reads) -> None:
        """Add what a function's code names."""
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
            else _followed(known(function, chain))
            for chain in used.typed
        )
        self.untyped |= "type" in used.globals or "__class__" in used.names
        for root, name, path in used.chains:
            self.untyped |= "__class__" in path
            if root == "self":
                if self.untyped or 0 in owners:
                    self.names.update(path)
                self.paths.update((cls, path) for cls in owners)
            else:
                self.follow(_root(function, root, name), path)

    def of(self, x: object) -> None:
        """Follow what methods of an object's class read of it."""
        for cls in type(x).__mro__:
            for known, path in list(self.paths):
                if known == id(cls):
                    self.follow(x, path)

    def follow(self, x: Any, path: Iterable[str]) -> None:
        """Mark attributes of attributes of an object, as far as these are known."""
        for key in path:
            if x is Missing:
                self.names.add(key)
                continue
            self.marks.add((id(x), key))
            if type(x) is not ModuleType:
                for cls in _classes(x):
                    self.marks.add((id(cls), key))
                    method = vars(cls).get(key) if isinstance(x, type) else None
                    if isinstance(method, FunctionType):  # whose first argument is given
                        self.owners.add((id(method.__code__), 0))
            x = _attribute(x, key)


#: Classes that are written in C and look attributes up as others do.
_USUAL = (SimpleNamespace,)


def _root(function: FunctionType, root: str, name: str) -> Any:
    """What a chain begins with; `Missing` if that is not known."""
    if root == "free" and name in function.__code__.co_freevars:  # and not one of its own
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        return Place(cell, "cell_contents", name, "attribute").get()
    if root == "global":
        return function.__globals__.get(name, vars(builtins).get(name, Missing))
    return Missing


def known(function: FunctionType, chain: Chain) -> Any:
    """What a chain leads to, as far as that is known."""
    x = _root(function, chain.root, chain.name)
    for key in chain.path:
        x = Missing if x is Missing else _attribute(x, key)
    return x


def _followed(x: Any) -> bool:
    """Whether something may be a number or a raw array while a function is recorded."""
    return x is Missing or type(x) in NUMBERS or is_array(x)


def _classes(x: Any) -> tuple[type, ...]:
    """The classes in which attributes of an object are looked up."""
    kind: Any = type(x)
    found: tuple[type, ...] = kind.__mro__
    return x.__mro__ + found if isinstance(x, type) else found


def _attribute(x: Any, key: str) -> Any:
    """An attribute that is found without running any code; `Missing` otherwise."""
    if type(x) is ModuleType:
        held = vars(x)
        if key not in held and x.__name__ == "wengert" and key in held["__all__"]:
            return getattr(x, key)  # which Wengert imports when it is first named
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
