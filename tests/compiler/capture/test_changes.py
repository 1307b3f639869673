"""Nothing is stale: whatever changes between two calls, a compiled function does what it says.

A table of places × kinds of values × changes. A place is one in which a function finds something;
a kind of values has two that differ and what can be done to one in place. Each case compiles a
function that computes with what is in the place, changes that, and compares with the function.
"""

import collections
import dataclasses
import enum
import functools
import math
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

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


def _defined(source: str, **names: Any) -> dict[str, Any]:
    names |= {"use": use, "__name__": __name__, "__builtins__": __builtins__}
    exec(source, names)
    return names


def a_global(thing: Any) -> Held:
    scope = _defined("def f(x): return use(thing, x)", thing=thing)
    return Held(scope["f"], lambda v: scope.update(thing=v), lambda: scope.pop("thing"))


def a_global_of_a_helper(thing: Any) -> Held:
    scope = _defined("def g(x): return use(thing, x)\ndef f(x): return g(x)", thing=thing)
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

    return Held(lambda x: _sum(x * 0, [use(boxed.thing, x) for boxed in held]), put)


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


# -- the table -------------------------------------------------------------------------------------


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
    for _ in range(3):
        agree(run, held, "before")
    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_is_changed_is_seen(place: Callable[[Any], Held], kind: str) -> None:
    first, second, changes = KINDS[kind]
    for what, change in changes.items():
        thing = first()
        held = place(thing)
        run = compiled_of(held)
        assert run.report.recordings, f"{what}: {run.report}"
        change(thing)
        agree(run, held, what)
    held = place(first())
    run = compiled_of(held)
    assert run.report.recordings, run.report
    held.put(second())
    agree(run, held, "another of its kind")
    held.put(first())
    agree(run, held, "as it was")
    for other, (made, _, _) in KINDS.items():
        held.put(made())
        agree(run, held, f"a {other}")
    if held.take is not None:
        held.take()
        agree(run, held, "nothing")
        held.put(second())
        agree(run, held, "something again")


def changed_structure() -> Iterator[tuple[str, Held, Callable[[], object]]]:
    """Changes of other things than a value in a place: a name, a function, how it is changed."""
    yield from _of_containers()
    yield from _of_attributes()
    yield from _of_functions()
    yield from _of_numbers()
    yield from _of_arguments()


def _reading(function: Callable[..., Any]) -> Held:
    return Held(function, lambda value: None)


Case = tuple[str, Held, Callable[[], object]]


def _sum(x: Any, held: Any) -> Any:
    for thing in held:
        x = x * 2 + thing
    return x


def _of_containers() -> Iterator[Case]:
    for make in (list, collections.deque):
        for name, change in {
            "append": lambda c: c.append(4.0),
            "pop": lambda c: c.pop(),
            "insert": lambda c: c.insert(0, 4.0),
            "reverse": lambda c: c.reverse(),
            "clear": lambda c: c.clear(),
            "extend": lambda c: c.extend([wg.ones(3), 1.0]),
        }.items():
            for items in ([1.0, 2.0, 3.0], [1.0, wg.asarray([1.0, 2.0, 3.0])]):
                held = make(items)
                yield (
                    f"{make.__name__}.{name} of {len(items)}",
                    _reading(lambda x, held=held: _sum(x, held)),
                    lambda held=held, change=change: change(held),
                )
    for make in (dict, collections.OrderedDict, lambda d: collections.defaultdict(float, d)):
        for name, change in {
            "a new key": lambda d: d.update(c=4.0),
            "a deleted key": lambda d: d.pop("a"),
            "another order": lambda d: d.update(a=d.pop("a")),
            "another type of a key": lambda d: d.update({True: d.pop(1)}) if 1 in d else d.clear(),
        }.items():
            held = make({"a": 1.0, "b": 2.0, 1: 3.0})
            yield (
                f"dict: {name}",
                _reading(lambda x, held=held: _sum(x, [len(str(k)) * v for k, v in held.items()])),
                lambda held=held, change=change: change(held),
            )
    held = {1.0, 2.0}
    yield "set.add", _reading(lambda x: _sum(x, sorted(held))), lambda: held.add(3.0)
    counted = {"a"}
    yield (
        "in a set",
        _reading(lambda x: x * 2 if "b" in counted else x),
        lambda: counted.add("b"),
    )
    nest: dict[str, Any] = {"a": [1, {"b": (2, [3.0])}]}
    yield (
        "deep in a nest",
        _reading(lambda x: x * nest["a"][1]["b"][1][0]),
        lambda: nest["a"][1]["b"][1].__setitem__(0, 4.0),
    )
    ring: list[Any] = [1.0]
    ring.append(ring)
    yield "a cycle", _reading(lambda x: x * ring[1][0]), lambda: ring.__setitem__(0, 2.0)
    shared = [1.0]
    pair = [shared, shared]
    yield (
        "what was one object",
        _reading(lambda x: x * 2 if pair[0] is pair[1] else x),
        lambda: pair.__setitem__(1, [1.0]),
    )
    os.environ["WENGERT_TEST_CHANGES"] = "2"
    yield (
        "os.environ",
        _reading(lambda x: x * float(os.environ["WENGERT_TEST_CHANGES"])),
        lambda: os.environ.update(WENGERT_TEST_CHANGES="3"),
    )
    yield (
        "os.getenv",
        _reading(lambda x: x * float(os.getenv("WENGERT_TEST_CHANGES_2") or 1.0)),
        lambda: os.environ.update(WENGERT_TEST_CHANGES_2="3"),
    )


