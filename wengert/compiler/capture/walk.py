"""What a function computes with beside its arguments: all that its code can reach by name.

A function reaches its closure, the globals that it names, its defaults, its ``self`` and what is
imported in it, and from there modules, objects, classes, containers and other functions. Of what
has attributes those count whose names occur in some code that is reached. What is found is one of
three things: an input of programs (Tensors, what optimisers keep, hyper-parameters), a guard
(plain values, raw arrays' contents, code, structure), or unguardable: then the walk fails.
"""

import builtins
import dataclasses
import enum
import functools
import importlib.util
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.foreign import (
    engine,
    immutable,
    importable,
    open_book,
    package_of,
    refused,
    users,
)
from wengert.compiler.capture.live import LiveNumber
from wengert.compiler.capture.places import (
    NUMBERS,
    OF_OPTIMIZER,
    PLAIN,
    PROGRAMS,
    Exact,
    Fact,
    Identity,
    Missing,
    Place,
    State,
    TensorAt,
    contents,
    dump,
    is_array,
)
from wengert.compiler.capture.reads import Reads, reads
from wengert.nn.module import Module
from wengert.optim.optimizer import Optimizer
from wengert.tape.hooks import Extra, Hooked
from wengert.tape.lifted import Lifted
from wengert.tape.tensor import Tensor

__all__ = ["find_state"]

#: Containers with more elements are data.
LARGEST = 10_000
#: Lists with more elements are looked at in one go.
LONG = 64
#: Raw arrays of more bytes are data.
LARGEST_ARRAY = 1 << 20
#: What of a class is no part of what its objects do.
_ABOUT_CLASSES = frozenset(
    {
        *("__abstractmethods__", "__annotations__", "__dataclass_fields__", "__dataclass_params__"),
        *("__dict__", "__doc__", "__firstlineno__", "__match_args__", "__module__"),
        *("__orig_bases__", "__parameters__", "__qualname__", "__slots__", "__weakref__"),
        *("__static_attributes__", "__replace__"),
    }
)
#: What runs when an object of a class is made.
_MAKING = frozenset({"__init__", "__init_subclass__", "__new__", "__post_init__", "__set_name__"})
#: Methods of Wengert's own classes that a user might replace.
_REPLACEABLE = ("forward", "init", "rule", "step")
#: Attributes of modules that Wengert reads itself.
_OF_MODULES = frozenset({"_buffers", "forward"})


def find_state(function: Callable[..., Any], arguments: Iterable[tuple[str, Any]] = ()) -> State:
    """Walk through what a function can reach.

    Parameters
    ----------
    function : callable
        Whose code is looked through.
    arguments : iterable of (str, object)
        The leaves of a call's arguments with their names. Modules, optimisers and other objects
        among them lead on; Tensors, raw arrays and numbers are no state.

    Raises
    ------
    TraceError
        If the function reaches something that can't be compared from call to call.
    """
    arguments = [(name, x) for name, x in arguments if not _is_leaf(name, x)]
    named = Named()
    while True:  # what is reached names more
        walk = _Walk(named)
        try:
            walk.root(function, arguments)
        except RecursionError:
            raise TraceError(
                "what the compiled function reaches is nested too deeply to be compared from call "
                "to call"
            ) from None
        if walk.found == named:
            return walk.state
        named = walk.found


@dataclasses.dataclass(frozen=True)
class Named:
    """What the code that has been reached names.

    Attributes
    ----------
    names, asked : frozenset of str
        Attributes, and those that need not be there.
    computed, anywhere : bool
        Whether it computes names of attributes, and those of modules, too.
    made : frozenset of type
        Classes of which it may make objects.
    """

    names: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    computed: bool = False
    anywhere: bool = False
    made: frozenset[type] = frozenset()

    def __contains__(self, name: object) -> bool:
        return self.computed or name in self.names

    def joined(self, used: Reads) -> "Named":
        """These names, and those of more code."""
        names = self.names if used.names <= self.names else self.names | used.names
        return dataclasses.replace(
            self,
            names=names,
            asked=self.asked | used.asked,
            computed=self.computed or used.computed,
            anywhere=self.anywhere or used.anywhere,
        )


