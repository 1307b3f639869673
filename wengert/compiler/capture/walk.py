"""The walk: finds the state of a function, all objects that its code can reach by name.

A function reaches its closure, the globals that it names, its defaults, its ``self`` and its
imports, and from these modules, objects, classes, containers and other functions. Only attributes
that reached code names are visited. An object is either an input of programs (Tensors, optimisers'
state, hyper-parameters), or guarded (plain values, raw arrays' contents, code, structure), or the
walk raises an error.
"""

import abc
import builtins
import decimal
import enum
import functools
import importlib.util
import math
import operator
import os
import sys
import typing
from collections import deque
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, GenericAlias, MethodType, ModuleType, UnionType
from typing import Any

import numpy as np

from wengert.backends import backend_of
from wengert.compiler.capture.classes import visit_class, visit_module
from wengert.compiler.capture.containers import (
    CONTAINERS,
    of_one_structure,
    visit_container,
    visit_tuple,
    which_tuples,
)
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.foreign import (
    is_engine_class,
    is_immutable,
    is_module_level,
    is_open,
    of_user,
    package_of,
    reads_by_name,
    refuse,
)
from wengert.compiler.capture.named import Named
from wengert.compiler.capture.optimizers import OF_OPTIMIZERS, REPLACEABLE, visit_optimizer
from wengert.compiler.capture.places import (
    NUMBERS,
    PLAIN,
    PROGRAMS,
    Exact,
    Fact,
    Identity,
    Missing,
    Place,
    State,
    TensorAt,
    WalkOptions,
    contents,
    is_array,
    is_array_class,
    settable,
    slots_of,
)
from wengert.compiler.capture.reads import reads
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.func.trees import TreeDef, is_node
from wengert.interpreters.lifted import Lifted
from wengert.nn.hooks import HOOKS
from wengert.nn.module import Module
from wengert.optim.optimizer import Optimizer
from wengert.tape.hooks import Extra, Hooked
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["find_state", "is_leaf"]

#: Raw arrays of more bytes are refused as data.
LARGEST_ARRAY = 1 << 20
#: Attributes of functions and classes that are not in their ``__dict__``, or only in some.
_TEXTS = ("__name__", "__qualname__", "__module__", "__doc__")
#: Attributes of nn modules that Wengert reads.
_OF_MODULES = frozenset({"_buffers", "forward", HOOKS})


def find_state(
    function: Callable[..., Any],
    arguments: Iterable[tuple[str, Any]] = (),
    structure: TreeDef | None = None,
    *,
    options: WalkOptions = WalkOptions(),  # noqa: B008
) -> State:
    """Walk through all that a function can reach.

    Parameters
    ----------
    function : callable
        The function.
    arguments : iterable of (str, object)
        The leaves of a call's arguments with their names. Modules, optimisers and other objects
        among them are visited; Tensors, raw arrays and numbers are no state.
    structure : TreeDef, optional
        Of the arguments, whose user-defined classes are visited.
    options : WalkOptions
        Which values are inputs.

    Raises
    ------
    TraceError
        If the function reaches an object that can't be guarded.
    """
    arguments = [(name, x) for name, x in arguments if not is_leaf(name, x)]
    nodes = () if structure is None else _nodes_of(structure)
    named = Named.by(function)
    while True:  # until the reached code names no more attributes
        walk = Walk(named, options)
        try:
            walk.root(function, arguments, nodes)
            for optimizer, name in walk.optimizers:  # last, so that parameters are named by modules
                visit_optimizer(walk, optimizer, name)
        except RecursionError:
            raise TraceError(
                "what the compiled function reaches is nested too deeply to be compared from call "
                "to call"
            ) from None
        if walk.found == named:
            which_tuples(walk)
            return walk.state
        named = walk.found


def _nodes_of(structure: TreeDef) -> list[Any]:
    """The user's classes in the structure of arguments, and the constants that it holds."""
    found = _held_by(structure.extra)
    if structure.cls and of_user(structure.cls.__module__):
        found.insert(0, structure.cls)
    return found + [x for child in structure.children for x in _nodes_of(child)]


def _held_by(extra: Any) -> list[Any]:
    if type(extra) is tuple:
        return [x for part in extra for x in _held_by(part)]
    return [] if type(extra) in PLAIN or hasattr(extra, "inserted") else [extra]


