"""The walk: finds the state of a function.

It begins at the function: its closure, its defaults, the globals that its code names, the object
that it is a method of. It follows functions and methods of the user's that it meets in the same
way, and gives the inputs of programs, and the plain values that calls compare.
"""

import copyreg
import dis
import functools
import re
import sys
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np

from wengert.amp import GradScaler
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.owners import class_of_user, of_user, package_of
from wengert.compiler.state import (
    GENERATORS,
    NUMBERS,
    PLAIN,
    PROGRAMS,
    STILL,
    UNCHANGING,
    Exact,
    Identity,
    Missing,
    Place,
    State,
    TensorAt,
    check_dtype,
    is_array,
    is_generated,
    is_generator,
    is_plain,
    item_name,
    leads_on,
    operands_of,
    traits_of,
)
from wengert.func.trees import KINDS
from wengert.nn.module import Module
from wengert.optim.lr_scheduler import ReduceLROnPlateau
from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler
from wengert.tape.hooks import Hooked
from wengert.tape.primitive import Primitive
from wengert.tape.record import Plan
from wengert.tape.tensor import Tensor

__all__ = ["find_state"]

#: How many leaves a state may have.
LARGEST = 10_000

#: Names by which code reads attributes that it does not name.
_BY_NAME = frozenset({
    *("getattr", "setattr", "hasattr", "vars", "__dict__", "asdict", "dir", "attrgetter"),
    *("getattr_static", "getmembers", "getmembers_static", "methodcaller", "__getattribute__"),
    *("__getstate__", "__reduce__", "__reduce_ex__", "astuple", "dump", "dumps"),
    *("format", "format_map", "vformat"),
})  # fmt: skip
#: Names by which code makes objects of the class of others.
_MAKING = frozenset({"type", "__class__", "replace", "_replace", "copy", "deepcopy"})
#: Names that count as globals and modules; among names ``id()`` stands for such an ``id``.
_GLOBAL = frozenset({"id", "hash", "copy"})
_BY_IDENTITY = frozenset({"id()", "hash()"})
#: Names by which code reads a generator's state, and what stands for the global ones.
_READING = frozenset({"bit_generator", "copy()", "deepcopy", "get_state", "getstate", "spawn"})
_OF_RANDOM = "random.getstate()"
#: What a function or class says of itself.
_SAID = frozenset({"__name__", "__qualname__", "__doc__", "__annotations__"})
#: Names that count by whatever name the code has a library's function or class.
_COUNTED = _BY_NAME | _MAKING | _READING | {"errstate", "seterr", "get_type_hints", "signature"}
#: Descriptors that read the attribute of their name.
_READERS = (types.MemberDescriptorType, types.GetSetDescriptorType)
#: Types of functions, classes and descriptors.
_NAMED = {type, types.FunctionType, *_READERS, *map(type, (len, str.__len__, "".__len__, str.join))}
#: Names by which code gives an object to a library as a file, whose methods it calls.
_FILING = frozenset({"file", "redirect_stdout", "redirect_stderr", "writer", "dump", "load"})
#: Attributes of optimizers that no step reads; schedules hold the same lists.
_OF_SCHEDULES = frozenset({"defaults", "_factors", "_rates"})
#: Names by which code goes through what optimizers and modules have.
_IN_ORDER = frozenset({
    *("state", "state_dict", "param_groups", "apply", "buffers", "children", "modules"),
    *("parameters", "named_buffers", "named_children", "named_modules", "named_parameters"),
})  # fmt: skip
#: Attributes of modules that Wengert reads.
_OF_MODULES = frozenset({"training", "_buffers", "_hooks"})
#: The attributes of objects which lead on to the rest of what they are.
_PARTS: list[tuple[type, tuple[str, ...]]] = [
    (types.MethodType, ("__func__", "__self__")),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (property, ("fget", "fset", "fdel")),
    (slice, ("start", "stop", "step")),
    (functools.partial, ("func", "args", "keywords")),
    (functools.singledispatchmethod, ("dispatcher", "func")),  # not what it has found before
    (super, ("__thisclass__", "__self__")),
    (np.vectorize, ("pyfunc", "otypes", "signature", "excluded")),
]
#: What cells of a library's functions hold of a cache.
_CACHES = (type(Missing), types.BuiltinMethodType, weakref.WeakKeyDictionary)
#: Containers of items, the ordered ones first, and bound methods in C.
_ITEMS = (list, deque, set, frozenset)
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
#: Objects whose numbers are inputs.
_NUMERIC = (Optimizer, LRScheduler, ReduceLROnPlateau, GradScaler)
#: Classes with a way of their own, of which a user's may have more.
_EXTENDED: tuple[type, ...] = (
    *(types.ModuleType, dict, list, deque, set, frozenset, *GENERATORS),
    *[kinds for kinds, _ in _PARTS[1:]],
)