def _of_attributes() -> Iterator[Case]:
    def fresh() -> tuple[Any, Any, Any]:
        base = type("Base", (), {"__module__": __name__, "by": 2.0})
        cls = type("Derived", (base,), {"__module__": __name__, "go": lambda self, x: x * self.by})
        return base, cls, cls()

    for name, change in {
        "an attribute before that of the class": lambda base, cls, x: setattr(x, "by", 3.0),
        "an attribute of the class before that of the base": lambda b, cls, x: setattr(
            cls, "by", 3
        ),
        "an attribute of the base": lambda base, cls, x: setattr(base, "by", 3.0),
        "a method of the class": lambda b, cls, x: setattr(cls, "go", lambda self, x: x - 1),
        "a method of the instance": lambda b, cls, x: setattr(x, "go", lambda x: x - 1),
        "a property": lambda b, cls, x: setattr(cls, "by", property(lambda self: 5.0)),
        "__getattribute__": lambda b, cls, x: setattr(cls, "__getattribute__", _answers_seven),
        "the instance's class": lambda b, cls, x: setattr(x, "__class__", _Other),
        "the class's bases": lambda b, cls, x: setattr(cls, "__bases__", (_Other,)),
        "the instance's __dict__": lambda b, cls, x: setattr(x, "__dict__", {"by": 8.0}),
        "a deleted attribute": lambda b, cls, x: delattr(b, "by"),
    }.items():
        base, cls, owner = fresh()
        yield (
            name,
            _reading(lambda x, owner=owner: owner.go(x)),
            lambda base=base, cls=cls, owner=owner, change=change: change(base, cls, owner),
        )
    owner = Plain()
    yield (
        "an attribute that was not there",
        _reading(lambda x: x * 2 if hasattr(owner, "more") else x),
        lambda: setattr(owner, "more", 1),
    )
    module = types.ModuleType("a_module_of_a_user")
    yield (
        "an attribute of a module that was not there",
        _reading(lambda x: x * getattr(module, "more", 1.0)),
        lambda: setattr(module, "more", 2.0),
    )
    owned = type("Owned", (), {"__module__": __name__})
    thing = owned()
    yield (
        "an attribute of a class that was not there",
        _reading(lambda x: x * getattr(thing, "more", 1.0)),
        lambda: setattr(owned, "more", 2.0),
    )
    added = type("Added", (), {"__module__": __name__, "__radd__": lambda self, x: x})
    number = added()
    yield (
        "an operator",
        _reading(lambda x: number.__radd__(x) * 2),
        lambda: setattr(added, "__radd__", lambda self, x: x * 3),
    )
    meta = type("Meta", (type,), {"__module__": __name__, "by": 2.0})
    made = meta("Made", (), {"__module__": __name__})
    yield "a metaclass", _reading(lambda x: x * made.by), lambda: setattr(meta, "by", 3.0)
    config = Settings([1.0])
    yield (
        "a field by dataclasses.asdict",
        _reading(lambda x: x * dataclasses.asdict(config)["other"]),
        lambda: setattr(config, "other", 4),
    )
    named = Plain()
    named.thing = 2.0  # type: ignore[attr-defined]
    yield (
        "an attribute by vars",
        _reading(lambda x: x * vars(named)["thing"]),
        lambda: setattr(named, "thing", 3.0),
    )