def _rounding() -> tuple[Any, ...]:
    """The settings of decimal arithmetic."""
    held = decimal.getcontext()
    return held.prec, held.rounding, held.Emin, held.Emax, held.clamp, *held.traps.values()


def is_leaf(name: str, x: Any) -> bool:
    """Whether an argument is guarded or passed to the program itself, and not visited."""
    if isinstance(x, Tensor):
        if isinstance(x._node, Hooked):
            raise TraceError(f"{name} is an argument with hooks, which can't be compiled")
        if of_user(type(x).__module__):
            raise TraceError(
                f"{name} is an argument of a subclass of Tensor, which can't be compiled"
            )
        return True
    return type(x) in PLAIN or isinstance(x, np.generic | TracedNumber | Lifted) or is_array(x)


class Walk:
    """One walk, with the attribute names that the walk before has found."""

    def __init__(self, named: Named, options: WalkOptions) -> None:
        self.state = State()
        self.state.options = options
        self.named, self.found = named, named.branch()
        self.seen: dict[int, tuple[int, Any]] = {}
        self._asked: set[Any] = set()
        self.optimizers: list[tuple[Optimizer, str]] = []

    def root(
        self, function: Any, arguments: Iterable[tuple[str, Any]], nodes: Iterable[Any]
    ) -> None:
        """Visit all that a call reaches, except optimisers' contents."""
        for x in nodes:
            if isinstance(x, type):
                self.type_of(x, "an argument", made=True)
            else:
                self.visit(x, "a field of an argument", None)
        for name, x in arguments:
            self.visit(x, name, None)
        name = str(getattr(function, "__name__", "function"))
        if isinstance(function, MethodType):
            self._method(function, name, "self")
        else:
            self.visit(function, "self" if isinstance(function, Module) else name, None)
        self.state.types |= self.found.typed

    # -- any object ----------------------------------------------------------------------------

    def at(self, place: Place) -> None:
        """Visit the object at a place once; guard that an empty place stays empty."""
        key = id(place.owner), place.key
        if key in self._asked:
            return
        self._asked.add(key)
        x = place.get()
        if x is Missing:
            self.fact(place.name, Missing)
            self.state.held.append((place, Missing))
        else:
            self.visit(x, place.name, place)

    def visit(
        self,
        x: Any,
        name: str,
        place: Place | None,
        *,
        owner: type | None = None,
        looked_at: bool = False,
        made: bool = True,
    ) -> None:
        """Visit an object at a place, and guard the place unless ``looked_at`` says it is guarded.

        For a method, ``owner`` is the class of its first argument; for a class, ``made`` says
        whether code may make objects of it.
        """
        kind = type(x)
        changed = self.state.options.changed
        if place is not None and not looked_at and place.name in changed and settable(place):
            if kind in NUMBERS:
                self.number(place._replace(of_user=True))
                return
            if isinstance(x, tuple) and of_one_structure(x, x):
                visit_tuple(self, x, place)
                return
        if kind in PLAIN or isinstance(x, np.generic):
            self.fact(name, Exact(x))
            if place is not None:
                self.state.held.append((place, x))
            return
        if isinstance(x, type):
            if made and name != "__class__":
                self.found.made.add(id(x))
                self.state.types |= x is type
        elif kind is FunctionType and of_user(x.__globals__.get("__name__")):
            if place is not None and place.kind == "class":
                owner = place.owner
            self.found.owners.add((id(x.__code__), 0 if owner is None else id(owner)))
        given = False
        if isinstance(x, Tensor) and (place is None or looked_at):
            self.state.fixed.add(id(x))
        if place is not None and not looked_at:
            given = self._is_input(x, place)
            if not given:
                self.state.held.append((place, x))
        if id(x) in self.seen:
            if is_array(x):
                self.found.shared.add(id(x))
            if isinstance(x, Tensor) and place is not None and not looked_at:
                self.state.also.append(TensorAt(x, name, place))
            self.fact(name, ("the same as", self.seen[id(x)][0]))
            return
        self.seen[id(x)] = len(self.seen), x
        self.state.called[id(x)] = name
        if kind is decimal.Decimal or x is decimal.Decimal or x is decimal:
            self.setting("how decimals are rounded", _rounding)
        if isinstance(x, Tensor):
            self._tensor(x, name, place)
        elif given:
            self.fact(name, "an array")
            self.state.arrays.append(place._replace(of_user=True))  # type: ignore[union-attr]
        elif (visit := _visitor(kind)) is not None:  # type: ignore[arg-type]
            visit(self, x, name)
        else:
            article = "an" if kind.__name__[0] in "aeiouAEIOU" else "a"
            raise TraceError(
                f"{name} is {article} {kind.__module__}.{kind.__qualname__}, which can't be "
                "compared from call to call"
            )

    def number(self, place: Place, shared: int | None = None) -> None:
        """Make the number at a place an input; ``shared`` is the input that it equals."""
        numbers, x = self.state.numbers, place.get()
        self.fact(place.name, Identity(type(x)))
        self.state.shares.append(len(numbers) if shared is None else shared)
        numbers.append(place)

    def type_of(self, cls: type, name: str, *, made: bool = False) -> None:
        """Visit the class of an object, or a base of a class, of which code makes objects."""
        self.visit(cls, f"type of {name}", None, made=made or self.named.untyped)

    def reached(self, x: Any, name: str) -> None:
        """Add a mutable object, and its name."""
        self.state.objects.append(x)
        self.state.called.setdefault(id(x), name)

    def fact(self, name: str, what: Any) -> None:
        """Add a fact that a program assumes."""
        self.state.facts.append(Fact(name, what))

    def test(self, changed: str, *objects: Any) -> None:
        """Add a guard: an expression that is true after a change."""
        self.state.tests.append((changed, objects))

    def opaque(self, x: Any, name: str) -> None:
        """Guard an object by its identity alone."""
        self.fact(name, Identity(x))
        self.found.reached(x)
        if isinstance(x, operator.attrgetter | operator.methodcaller):
            for path in x.__reduce__()[1]:
                self.found.names.update(str(path).split("."))
        elif reads_by_name(x):
            self.found.computed = self.found.anywhere = True

    def _row(self, x: Primitive, name: str) -> None:
        """Visit the rules of an operation, which may be the user's."""
        self.opaque(x, name)
        rules = (*x.rules.values(), x.shared, *x.jvps.values())
        for rule in (x.composite, x.batch, *rules):
            if isinstance(rule, FunctionType):
                self.visit(rule, f"a rule of {x.name}", None)

    # -- arrays --------------------------------------------------------------------------------

    def _tensor(self, x: Tensor, name: str, place: Place | None) -> None:
        self.fact(name, "a Tensor")
        self.state.tensors.append(TensorAt(x, name, place))
        self.state.objects.append(x)
        self.extra_attributes(x, name)
        node = x._node
        if node is not None:
            self.test("type({}) is not {}", node, type(node))
        if isinstance(node, Hooked) and node.extra is not None:
            for kind in Extra.__slots__:
                self.visit(getattr(node.extra, kind), f"hooks of {name}", None)

    def _is_input(self, x: Any, place: Place) -> bool:
        """Whether a raw array is an input: its place can be set, and it is at no other place."""
        return (
            is_array(x)
            and not (self.state.options.by_contents or id(x) in self.named.shared)
            and not of_user(type(x).__module__)
            and (place.kind != "item" or isinstance(place.owner, dict | list | deque))
            and str(x.dtype) != "object"
        )

    def _array(self, x: Any, name: str) -> None:
        self.extra_attributes(x, name)
        size = getattr(x.dtype, "itemsize", 8) * math.prod(x.shape)
        if size > LARGEST_ARRAY or str(x.dtype) == "object":
            raise TraceError(
                f"{name} is an array of shape {x.shape} ({x.dtype}), which is too large, or not "
                "plain, to be compared in each call; hold it in a Tensor"
            )
        held = contents(x)
        self.fact(name, held)
        if not backend_of(x).immutable:
            self.test("contents({}) != {}", x, held)
            self.state.objects.append(x)
            self.state.raws.append(x)

    # -- functions -----------------------------------------------------------------------------

    def _function(self, f: FunctionType, name: str) -> None:
        code = f.__code__
        mine = of_user(f.__globals__.get("__name__"))
        self.fact(name, Identity(code if mine or not is_module_level(f) else f))
        if not mine and is_module_level(f):
            refuse(f)
            return
        self.state.objects.append(f)
        for key in ("__code__", "__defaults__", "__kwdefaults__"):
            self.test(f"{{}}.{key} is not {{}}", f, getattr(f, key))
        for free, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            if free == "__classdict__":  # a class's names, for its annotations: Python 3.14
                continue
            place = Place(cell, "cell_contents", free, "attribute")
            self._used(place, mine and free in reads(code).filled)
        for i, default in enumerate(f.__defaults__ or ()):
            self.visit(default, "default" if type(default) not in PLAIN else f"default {i}", None)
        if f.__kwdefaults__:
            visit_container(self, f.__kwdefaults__, f"default of {name}")
        self._attributes(f, vars(f), name)
        self.texts(f, name)
        if mine:
            self._code(f, code)

    def _code(self, f: FunctionType, code: CodeType) -> None:
        used = reads(code)
        scope, beneath = f.__globals__, vars(builtins)
        self.found.add(f, used)
        for key in used.globals:
            self._used(Place(scope, key, key), key in used.filled)
            if key not in scope and key in beneath:
                place = Place(beneath, key, key)
                if reads_by_name(beneath[key]) or key == "type":  # `reads` has their arguments
                    self.state.held.append((place, beneath[key]))
                else:
                    self.at(place)
                    refuse(beneath[key])
        for target, level in used.imports:
            package = scope.get("__package__") or ""
            full = importlib.util.resolve_name("." * level + target, package) if level else target
            for part in dict.fromkeys((full.partition(".")[0], full)):
                self.at(Place(sys.modules, part, f"module {part}"))

    def texts(self, x: FunctionType | type, name: str) -> None:
        """Visit the names and the docstring of a function or class, if code reads them."""
        for key in _TEXTS:
            if self.named.wants(x, key):
                self.at(Place(x, key, f"{name}.{key}", "attribute"))

    def _used(self, place: Place, filled: bool) -> None:
        """Visit a variable; elements of a container that code only adds to are ignored."""
        x = place.get()
        if filled and type(x) in (list, set, dict, deque):
            self.state.held.append((place, x))
            self.reached(x, place.name)
        else:
            self.at(place)

    def setting(self, name: str, read: Callable[[], Any]) -> None:
        """Guard a global setting, once."""
        if read not in self._asked:
            self._asked.add(read)
            now = read()
            self.fact(name, now)
            self.test("{}() != {}", read, now)

    def abstract(self) -> None:
        """Guard the registrations with abstract classes."""
        self.setting("what is registered with abstract classes", abc.get_cache_token)

    def _method(self, x: MethodType, name: str, called: str = "") -> None:
        self.visit(x.__self__, called or f"{name}.__self__", None)
        self.visit(x.__func__, name, None, owner=type(x.__self__))

    def _builtin(self, x: Any, name: str) -> None:
        refuse(x)
        held = x.__self__
        if reads_by_name(x) or (type(held) is str and x.__name__.startswith("format")):
            self.found.computed = self.found.anywhere = True
        if held is None or isinstance(held, ModuleType | type):
            self.opaque(x, name)
        else:
            self.fact(name, x.__name__)
            self.visit(held, f"{name}.__self__", None)

    def _partial(self, x: Any, name: str) -> None:
        self.state.objects.append(x)
        self.extra_attributes(x, name)
        self.visit(x.func, name, None)
        self.test("{}.func is not {}", x, x.func)
        self.test("{}.args is not {}", x, x.args)
        visit_container(self, x.args, name)
        visit_container(self, x.keywords, name)

    def _cached(self, x: Any, name: str) -> None:
        raise TraceError(
            f"{name} keeps its results (functools.cache), which can't be compared from call to call"
        )

    # -- objects -------------------------------------------------------------------------------

    def object(self, x: Any, name: str) -> None:
        """Visit an object with attributes."""
        cls = type(x)
        self.found.of(x)
        self.type_of(cls, name)
        self.state.objects.append(x)
        if isinstance(x, int | float | complex | str | bytes):
            self.opaque(x, name)
        held = getattr(x, "__dict__", None)
        if held is not None:
            self._attributes(x, held, name)
        self.test("type({}) is not {}", x, cls)
        for base in cls.__mro__:
            mine = of_user(base.__module__)
            known = mine or package_of(base.__module__) == "wengert" or is_open(base)
            for key in slots_of(base) if known else ():
                if is_node(cls) or not mine or self.named.wants(x, key):
                    self.at(Place(x, key, f"{name}.{key}", "attribute"))

    def extra_attributes(self, x: Any, name: str) -> None:
        """Visit attributes that an object of a known kind has besides."""
        if of_user(type(x).__module__):
            self.object(x, name)
        elif (held := getattr(x, "__dict__", None)) is not None:
            self._attributes(x, held, name)

    def _attributes(self, x: Any, held: dict[str, Any], name: str) -> None:
        if not held:
            self.test("{}.__dict__", x)
            return
        self.test("{}.__dict__ is not {}", x, held)
        self.test("[*{}] != {}", held, [*held])
        wants = self._wants(x)
        if isinstance(x, Module):  # it may be the class's attribute
            self.fact(f"{name}.training", Exact(x.training))
        for key, value in list(held.items()):
            if key == PROGRAMS:
                continue
            if key == "training" and isinstance(x, Module):
                self.state.held.append((Place(held, key, f"{name}.training"), value))
            elif wants is None or wants(key, value):
                self.at(Place(held, key, f"{name}.{key}"))

    def _wants(self, x: Any) -> Callable[[str, Any], bool] | None:
        """A test of which attributes of an object are visited; None for all."""
        cls, named = type(x), self.named
        if isinstance(x, Optimizer):
            return lambda key, value: (
                key in REPLACEABLE or (named.wants(x, key) and key not in OF_OPTIMIZERS)
            )
        if isinstance(x, enum.Enum):
            return lambda key, value: key == "_value_" or named.wants(x, key)
        if is_open(cls) or is_node(cls):
            return None
        own = [base for base in cls.__mro__ if package_of(base.__module__) == "wengert"]
        if own and own != [Module]:  # whose code reads more than the user's names
            return None
        if own:
            return lambda key, value: (
                named.wants(x, key) or key in _OF_MODULES or isinstance(value, Tensor | Module)
            )
        special = of_user(cls.__module__) or cls is FunctionType
        return lambda key, value: named.wants(x, key) or (special and key.startswith("__"))

    def _member(self, x: enum.Enum, name: str) -> None:
        self.fact(name, x.name)
        self.object(x, name)