def find_state(
    function: Callable[..., Any],
    arguments: Iterable[tuple[str, Any]],
    names: set[str],
    more: Any = None,
) -> State:
    """Walk through what a function, the objects among arguments, and ``more`` state lead to.

    The walk adds to the ``names`` that the function's code is known to have.
    """
    arguments = [*arguments]
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is not None and of_user(function.__globals__.get("__name__")):
        names.update(_names(code))  # which saves another walk where there is no other code
    while True:
        before = len(names)
        walk = _Walk(names)
        root = "self" if isinstance(function, Module) else getattr(function, "__name__", "function")
        walk.visit(function, None, root)
        for name, x in arguments:
            walk.argument(x, name)
        if more is not None:
            walk.visit(more, None, "state")
        while walk.later:  # optimisers, whose parameters have got their names from modules
            walk.instance(*walk.later.pop(0), now=True)
        if len(names) == before:
            walk.check_generators()
            return walk.state


class _Walk:
    def __init__(self, names: set[str]) -> None:
        self.names, self.state = names, State()
        self.later: list[tuple[Any, str]] = []
        self.classes: set[type] = set()  # whose attributes are visited
        self.every = not names.isdisjoint(_BY_NAME)
        self.ordered = self.every or not names.isdisjoint(_IN_ORDER)
        hints = set() if names.isdisjoint({"get_type_hints", "signature"}) else {"__annotations__"}
        self.said = sorted(_SAID & (names | hints))
        self.shared: dict[Any, int] | None = None  # the numbers of an optimizer's state

    def argument(self, x: Any, name: str) -> None:
        """Visit what a leaf of the arguments leads to; Tensors and arrays themselves are inputs."""
        if isinstance(x, Tensor):
            self.follow(x, name)
        elif leads_on(x):
            self.visit(x, None, name)

    # -- leaves ----------------------------------------------------------------------------------

    def fact(self, name: str, what: Any) -> None:
        """Add what a program assumes."""
        self.state.facts.append((name, what))
        if len(self.state.facts) > LARGEST:
            raise TraceError(
                f"the compiled function leads to more than {LARGEST} objects, among them {name}; "
                "pass what it needs of them as an argument, or keep them in a Tensor"
            )

    def first(self, x: Any, name: str) -> bool:
        """Whether an object is met for the first time."""
        known = self.state.known.get(id(x))
        if known is not None:
            self.fact(name, f"the same as {known}")
            return False
        self.state.known[id(x)] = name
        self.state.objects.append(x)
        if not self.names.isdisjoint(_BY_IDENTITY):
            self.fact(f"identity of {name}", Identity(x))
        return True

    def check_generators(self) -> None:
        """Raise if the code may read the state of a generator, which calls do not compare."""
        if read := self.names & (_READING if self.state.randoms else {_OF_RANDOM}):
            raise TraceError(
                f"the compiled function may read the state of a random generator ({min(read)}), "
                "where a replay would use the same again; read it outside"
            )

    def visit(self, x: Any, place: Place | None, name: str, numeric: bool = False) -> None:
        """Visit what is at a place. Numbers are inputs in what is ``numeric``."""
        kind = type(x)
        if numeric and kind in NUMBERS and place is not None:
            self.number(x, place)
            return
        if isinstance(x, Enum) and class_of_user(kind) and id(x) not in self.state.known:
            self.state.known[id(x)] = name
            self.state.objects.append(x)
            self.attributes(x, kind, name)
            self.visit_at(x, "_value_", f"{name}.value", "attr")
        if isinstance(x, Tensor):
            self.tensor(x, place, name)
        elif is_array(x) or (numeric and isinstance(x, np.generic)):  # of a parameter without axes
            self.array(x, place, name, numeric)
        elif isinstance(x, tuple):
            self.tuple(x, place, name, numeric)
        else:
            if place is not None:
                self.state.held.append((place, x))
            if is_plain(x):
                self.fact(name, Exact(x))
            else:
                self.object(x, name, numeric)

    def visit_at(
        self, holder: Any, key: Any, name: str, kind: Any = "item", *, numeric: bool = False
    ) -> None:
        """Visit what a holder has at a place, if it has something."""
        place = Place(holder, key, name, kind)
        if (x := place.get()) is Missing:
            self.state.held.append((place, Missing))
        else:
            self.visit(x, place, name, numeric)

    def number(self, x: Any, place: Place) -> None:
        """Add a number that is an input, or that is one with another of an optimizer's state."""
        self.fact(place.name, f"a number of type {type(x).__name__}")
        shared: dict[Any, int] = {} if self.shared is None else self.shared
        count = len(self.state.numbers)
        self.state.shares.append(shared.setdefault((place.key, type(x), x), count))
        self.state.numbers.append(place)

    def tensor(self, x: Tensor, place: Place | None, name: str) -> None:
        if place is None:
            self.state.fixed.append(x)
        elif place.kind != "part":
            self.state.spots.append((place, x))
        if self.first(x, name):
            self.state.tensors.append(TensorAt(x, name, place))
            self.fact(name, "a Tensor")
            self.follow(x, name)

    def follow(self, x: Tensor, name: str) -> None:
        """Follow a Tensor's hooks and its class, and what the user's has besides."""
        node = x._node
        if isinstance(node, Hooked) and node.extra is not None:
            for hooks in (node.extra.gradient, node.extra.accumulated):
                self.visit(hooks, None, f"hooks of {name}")
        if type(x) is not Tensor:
            self.fact(f"type of {name}", Identity(type(x)))
            if class_of_user(type(x)):
                self.own(x, name)
                self.cls(type(x), type(x).__name__)

    def array(self, x: Any, place: Place | None, name: str, numeric: bool) -> None:
        state = self.state
        check_dtype(x, name)
        if place is None:
            raise TraceError(
                f"{name} is an array that is reached by a method of its own, a set or the like, "
                "and so can't be read anew in each call; pass it as an argument, or hold "
                "it in a variable or attribute"
            )
        if not (numeric or self.first(x, name)):
            state.held.append((place, x))
            state.twins.append(place)
            return
        self.fact(name, "an array")
        if not numeric:
            state.own.add(len(state.arrays))
        state.arrays.append(place)

    def tuple(self, x: Any, place: Place | None, name: str, numeric: bool) -> None:
        if class_of_user(type(x)):
            self.attributes(x, type(x), name)
        if is_plain(x) and not (numeric and place is not None):
            self.fact(name, Exact(x))
            if place is not None:
                self.state.held.append((place, x))
            for i, part in enumerate(x):
                if isinstance(part, tuple | Enum):
                    self.visit(part, None, item_name(name, i))
            return
        self.fact(name, (Identity(type(x)), len(x)))
        if place is not None:
            self.state.known.setdefault(id(x), name)
            self.state.objects.append(x)
            if place.kind != "part":
                self.state.spots.append((place, x))
        for i, part in enumerate(x):
            called = item_name(name, i)
            self.visit(part, place and Place(place, i, called, "part"), called, numeric)

    # -- objects ---------------------------------------------------------------------------------

    def object(self, x: Any, name: str, numeric: bool) -> None:
        kind = type(x)
        if not self.first(x, name):
            return
        if isinstance(x, _EXTENDED) and class_of_user(kind):
            self.attributes(x, kind, name)
        elif isinstance(x, _EXTENDED[1:]) and hasattr(x, "__dict__"):  # some keep what they make
            self.own(x, name, wrapped=not isinstance(x, (np.vectorize, *GENERATORS)))
        if isinstance(x, functools.cached_property):
            self.names.add(x.attrname or "")
        if kind in _NAMED and not of_user(getattr(x, "__module__", None) or "builtins"):
            self.names.update({x.__name__} if kind in _READERS else {x.__name__} & _COUNTED)
        if x is id or x is hash:
            self.names.add("id()")
        if kind is types.FunctionType:
            mine = of_user(x.__globals__.get("__name__"))
            # Functions of a library may share their code, and differ in what is in their cells.
            self.fact(name, Identity(x.__code__ if mine or hasattr(x, "__wrapped__") else x))
            self.function(x, name, mine)
        elif isinstance(x, _ITEMS):
            self.check_access(x, name)
            self.fact(name, (Identity(kind), len(x), getattr(x, "maxlen", None)))
            ordered = isinstance(x, _ITEMS[:2])
            self.state.sizes.append((x, len(x) if ordered else frozenset(x), name))
            for i, part in enumerate(x):
                called = name if numeric and len(x) == 1 else item_name(name, i)  # its one group
                self.visit(part, Place(x, i, called) if ordered else None, called, numeric)
        elif isinstance(x, dict):
            self.mapping(x, name, numeric)
        elif isinstance(x, types.ModuleType):
            self.fact(name, Identity(x))
            if of_user(x.__name__):
                named = {*self.names}
                if self.every:  # also by a name that the code computes
                    named = {key for key in vars(x) if not key.startswith("__")}
                    self.state.sizes.append((vars(x), [*vars(x)], name))
                self.visit_globals(vars(x), name + ".", {*named, "__getattr__"})
        elif isinstance(x, type):
            self.fact(name, Identity(x))
            self.cls(x, name)
            for base in x.__mro__:  # objects of it may be made
                if class_of_user(base) and "__init__" in vars(base):
                    self.visit_at(vars(base), "__init__", f"{base.__name__}.__init__")
        elif is_generator(x):
            self.fact(name, Identity(kind))
            self.state.randoms.append((name, x))
        elif isinstance(x, _BOUND) and not isinstance(x.__self__, types.ModuleType | type(None)):
            self.fact(name, (Identity(kind), x.__name__))
            self.visit(x.__self__, None, f"{name}.__self__")
        elif parts := next((keys for kinds, keys in _PARTS if isinstance(x, kinds)), ()):
            self.fact(name, Identity(kind))
            for key in parts:
                called = name if key in ("__func__", "args", "keywords") else f"{name}.{key}"
                if kind is types.MethodType and called == f"{x.__name__}.__self__":
                    called = "self"
                self.visit_at(x, key, called, "attr")
            if isinstance(x, classmethod):
                self.names.add("__class__")  # it may make objects
        else:
            self.instance(x, name)

    def function(self, x: types.FunctionType, name: str, mine: bool) -> None:
        """Follow a function, of the user's or of a library."""
        code = x.__code__
        names = _names(code) if mine else frozenset[str]()
        self.names.update(names)
        for variable, cell in zip(code.co_freevars, x.__closure__ or (), strict=True):
            held = Place(cell, "cell_contents", variable, "attr").get()
            if isinstance(held, Plan):  # which an operation's first call replaces
                continue
            if not mine and (variable == "__class__" or isinstance(held, _CACHES)):
                continue
            called = variable if mine else f"{name}.{variable}"
            if variable == "__class__" and "super" in names and isinstance(held, type):
                self.cls(held, called)
            else:
                self.visit_at(cell, "cell_contents", called, "attr")
        for where in ("__defaults__", "__kwdefaults__"):
            if getattr(x, where):
                self.visit_at(x, where, f"{name}.{where}", "attr")
        for key in self.said:
            self.visit_at(x, key, f"{name}.{key}", "attr")
        if mine:
            space = x.__globals__
            self.state.held.append((Place(x, "__code__", f"{name}.__code__", "attr"), code))
            self.visit_globals(space, "", names)
            for key in operands_of(code, "LOAD_GLOBAL") - space.keys():
                self.state.held.append((Place(space, key, key), Missing))
            package = str(space.get("__package__") or "").split(".")
            above = [".".join(package[:i]) for i in range(1, len(package) + 1)]
            # Imported in the function, perhaps from a package above it.
            for key in sorted(names) if operands_of(code, "IMPORT_NAME") else ():
                for module in (key, *[f"{each}.{key}".rstrip(".") for each in above]):
                    if module in sys.modules and of_user(module):
                        self.visit(sys.modules[module], None, module)
        self.own(x, name, wrapped=mine)

    def own(self, x: Any, name: str, *, wrapped: bool = True) -> None:
        """Visit attributes of a function or the like that code names, and what it wraps."""
        space = vars(x)
        wanted = [key for key in space if (self.every and wrapped) or key in self.names]
        others = {*functools.WRAPPER_ASSIGNMENTS} - self.names | {"__wrapped__", PROGRAMS}
        for key in [key for key in wanted if key not in others]:
            self.visit_at(space, key, f"{name}.{key}")
        if wrapped and callable(inner := getattr(x, "__wrapped__", None)):
            self.visit(inner, None, name)
        self.state.sizes.append((space, [*space], name))

    def visit_globals(self, space: dict[str, Any], prefix: str, names: Iterable[str]) -> None:
        """Visit the globals of some names."""
        for key in sorted(names):
            if key in space:
                self.visit_at(space, key, prefix + key)

    def mapping(self, x: Any, name: str, numeric: bool) -> None:
        """Visit a dict, which is part of an optimiser where it has Tensors as keys."""
        self.check_access(x, name)
        keys = [*x]
        by_name = all(type(key) in PLAIN for key in keys)
        self.fact(name, (Identity(type(x)), Exact(tuple(keys)) if by_name else len(keys)))
        ordered = self.ordered or not numeric or type(x) is defaultdict  # which makes items
        self.state.sizes.append((x, tuple(keys) if ordered else len(keys), name))
        outer = id(x) in self.state.growing and self.shared is None
        self.shared = {} if outer else self.shared
        for key in keys:
            if not by_name:
                self.visit(key, None, f"a key of {name}")
            called = f"{name}.{key}" if numeric and type(key) is str else item_name(name, key)
            called = self.state.known[id(key)] if isinstance(key, Tensor) else called
            self.visit_at(x, key, called, numeric=numeric)
        self.shared = None if outer else self.shared
        if type(x) is defaultdict:
            self.visit_at(x, "default_factory", f"{name}.default_factory", "attr")

    def check_access(self, x: Any, name: str) -> None:
        """Raise for a container of a user's class that reads its items by methods of its own."""
        own = {key for base in type(x).__mro__ if class_of_user(base) for key in vars(base)}
        if methods := own & {"__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__"}:
            raise TraceError(
                f"{name} is a {type(x).__name__}, whose {min(methods)} is its own, so that its "
                "items can't be compared; pass what the function needs of it"
            )

    def cls(self, kind: type, name: str) -> None:
        """Follow the methods of a user's class that code names, or that Wengert calls."""
        if class_of_user(type(kind)):
            self.cls(type(kind), type(kind).__name__)
        own = [base for base in kind.__mro__ if class_of_user(base)]
        made = not self.names.isdisjoint(_MAKING)  # objects of it, perhaps
        others = [base for base in kind.__mro__[:-1] if not class_of_user(base)]
        ours = [base for base in others if package_of(base.__module__) == "wengert"]
        # Code of a library calls methods by computed names, as a visitor of trees does.
        every = self.every or any(package_of(base.__module__) not in STILL for base in others)
        for base in own:
            if base in self.classes:
                continue
            self.classes.add(base)
            self.first(base, name)
            for part in KINDS.get(base, ())[:2]:  # how it is a node of trees
                self.visit(part, None, f"{name} as a node")
            if made or self.every:  # what the first copy of an object keeps
                copyreg._slotnames(base)  # type: ignore[attr-defined]
            space = vars(base)
            self.names.update(space.get("__match_args__", ()))
            if space.get("_is_runtime_protocol"):
                isinstance(None, base)  # which keeps what it asks for
                self.names.update(space, space.get("__annotations__", ()))
            for key in self.said:
                self.visit_at(base, key, f"{name}.{key}", "attr")
            self.state.sizes.append((space, [*space], name))
            for key in [*space]:
                x, special = space[key], key.startswith("__")
                method = hasattr(type(x), "__get__") or callable(x)
                if special:
                    called = method and (made or key != "__init__")
                else:
                    read = others if method else ours
                    called = every or any(hasattr(each, key) for each in read)
                called |= key in self.names or key in _BY_PYTHON
                if not called or key in _SKIPPED:
                    continue
                if isinstance(x, _READERS) or (key in _OF_DATACLASSES and is_generated(x)):
                    continue
                attr = isinstance(x, Tensor | tuple) or is_array(x)  # may be replaced
                holder, how = (base, "attr") if attr else (space, "item")
                self.visit_at(holder, key, f"{name}.{key}", how)

    def instance(self, x: Any, name: str, *, now: bool = False) -> None:
        """Visit an object's attributes."""
        kind: type = type(x)
        numeric = isinstance(x, _NUMERIC)
        if numeric and not now:
            self.later.append((x, name))
            return
        self.fact(name, Identity(kind))
        if hasattr(kind, "cache_clear") and not (class_of_user(kind) or of_user(x.__module__)):
            self.fact(name, Identity(x))  # a library's function
            return
        walked, opaque, _ = traits_of(kind)
        if opaque or (kind is np.ufunc and x.__name__.endswith(" (vectorized)")):
            raise TraceError(
                f"{name!r} is a {kind.__name__}, into which a compiled function can't look; pass "
                "what it needs of it as an argument"
            )
        if not walked:
            wraps = callable(getattr(x, "__wrapped__", None))  # as a compiled function does
            if not wraps:
                self.fact(name, Identity(x))
            if isinstance(x, Primitive):  # whose rules may be the user's
                for rule in (x.composite, x.shared, *x.rules.values(), *x.jvps.values()):
                    if of_user(getattr(rule, "__module__", "builtins")):
                        self.visit(rule, None, f"a rule of {name}")
            if kind.__module__.startswith("_"):  # a lock, a file
                self.state.unseen.append(f"{name}, a {kind.__name__}")
            caches = package_of(kind.__module__) in ("wengert", "jax")  # as shardings do
            if hasattr(x, "__dict__") and (wraps or not caches):
                self.own(x, name)
            return
        if isinstance(x, (int, float, complex, str, bytes, *UNCHANGING)):
            base: Any = next(base for base in kind.__mro__ if not class_of_user(base))
            self.fact(name, base.__repr__(x))
        self.state.held.append((Place(x, "__class__", f"{name}.__class__", "attr"), kind))
        if isinstance(x, Optimizer):
            params = [param for group in x.param_groups for param in group["params"]]
            self.state.starting |= any(param not in x.state for param in params)
            self.state.growing.update(map(id, (x.state, *x.state.values())))
        self.attributes(x, kind, name, numeric=numeric)

    def attributes(self, x: Any, kind: type, name: str, *, numeric: bool = False) -> None:
        """Visit the attributes of an object, and of its class, that code names or Wengert reads."""
        mine = class_of_user(kind)
        space = getattr(x, "__dict__", None)
        module, whole = isinstance(x, Module), self.every or traits_of(kind)[2]
        if isinstance(space, dict):
            self.check_access(space, name)
            self.state.held.append((Place(x, "__dict__", f"{name}.__dict__", "attr"), space))
            optimizer = isinstance(x, Optimizer)
            # The keys of its state have got names before.
            for key, part in sorted(dict.items(space), key=lambda item: item[0] == "state"):
                if key == PROGRAMS and not self.names.isdisjoint({"vars", "__dict__", "dir"}):
                    raise TraceError(
                        f"the compiled function may read all attributes of {name!r}, also the "
                        "programs of compiled methods; compile a method of the object instead"
                    )
                read = module and (key in _OF_MODULES or isinstance(part, Tensor | Module))
                if not (read or whole or key in self.names) or key == PROGRAMS:
                    continue
                if module and key == "_buffers":  # which is replaced, and never changed
                    self.fact(f"{name}.{key}", Exact(tuple(part.items())))
                    self.state.held.append((Place(space, key, f"{name}.{key}"), part))
                elif not optimizer or key not in _OF_SCHEDULES or key in self.names:
                    called = name if optimizer and key == "param_groups" else f"{name}.{key}"
                    self.visit_at(space, key, called, numeric=numeric)
            ordered = mine or self.ordered or kind.__module__ == "wengert.nn.containers"
            keys = space if type(space) is dict else dict.keys(space)  # an ordered one lacks some
            self.state.sizes.append((keys, [*keys] if ordered else len(keys), name))
        for base in kind.__mro__ if mine or not module else ():
            for key, slot in [*vars(base).items()]:
                if type(slot) is types.MemberDescriptorType and (whole or key in self.names):
                    self.visit_at(x, key, f"{name}.{key}", "attr", numeric=numeric)
        if mine:
            self.cls(kind, kind.__name__)