def _is_leaf(name: str, x: Any) -> bool:
    """Whether an argument is compared, or given to the program, as it is."""
    if isinstance(x, Tensor):
        if isinstance(x._node, Hooked):
            raise TraceError(f"{name} is an argument with hooks, which can't be compiled")
        return True
    return type(x) in PLAIN or isinstance(x, np.generic | LiveNumber | Lifted) or is_array(x)


class _Walk:
    """One walk, for the names of attributes that the one before has found."""

    def __init__(self, named: Named) -> None:
        self.state = State()
        self.named = self.found = named
        self._seen: dict[int, tuple[int, Any]] = {}
        self._asked: set[tuple[Any, ...]] = set()
        self._called: dict[int, str] = {}
        self._optimizers: list[tuple[Optimizer, str]] = []

    def root(self, function: Any, arguments: Iterable[tuple[str, Any]]) -> None:
        """Visit all that a call reaches."""
        for name, x in arguments:
            self.visit(x, name, None)
        name = str(getattr(function, "__name__", "function"))
        if isinstance(function, MethodType):
            self.visit(function.__self__, "self", None)
            function = function.__func__
        self.visit(function, name, None)
        for optimizer, name in self._optimizers:  # their parameters have better names elsewhere
            self._optimizer(optimizer, name)

    # -- anything ------------------------------------------------------------------------------

    def at(self, place: Place) -> None:
        """Visit what is at a place, once."""
        key = id(place.owner), place.key
        if key not in self._asked:
            self._asked.add(key)
            self.visit(place.get(), place.name, place)

    def visit(self, x: Any, name: str, place: Place | None, *, looked_at: bool = False) -> None:
        """Visit something, which is at a place that is looked at in each call, already or so."""
        kind = type(x)
        if x is type and name != "__class__":
            self.state.types = True
        if isinstance(x, type) and name != "__class__" and x not in self.found.made:
            self.found = dataclasses.replace(self.found, made=self.found.made | {x})
        if kind in PLAIN or isinstance(x, np.generic):
            self.fact(name, Exact(x))
            if place is not None:
                self.state.statics.append((place, x))
            return
        if place is not None and not looked_at:
            self.state.links.append((place, x))
        if id(x) in self._seen:
            self.fact(name, ("the same as", self._seen[id(x)][0]))
            return
        self._seen[id(x)] = len(self._seen), x
        if isinstance(x, Tensor):
            self._tensor(x, name, place)
        elif (visit := self._visitor(x)) is not None:
            visit(x, name)
        elif isinstance(x, LiveNumber | Lifted) or engine(kind) or immutable(type(x)):
            self._opaque(x, name)
        elif users(kind.__module__) or open_book(kind) or package_of(kind.__module__) == "wengert":
            self._object(x, name)
        else:
            article = "an" if kind.__name__[0] in "aeiouAEIOU" else "a"
            raise TraceError(
                f"{name} is {article} {kind.__module__}.{kind.__qualname__}, which can't be "
                "compared from call to call"
            )

    def type_of(self, cls: type, name: str) -> None:
        """Visit the class of an object, or a base of it."""
        made = cls in self.found.made
        self.visit(cls, f"type of {name}", None)
        if not made and "type" not in self.named and "__class__" not in self.named:
            self.found = dataclasses.replace(self.found, made=self.found.made - {cls})

    def _visitor(self, x: Any) -> Callable[[Any, str], None] | None:
        if isinstance(x, type):
            return self._class
        for kinds, visit in (
            (FunctionType, self._function),
            (MethodType, self._method),
            (functools.partial, self._partial),
            (ModuleType, self._module),
            (Module, self._object),
            (Optimizer, lambda x, name: self._optimizers.append((x, name))),
            (enum.Enum, self._member),
            (list | tuple | dict | set | frozenset | deque | MappingProxyType, self._container),
            (slice, lambda x, name: self._parts(x, name, ("start", "stop", "step"))),
            (property, lambda x, name: self._parts(x, name, ("fget", "fset", "fdel"))),
            (staticmethod | classmethod, lambda x, name: self.visit(x.__func__, name, None)),
            (functools._lru_cache_wrapper, self._cached),
        ):
            if isinstance(x, kinds):
                return visit
        if is_array(x):
            return self._array
        if type(x).__module__ == "wengert.compiler.compiled":
            return lambda x, name: self.visit(x._function, name, None)
        if type(x) in _BOUND:
            return self._builtin
        if type(x) is type(os.environ):
            return lambda x, name: self.visit(vars(x)["_data"], name, None)
        return None

    def fact(self, name: str, what: Any) -> None:
        """Say what a program depends on."""
        self.state.facts.append(Fact(name, what))

    def test(self, changed: str, *objects: Any) -> None:
        """Say how it is seen that something has changed."""
        self.state.tests.append((changed, objects))

    def _opaque(self, x: Any, name: str) -> None:
        self.fact(name, Identity(x))

    def _parts(self, x: Any, name: str, keys: Iterable[str]) -> None:
        for key in keys:
            self.visit(getattr(x, key), f"{name}.{key}", None)

    # -- arrays --------------------------------------------------------------------------------

    def _tensor(self, x: Tensor, name: str, place: Place | None) -> None:
        self._called[id(x)] = name
        self.fact(name, "a Tensor")
        self.state.tensors.append(TensorAt(x, name, place))
        self.state.objects.append(x)
        node = x._node
        if node is not None:
            self.test("type({}) is not {}", node, type(node))
        if isinstance(node, Hooked) and node.extra is not None:
            for kind in Extra.__slots__:
                if kind != "calls":
                    self.visit(getattr(node.extra, kind), f"hooks of {name}", None)

    def _array(self, x: Any, name: str) -> None:
        size = x.dtype.itemsize if hasattr(x.dtype, "itemsize") else 8
        for length in x.shape:
            size *= length
        if size > LARGEST_ARRAY or str(x.dtype) == "object":
            raise TraceError(
                f"{name} is an array of {x.shape} elements ({x.dtype}), which is not compared from "
                "call to call; hold it in a Tensor"
            )
        held = contents(x)
        self.fact(name, held)
        self.test("contents({}) != {}", x, held)
        self.state.objects.append(x)

    # -- functions -----------------------------------------------------------------------------

    def _function(self, f: FunctionType, name: str) -> None:
        code = f.__code__
        mine = users(f.__globals__.get("__name__"))
        self.fact(name, Identity(code if mine or not importable(f) else f))
        if not mine and importable(f):
            return
        self.state.objects.append(f)
        for key in ("__code__", "__defaults__", "__kwdefaults__"):
            self.test(f"{{}}.{key} is not {{}}", f, getattr(f, key))
        for free, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            place = Place(cell, None, free, "cell")
            if place.get() is Missing:
                self._absent(place)
            else:
                self._used(place, mine and free in reads(code).filled)
        for i, default in enumerate(f.__defaults__ or ()):
            self.visit(default, "default" if type(default) not in PLAIN else f"default {i}", None)
        if f.__kwdefaults__:
            self._container(f.__kwdefaults__, f"default of {name}")
        if f.__dict__:
            self._attributes(f, vars(f), name)
        else:
            self.test("{}.__dict__", f)
        if mine:
            self._code(f, code)

    def _code(self, f: FunctionType, code: CodeType) -> None:
        used = reads(code)
        self.found = self.found.joined(used)
        scope, beneath = f.__globals__, vars(builtins)
        for key in used.globals:
            if key in scope:
                self._used(Place(scope, key, key), key in used.filled)
            else:
                self._absent(Place(scope, key, key))
                if key in beneath:
                    self.at(Place(beneath, key, key))
                    self._refuse(beneath[key])
        for target, level in used.imports:
            package = scope.get("__package__") or ""
            full = importlib.util.resolve_name("." * level + target, package) if level else target
            for part in dict.fromkeys((full.partition(".")[0], full)):
                place = Place(sys.modules, part, f"module {part}")
                if part in sys.modules:
                    self.at(place)
                else:
                    self._absent(place)

    def _used(self, place: Place, filled: bool) -> None:
        """Visit what code names; of what it adds to alone it does not matter what is in it."""
        x = place.get()
        if filled and type(x) in (list, set, dict, deque):
            self.state.links.append((place, x))
            self.state.objects.append(x)
            self.state.lengths.append((x, len(x), place.name))
        else:
            self.at(place)

    def _absent(self, place: Place) -> None:
        """Say that nothing is at a place."""
        key = id(place.owner), place.key, "absent"
        if key in self._asked:
            return
        self._asked.add(key)
        self.fact(place.name, Missing)
        if place.kind == "item":
            self.test("{} in {}", place.key, place.owner)
        else:
            self.test("{}.get() is not {}", place, Missing)

    def _refuse(self, x: Any) -> None:
        name = refused(x)
        if name:
            raise TraceError(
                f"the code asks for what it names by way of {name}, which can't be foreseen"
            )

    def _method(self, x: MethodType, name: str) -> None:
        self.visit(x.__self__, f"{name}.__self__", None)
        self.visit(x.__func__, name, None)

    def _builtin(self, x: Any, name: str) -> None:
        self._refuse(x)
        held = x.__self__
        if held is None or isinstance(held, ModuleType | type):
            self._opaque(x, name)
        else:
            self.fact(name, x.__name__)
            self.visit(held, f"{name}.__self__", None)

    def _partial(self, x: Any, name: str) -> None:
        self.visit(x.func, name, None)
        self.test("{}.func is not {}", x, x.func)
        self.test("{}.args is not {}", x, x.args)
        self._container(x.args, name)
        self._container(x.keywords, name)

    def _cached(self, x: Any, name: str) -> None:
        raise TraceError(
            f"{name} keeps its results (functools.cache), which can't be compared from call to call"
        )

    # -- modules and classes -------------------------------------------------------------------

    def _module(self, x: ModuleType, name: str) -> None:
        self._refuse(x)
        self.fact(name, Identity(x))
        held = vars(x)
        if x is os and not self.named.names.isdisjoint({"environ", "getenv"}):
            self.visit(os.environ, "os.environ", None)
        mine = users(x.__name__)
        for key, value in list(held.items()):
            named = self.named.anywhere or key in self.named.names
            if named and not key.startswith("__") and (mine or type(value) in PLAIN):
                self.at(Place(held, key, f"{name}.{key}"))
        for key in sorted(self.named.asked - held.keys()) if mine else ():
            self._absent(Place(held, key, f"{name}.{key}"))

    def _class(self, cls: type, name: str) -> None:
        self.fact(name, Identity(cls))
        if engine(cls) or not any(users(base.__module__) for base in cls.__mro__):
            return self._foreign_class(cls)
        if issubclass(cls, enum.Enum):
            self._container(cls._member_map_, name)
        self.test("{}.__mro__ is not {}", cls, cls.__mro__)
        if users(type(cls).__module__):
            self.type_of(type(cls), name)
        foreign = [base for base in cls.__mro__ if not users(base.__module__)]
        for base in cls.__mro__:
            if not users(base.__module__):
                self._foreign_class(base)
            elif base is cls:
                self._class_attributes(cls, foreign)
            else:
                self.type_of(base, base.__name__)
        return None

    def _class_attributes(self, cls: type, foreign: list[type]) -> None:
        held = vars(cls)
        self.test("[*{}] != {}", held, [*held])
        for key, x in list(held.items()):
            if key in _ABOUT_CLASSES or type(x).__name__ in ("member_descriptor", "_abc_data"):
                continue
            if key in _MAKING and cls not in self.named.made and key not in self.named.names:
                continue
            if (
                key in self.named
                or (key.startswith("__") and key.endswith("__"))
                or any(key in vars(base) for base in foreign)  # called by the one who wrote that
            ):
                self.at(Place(cls, key, f"{cls.__name__}.{key}", "class"))

    def _foreign_class(self, cls: type) -> None:
        if cls.__module__.startswith(("wengert.nn", "wengert.optim")):
            for key in _REPLACEABLE:
                if key in vars(cls):
                    self.at(Place(cls, key, f"{cls.__name__}.{key}", "class"))

    # -- objects -------------------------------------------------------------------------------

    def _object(self, x: Any, name: str) -> None:
        """Visit an object with attributes."""
        cls = type(x)
        self.type_of(cls, name)
        self.state.objects.append(x)
        if isinstance(x, int | float | complex | str | bytes):
            self._opaque(x, name)
        held = getattr(x, "__dict__", None)
        if held is not None:
            self._attributes(x, held, name)
        self.test("type({}) is not {}", x, cls)
        for base in cls.__mro__:
            for key in _slots(base):
                if key in self.named or dataclasses.is_dataclass(cls) or not users(base.__module__):
                    place = Place(x, key, f"{name}.{key}", "attribute")
                    if place.get() is Missing:
                        self._absent(place)
                    else:
                        self.at(place)

    def _attributes(self, x: Any, held: dict[str, Any], name: str) -> None:
        self.test("{}.__dict__ is not {}", x, held)
        self.test("[*{}] != {}", held, [*held])
        wanted = self._wanted(x)
        if isinstance(x, Module):  # which need not have set it
            self.fact(f"{name}.training", Exact(x.training))
        for key, value in list(held.items()):
            if key == PROGRAMS:
                continue
            if key == "training" and isinstance(x, Module):
                self.state.statics.append((Place(held, key, f"{name}.training"), value))
            elif wanted(key, value):
                self.at(Place(held, key, f"{name}.{key}"))

    def _wanted(self, x: Any) -> Callable[[str, Any], bool]:
        """Which attributes of an object count."""
        cls = type(x)
        if open_book(cls) or dataclasses.is_dataclass(cls) or cls.__module__[:8] == "wengert.":
            return lambda key, value: True
        if isinstance(x, Module):
            if any(
                base is not Module and base.__module__[:8] == "wengert." for base in cls.__mro__
            ):
                return lambda key, value: True
            return lambda key, value: (
                key in self.named or key in _OF_MODULES or isinstance(value, Tensor | Module)
            )
        return lambda key, value: key in self.named or key.startswith("__")

    def _member(self, x: enum.Enum, name: str) -> None:
        self.type_of(type(x), name)
        self.fact(name, x.name)
        self.state.objects.append(x)
        held = vars(x)
        for key in held:
            if key == "_value_" or key in self.named:
                self.at(Place(held, key, f"{name}.{key}"))

    # -- containers ----------------------------------------------------------------------------

    def _container(self, x: Any, name: str) -> None:
        if len(x) > LARGEST:
            raise TraceError(
                f"{name} has {len(x)} elements, which are not compared from call to call; give the "
                "function those that it needs, or hold them in a Tensor"
            )
        cls = type(x)
        if users(cls.__module__):
            self._object(x, name)
        self.fact(name, Identity(cls))
        if cls in (list, dict):
            self.state.lengths.append((x, len(x), name))
        nested: dict[int, Any] = {}
        if cls in (list, dict, tuple) and self._all_plain(x, nested):
            self.fact(name, Exact(x))
            if nested:
                self.test("dump({}) != {}", x, dump(x))
            self._seen |= {key: (len(self._seen), part) for key, part in nested.items()}
            self.state.objects += nested.values()
            return
        self.state.objects.append(x)
        if cls.__name__ == "defaultdict":
            self.visit(x.default_factory, f"{name}.default_factory", None)
        if isinstance(x, deque):
            self.fact(name, x.maxlen)
        if isinstance(x, dict | MappingProxyType):
            self._keys(x, name)
        elif isinstance(x, set):
            self._identities(x)
        elif not isinstance(x, tuple | frozenset):
            self.test("len({}) != {}", x, len(x))
        self.fact(name, len(x))
        if isinstance(x, list | deque) and len(x) > LONG:
            self._long(x, name)
            return
        held = isinstance(x, list | dict | deque)
        pairs = x.items() if isinstance(x, dict | MappingProxyType) else enumerate(x)
        for key, value in list(pairs):
            called = f"{name}[{_shown(key)}]"
            if held:
                self.at(Place(x, key, called))
            else:
                self.visit(value, called, Place(x, key, called) if _indexed(x) else None)

    def _identities(self, x: Iterable[Any]) -> None:
        """Look at all objects of a container in one go, and keep them: an identity is theirs."""
        kept = [*x]
        self.test("[*map(id, {})] != {}", x, [*map(id, kept)], kept)

    def _long(self, x: Any, name: str) -> None:
        """Visit a list that is looked at in one go."""
        self._identities(x)
        plain = [type(value) in PLAIN for value in x]
        self.fact(name, Exact([None if not plain[i] else value for i, value in enumerate(x)]))
        for i, value in enumerate(x):
            if not plain[i]:
                called = f"{name}[{i}]"
                self.visit(value, called, Place(x, i, called), looked_at=True)

    def _all_plain(self, x: Any, nested: dict[int, Any]) -> bool:
        """Whether a container is a nest of plain values, no part of which is known elsewhere."""
        return _plain(x, nested) and self._seen.keys() & nested.keys() <= {id(x)}

    def _keys(self, x: Mapping[Any, Any], name: str) -> None:
        keys = [*x]
        if all(type(key) is str for key in keys):
            self.test("[*{}] != {}", x, keys)
        else:
            self._identities(x)
        for key in keys:
            self.visit(key, f"a key of {name}", None)

    # -- optimisers ----------------------------------------------------------------------------

    def _optimizer(self, optimizer: Optimizer, name: str) -> None:
        state, held, cls = self.state, vars(optimizer), type(optimizer)
        self.fact(name, Identity(cls))
        self.type_of(cls, name)
        self.test("type({}) is not {}", optimizer, cls)
        self.test("{}.__dict__ is not {}", optimizer, held)
        state.objects += [optimizer, optimizer.param_groups, optimizer.state]
        for key in held:
            place = Place(held, key, f"{name}.{key}")
            if key in ("param_groups", "state"):
                state.links.append((place, held[key]))
            elif key in self.named and key != "defaults":
                self.at(place)
        groups, kept = optimizer.param_groups, optimizer.state
        state.lengths.append((groups, len(groups), name))
        self.test("len({}) != {}", groups, len(groups))
        state.lengths.append((kept, len(kept), f"{name}.state{OF_OPTIMIZER}"))
        self.test("len({}) != {}", kept, len(kept))
        for i, group in enumerate(groups):
            prefix = name if len(groups) == 1 else f"{name}.{i}"
            state.links.append((Place(groups, i, prefix), group))
            self._group(group, prefix, kept)

    def _group(self, group: dict[str, Any], prefix: str, states: Mapping[Any, Any]) -> None:
        state, params = self.state, group["params"]
        state.objects += [group, params]
        state.lengths.append((params, len(params), f"{prefix}.params"))
        self.fact(prefix, tuple(group))
        self.test("[*{}] != {}", group, [*group])
        self.test("len({}) != {}", params, len(params))
        for key, value in group.items():
            place = Place(group, key, f"{prefix}.{key}")
            if key == "params":
                state.links.append((place, params))
            elif type(value) in NUMBERS:
                self._number(place)
            else:
                self.at(place)
        counters: dict[tuple[str, Any], int] = {}
        for i, param in enumerate(params):
            state.links.append((Place(params, i, f"{prefix}.params[{i}]"), param))
            self.visit(param, f"{prefix}.params[{i}]", None)
            kept = states.get(param)
            if kept is not None:
                called = self._called[id(param)]
                state.links.append((Place(states, param, called), kept))
                self._kept(kept, called, counters)

    def _kept(self, kept: dict[str, Any], name: str, counters: dict[tuple[str, Any], int]) -> None:
        """What an optimiser keeps for one parameter."""
        self.state.objects.append(kept)
        self.state.lengths.append((kept, len(kept), f"{name}{OF_OPTIMIZER}"))
        self.test("[*{}] != {}", kept, [*kept])
        for key, value in kept.items():
            place = Place(kept, key, f"{name}.{key}")
            if type(value) in NUMBERS:
                known = value.value if isinstance(value, LiveNumber) else value
                self._number(place, counters.setdefault((key, known), len(self.state.numbers)))
            elif hasattr(value, "dtype"):
                self.fact(place.name, "an array")
                self.state.arrays.append(place)
            else:
                self.at(place)

    def _number(self, place: Place, shared: int | None = None) -> None:
        numbers = self.state.numbers
        kind = type(place.get())
        self.fact(place.name, Identity(place.get().follows if kind is LiveNumber else kind))
        self.state.shares.append(len(numbers) if shared is None else shared)
        numbers.append(place)


#: Classes of functions that are written in C, and may have an object.
_BOUND = (type(len), type([].__len__))


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


def _slots(cls: type) -> list[str]:
    if not (users(cls.__module__) or cls.__module__.startswith("wengert.func")):
        return []
    return [key for key, x in vars(cls).items() if type(x).__name__ == "member_descriptor"]


def _indexed(x: Any) -> bool:
    return isinstance(x, MappingProxyType)


def _shown(key: Any) -> str:
    return repr(key) if type(key) in PLAIN else f"a {type(key).__name__}"