class _Other:
    by = 9.0

    def go(self, x: Any) -> Any:
        return x + self.by


def _answers_seven(self: Any, name: str) -> Any:
    return 7.0 if name == "by" else object.__getattribute__(self, name)


def _of_functions() -> Iterator[Case]:
    scope = _defined("def f(x): return len(x.shape) * x")
    yield "a shadowed builtin", _reading(scope["f"]), lambda: scope.update(len=lambda x: 5)
    two = _defined("def g(x): return x * 2\ndef f(x): return g(x)")
    yield "a helper", _reading(two["f"]), lambda: two.update(g=lambda x: x * 3)

    def decorated(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(x: Any) -> Any:
            return function(x) * factor[0]

        return wrapper

    factor = [2.0]
    yield "a decorator's", _reading(decorated(lambda x: x)), lambda: factor.__setitem__(0, 3.0)

    class Callable_:
        by = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.by

    called = Callable_()
    yield "an object that is called", _reading(called), lambda: setattr(called, "by", 3.0)

    class Static:
        @staticmethod
        def go(x: Any) -> Any:
            return x * 2

        @classmethod
        def come(cls, x: Any) -> Any:
            return cls.go(x)

    yield (
        "a static method",
        _reading(lambda x: Static.come(x)),
        lambda: setattr(Static, "go", staticmethod(lambda x: x * 3)),
    )
    w = wg.asarray(X, requires_grad=True)
    handles: list[Any] = []

    def gradient(x: Any) -> Any:
        w.grad = None
        wg.sum(w * x).backward()
        return w.grad

    yield (
        "a hook",
        _reading(gradient),
        lambda: handles.append(w.register_hook(lambda g: g * factor[0])),
    )
    v = wg.asarray(X, requires_grad=True)
    scale = [2.0]
    v.register_hook(lambda g: g * scale[0])

    def hooked(x: Any) -> Any:
        v.grad = None
        wg.sum(v * x).backward()
        return v.grad

    yield "a number in a hook", _reading(hooked), lambda: scale.__setitem__(0, 3.0)
    frozen = wg.asarray(X, requires_grad=True)
    yield (
        "requires_grad",
        _reading(lambda x: x * frozen),
        lambda: frozen.requires_grad_(requires_grad=False),
    )
    model = wg.nn.Sequential(wg.nn.Linear(3, 3), wg.nn.ReLU())
    yield "a layer more", _reading(model), lambda: model.append(Scale(2.0))
    listed = wg.nn.ModuleList([Scale(2.0)])
    yield (
        "a module in a list",
        _reading(lambda x: listed[0](x)),
        lambda: listed.__setitem__(0, Scale(3.0)),
    )
    drawing = [wg.grad]
    yield (
        "a transform",
        _reading(lambda x: drawing[0](lambda y: wg.sum(y**3))(x)),
        lambda: drawing.__setitem__(0, wg.hessian),
    )
    inner = wg.compile(lambda x: x * factor[0])
    yield (
        "a number in a compiled function",
        _reading(lambda x: inner(x) + 1),
        lambda: factor.__setitem__(0, 7.0),
    )


def _of_numbers() -> Iterator[Case]:
    for before, after in (
        (0.0, -0.0),
        (-0.0, 0.0),
        (1, True),
        (True, 1),
        (1, 1.0),
        (1.0, np.float32(1.0)),
        (np.float32(1.0), np.float64(1.0)),
        (2**53, 2**53 + 1),
        (math.nan, 1.0),
        (0j, -0j),
        ("a", b"a"),
        ((1, 2), (1, 2.0)),
        ([0.0], [-0.0]),
    ):
        held = {"k": before}
        yield (
            f"{before!r} becomes {after!r}",
            _reading(lambda x, held=held: x * len(repr(held["k"])) + len(str(type(held["k"])))),
            lambda held=held, after=after: held.update(k=after),
        )
    for what, change in {
        "dtype": lambda a: a.__setitem__("w", a["w"].astype(np.float64)),
        "shape": lambda a: a.__setitem__("w", a["w"][:1]),
        "class": lambda a: a.__setitem__("w", wg.asarray(a["w"])),
        "layout": lambda a: a.__setitem__("w", a["w"][::-1]),
    }.items():
        arrays = {"w": np.asarray([1.0, 2.0, 3.0], dtype=np.float32)}
        yield (
            f"an array's {what}",
            _reading(lambda x, arrays=arrays: x * arrays["w"]),
            lambda arrays=arrays, change=change: change(arrays),
        )


def _of_arguments() -> Iterator[Case]:
    def case(name: str, function: Callable[..., Any], before: Any, after: Any) -> Case:
        given = [before]
        held = Held(function, lambda value: None, None, lambda: (given[0],))
        return name, held, lambda: given.__setitem__(0, after)

    one, two = wg.ones(3), wg.asarray(X)
    yield case(
        "another order of an argument's keys",
        lambda x, d: _sum(x, d.values()),
        {"a": one, "b": two},
        {"b": two, "a": one},
    )
    for key, other in ((1, True), (1, 1.0), (0.0, -0.0), ("a", b"a")):
        yield case(
            f"a key {key!r} that is {other!r}",
            lambda x, d: x * len(repr(next(iter(d)))),
            {key: one},
            {other: one},
        )
    for plain, other in ((True, False), ("a", "b"), (None, "None"), (1 + 0j, 1 - 0j), (..., None)):
        yield case(f"{plain!r} that is {other!r}", lambda x, k: x * len(str(k)), plain, other)
    yield case("another set", lambda x, s: _sum(x, sorted(s)), {1.0, 2.0}, {1.0, 3.0})
    yield case("another function", lambda x, f: f(x), scaling(2.0), shifting(3.0))
    yield case("another Module", lambda x, m: m(x), Scale(2.0), Scale(3.0))
    yield case("a Module of another class", lambda x, m: m(x), Scale(2.0), wg.nn.Linear(3, 2))


CASES = [(name, i) for i, (name, _, _) in enumerate(changed_structure())]


@pytest.mark.parametrize(("name", "number"), CASES, ids=[f"{i}: {name}" for name, i in CASES])
def test_changes_of_structure_are_seen(name: str, number: int) -> None:
    os.environ.pop("WENGERT_TEST_CHANGES_2", None)
    _, held, change = list(changed_structure())[number]
    run = compiled_of(held)
    assert run.report.recordings, run.report
    change()
    agree(run, held, name)


# -- what is not guarded ---------------------------------------------------------------------------


class Trainer:
    """What people write: a step that is compiled, in an object with much else in it."""

    def __init__(self) -> None:
        wg.manual_seed(0)
        self.model = wg.nn.Linear(3, 1)
        self.optimizer = wg.optim.SGD(self.model.parameters(), lr=0.1)
        self.epoch = 0
        self.losses: list[float] = []
        self.batches = iter([wg.ones(2, 3)] * 8)
        self.rng = np.random.default_rng(0)

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = wg.sum(self.model(x) ** 2)
        loss.backward()
        self.optimizer.step()
        return loss

    compiled = wg.compile(step)

    def train(self, step: Callable[[Any], Any]) -> list[float]:
        for x in self.batches:
            self.epoch += 1
            self.losses.append(step(x).item())
        return self.losses


def test_what_the_code_does_not_name_may_change() -> None:
    one, two = Trainer(), Trainer()
    assert one.train(one.step) == two.train(two.compiled)
    assert two.compiled.report.recordings <= 2, two.compiled.report
    assert "ran as they are" not in str(two.compiled.report)


def test_models_and_optimisers_as_arguments() -> None:
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        loss = wg.sum(model(x) ** 2)
        loss.backward()
        optimizer.step()
        return loss

    def pairs() -> list[tuple[Any, Any]]:
        wg.manual_seed(1)
        models = [wg.nn.Linear(3, 2), wg.nn.Linear(3, 2), wg.nn.Linear(3, 4)]
        return [(model, wg.optim.Adam(model.parameters(), lr=0.1)) for model in models]

    run = wg.compile(step)
    for i in range(12):
        if not i:
            ones, twos = pairs(), pairs()
        if i == 8:
            for optimizer in (ones[0][1], twos[0][1]):
                optimizer.param_groups[0]["lr"] = 0.5
        x = wg.ones(2, 3) * i
        assert run(*ones[i % 3], x).tolist() == step(*twos[i % 3], x).tolist()
    assert run.report.recordings <= 5, run.report
