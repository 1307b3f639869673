"""Changes between calls that compiled functions have once missed, each beside eager code."""

import contextlib
import dataclasses
import functools
import json
import operator
import statistics
import sys
import threading
import types
import weakref
from collections import ChainMap, UserDict, defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from wengert.compiler import CompileError, owners

X = wg.asarray([1.0, 2.0, 3.0])
SCALE = 2.0

Case = tuple[Callable[..., Any], Callable[[], Any]]
CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def rescale(value: float = 3.0) -> None:
    globals()["SCALE"] = value


@case
def another_operation_of_wengerts() -> Case:
    c = SimpleNamespace(f=wg.tanh)
    return lambda x: c.f(x), lambda: setattr(c, "f", wg.exp)


@case
def another_range() -> Case:
    c = SimpleNamespace(r=range(3))

    def f(x: Any) -> Any:
        for _ in c.r:
            x = x * 2
        return x

    return f, lambda: setattr(c, "r", range(4))


@case
def another_function_of_the_standard_library() -> Case:
    c = SimpleNamespace(f=operator.add)
    return lambda x: c.f(x, 3.0), lambda: setattr(c, "f", operator.mul)


@case
def a_module_that_is_imported_inside() -> Case:
    module = sys.modules["tests_found_settings"] = ModuleType("tests_found_settings")
    module.scale = 2.0  # type: ignore[attr-defined]

    def f(x: Any) -> Any:
        from tests_found_settings import scale  # type: ignore[import-not-found]

        return x * scale

    return f, lambda: setattr(module, "scale", 3.0)


@case
def a_function_that_looks_like_a_librarys() -> Case:
    @functools.wraps(np.mean)
    def g(x: Any) -> Any:
        return x * SCALE

    return lambda x: g(x), rescale


@case
def a_forward_of_an_object() -> Case:
    m = wg.nn.Flatten(0)
    m.forward = lambda x: x * 2  # type: ignore[method-assign]
    return m, lambda: setattr(m, "forward", lambda x: x * 5)


@case
def an_attribute_that_a_class_gets_later() -> Case:
    class A:
        k = 2.0

    class B(A):
        pass

    b = B()
    return lambda x: x * b.k, lambda: setattr(B, "k", 3.0)


@case
def another_code() -> Case:
    def g(x: Any) -> Any:
        return x * 2

    def h(x: Any) -> Any:
        return x * 3

    return lambda x: g(x), lambda: setattr(g, "__code__", h.__code__)


@case
def generated_methods_of_dataclasses() -> Case:
    @dataclasses.dataclass
    class C:
        k: float

    c, d = C(2.0), C(2.0)
    return lambda x: x * (2 if c == d else 3), lambda: setattr(c, "k", 5.0)


@case
def a_global_of_a_class_that_is_called() -> Case:
    class Scaled:
        def __init__(self) -> None:
            self.k = SCALE

    return lambda x: x * Scaled().k, rescale


@case
def another_init() -> Case:
    @dataclasses.dataclass
    class Scaled:
        k: float = 2.0

    def init(self: Any) -> None:
        self.k = 3.0

    return lambda x: x * Scaled().k, lambda: setattr(Scaled, "__init__", init)


@case
def an_attribute_of_a_metaclass() -> Case:
    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            return cls.table[name]  # a KeyError for others

    class Scaled(metaclass=Meta):
        table = {"k": 2.0}

    return lambda x: x * Scaled.k, lambda: Scaled.table.update(k=3.0)


@case
def a_global_of_a_method_by_types() -> Case:
    class Scaled:
        @functools.singledispatchmethod
        def of(self, x: Any) -> Any:
            return x

        @of.register
        def _(self, x: wg.Tensor) -> Any:
            return x * SCALE

    scaled = Scaled()
    return lambda x: scaled.of(x), rescale


@case
def what_a_context_gives() -> Case:
    factors = [2.0]
    context = contextlib.nullcontext(factors)

    def f(x: Any) -> Any:
        with context as given:
            return x * given[0]

    return f, lambda: operator.setitem(factors, 0, 3.0)


@case
def the_elements_of_an_enums_value() -> Case:
    class Filter(Enum):
        A = np.ones(3, np.float32)

    return lambda x: x * wg.asarray(Filter.A.value), lambda: Filter.A.value.fill(5.0)


@case
def an_item_of_a_subclass_of_a_librarys_dict() -> Case:
    class Config(UserDict[str, float]):
        pass

    c = Config(k=2.0)
    return lambda x: x * c["k"], lambda: operator.setitem(c, "k", 3.0)


