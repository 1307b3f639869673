"""Changes between calls that compiled functions have once missed, each beside eager code."""

# ruff: noqa: F401 -- texts of tables name what is imported

import ctypes
import dataclasses
import functools
import inspect
import json
import operator
import pickle
import random
import sys
import threading
import types
import weakref
from collections import ChainMap, UserDict
from contextlib import nullcontext
from contextvars import ContextVar
from ctypes import c_double
from dataclasses import make_dataclass
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


def rescale(value: float = 3.0) -> None:
    globals()["SCALE"] = value


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


class Loader:
    """An iterator of its own."""

    def __init__(self) -> None:
        self.k, self.h = 2.0, X

    def __iter__(self) -> "Loader":
        return self

    def __next__(self) -> Any:
        self.h = self.h + 1
        return self.h

    def scaled(self, x: Any) -> Any:
        return x * SCALE


class Scales(wg.data.Dataset[Any]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        return i * SCALE


@dataclasses.dataclass(slots=True, match_args=False)
class Slots:
    kk: float = 2.0


class Called:
    """Objects that are called by what is no function."""

    def by(self, k: float, x: Any) -> Any:
        return x * k * SCALE

    __call__ = functools.partialmethod(by, 2.0)


class Partial(functools.partial[Any]):
    def __call__(self, x: Any) -> Any:
        return x * SCALE


class Property(property):
    def __get__(self, x: Any, kind: Any = None) -> Any:
        return SCALE


class Extended:
    a = Property(lambda self: 1.0)


class Structure(ctypes.Structure):
    _fields_ = [("k", c_double)]


class Text(str):  # noqa: SLOT000 -- it has attributes
    pass


class Hiding(NamedTuple):
    a: float


class Hidden(Hiding):  # whose objects have attributes
    k: float


def hiding(k: float) -> Any:
    made = Hidden(1.0)
    made.k = k
    return made


def text_of_three() -> Any:
    text: Any = Text("a")
    text.k = 3.0
    return text


@dataclasses.dataclass(frozen=True)
class Layer:
    k: float = dataclasses.field(default=1.0, compare=False)


def stats() -> Any:
    return pytest.importorskip("wengert.scipy.stats", exc_type=ImportError)


def in_hooks(x: Any, o: Any) -> Any:
    x = x.detach().requires_grad_(True)
    with o:
        y = wg.sum(x**2)
    return wg.autograd.grad(y, x)[0]


class Plain:
    k = 2.0

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


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


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        return cls.table[name]  # a KeyError for others


class Table(metaclass=Meta):
    table = {"k": 2.0}


class Scaled:
    def __init__(self) -> None:
        self.k = SCALE

    @functools.singledispatchmethod
    def of(self, x: Any) -> Any:
        return x

    @of.register
    def _(self, x: wg.Tensor) -> Any:
        return x * SCALE


class Filter(Enum):
    A = np.ones(3, np.float32)


class Pair(wg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = wg.nn.Parameter(X), wg.nn.Parameter(-X)

    def reorder(self) -> None:
        a = self.a
        del self.a
        self.a = a


@functools.wraps(np.mean)
def like_a_librarys(x: Any) -> Any:
    return x * SCALE


def doubled(x: Any) -> Any:
    return x * 2


def imported(x: Any, o: Any) -> Any:
    from tests_found_settings import k  # type: ignore[import-not-found]

    return x * k


def within(x: Any, o: Any) -> Any:
    with o[0] as given:
        return x * given[0]


def imported_from_here(x: Any, o: Any) -> Any:
    from .found_settings import k  # type: ignore[import-not-found]

    return x * k


def settings_here(k: float = 2.0) -> None:
    module = sys.modules.setdefault(f"{__package__}.found_settings", ModuleType("found_settings"))
    module.k = k  # type: ignore[attr-defined]


class Made:
    def __init__(self, k: float) -> None:
        self.k = k * SCALE

    @classmethod
    def of(cls, k: float) -> Any:
        return cls(k)

    def scaled(self, x: Any) -> Any:
        return x * self.of(1.0).k


def settings() -> Any:
    module = sys.modules["tests_found_settings"] = ModuleType("tests_found_settings")
    module.k = 2.0  # type: ignore[attr-defined]
    return module


def by_default(o: Any, key: str, get: Any = getattr) -> Any:
    return get(o, key)


class Slotted:
    __slots__ = ("kk",)


def slotted(kk: float) -> Slotted:
    made = Slotted()
    made.kk = kk  # type: ignore[attr-defined]
    return made


def with_k(x: Any) -> Any:
    x.k = 2.0
    return x


def rows(text: str) -> dict[str, list[str]]:
    """The parts of a table's rows by their names; a deeper line goes on with the one above."""
    lines = text.strip().replace("\n    ", " ").split("\n")
    return {name: parts for name, *parts in [line.split(" | ") for line in lines]}


#: What there is (``o``), what is computed of it and of ``x``, and the change.
HELD = rows(
    """
a method of a named tuple | Batch(X) | o.scaled() | rescale()
a method of an enum in a tuple | (Mode.A, 2) | o[0].scaled(x) | rescale()
an attribute of an enum by its value
    | type(with_k(Enum('Made', 'ONE TWO')(2))) | x * o(2).k | o(2).k = 3.0
a method of a Parameter | Parameter(X) | o.scaled() | rescale()
an attribute of a Parameter | Parameter(X) | x * o.k | o.k = 3.0
a text of a class | [Text('2')] | x * int(str(o[0])) | o[0] = Text('3')
a text that says nothing | [Mode.A] | x * o[0].value | o[0] = Mode.B
another dict of a layer
    | wg.nn.LeakyReLU(0.1) | o(-x) | o.__dict__ = {**vars(o), 'negative_slope': 0.5}
one attribute for another | Plain(other=1) | x * o.k | swapped(o, 'k', 3.0)
one attribute of a class for another
    | type('Made', (Plain,), {'other': 1})() | x * o.k | swapped(type(o), 'k', 3.0)
another class
    | wg.nn.Identity() | o(x)
    | o.__class__ = type('Made', (wg.nn.Identity,), {'forward': lambda self, x: x * 2})
a class that is made
    | types.new_class('Made', exec_body=lambda space: space.update(k=2.0))() | x * o.k
    | type(o).k = 3.0
a replaced dataclass | [Config()] | x * dataclasses.replace(o[0], k=1.0).k | rescale()
names that a module makes | module_with_getattr() | x * o.k | o.T.update(k=3.0)
a slot of a dict
    | ((d := type('Made', (dict,), {})(k=2.0)), d.__getitem__, d.get) | x * o[1]('k') * o[2]('k')
    | o[0].update(k=3.0)
a chain of dicts | ChainMap({}, {'k': 2.0}) | x * o['k'] | o.maps[1].update(k=3.0)
modules in a set
    | {wg.nn.LeakyReLU(0.1)} | next(iter(o))(-x) | next(iter(o)).negative_slope = 0.7
a pattern | Plain(k=2.0) | in_a_pattern(x, o) | o.k = 3.0
an attribute of a function
    | vars(computed).update(kk=2.0) | computed(x) | vars(computed).update(kk=3.0)
an attribute that was not there | SimpleNamespace() | x * getattr(o, 'k', 2.0) | o.k = 3.0
another function of a library | Plain(f=operator.add) | o.f(x, 3.0) | o.f = operator.mul
what is imported inside | settings() | imported(x, o) | o.k = 3.0
a function like a library's | like_a_librarys | o(x) | rescale()
a forward of an object | wg.nn.Flatten(0) | o(x) | o.forward = lambda x: x * 5
another code
    | types.FunctionType(like_a_librarys.__code__, globals()) | o(x)
    | o.__code__ = (lambda x: x * 7).__code__
generated methods
    | [make_dataclass('Made', ['k'])(2.0), 2.0] | x * (2 if o[0] == type(o[0])(o[1]) else 3)
    | o[0].k = 3.0
a global of a class that is called | Scaled | x * o().k | rescale()
an attribute of a metaclass | Table | x * o.k | o.table.update(k=3.0)
a method by types | Scaled() | o.of(x) | rescale()
what a context gives | [nullcontext([2.0])] | within(x, o) | o[0].enter_result[0] = 3.0
the elements of an enum's value
    | Filter.A.value.fill(2.0) or Filter | x * wg.asarray(o.A.value) | o.A.value.fill(5.0)
an item of a user's dict | type('Made', (UserDict,), {})(k=2.0) | x * o['k'] | o['k'] = 3.0
what is imported inside from a package
    | settings_here() | imported_from_here(x, o) | settings_here(3.0)
what a class method makes | Made(1.0) | o.scaled(x) | rescale()
the Tensors of a data set | wg.data.TensorDataset(X) | x * o[2][0] | o.tensors = (-X,)
a subset of a user's data set | wg.data.Subset(Scales(), [1, 2]) | x * o[0] | rescale()
a partial method that is called | Called() | o(x) | rescale()
a property of a class | Extended() | x * o.a | rescale()
a module of a class
    | type('Made', (ModuleType,), {'k': property(lambda m: SCALE)})('m') | x * o.k | rescale()
an object of a class that exec makes
    | [exec('class Made: k = 2.0', s := {}), s['Made']()][1] | x * o.k | type(o).k = 3.0
an attribute by a getter | Plain(kk=2.0) | x * operator.attrgetter('k' + 'k')(o) | o.kk = 3.0
an attribute read statically
    | Plain(kk=2.0) | x * inspect.getattr_static(o, 'k' + 'k') | o.kk = 3.0
an attribute among all | Plain(kk=2.0) | x * dict(inspect.getmembers(o))['k' + 'k'] | o.kk = 3.0
an attribute by the method of object
    | Plain(kk=2.0) | x * object.__getattribute__(o, 'k' + 'k') | o.kk = 3.0
an attribute of what is pickled | Plain(kk=2.0) | x * o.__getstate__()['k' + 'k'] | o.kk = 3.0
an attribute in a format | Plain(kk=2.0) | x * float('{0.kk:.3f}'.format(o)) | o.kk = 3.0
an attribute in a format that is held
    | (Plain(kk=2.0), '{0.kk}') | x * float(o[1].format(o[0])) | o[0].kk = 3.0
an attribute in the method of a format
    | (Plain(kk=2.0), ['{0.kk:.3f}'.format]) | x * float(o[1][0](o[0])) | o[0].kk = 3.0
an attribute by getattr that is held
    | (Plain(kk=2.0), getattr) | x * o[1](o[0], 'k' + 'k') | o[0].kk = 3.0
an attribute by a partial getattr
    | functools.partial(getattr, Plain(kk=2.0), 'kk') | x * o() | o.args[0].kk = 3.0
an attribute by vars in a dict
    | {'get': vars, 'of': Plain(kk=2.0)} | x * o['get'](o['of'])['k' + 'k'] | o['of'].kk = 3.0
an attribute by a default | Plain(kk=2.0) | x * by_default(o, 'k' + 'k') | o.kk = 3.0
an attribute by a getter that is held
    | (Plain(kk=2.0), operator.attrgetter) | x * o[1]('k' + 'k')(o[0]) | o[0].kk = 3.0
an attribute by a function of a library that is held
    | (Plain(kk=2.0), inspect.getmembers) | x * dict(o[1](o[0]))['k' + 'k'] | o[0].kk = 3.0
an attribute by its object's method
    | Plain(kk=2.0).__getattribute__ | x * o('k' + 'k') | o.__self__.kk = 3.0
an attribute by the method of object that is held
    | (Plain(kk=2.0), object.__getattribute__) | x * o[1](o[0], 'k' + 'k') | o[0].kk = 3.0
a slot by its descriptor | (slotted(2.0), Slotted.kk) | x * o[1].__get__(o[0]) | o[0].kk = 3.0
a slot by its descriptor's method
    | (slotted(2.0), Slotted.kk.__get__) | x * o[1](o[0]) | o[0].kk = 3.0
all attributes in bytes
    | Plain(kk=2.0) | x * float(sum(pickle.dumps(o))) | o.kk = 3.0
slots of a dataclass | Slots() | x * (2 if o == Slots() else 3) | o.kk = 3.0
a text of an object of attrs
    | pytest.importorskip('attr').make_class('Made', ['kk'])(2.0)
    | x * (2 if '2.0' in str(o) else 3) | o.kk = 3.0
an attribute of an iterator | Loader() | x * o.k | o.k = 3.0
an attribute of a generator | with_k(type('Made', (random.Random,), {})(0)) | x * o.k | o.k = 3.0
a frozen distribution | stats().norm(0.0, 2.0) | o.logpdf(x) | o.args = (0.0, 3.0)
a frozen distribution by keywords
    | stats().norm(loc=0.0, scale=2.0) | o.logpdf(x) | o.kwds.update(scale=3.0)
a vectorized function of NumPy's
    | np.vectorize(lambda t: t * SCALE) | x * float(o(1.0)) | rescale()
hooks of what is saved
    | wg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * SCALE) | in_hooks(x, o)
    | rescale()
an equal key | {Layer(2.0): 1.0} | x * next(iter(o)).k | o.clear(); o.update({Layer(3.0): 1.0})
an equal text as a key
    | {with_k(Text('a')): 1.0} | x * next(iter(o)).k | o.clear(); o.update({text_of_three(): 1.0})
an equal element | {Layer(2.0)} | x * next(iter(o)).k | o.clear(); o.add(Layer(3.0))
an equal element of another sign
    | {(0.0,)} | x * np.copysign(1.0, next(iter(o))[0]) | o.clear(); o.add((-0.0,))
a key of another type
    | {(1,): 2.0} | x * (2.0 if next(iter(o))[0] is True else 3.0)
    | o.clear(); o.update({(True,): 2.0})
an attribute of an equal tuple | [hiding(2.0)] | x * o[0].k | o[0] = hiding(3.0)
a method by its name
    | type('Made', (), {'m': lambda self: 2.0})() | x * operator.methodcaller('m')(o)
    | type(o).m = lambda self: 3.0
a method above
    | super(made := type('Made', (type('Base', (Plain,), {'m': lambda self: self.k}),), {}), made())
    | x * o.m() | o.__self__.k = 3.0
the order of parameters | Pair() | x + next(iter(o.parameters())).detach() | o.reorder()
"""
)
#: Those whose arguments are put together anew, or flattened.
NOT_GIVEN = {
    "a replaced dataclass",
    "an attribute of a tuple",
    "a pattern by position",
    "an attribute of an equal tuple",
}


@pytest.mark.parametrize("given", [False, True], ids=["held", "given"])
@pytest.mark.parametrize("name", HELD)
def test_what_is_held_or_given_has_changed(name: str, given: bool) -> None:
    if given and name in NOT_GIVEN:
        given = False
    rescale(2.0)
    make, use, change = HELD[name]
    use, held = eval(f"lambda x, o: {use}", globals()), eval(make, globals())
    run = wg.compile(use if given else lambda x: use(x, held), check=0 if given else None)
    for i in range(8):
        if i == 4:
            exec(change, globals(), {"o": held})
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


#: What can't be seen into, or not be repeated: the same, and what the error says.
UNSEEN = rows(
    """
an iterator | iter([2.0]) | x * next(o) | o is a list_iterator
an array of a frozen distribution
    | stats().multivariate_normal(np.zeros(3), np.eye(3)) | o.logpdf(x) | write wg.asarray
an error | ValueError(2.0) | x * o.args[0] | o is a ValueError
a generator | (k for k in [2.0]) | x * next(o) | o is a generator
a masked array | np.ma.ones(3) | o.sum() * x | o is a MaskedArray
a record | np.zeros(1, 'f8,f8')[0] | x * o[0] | o is a void
a sparse matrix
    | pytest.importorskip('scipy.sparse').eye_array(3).tocsr() | x * o.sum() | a raw array
an array of objects | np.array([2.0], object) | x * o[0] | of object
a part of a thread | Local() | x * o.k | o is a Local
a context | ContextVar('k', default=2.0) | x * o.get() | o is a Context
an array of Python's | bytearray(b'2') | x * o[0] | o is a bytearray
a structure of C | Structure(2.0) | x * o.k | o is a Structure
a weak reference | weakref.ref(Plain) | x * o().k | pass what it needs
a reader of attributes | operator.attrgetter('k') | x * o(Plain) | o is a attrgetter
a cached function | functools.lru_cache(lambda: SCALE) | x * o() | pass what it needs
a function of objects | np.frompyfunc(lambda t: t * SCALE, 1, 1) | x * o(1.0) | o is a ufunc
a view of a dict | {'k': 2.0}.values() | x * sum(o) | pass what
bits of a generator | np.random.PCG64(0) | x * float(o.random_raw() % 7) | draws from o
errors of NumPy by a name that is held | np.errstate | o(all='raise') and x / 2 | put np.errstate
errors of NumPy | 0.0 | raising(x, o) | put np.errstate around the call
a hook | wg.ones(3, requires_grad=True) | hooking(x, o) | registers a hook on a Tensor
JSON | 2.0 | x * float(json.dumps(o)) | static_argnames
"""
)


@pytest.mark.parametrize("name", UNSEEN)
def test_what_can_not_be_seen_into_is_refused(name: str) -> None:
    make, use, says = UNSEEN[name]
    with pytest.raises(CompileError, match=says):
        wg.compile(eval(f"lambda x, o: {use}", globals()))(X, eval(make, globals()))


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
        (lambda x, c: x * (c + 1), r"operator add computes.*wg\.asarray"),
        (lambda x, c: wg.reshape(c, (1, 3)), "shares memory"),
        (lambda x, c: x * np.add.reduce(c), r"np\.add is called.*wg\.asarray"),
        (lambda x, c: x * np.where([True] * 3, c, 0), r"np\.where is called.*wg\.asarray"),
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


@pytest.mark.parametrize("value", [1.0, X], ids=["a number", "a Tensor"])
def test_an_equal_key_of_an_argument(value: Any) -> None:
    run = wg.compile(lambda x, given: x * next(iter(given)).k, check=0)
    for key in [Layer(2.0)] * 3 + [Layer(3.0)] * 3:
        assert same_bits(run(X, {key: value}), X * key.k)


def test_a_tuple_with_attributes_is_not_replaced() -> None:
    held: Any = SimpleNamespace(t=hiding(X))

    def replace(x: Any) -> Any:
        held.t = hiding(held.t[0] * 2)
        return x

    with pytest.raises(CompileError, match=r"changes held\.t"):
        wg.compile(replace)(X)


def test_a_further_place_of_an_array_is_not_replaced() -> None:
    """Its new array was lost in replays."""
    held: Any = SimpleNamespace(a=np.ones(3))
    held.b = held.a

    def replace(x: Any) -> Any:
        y = x * wg.asarray(held.a)
        held.b = np.zeros(3)
        return y

    with pytest.raises(CompileError, match=r"changes held\.b from a ndarray"):
        wg.compile(replace, check=0)(X)
    assert held.b is held.a


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
    total, part = array.sum, slice(array)
    functions: list[Any] = [
        lambda x: x * float(total()),
        lambda x: x * wg.asarray(part.stop),
    ]
    for function in functions:
        with pytest.raises(
            CompileError, match=r"can't be (read anew in each call|replaced while .*); pass it"
        ):
            wg.compile(function)(X)


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64, wg.complex128], ids=str)
@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Lion"]
)
def test_a_parameter_without_axes(name: str, dtype: Any) -> None:
    """NumPy makes numbers of its own of the optimiser's arrays."""

    def run(compiled: bool) -> Any:
        p = wg.nn.Parameter(wg.asarray(1.5, dtype=dtype))
        more = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(wg.optim, name)([p], lr=0.1, **more)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = wg.sum(wg.abs(x - p) ** 2)
            loss.backward()
            optimizer.step()
            return loss.detach()

        f = wg.compile(step) if compiled else step
        return [(f(X * i), p.detach() + 0) for i in range(6)]

    for ours, eager in zip(run(True), run(False), strict=True):
        assert all(map(same_bits, ours, eager))


