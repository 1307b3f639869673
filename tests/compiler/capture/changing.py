"""What may change between two calls of a compiled function.

A table of places × kinds of values × changes. A place is one in which a function finds something;
a kind of values has two that differ and what can be done to one in place. Each case compiles a
function that computes with what is in the place, changes that, and compares with the function.
"""

import collections
import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg

X = [1.5, -2.0, 0.25]


def use(thing: Any, x: Any) -> Any:
    """Compute with anything."""
    if thing is None:
        return x + 100
    if isinstance(thing, str):
        return x * len(thing)
    if callable(thing):
        return thing(x)
    return x * thing


# -- kinds of values -------------------------------------------------------------------------------


class Scale(wg.nn.Module):
    """A Module with state of every kind."""

    def __init__(self, by: float) -> None:
        self.weight = wg.nn.Parameter(wg.asarray([by, by, by]))
        self.register_buffer("shift", wg.asarray([by, 0.0, 0.0]))
        self.power = 1

    def forward(self, x: Any) -> Any:
        return x * self.weight**self.power + self.shift


def scaling(by: float) -> Callable[[Any], Any]:
    def scaled(x: Any, and_by: Any = 1.0) -> Any:
        return x * by * and_by

    return scaled


def shifting(by: float) -> Callable[[Any], Any]:
    return lambda x, and_by=1.0: x * by * and_by + 10.0


def _frozen(module: Any) -> None:
    module.weight.requires_grad = False


def _assigned(module: Any) -> None:
    with wg.no_grad():
        module.weight += 1.0


def _attribute(name: str, value: Any) -> Callable[[Any], None]:
    return lambda x: setattr(x, name, value)


def _in_place(x: Any) -> None:
    x += 1.0


def _item(x: Any) -> None:
    x[1] = 7.0


#: For each kind two values, and what can be done to a value in place.
KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any], dict[str, Callable[[Any], None]]]] = {
    "number": (lambda: 2.0, lambda: 3.5, {}),
    "string": (lambda: "ab", lambda: "abcd", {}),
    "None": (lambda: None, lambda: 5, {}),
    "ndarray": (
        lambda: np.asarray([1.0, 2.0, 3.0], dtype=np.float32),
        lambda: np.asarray([1.0, 2.5, 3.0], dtype=np.float32),
        {"in place": _in_place, "an item": _item},
    ),
    "Tensor": (
        lambda: wg.asarray([1.0, 2.0, 3.0]),
        lambda: wg.asarray([1.0, 2.0, 3.5]),
        {"in place": _in_place, "an item": _item},
    ),
    "Module": (
        lambda: Scale(2.0),
        lambda: Scale(3.0),
        {
            "a parameter in place": _assigned,
            "a parameter": lambda m: setattr(m, "weight", wg.nn.Parameter(wg.ones(3) * 4)),
            "a parameter that is frozen": _frozen,
            "a buffer": lambda m: setattr(m, "shift", wg.ones(3)),
            "an attribute": _attribute("power", 2),
            "behind its back": lambda m: vars(m).update(power=3),
            "a method": lambda m: setattr(m, "forward", lambda x: x - 1),
        },
    ),
    "function": (
        lambda: scaling(2.0),
        lambda: scaling(3.0),
        {
            "a default": _attribute("__defaults__", (5.0,)),
            "what it closes over": lambda f: setattr(f.__closure__[0], "cell_contents", 6.0),
            "its code": lambda f: setattr(f, "__code__", shifting(1.0).__code__),
        },
    ),
}


# -- places ----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Held:
    """A function, and how to change what it finds in one place."""

    function: Callable[..., Any]
    put: Callable[[Any], None]
    take: Callable[[], None] | None = None
    arguments: Callable[[], tuple[Any, ...]] = tuple


def defined(source: str, **names: Any) -> dict[str, Any]:
    names |= {"use": use, "__name__": __name__, "__builtins__": __builtins__}
    exec(source, names)
    return names


def a_global(thing: Any) -> Held:
    scope = defined("def f(x): return use(thing, x)", thing=thing)
    return Held(scope["f"], lambda v: scope.update(thing=v), lambda: scope.pop("thing"))


def a_global_of_a_helper(thing: Any) -> Held:
    scope = defined("def g(x): return use(thing, x)\ndef f(x): return g(x)", thing=thing)
    return Held(scope["f"], lambda v: scope.update(thing=v), lambda: scope.pop("thing"))


def a_closure(thing: Any) -> Held:
    def f(x: Any) -> Any:
        return use(thing, x)

    def put(v: Any) -> None:
        nonlocal thing
        thing = v

    return Held(f, put)


def a_default(thing: Any) -> Held:
    def f(x: Any, held: Any = thing) -> Any:
        return use(held, x)

    def g(x: Any) -> Any:
        return f(x)

    return Held(g, _one(f, "__defaults__"))


def _one(f: Any, name: str) -> Callable[[Any], None]:
    return lambda v: setattr(f, name, (v,))


def a_default_by_keyword(thing: Any) -> Held:
    def f(x: Any, *, held: Any = thing) -> Any:
        return use(held, x)

    defaults = f.__kwdefaults__
    return Held(lambda x: f(x), lambda v: defaults.update(held=v), lambda: defaults.pop("held"))