@case
def an_attribute_in_a_pattern() -> Case:
    class C:
        def __init__(self) -> None:
            self.k = 2.0

    c = C()

    def f(x: Any) -> Any:
        match c:
            case C(k=k):
                return x * k

    return f, lambda: setattr(c, "k", 3.0)


def of_an_object(make: Callable[[], Any]) -> Case:
    """An attribute of an object that is no instance of a plain class."""
    made = make()
    made.k = 2.0
    return lambda x: x * made.k, lambda: setattr(made, "k", 3.0)


class OwnTuple(tuple[float, ...]):  # noqa: SLOT001 -- it has attributes
    pass


class OwnSet(set[float]):
    pass


OBJECTS: dict[str, Callable[[], Any]] = {
    "a partial": lambda: functools.partial(abs),
    "a function by types": lambda: functools.singledispatch(lambda x: x),
    "a tuple": lambda: OwnTuple((1.0,)),
    "a set": lambda: OwnSet({1.0}),
    "an error": lambda: ValueError(1.0),
}
for _name, _make in OBJECTS.items():
    CASES[f"an attribute of {_name}"] = functools.partial(of_an_object, _make)


@case
def a_default_factory() -> Case:
    d: Any = defaultdict(lambda: 2.0)
    return lambda x: x * d.default_factory(), lambda: setattr(d, "default_factory", lambda: 3.0)


@case
def a_builtin_that_is_hidden() -> Case:
    def f(x: Any) -> Any:
        return x * abs(-2.0)

    return f, lambda: globals().update(abs=lambda x: 3.0)