def test_a_schedule_gets_another_least_rate() -> None:
    """It was no factor any more, which a step had to change."""

    def run(compiled: bool) -> list[Any]:
        p = wg.nn.Parameter(X)
        optimizer = wg.optim.SGD([p], lr=0.1)
        schedule = wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

        def step() -> Any:
            optimizer.zero_grad()
            wg.sum(p * p).backward()
            optimizer.step()
            schedule.step()
            return p.detach() + 0

        f, found = wg.compile(step) if compiled else step, []
        for i in range(10):
            if i in (4, 7):
                schedule.eta_min = 0.01 if i == 4 else 0
            found.append(f())
        return found

    assert all(map(same_bits, run(True), run(False)))


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("SGD", {"momentum": 0.9}),
        ("Adam", {"amsgrad": True}),
        ("RMSprop", {"centered": True}),
        ("RMSprop", {"momentum": 0.5}),
    ],
)
def test_an_option_is_switched_on_midway(name: str, option: Any, check: int | None) -> None:
    """The call in which the optimiser begins to keep more runs as it is."""

    def run(compiled: bool) -> tuple[list[Any], Any]:
        params = [wg.nn.Parameter(X), wg.nn.Parameter(-X)]
        optimizer = getattr(wg.optim, name)(params, lr=0.1)

        def step() -> Any:
            optimizer.zero_grad()
            wg.sum(params[0] * params[1] + params[0] ** 2).backward()
            optimizer.step()
            return [p.detach() + 0 for p in params]

        f, found = wg.compile(step, check=check) if compiled else step, []
        for i in range(8):
            if i == 4:
                optimizer.param_groups[0].update(option)
            found += f()
        return found, f

    found, f = run(True)
    assert all(map(same_bits, found, run(False)[0]))
    assert f.report.recordings == 2
    assert "begins what an optimizer keeps ran as it is" in str(f.report)


def function_made(x: Any) -> Any:
    def run(y: Any) -> Any:
        return y

    return run


@pytest.mark.parametrize(
    "make",
    [
        function_made,
        lambda x: type("Made", (), {}),
        lambda x: functools.partial(abs, []),
        lambda x: wg.nn.Dropout(0.5),
        lambda x: Partial(abs),
        lambda x: [].append,
    ],
    ids=["function", "class", "partial", "module", "object", "method"],
)
def test_what_is_called_and_made_inside_is_refused(make: Any) -> None:
    """Each replay returned the same."""
    with pytest.raises(CompileError, match="each replay would return the same one"):
        wg.compile(lambda x: (x * 2, make(x)))(X)


def test_functions_that_were_there_are_returned() -> None:
    held = [doubled]
    run = wg.compile(lambda x: (x, held[0], Plain))
    for _ in range(4):
        assert run(X)[1:] == (doubled, Plain)