def an_attribute_of_a_function(thing: Any) -> Held:
    def f(x: Any) -> Any:
        return use(f.thing, x)  # type: ignore[attr-defined]

    return _attribute_of(f, f, thing)


def _attribute_of(owner: Any, function: Any, thing: Any, name: str = "thing") -> Held:
    setattr(owner, name, thing)
    return Held(function, lambda v: setattr(owner, name, v), lambda: delattr(owner, name))


class Plain:
    """An object with attributes and methods."""

    def method(self, x: Any) -> Any:
        return use(self.thing, x)  # type: ignore[attr-defined]


class Slotted:
    """An object with a slot."""

    __slots__ = ("thing",)


class Child(Plain):
    """An object that inherits."""


def an_attribute(thing: Any) -> Held:
    owner = Plain()
    return _attribute_of(owner, lambda x: use(owner.thing, x), thing)  # type: ignore[attr-defined]


def an_attribute_of_self(thing: Any) -> Held:
    owner = Plain()
    return _attribute_of(owner, owner.method, thing)


def an_attribute_by_getattr(thing: Any) -> Held:
    owner, names = Plain(), ["thi", "ng"]
    return _attribute_of(owner, lambda x: use(getattr(owner, "".join(names)), x), thing)


def a_nested_attribute(thing: Any) -> Held:
    outer, owner = Plain(), Plain()
    outer.inner = {"owners": [owner]}  # type: ignore[attr-defined]
    return _attribute_of(owner, lambda x: use(outer.inner["owners"][0].thing, x), thing)  # type: ignore[attr-defined]


def a_slot(thing: Any) -> Held:
    owner = Slotted()
    return _attribute_of(owner, lambda x: use(owner.thing, x), thing)


def a_class_attribute(thing: Any) -> Held:
    cls = type("Config", (), {"__module__": __name__})
    return _attribute_of(cls, lambda x: use(cls.thing, x), _static(thing))  # type: ignore[attr-defined]


def _static(thing: Any) -> Any:
    return staticmethod(thing) if isinstance(thing, types.FunctionType) else thing


def _class_held(cls: Any, function: Any, thing: Any) -> Held:
    cls.thing = _static(thing)
    put = lambda v: setattr(cls, "thing", _static(v))
    return Held(function, put, lambda: delattr(cls, "thing"))


def a_class_attribute_by_an_instance(thing: Any) -> Held:
    cls = type("Config", (Plain,), {"__module__": __name__})
    owner = cls()
    return _class_held(cls, owner.method, thing)


def an_attribute_of_a_base(thing: Any) -> Held:
    base = type("Base", (Plain,), {"__module__": __name__})
    cls = type("Derived", (base,), {"__module__": __name__})
    owner = cls()
    return _class_held(base, lambda x: use(owner.thing, x), thing)


def an_attribute_of_a_module(thing: Any) -> Held:
    module = types.ModuleType("settings_of_a_user")
    return _attribute_of(module, lambda x: use(module.thing, x), thing)  # type: ignore[attr-defined]


def an_import(thing: Any) -> Held:
    module = types.ModuleType("more_settings_of_a_user")
    sys.modules[module.__name__] = module

    def f(x: Any) -> Any:
        from more_settings_of_a_user import thing  # type: ignore[import-not-found]

        return use(thing, x)

    return _attribute_of(module, f, thing)


class Holder(wg.nn.Module):
    """A Module that holds anything."""

    def forward(self, x: Any) -> Any:
        return use(self.thing, x)


def an_attribute_of_a_network(thing: Any) -> Held:
    model = Holder()
    vars(model)["thing"] = thing
    put = lambda v: vars(model).update(thing=v)
    return Held(model, put, lambda: vars(model).pop("thing"))


def _item_of(owner: Any, key: Any, function: Any, *, removable: bool = True) -> Held:
    def put(v: Any) -> None:
        owner[key] = v

    def take() -> None:
        del owner[key]

    return Held(function, put, take if removable else None)


def an_item_of_a_dict(thing: Any) -> Held:
    held = {"thing": thing, "other": 1}
    return _item_of(held, "thing", lambda x: use(held["thing"], x))


def an_item_of_a_nested_dict(thing: Any) -> Held:
    held = {"a": {"b": {3: thing}}}
    return _item_of(held["a"]["b"], 3, lambda x: use(held["a"]["b"][3], x))


def an_item_of_a_defaultdict(thing: Any) -> Held:
    held = collections.defaultdict(int, thing=thing)
    return _item_of(held, "thing", lambda x: use(held["thing"], x))


def an_item_of_an_ordered_dict(thing: Any) -> Held:
    held = collections.OrderedDict(a=1.0, thing=thing)
    return _item_of(held, "thing", lambda x: use([*held.values()][1], x))


def an_item_of_a_list(thing: Any) -> Held:
    held = [1.0, thing]
    return _item_of(held, 1, lambda x: use(held[1], x), removable=False)