@case
def the_order_of_parameters() -> Case:
    class M(wg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = wg.nn.Parameter(X), wg.nn.Parameter(-X)

        def reorder(self) -> None:
            a = self.a
            del self.a
            self.a = a

    m = M()
    return lambda x: x + next(iter(m.parameters())).detach(), m.reorder


class Batch(NamedTuple):
    x: Any

    def scaled(self) -> Any:
        return self.x * SCALE


class Mode(Enum):
    A = 1
    B = 2

    def scaled(self, x: Any) -> Any:
        return x * SCALE

    def __repr__(self) -> str:
        return "a mode"


class Parameter(wg.nn.Parameter):
    k = 2.0

    def scaled(self) -> Any:
        return self.detach() * SCALE


class Whole(int):
    pass


class Text(str):  # noqa: SLOT000 -- it has attributes
    pass


class Exactly(Decimal):
    def scaled(self, x: Any) -> Any:
        return x * SCALE


class Plain:
    k = 2.0

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


class Twice(wg.nn.Identity):
    def forward(self, x: Any) -> Any:
        return x * 2


class Factors(dict[str, float]):
    pass


@dataclasses.dataclass
class Config:
    k: float = 1.0

    def __post_init__(self) -> None:
        self.k = self.k * SCALE


def computed(x: Any) -> Any:
    return x * getattr(computed, "k" + "k")


def swapped(x: Any, name: str, value: Any) -> None:
    """Another attribute in the place of one that nobody reads: as many as before."""
    del x.other
    setattr(x, name, value)


def module_with_getattr() -> ModuleType:
    module = ModuleType("tests_found_lazy")
    exec("T = {'k': 2.0}\ndef __getattr__(name): return T[name]", vars(module))
    return module


def in_a_pattern(x: Any, o: Any) -> Any:
    match o:
        case Plain(k=k):
            return x * k
        case _:
            return x


#: What there is, a function of that and what is passed, and the change.
HELD: dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[[Any], object]]] = {
    "a method of a named tuple": (lambda: Batch(X), lambda x, o: o.scaled(), lambda o: rescale()),
    "a method of an enum": (lambda: Mode.A, lambda x, o: o.scaled(x), lambda o: rescale()),
    "a method of a Parameter": (
        lambda: Parameter(X),
        lambda x, o: o.scaled(),
        lambda o: rescale(),
    ),
    "an attribute of a Parameter": (
        lambda: Parameter(X),
        lambda x, o: x * o.k,
        lambda o: setattr(o, "k", 3.0),
    ),
    "a method of a Decimal": (lambda: Exactly(1), lambda x, o: o.scaled(x), lambda o: rescale()),
    "an int of a class": (
        lambda: [Whole(2)],
        lambda x, o: x * int(o[0]),
        lambda o: operator.setitem(o, 0, Whole(3)),
    ),
    "a text of a class": (
        lambda: [Text("2")],
        lambda x, o: x * int(str(o[0])),
        lambda o: operator.setitem(o, 0, Text("3")),
    ),
    "a Decimal of a class": (
        lambda: [Exactly(2)],
        lambda x, o: x * float(o[0]),
        lambda o: operator.setitem(o, 0, Exactly(3)),
    ),
    "a text that says nothing": (
        lambda: [Mode.A],
        lambda x, o: x * o[0].value,
        lambda o: operator.setitem(o, 0, Mode.B),
    ),
    "another dict of attributes": (
        lambda: Plain(k=2.0),
        lambda x, o: x * o.k,
        lambda o: setattr(o, "__dict__", {"k": 3.0}),
    ),
    "another dict of a layer": (
        lambda: wg.nn.LeakyReLU(0.1),
        lambda x, o: o(-x),
        lambda o: setattr(o, "__dict__", {**vars(o), "negative_slope": 0.5}),
    ),
    "one attribute for another": (
        lambda: Plain(other=1),
        lambda x, o: x * o.k,
        lambda o: swapped(o, "k", 3.0),
    ),
    "one attribute of a class for another": (
        lambda: type("Made", (Plain,), {"other": 1})(),
        lambda x, o: x * o.k,
        lambda o: swapped(type(o), "k", 3.0),
    ),
    "another class": (
        lambda: wg.nn.Identity(),
        lambda x, o: o(x),
        lambda o: setattr(o, "__class__", Twice),
    ),
    "a dataclass that is made": (
        lambda: dataclasses.make_dataclass("Made", ["k"])(2.0),
        lambda x, o: x * o.k,
        lambda o: setattr(o, "k", 3.0),
    ),
    "a class that is made": (
        lambda: types.new_class("Made", exec_body=lambda space: space.update(k=2.0))(),
        lambda x, o: x * o.k,
        lambda o: setattr(type(o), "k", 3.0),
    ),
    "a replaced dataclass": (
        lambda: [Config()],
        lambda x, o: x * dataclasses.replace(o[0], k=1.0).k,
        lambda o: rescale(),
    ),
    "names that a module makes": (
        module_with_getattr,
        lambda x, o: x * o.k,
        lambda o: o.T.update(k=3.0),
    ),
    "a slot of a dict": (
        lambda: (d := Factors(k=2.0), d.__getitem__, d.get),
        lambda x, o: x * o[1]("k") * o[2]("k"),
        lambda o: o[0].update(k=3.0),
    ),
    "a chain of dicts": (
        lambda: ChainMap({}, {"k": 2.0}),
        lambda x, o: x * o["k"],
        lambda o: o.maps[1].update(k=3.0),
    ),
    "Tensors in a set": (
        lambda: {wg.asarray(2.0)},
        lambda x, o: x * sum(o),
        lambda o: (o.clear(), o.add(wg.asarray(3.0))),
    ),
    "modules in a set": (
        lambda: {wg.nn.LeakyReLU(0.1)},
        lambda x, o: next(iter(o))(-x),
        lambda o: setattr(next(iter(o)), "negative_slope", 0.7),
    ),
    "a pattern": (lambda: Plain(k=2.0), in_a_pattern, lambda o: setattr(o, "k", 3.0)),
    "a pattern by position": (
        lambda: type("Made", (Plain,), {"__match_args__": ("k",)})(k=2.0),
        in_a_pattern,
        lambda o: setattr(o, "k", 3.0),
    ),
    "an attribute of a function": (
        lambda: vars(computed).update(kk=2.0),
        lambda x, o: computed(x),
        lambda o: vars(computed).update(kk=3.0),
    ),
    "an attribute that was not there": (
        lambda: SimpleNamespace(),
        lambda x, o: x * getattr(o, "k", 2.0),
        lambda o: setattr(o, "k", 3.0),
    ),
}


@pytest.mark.parametrize("given", [False, True], ids=["held", "given"])
@pytest.mark.parametrize("name", HELD)
def test_what_is_held_or_given_has_changed(name: str, given: bool) -> None:
    rescale(2.0)
    make, use, change = HELD[name]
    if given and name == "a replaced dataclass":
        pytest.skip("its __post_init__ runs where the argument is put together")
    held = make()
    run = wg.compile(use if given else lambda x: use(x, held))
    for i in range(8):
        if i == 4:
            change(held)
        args = (X, held) if given else (X,)
        assert same_bits(run(*args), run.eagerly(*args))