Visitor = Callable[[Walk, Any, str], None]


def _optimizer(walk: Walk, x: Any, name: str) -> None:
    walk.optimizers.append((x, name))


def _parts(*keys: str) -> Visitor:
    """A visitor of some attributes of an immutable object."""

    def visit(walk: Walk, x: Any, name: str) -> None:
        if isinstance(x, staticmethod | classmethod):
            walk.extra_attributes(x, name)
        for key in keys:
            walk.visit(getattr(x, key), f"{name}.{key}" if len(keys) > 1 else name, None)

    return visit


_compiled, _external = _parts("_function"), _parts("_vjp")

#: The visitors of classes; the first match is used.
_VISITORS: list[tuple[type | tuple[type, ...], Visitor]] = [
    (type, visit_class),
    (FunctionType, Walk._function),
    (MethodType, Walk._method),
    (functools.partial, Walk._partial),
    (ModuleType, visit_module),
    (Module, Walk.object),
    (Optimizer, _optimizer),
    (enum.Enum, Walk._member),
    (CONTAINERS, visit_container),
    (slice, _parts("start", "stop", "step")),
    ((staticmethod, classmethod), _parts("__func__")),
    (GenericAlias, _parts("__origin__", "__args__")),
    (UnionType, _parts("__args__")),
    ((typing._BaseGenericAlias, typing.NewType), _parts("__dict__")),  # type: ignore[attr-defined]
    (functools.cached_property, _parts("func")),  # its value is in the object's ``__dict__``
    (functools._lru_cache_wrapper, Walk._cached),
    ((type(len), type([].__len__)), Walk._builtin),
    (type(os.environ), _parts("_data")),
]


@functools.cache
def _visitor(kind: type) -> Visitor | None:
    """The visitor for objects of a class; None if they can't be guarded."""
    if issubclass(kind, Primitive):
        return Walk._row
    if issubclass(kind, TracedNumber | Lifted) or is_engine_class(kind):
        return Walk.opaque
    for kinds, visit in _VISITORS:
        if issubclass(kind, kinds):
            return visit
    if is_array_class(kind):
        return Walk._array
    if kind.__module__ == "wengert.compiler.compiled":
        return _compiled
    if kind.__module__ == "wengert.compiler.opaque":
        return _external
    if is_immutable(kind):
        return Walk.opaque
    if of_user(kind.__module__) or is_open(kind) or package_of(kind.__module__) == "wengert":
        return Walk.object
    return None