def an_item_of_a_long_list(thing: Any) -> Held:
    held = [thing, *range(5000)]
    return _item_of(held, 0, lambda x: use(held[0], x), removable=False)


def an_item_of_a_deque(thing: Any) -> Held:
    held = collections.deque([1.0, thing])
    return _item_of(held, 1, lambda x: use(held[1], x), removable=False)


def a_tuple(thing: Any) -> Held:
    owner = Plain()
    owner.pair = (1.0, thing)  # type: ignore[attr-defined]

    def put(v: Any) -> None:
        owner.pair = (1.0, v)  # type: ignore[attr-defined]

    return Held(lambda x: use(owner.pair[1], x), put)  # type: ignore[attr-defined]


Pair = collections.namedtuple("Pair", "first thing")


def a_named_tuple(thing: Any) -> Held:
    held = [Pair(1.0, thing)]

    def put(v: Any) -> None:
        held[0] = Pair(1.0, v)

    return Held(lambda x: use(held[0].thing, x), put)


class Boxed:
    """Makes anything hashable."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing


def a_set(thing: Any) -> Held:
    held = {Boxed(thing)}

    def put(v: Any) -> None:
        held.clear()
        held.add(Boxed(v))

    return Held(lambda x: total(x * 0, [use(boxed.thing, x) for boxed in held]), put)


@dataclasses.dataclass
class Settings:
    """A dataclass."""

    thing: Any
    other: int = 0


def a_dataclass(thing: Any) -> Held:
    owner = Settings(thing)
    return _attribute_of(owner, lambda x: use(owner.thing, x), thing)


def a_namespace(thing: Any) -> Held:
    owner = types.SimpleNamespace()
    return _attribute_of(owner, lambda x: use(owner.thing, x), thing)


def a_mapping_proxy(thing: Any) -> Held:
    held = {"thing": thing}
    shown = types.MappingProxyType(held)
    return _item_of(held, "thing", lambda x: use(shown["thing"], x))


def a_member_of_an_enum(thing: Any) -> Held:
    class Choice(enum.Enum):
        ONE = Boxed(None)

    return _attribute_of(Choice.ONE.value, lambda x: use(Choice.ONE.value.thing, x), thing)


def a_partial(thing: Any) -> Held:
    held = functools.partial(use, thing=thing)
    return _item_of(held.keywords, "thing", lambda x: held(x=x))


def a_property(thing: Any) -> Held:
    class Owner:
        @property
        def thing(self) -> Any:
            return self._thing  # type: ignore[attr-defined]

    owner = Owner()
    return _attribute_of(owner, lambda x: use(owner.thing, x), thing, "_thing")


def an_attribute_of_an_argument(thing: Any) -> Held:
    owner = Plain()
    held = _attribute_of(owner, lambda x, owner: use(owner.thing, x), thing)
    held.arguments = lambda: (owner,)
    return held


def another_argument(thing: Any) -> Held:
    owners = [Plain()]
    owners[0].thing = thing  # type: ignore[attr-defined]

    def put(v: Any) -> None:
        owners[0] = Plain()
        owners[0].thing = v  # type: ignore[attr-defined]

    return Held(lambda x, owner: use(owner.thing, x), put, None, lambda: (owners[0],))


PLACES: list[Callable[[Any], Held]] = [
    *(a_global, a_global_of_a_helper, a_closure, a_default, a_default_by_keyword),
    *(an_attribute_of_a_function, an_attribute, an_attribute_of_self, an_attribute_by_getattr),
    *(a_nested_attribute, a_slot, a_class_attribute, a_class_attribute_by_an_instance),
    *(an_attribute_of_a_base, an_attribute_of_a_module, an_import, an_attribute_of_a_network),
    *(an_item_of_a_dict, an_item_of_a_nested_dict, an_item_of_a_defaultdict),
    *(an_item_of_an_ordered_dict, an_item_of_a_list, an_item_of_a_long_list, an_item_of_a_deque),
    *(a_tuple, a_named_tuple, a_set, a_dataclass, a_namespace, a_mapping_proxy),
    *(a_member_of_an_enum, a_partial, a_property, an_attribute_of_an_argument, another_argument),
]


# -- comparing -------------------------------------------------------------------------------------


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives: bytes and whether it requires grad, or the error's class."""
    try:
        answer = function(*arguments)
    except Exception as error:
        return type(error)
    if isinstance(answer, wg.Tensor):
        return (
            answer.dtype.name,
            answer.shape,
            answer.detach().numpy().tobytes(),
            answer.requires_grad,
        )
    return answer


def agree(compiled: Any, held: Held, what: str) -> None:
    """A compiled function and the function itself give the same, twice."""
    x = wg.asarray(X)
    for _ in range(2):
        found = outcome(compiled, x, *held.arguments())
        expected = outcome(held.function, x, *held.arguments())
        assert found == expected, f"{what}: stale\n{compiled.report}"


def compiled_of(held: Held) -> Any:
    run = wg.compile(held.function, cache_size=64)
    for _ in range(2):
        agree(run, held, "before")
    return run


def total(x: Any, held: Any) -> Any:
    for thing in held:
        x = x * 2 + thing
    return x