def test_a_users_file_with_the_name_of_a_package_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tqdm.py").write_text("K = 2.0\ndef scaled(x): return x * K\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    owners._unknown.cache_clear()
    module = import_module("tqdm")
    try:
        run = wg.compile(lambda x: module.scaled(x))
        for i in range(6):
            module.K = 2.0 + i // 3  # type: ignore[attr-defined]
            assert same_bits(run(X), module.scaled(X))
    finally:
        del sys.modules["tqdm"]
        owners._unknown.cache_clear()


def raising(x: Any, o: Any) -> Any:
    with np.errstate(all="raise"):
        return x / o


def hooking(x: Any, o: Any) -> Any:
    o.register_hook(lambda g: g * 2)
    return wg.sum(o * x).detach()


class Local(threading.local):
    k = 2.0


#: What can't be seen into, or not be repeated: what there is, a function, and what the error says.
UNSEEN: dict[str, tuple[Callable[[], Any], Callable[..., Any], str]] = {
    "a masked array": (lambda: np.ma.ones(3), lambda x, o: o.sum() * x, "o is a MaskedArray"),
    "a record": (lambda: np.zeros(1, "f8,f8")[0], lambda x, o: x * o[0], "o is a void"),
    "a sparse matrix": (
        lambda: pytest.importorskip("scipy.sparse").eye_array(3).tocsr(),
        lambda x, o: x * o.sum(),
        "a raw array",
    ),
    "a polynomial": (lambda: np.polynomial.Polynomial([2.0]), lambda x, o: x * o(1.0), "pass what"),
    "an array of objects": (lambda: np.array([2.0], object), lambda x, o: x * o[0], "of object"),
    "a part of a thread": (Local, lambda x, o: x * o.k, "o is a Local"),
    "a context": (lambda: ContextVar("k", default=2.0), lambda x, o: x * o.get(), "o is a Context"),
    "an array of Python's": (lambda: bytearray(b"2"), lambda x, o: x * o[0], "o is a bytearray"),
    "a weak reference": (lambda: weakref.ref(Plain), lambda x, o: x * o().k, "pass what it needs"),
    "a reader of attributes": (
        lambda: operator.attrgetter("k"),
        lambda x, o: x * o(Plain),
        "o is a attrgetter",
    ),
    "a cached function": (
        lambda: functools.lru_cache(lambda: SCALE),
        lambda x, o: x * o(),
        "pass what it needs",
    ),
    "a view of a dict": (lambda: {"k": 2.0}.values(), lambda x, o: x * sum(o), "pass what"),
    "bits of a generator": (
        lambda: np.random.PCG64(0),
        lambda x, o: x * float(o.random_raw() % 7),
        "draws from o",
    ),
    "errors of NumPy": (lambda: 0.0, raising, "put np.errstate around the call"),
    "a hook": (lambda: wg.ones(3, requires_grad=True), hooking, "registers a hook on a Tensor"),
    "statistics": (lambda: 2.0, lambda x, o: x * statistics.mean([o, o]), "static_argnames"),
    "decimals": (lambda: 2.0, lambda x, o: x * float(Decimal(o)), "static_argnames"),
    "JSON": (lambda: 2.0, lambda x, o: x * float(json.dumps(o)), "static_argnames"),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_can_not_be_seen_into_is_refused(name: str) -> None:
    make, use, says = UNSEEN[name]
    with pytest.raises(CompileError, match=says):
        wg.compile(lambda x, o: use(x, o))(X, make())


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("name", CASES)
def test_what_has_changed_is_seen(name: str, check: int | None) -> None:
    rescale(2.0)
    function, change = CASES[name]()
    run = wg.compile(function, check=check)
    try:
        for _ in range(3):
            assert same_bits(run(X), run.eagerly(X))
        change()
        for _ in range(3):
            assert same_bits(run(X), run.eagerly(X))
    finally:
        globals().pop("abs", None)


def test_operations_may_be_arguments() -> None:
    run = wg.compile(lambda x, f: f(x))
    for f in (wg.tanh, wg.tanh, wg.tanh, wg.exp, wg.special.erf, wg.tanh):
        assert same_bits(run(X, f), f(X))


def test_nan_is_the_object_that_it_is() -> None:
    run = wg.compile(lambda x, fill: x * (2.0 if fill is np.nan else 3.0))
    for fill, scale in ((np.nan, 2.0), (np.nan, 2.0), (1.0, 3.0), (2.0, 3.0), (np.nan, 2.0)):
        assert same_bits(run(X, fill), X * scale)


def test_what_makes_a_list_shorter_leaves_the_state() -> None:
    held, hidden = [wg.ones(3), wg.zeros(3)], SimpleNamespace(h=wg.ones(3))

    def f(x: Any) -> Any:
        hidden.h = hidden.h * 2
        held.pop()
        return x

    with pytest.raises(CompileError, match="length of held from 2 to 1"):
        wg.compile(f)(X)
    assert len(held) == 2
    assert type(hidden.h._array) is np.ndarray


@pytest.mark.parametrize("error", [CompileError, ValueError])
def test_no_number_stays_traced(error: type[Exception]) -> None:
    c = SimpleNamespace(k=0.5)

    def f(x: Any, k: float) -> Any:
        c.k = k
        if error is ValueError:
            raise ValueError("mine")
        return x * c.k

    with pytest.raises(error):
        wg.compile(f)(X, 0.25)
    assert type(c.k) is float
    assert c.k == (0.25 if error is ValueError else 0.5)


def test_an_error_of_the_functions_own_comes_out() -> None:
    d: Any = {"a": np.ones(3)}

    def f(x: Any) -> Any:
        d.pop("a")
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        wg.compile(f)(X)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x, c: x * (2 if type(c) is np.ndarray else 3), "asks for the type"),
        (lambda x, c: [y := c + 1, y[:2]], "shares memory"),
        (lambda x, c: wg.reshape(c, (1, 3)), "shares memory"),
        (lambda x, c: x * np.median(c), "median is called with a raw array.*or a Tensor"),
        (lambda x, c: c.sort(), "sort is asked of a raw array"),
        (lambda x, c: x * (c.dtype == object), "array of"),
    ],
)
def test_raw_arrays_are_refused_where_a_replay_would_differ(function: Any, says: str) -> None:
    c: Any = np.ones(3) if says != "array of" else np.ones(3, np.longdouble)
    with pytest.raises(CompileError, match=says):
        wg.compile(function)(X, c)