#: What patterns, ``**`` and enums read of a class.
_BY_PYTHON = frozenset({"__match_args__", "keys", "_member_map_"})
#: Methods that a dataclass, all of whose fields are compared, may have from its decorator.
_OF_DATACLASSES = frozenset({"__eq__", "__hash__", "__setattr__", "__delattr__"})
#: What is no state, and texts: these ask for an object's type and all attributes.
_SKIPPED = frozenset({"__repr__", "__annotate_func__", "__dict__", "__weakref__", PROGRAMS})


@functools.cache
def _names(code: types.CodeType | None) -> frozenset[str]:
    """The names in a function's code, and in functions within it."""
    if code is None:
        return frozenset()
    inner = [_names(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    # Patterns name attributes in tuples, and calls keywords.
    texts = [x for x in code.co_consts if type(x) is tuple and all(type(y) is str for y in x)]
    names = frozenset(code.co_names)
    loaded = operands_of(code, "LOAD_GLOBAL") | operands_of(code, "IMPORT_NAME")
    names |= {f"{name}()" for name in _GLOBAL & loaded}
    if "getstate" in names or {"random", "get_state"} <= names:
        names |= {_OF_RANDOM}
    if "format" in names:  # perhaps of texts in the code alone, without fields such as {0.k}
        steps = [(x.opname, x.argval) for x in dis.get_instructions(code)]
        on = [before for before, (_, name) in pairwise(steps) if name == "format"]
        if all(op == "LOAD_CONST" and not re.search(r"{[^}!:]*[.[]", str(x)) for op, x in on):
            names -= {"format"}
    names = names.union(*inner, *texts)
    return names if names.isdisjoint(_FILING) else names | {"read", "readline", "write"}
