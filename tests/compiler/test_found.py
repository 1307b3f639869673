"""Changes between calls that compiled functions have once missed, each beside eager code."""

import contextlib
import dataclasses
import functools
import operator
import sys
import weakref
from collections import UserDict, defaultdict
from collections.abc import Callable
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from wengert.compiler import CompileError

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
def an_option_of_a_layers_subclass() -> Case:
    class Leaky(wg.nn.LeakyReLU):
        pass

    m = Leaky(0.1)
    return lambda x: m(-x), lambda: setattr(m, "negative_slope", 0.9)


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
def an_attribute_of_a_function() -> Case:
    def g(x: Any) -> Any:
        return x * g.scale  # type: ignore[attr-defined]

    g.scale = 2.0  # type: ignore[attr-defined]
    return lambda x: g(x), lambda: setattr(g, "scale", 3.0)


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
def an_attribute_that_was_not_there() -> Case:
    c = SimpleNamespace()
    return lambda x: x * getattr(c, "k", 2.0), lambda: setattr(c, "k", 3.0)


@case
def another_class() -> Case:
    class A:
        def scaled(self, x: Any) -> Any:
            return x * 2

    class B(A):
        def scaled(self, x: Any) -> Any:
            return x * 3

    a = A()
    return lambda x: a.scaled(x), lambda: setattr(a, "__class__", B)


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
def a_global_of_a_named_tuples_method() -> Case:
    class N(NamedTuple):
        a: Any

        def scaled(self) -> Any:
            return self.a * SCALE

    n = N(X)
    return lambda x: x + n.scaled(), rescale


@case
def a_global_of_an_enums_method() -> Case:
    class Mode(Enum):
        A = 1

        def scaled(self, x: Any) -> Any:
            return x * SCALE

    c = SimpleNamespace(mode=Mode.A)
    return lambda x: c.mode.scaled(x), rescale


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
def what_a_method_caller_was_given() -> Case:
    class Scaled:
        def by(self, factors: list[float]) -> float:
            return factors[0]

    factors, scaled = [2.0], Scaled()
    call = operator.methodcaller("by", factors=factors)
    return lambda x: x * call(scaled), lambda: operator.setitem(factors, 0, 3.0)


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
def an_object_that_is_held_weakly() -> Case:
    class Held:
        k = 2.0

    held = Held()
    weak = weakref.WeakValueDictionary(a=held)
    return lambda x: x * weak["a"].k, lambda: setattr(held, "k", 3.0)


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


@case
def a_dict_by_its_method() -> Case:
    d = {"k": 2.0}
    get = d.get
    return lambda x: x * get("k"), lambda: d.update(k=3.0)


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
    "a cached function": lambda: functools.lru_cache(lambda x: x),
    "a function by types": lambda: functools.singledispatch(lambda x: x),
    "a tuple": lambda: OwnTuple((1.0,)),
    "a set": lambda: OwnSet({1.0}),
    "an error": lambda: ValueError(1.0),
}
for _name, _make in OBJECTS.items():
    CASES[f"an attribute of {_name}"] = functools.partial(of_an_object, _make)


@case
def an_attribute_of_a_tensors_subclass() -> Case:
    class P(wg.nn.Parameter):
        pass

    w = P(X)
    w.k = 2.0  # type: ignore[attr-defined]
    return lambda x: x * w.k, lambda: setattr(w, "k", 3.0)  # type: ignore[attr-defined]


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
        (lambda x, c: x * np.add.reduce(c), r"reduces it.*wg\.asarray"),
        (lambda x, c: x * np.where(c > 0, c, 0), r"np\.where is called.*wg\.asarray"),
        (lambda x, c: x * c.mean(), r"mean is asked.*wg\.asarray"),
        (lambda x, c: x * c.item(0), r"item is asked.*wg\.asarray"),
        (lambda x, c: x * divmod(c, 2)[0], r"test_found.py, line.*divmod.*wg\.asarray"),
        (lambda x, c: x * np.median(c), "median is called with a raw array"),
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

    total, weak, part, scaled = array.sum, weakref.ref(array), slice(array), Scaled()
    functions: list[Callable[[Any], Any]] = [
        lambda x: x * float(total()),
        lambda x: x * wg.asarray(weak()),
        lambda x: x * wg.asarray(part.stop),
        lambda x: scaled.scale(x),
    ]
    for function in functions:
        with pytest.raises(CompileError, match="can't be read anew in each call; pass it"):
            wg.compile(function)(X)