def test_transforms_answer_with_memory_of_their_own() -> None:
    y = np.ones(2)
    run = wg.compile(lambda x: wg.vjp(lambda a: a + 1, x)[1](y))
    for _ in range(4):
        (found,) = wg.func.tree_leaves(run(np.zeros(2)))
        found += 5
        assert found.tolist() == [6.0, 6.0]
        assert y.tolist() == [1.0, 1.0]


def test_containers_with_access_of_their_own_are_refused() -> None:
    class D(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return dict.__getitem__(self, key) * 2

    t = D(k=wg.ones(3))
    with pytest.raises(CompileError, match="__getitem__"):
        wg.compile(lambda x: x * t["k"])(X)


@pytest.mark.parametrize("kept", ["a tuple", "a key", "a list", "a name"])
def test_a_tensor_that_is_replaced_and_stays_elsewhere(kept: str) -> None:
    """A program in which both were one ran on when the second had stayed."""

    def run(compiled: bool) -> list[float]:
        c = SimpleNamespace(h=wg.zeros(2))
        held: Any = {"a tuple": (c.h, X), "a key": {c.h: 1}, "a list": [c.h], "a name": c.h}[kept]

        def first() -> Any:
            return held if kept == "a name" else next(iter(held))

        def step(x: Any) -> Any:
            c.h = c.h * 2 + x
            return wg.sum(first()) + wg.sum(c.h)

        f, found = wg.compile(step, check=0) if compiled else step, []
        for i in range(12):
            if i % 4 == 0:
                c.h = first()
            found.append(float(f(wg.ones(2) * i)))
        return found

    assert run(True) == run(False)


def test_arrays_that_can_not_be_read_anew_are_refused() -> None:
    """Programs went on with their first elements."""
    array = np.ones(3, np.float32)

    class Scaled:
        def by(self, y: Any, x: Any) -> Any:
            return x * wg.asarray(y)

        scale = functools.partialmethod(by, array)

    total, part, scaled = array.sum, slice(array), Scaled()
    functions: list[Callable[[Any], Any]] = [
        lambda x: x * float(total()),
        lambda x: x * wg.asarray(part.stop),
        lambda x: scaled.scale(x),
    ]
    for function in functions:
        with pytest.raises(CompileError, match="can't be read anew in each call; pass it"):
            wg.compile(function)(X)
