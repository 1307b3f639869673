"""What is found in another way than by a name: order, kinds, classes, functions, numbers."""

import collections
import dataclasses
import decimal
import enum
import functools
import math
import operator
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.capture.changing import (
    Held,
    Plain,
    Scale,
    Settings,
    Slotted,
    agree,
    compiled_of,
    defined,
    scaling,
    shifting,
    total,
)
from wengert.func.trees import register_node

X = [1.5, -2.0, 0.25]


def one_of(value: float) -> Any:
    """A Tensor, so that what holds it is no nest of plain values."""
    return wg.ones(3) * value


def changed_structure() -> Iterator[tuple[str, Held, Callable[[], object]]]:
    """Changes of other things than a value in a place: a name, a function, how it is changed."""
    yield from _of_containers()
    yield from _of_attributes()
    yield from _of_functions()
    yield from _of_numbers()
    yield from _of_arguments()
    yield from _of_what_hides()
    yield from _of_own_parts()


def _reading(function: Callable[..., Any]) -> Held:
    return Held(function, lambda value: None)


Case = tuple[str, Held, Callable[[], object]]


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
                    _reading(lambda x, held=held: total(x, held)),
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
                _reading(lambda x, held=held: total(x, [len(str(k)) * v for k, v in held.items()])),
                lambda held=held, change=change: change(held),
            )
    held = {1.0, 2.0}
    yield "set.add", _reading(lambda x: total(x, sorted(held))), lambda: held.add(3.0)
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
    arrays = dict.fromkeys("ab", np.ones(3))
    yield (
        "one of two places of an array",
        _reading(lambda x: x * arrays["a"] + arrays["b"]),
        lambda: arrays.update(b=np.full(3, 2.0)),
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

    helper, applied = scaling(2.0), functools.partial(operator.mul, 2.0)
    yield (
        "an attribute of a function that was not there",
        _reading(lambda x: helper(x) * getattr(helper, "more", 1.0)),
        lambda: setattr(helper, "more", 2.0),
    )
    yield (
        "what a partial is made of",
        _reading(lambda x: applied(x)),
        lambda: applied.__setstate__((operator.add, (3.0,), {}, None)),
    )
    texts: dict[str, Any] = {"a": one_of(2.0), "b": one_of(3.0)}
    yield (
        "the order of names",
        _reading(lambda x: total(x, texts.values())),
        lambda: texts.update(a=texts.pop("a")),
    )

    class Lazy:
        by = 2.0

        @functools.cached_property
        def twice(self) -> Any:
            return self.by * 2

    lazy = Lazy()
    assert lazy.twice == 4.0
    yield (
        "a cached property",
        _reading(lambda x: x * lazy.twice),
        lambda: vars(lazy).update(twice=5.0),
    )
    meta = type("Meta", (type,), {"__module__": __name__, "by": 2.0})
    made = meta("Made", (), {"__module__": __name__})
    shaped = types.SimpleNamespace(shape=(2, 3), ndim=2, size=6)
    for read, change in {
        np.shape: lambda: setattr(shaped, "shape", (4, 3)),
        np.ndim: lambda: setattr(shaped, "ndim", 5),
        np.size: lambda: setattr(shaped, "size", 7),
    }.items():
        yield (
            f"np.{read.__name__} of an object",
            _reading(lambda x, read=read: x * total(x, np.atleast_1d(read(shaped)).tolist())),
            change,
        )
    slotted = Slotted()
    slotted.thing, slot = 2.0, vars(Slotted)["thing"]
    yield (
        "a slot's descriptor",
        _reading(lambda x: x * slot.__get__(slotted)),
        lambda: setattr(slotted, "thing", 3.0),
    )
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


def _of_names() -> Iterator[Case]:
    """How classes, functions and modules are called and described."""
    for key in ("__name__", "__qualname__", "__doc__", "__module__"):

        class Layer(wg.nn.Module):
            """A layer."""

        def helper() -> None:
            """Help."""

        module = types.ModuleType("a_module_of_a_test", "About it.")
        layer = Layer()
        for of, thing in (("class", Layer), ("function", helper), ("module", module)):
            if not hasattr(thing, key):
                continue
            own = defined(f"def f(x): return x * len(str(thing.{key}))", thing=thing)
            yield (
                f"{key} of a {of}",
                _reading(own["f"]),
                lambda thing=thing, key=key: setattr(thing, key, "another text"),
            )
            if thing is Layer:
                typed = defined(f"def f(x): return x * len(str(type(layer).{key}))", layer=layer)
                yield (
                    f"{key} of an object's class",
                    _reading(typed["f"]),
                    lambda key=key, thing=thing: setattr(thing, key, "yet another text"),
                )


def _of_functions() -> Iterator[Case]:
    yield from _of_names()
    scope = defined("def f(x): return len(x.shape) * x")
    yield "a shadowed builtin", _reading(scope["f"]), lambda: scope.update(len=lambda x: 5)
    two = defined("def g(x): return x * 2\ndef f(x): return g(x)")
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
        lambda x, d: total(x, d.values()),
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

    @dataclasses.dataclass
    class Scaled:
        weight: Any
        settings: Any = dataclasses.field(default=None, metadata={"static": True})

        def go(self, x: Any) -> Any:
            return x * self.weight * factor[0] * (self.settings.thing if self.settings else 1.0)

    factor = [2.0]
    settings = Plain()
    settings.thing = 2.0  # type: ignore[attr-defined]
    given = (Scaled(wg.ones(3)), Scaled(wg.ones(3), settings))
    for what, change in {
        "a number in a method of": lambda: factor.__setitem__(0, factor[0] + 1),
        "a static field of": lambda: setattr(settings, "thing", 5.0),
        "a method of": lambda: setattr(Scaled, "go", lambda self, x: x + self.weight),
    }.items():
        held = Held(lambda x, s: s.go(x), lambda value: None, None, lambda: given[1:])
        yield f"{what} a dataclass among the arguments", held, change
    yield case("another set", lambda x, s: total(x, sorted(s)), {1.0, 2.0}, {1.0, 3.0})
    yield case("another function", lambda x, f: f(x), scaling(2.0), shifting(3.0))
    yield case("another Module", lambda x, m: m(x), Scale(2.0), Scale(3.0))
    yield case("a Module of another class", lambda x, m: m(x), Scale(2.0), wg.nn.Linear(3, 2))


def _of_what_hides() -> Iterator[Case]:
    """Reads that the function's own code does not show."""
    owner = Plain()
    owner.thing = 2.0  # type: ignore[attr-defined]
    ask = operator.attrgetter("thing")
    yield "attrgetter", _reading(lambda x: x * ask(owner)), lambda: setattr(owner, "thing", 3.0)
    bound = functools.partial(getattr, owner, "thing")
    yield "partial(getattr)", _reading(lambda x: x * bound()), lambda: setattr(owner, "thing", 4.0)
    other = getattr
    yield (
        "getattr by another name",
        _reading(lambda x: x * other(owner, "thing")),
        lambda: setattr(owner, "thing", 5.0),
    )
    text = "{0.thing}"
    yield (
        "a format string",
        _reading(lambda x: x * len("{0.thing}".format(owner)) + len(text)),  # noqa: UP030, UP032
        lambda: setattr(owner, "thing", 6.125),
    )
    module = types.ModuleType("a_lazy_module_of_a_user")
    yield (
        "a module's __dict__",
        _reading(lambda x: x * module.__dict__.get("more", 1.0)),
        lambda: setattr(module, "more", 2.0),
    )
    lazy = types.ModuleType("another_lazy_module_of_a_user")
    lazy.__getattr__ = lambda name: 2.0  # type: ignore[method-assign]
    yield (
        "a module's __getattr__",
        _reading(lambda x: x * lazy.more),
        lambda: setattr(lazy, "__getattr__", lambda name: 3.0),
    )
    answers = types.ModuleType("a_module_of_a_user_that_answers")
    answers.__getattr__ = lambda name: 2.0  # type: ignore[method-assign]
    yield (
        "what a module's __getattr__ stood for",
        _reading(lambda x: x * answers.more),
        lambda: setattr(answers, "more", 3.0),
    )
    yield (
        "sys.argv",
        _reading(lambda x: x * len([a for a in sys.argv if a == "--a-test"])),
        lambda: sys.argv.append("--a-test"),
    )
    layer = wg.nn.ReLU()
    yield (
        "an attribute of one of Wengert's classes",
        _reading(lambda x: layer(x) * getattr(layer, "more_of_a_test", 1.0)),
        lambda: setattr(wg.nn.ReLU, "more_of_a_test", 2.0),
    )

    class Marked(wg.Tensor):
        by = 2.0

    marked = Marked(np.ones(3, dtype=np.float32))
    yield (
        "an attribute of a Tensor of a class of one's own",
        _reading(lambda x: x * marked * marked.by),
        lambda: setattr(Marked, "by", 3.0),
    )

    class Node:
        def __init__(self, weight: Any, by: float) -> None:
            self.weight, self.by = weight, by

    register_node(Node, lambda n: ((n.weight,), n.by), lambda by, parts: Node(parts[0], by))
    node = Node(wg.ones(3), 2.0)
    transformed = wg.grad(lambda n: wg.sum(n.weight * getattr(n, "b" + "y")))
    yield (
        "a node of a tree",
        _reading(lambda x: x * transformed(node).weight),
        lambda: setattr(node, "by", 3.0),
    )
    kept = {"f": math.sqrt}
    yield (
        "a function of the library",
        _reading(lambda x: x * kept["f"](4.0)),
        lambda: kept.update(f=math.exp),
    )


def _of_own_parts() -> Iterator[Case]:
    """What an object holds beside what others of its kind do: attributes, slots, a class."""

    def scaled(x: Any, by: float) -> Any:
        return x * by

    class Partial(functools.partial):  # type: ignore[type-arg]
        by = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.by

    class Library(types.ModuleType):
        raw = 2.0

        @property
        def by(self) -> float:
            return self.raw

    for made in (
        functools.partial(scaled, by=2.0),
        Partial(scaled),
        staticmethod(scaled),
        collections.OrderedDict(a=1.0),
        collections.Counter("a"),
        collections.defaultdict(float),
    ):
        held: Any = made
        if not hasattr(held, "__dict__"):
            continue
        held.more = 2.0
        yield (
            f"an attribute of a {type(held).__name__}",
            _reading(lambda x, held=held: x * held.more),
            lambda held=held: setattr(held, "more", 3.0),
        )
    later: Any = functools.partial(scaled, by=2.0)
    yield (
        "a new attribute of a partial",
        _reading(lambda x: later(x) * getattr(later, "more", 1.0)),
        lambda: setattr(later, "more", 3.0),
    )

    class Colour(enum.Enum):
        RED = 2.0

    yield (
        "a new attribute of a member of an enumeration",
        _reading(lambda x: x * Colour.RED.value * getattr(Colour.RED, "more", 1.0)),
        lambda: setattr(Colour.RED, "more", 3.0),
    )
    third = decimal.Decimal(1)
    for name, function in {
        "decimals": lambda x: x * float(third / 3),
        "decimals by their class": lambda x: x * float(decimal.Decimal(1) / 3),
    }.items():
        yield (
            f"the precision of {name}",
            _reading(function),
            lambda: setattr(decimal.getcontext(), "prec", 2),
        )
    rate = wg.optim.SGD([wg.ones(3, requires_grad=True)], lr=2.0)
    yield (
        "a default of an optimizer",
        _reading(lambda x: x * rate.defaults["lr"]),
        lambda: rate.defaults.update(lr=3.0),
    )
    partial = Partial(scaled)
    yield "the class of a partial", _reading(partial), lambda: setattr(Partial, "by", 3.0)
    library = Library("a_library_of_a_test")
    yield (
        "a property of a module",
        _reading(lambda x: x * library.by),
        lambda: setattr(library, "raw", 3.0),
    )

    class Slotted(wg.optim.SGD):
        __slots__ = ("by",)

        def step(self) -> None:
            with wg.no_grad():
                self.param_groups[0]["params"][0].mul_(self.by)

    w = wg.asarray(X, requires_grad=True)
    optimizer = Slotted([w], lr=0.1)
    optimizer.by = 0.5

    def step(x: Any) -> Any:
        w.copy_(x)
        optimizer.step()
        return w.detach() * 1

    yield (
        "a slot of an optimizer of a class of one's own",
        _reading(lambda x: wg.no_grad()(step)(x)),
        lambda: setattr(optimizer, "by", 0.25),
    )


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    argv = [*sys.argv]
    with decimal.localcontext():
        yield
    sys.argv[:] = argv
    if hasattr(wg.nn.ReLU, "more_of_a_test"):
        del wg.nn.ReLU.more_of_a_test


CASES = [(name, i) for i, (name, _, _) in enumerate(changed_structure())]


@pytest.mark.parametrize(("name", "number"), CASES, ids=[f"{i}: {name}" for name, i in CASES])
def test_changes_of_structure_are_seen(name: str, number: int) -> None:
    os.environ.pop("WENGERT_TEST_CHANGES_2", None)
    _, held, change = list(changed_structure())[number]
    run = compiled_of(held)
    assert run.report.recordings, run.report
    change()
    agree(run, held, name)


@pytest.mark.parametrize("make", [functools.partial, collections.OrderedDict])
def test_attributes_that_a_run_sets_are_set(make: Any) -> None:
    """Such as how often a partial has been called."""

    def course(compiles: bool) -> list[Any]:
        held = functools.partial(total, items=[2.0]) if make is functools.partial else make()

        def step(x: Any) -> Any:
            held.count = getattr(held, "count", 0) + 1
            return x * held.count

        run = wg.compile(step) if compiles else step
        return [(run(wg.asarray(X)).tolist(), held.count) for _ in range(4)]

    assert course(True) == course(False)
