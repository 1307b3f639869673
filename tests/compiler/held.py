"""What a compiled function is given or holds, what it computes of it, and a change: rows."""

import re
from typing import Any

__all__ = ["HELD", "NOT_GIVEN", "made_space", "rows"]

#: What stands before the lines of each row.
BEFORE = """
import ctypes, dataclasses, functools, inspect, json, operator, pickle, random, sys, threading
import types, weakref
from collections import ChainMap, UserDict
from contextlib import nullcontext
from contextvars import ContextVar
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import NamedTuple
import numpy as np
import pytest
import wengert as wg
X = wg.asarray([1.0, 2.0, 3.0])
SCALE = 2.0
def rescale(value=3.0):
    global SCALE
    SCALE = value
class Plain:
    k = 2.0
    def __init__(self, **given):
        vars(self).update(given)
def with_k(x, k=2.0):
    x.k = k
    return x
def by_default(o, key, get=getattr):
    return get(o, key)
class Slotted:
    __slots__ = ("kk",)
def slotted(kk):
    made = Slotted()
    made.kk = kk
    return made
def made_module(name):
    sys.modules[name] = with_k(ModuleType(name))
    return sys.modules[name]
def swapped(x, name, value):  # in the place of what nobody reads: as many as before
    del x.other
    setattr(x, name, value)
def like_a_librarys(x):
    return x * SCALE
functools.update_wrapper(like_a_librarys, np.mean)
@dataclasses.dataclass(frozen=True)
class Layer:
    k: float = dataclasses.field(default=1.0, compare=False)
class Text(str):  # it has attributes
    pass
class Hidden(NamedTuple("Hiding", [("a", float)])):  # whose objects have attributes
    pass
def hidden(k):
    return with_k(Hidden(1.0), k)
def torch():
    return pytest.importorskip("torch")
def stats():
    return pytest.importorskip("wengert.scipy.stats", exc_type=ImportError)
"""


def rows(text: str) -> dict[str, tuple[str, list[str]]]:
    """Each row's lines (``>``) and parts by its name; a deeper line goes on with the one above."""
    found = {}
    for row in re.split(r"\n(?=\S)", text.strip()):
        lines = "\n".join(re.findall("^    > (.*)", row, re.MULTILINE))
        whole = re.sub(r"\n    (>.*|)", lambda m: "" if m[1] else " ", row)
        name, *parts = whole.split(" | ")
        assert name not in found
        found[name] = lines, parts
    return found


def made_space(lines: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "program", "__package__": __package__}
    exec(BEFORE + lines, space)
    return space


#: What there is (``o``), what is computed of it and of ``x``, and the change.
HELD = rows(
    """
a method of a named tuple | Batch(X) | o.scaled() | rescale()
    > class Batch(NamedTuple):
    >     x: object
    >     def scaled(self):
    >         return self.x * SCALE
a method of an enum in a tuple | (Mode.A, 2) | o[0].scaled(x) | rescale()
    > class Mode(Enum):
    >     A = 1
    >     def scaled(self, x):
    >         return x * SCALE
an attribute of an enum by its value
    | type(with_k(Enum('Made', 'ONE TWO')(2))) | x * o(2).k | o(2).k = 3.0
a method of a Parameter | Parameter(X) | o.scaled() | rescale()
    > class Parameter(wg.nn.Parameter):
    >     def scaled(self):
    >         return self.detach() * SCALE
an attribute of a Parameter
    | type('Made', (wg.nn.Parameter,), {'k': 2.0})(X) | x * o.k | o.k = 3.0
a text of a class | [Text('2')] | x * int(str(o[0])) | o[0] = Text('3')
a text that says nothing | [Mode.A] | x * o[0].value | o[0] = Mode.B
    > class Mode(Enum):
    >     A, B = 1, 2
    >     def __repr__(self):
    >         return "a mode"
another dict of a layer
    | wg.nn.LeakyReLU(0.1) | o(-x) | o.__dict__ = {**vars(o), 'negative_slope': 0.5}
one attribute for another | Plain(other=1) | x * o.k | swapped(o, 'k', 3.0)
one attribute of a class for another
    | type('Made', (Plain,), {'other': 1})() | x * o.k | swapped(type(o), 'k', 3.0)
a buffer that the state_dict has no longer
    | with_buffer(wg.nn.Identity()) | x * len(o.state_dict())
    | o.register_buffer('b', o.b, persistent=False)
    > def with_buffer(module):
    >     module.register_buffer("b", X)
    >     return module
another class
    | wg.nn.Identity() | o(x)
    | o.__class__ = type('Made', (wg.nn.Identity,), {'forward': lambda self, x: x * 2})
a class that is made
    | types.new_class('Made', exec_body=lambda space: space.update(k=2.0))() | x * o.k
    | type(o).k = 3.0
one array as two arguments
    | [X, X] | wg.sum(o[0]) * o[1] if o[0] is o[1] else o[0] - o[1] | o[1] = -X
two arguments that become one array
    | [X, -X] | wg.sum(o[0]) * o[1] if o[0] is o[1] else o[0] - o[1] | o[1] = o[0]
one raw array as two arguments
    | [k := np.ones(3), k] | x * wg.asarray(o[0]) * wg.asarray(o[1]) | o[1] = np.arange(3.0)
a replaced dataclass | [Config()] | x * dataclasses.replace(o[0], k=1.0).k | rescale()
    > @dataclasses.dataclass
    > class Config:
    >     k: float = 1.0
    >     def __post_init__(self):
    >         self.k = self.k * SCALE
names that a module makes | module | x * o.k | o.T.update(k=3.0)
    > module = ModuleType("lazy")
    > exec("T = {'k': 2.0}\\ndef __getattr__(name): return T[name]", vars(module))
a slot of a dict
    | ((d := type('Made', (dict,), {})(k=2.0)), d.__getitem__, d.get) | x * o[1]('k') * o[2]('k')
    | o[0].update(k=3.0)
a chain of dicts | ChainMap({}, {'k': 2.0}) | x * o['k'] | o.maps[1].update(k=3.0)
modules in a set
    | {wg.nn.LeakyReLU(0.1)} | next(iter(o))(-x) | next(iter(o)).negative_slope = 0.7
a pattern | Plain(k=2.0) | in_a_pattern(x, o) | o.k = 3.0
    > def in_a_pattern(x, o):
    >     match o:
    >         case Plain(k=k):
    >             return x * k
an attribute of a function | computed | computed(x) | vars(computed).update(kk=3.0)
    > def computed(x):
    >     return x * getattr(computed, "k" + "k")
    > computed.kk = 2.0
an attribute that was not there | SimpleNamespace() | x * getattr(o, 'k', 2.0) | o.k = 3.0
another function of a library | Plain(f=operator.add) | o.f(x, 3.0) | o.f = operator.mul
what is imported inside | made_module('tests_found_settings') | imported(x) | o.k = 3.0
    > def imported(x):
    >     from tests_found_settings import k
    >     return x * k
a function like a library's | like_a_librarys | o(x) | rescale()
a forward of an object | wg.nn.Flatten(0) | o(x) | o.forward = lambda x: x * 5
another code
    | types.FunctionType(like_a_librarys.__code__, globals()) | o(x)
    | o.__code__ = (lambda x: x * 7).__code__
generated methods
    | [dataclasses.make_dataclass('Made', ['k'])(2.0), 2.0]
    | x * (2 if o[0] == type(o[0])(o[1]) else 3)
    | o[0].k = 3.0
a global of a class that is called | Scaled | x * o().k | rescale()
    > class Scaled:
    >     def __init__(self):
    >         self.k = SCALE
an attribute of a metaclass | Table | x * o.k | o.table.update(k=3.0)
    > class Meta(type):
    >     def __getattr__(cls, name):
    >         return cls.table[name]  # a KeyError for others
    > class Table(metaclass=Meta):
    >     table = {"k": 2.0}
a method by types | Scaled() | o.of(x) | rescale()
    > class Scaled:
    >     @functools.singledispatchmethod
    >     def of(self, x):
    >         return x
    >     @of.register
    >     def _(self, x: wg.Tensor):
    >         return x * SCALE
what a context gives | [nullcontext([2.0])] | within(x, o) | o[0].enter_result[0] = 3.0
    > def within(x, o):
    >     with o[0] as given:
    >         return x * given[0]
the elements of an enum's value
    | Filter | x * wg.asarray(o.A.value) | o.A.value.fill(5.0)
    > class Filter(Enum):
    >     A = np.ones(3, np.float32)
an item of a user's dict | type('Made', (UserDict,), {})(k=2.0) | x * o['k'] | o['k'] = 3.0
what is imported inside from a package
    | made_module('tests.compiler.found_settings') | imported_from_here(x) | o.k = 3.0
    > def imported_from_here(x):
    >     from .found_settings import k
    >     return x * k
what a class method makes | Made(1.0) | x * o.of(1.0).k | rescale()
    > class Made:
    >     def __init__(self, k):
    >         self.k = k * SCALE
    >     @classmethod
    >     def of(cls, k):
    >         return cls(k)
the Tensors of a data set | wg.data.TensorDataset(X) | x * o[2][0] | o.tensors = (-X,)
a subset of a user's data set | wg.data.Subset(Scales(), [1, 2]) | x * o[0] | rescale()
    > class Scales(wg.data.Dataset):
    >     def __len__(self):
    >         return 3
    >     def __getitem__(self, i):
    >         return i * SCALE
a partial method that is called | Called() | o(x) | rescale()
    > class Called:
    >     def by(self, k, x):
    >         return x * k * SCALE
    >     __call__ = functools.partialmethod(by, 2.0)
a property of a class | Extended() | x * o.a | rescale()
    > class Property(property):
    >     def __get__(self, x, kind=None):
    >         return SCALE
    > class Extended:
    >     a = Property(lambda self: 1.0)
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
an attribute in a format that is a key
    | (Plain(kk=2.0), {'{0[a:b].kk}': 1}) | x * float(min(o[1]).format({'a:b': o[0]}))
    | o[0].kk = 3.0
an attribute in a format of bytes
    | (Plain(kk=2.0), b'{0.kk}') | x * float(o[1].decode().format(o[0])) | o[0].kk = 3.0
a cached property that is held
    | [c := Cached(), c.kk, vars(Cached)['kk'].__get__] | x * o[2](o[0]) | vars(o[0])['kk'] = 3.0
    > class Cached:
    >     kk = functools.cached_property(lambda self: 2.0)
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
    | SimpleNamespace(kk=2.0) | x * float(sum(pickle.dumps(o))) | o.kk = 3.0
slots of a dataclass | Slots() | x * (2 if o == Slots() else 3) | o.kk = 3.0
    > @dataclasses.dataclass(slots=True, match_args=False)
    > class Slots:
    >     kk: float = 2.0
a text of an object of attrs
    | pytest.importorskip('attr').make_class('Made', ['kk'])(2.0)
    | x * (2 if '2.0' in str(o) else 3) | o.kk = 3.0
an attribute of an iterator | Loader() | x * o.k | o.k = 3.0
    > class Loader(Plain):
    >     def __iter__(self):
    >         return self
    >     def __next__(self):
    >         return self.k
an attribute of a generator | with_k(type('Made', (random.Random,), {})(0)) | x * o.k | o.k = 3.0
a frozen distribution | stats().norm(0.0, 2.0) | o.logpdf(x) | o.args = (0.0, 3.0)
a frozen distribution by keywords
    | stats().norm(loc=0.0, scale=2.0) | o.logpdf(x) | o.kwds.update(scale=3.0)
a vectorized function of NumPy's
    | np.vectorize(lambda t: t * SCALE) | x * float(o(1.0)) | rescale()
hooks of what is saved
    | wg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * SCALE) | in_hooks(x, o)
    | rescale()
    > def in_hooks(x, o):
    >     x = x.detach().requires_grad_(True)
    >     with o:
    >         y = wg.sum(x**2)
    >     return wg.autograd.grad(y, x)[0]
an equal key | {Layer(2.0): 1.0} | x * next(iter(o)).k | o.clear(); o.update({Layer(3.0): 1.0})
an equal text as a key
    | {with_k(Text('a')): 1.0} | x * next(iter(o)).k
    | o.clear(); o.update({with_k(Text('a'), 3.0): 1.0})
an equal element | {Layer(2.0)} | x * next(iter(o)).k | o.clear(); o.add(Layer(3.0))
an equal element of another sign
    | {(0.0,)} | x * np.copysign(1.0, next(iter(o))[0]) | o.clear(); o.add((-0.0,))
a key of another type
    | {(1,): 2.0} | x * (2.0 if next(iter(o))[0] is True else 3.0)
    | o.clear(); o.update({(True,): 2.0})
an attribute of an equal tuple | [hidden(2.0)] | x * o[0].k | o[0] = hidden(3.0)
a method by its name
    | type('Made', (), {'m': lambda self: 2.0})() | x * operator.methodcaller('m')(o)
    | type(o).m = lambda self: 3.0
a method above
    | super(made := type('Made', (type('Base', (Plain,), {'m': lambda self: self.k}),), {}), made())
    | x * o.m() | o.__self__.k = 3.0
an operation | [wg.tanh] | o[0](x) | o[0] = wg.special.erf
a global that was not there | None | asked(x) | globals().update(LATER=5)
    > def asked(x):
    >     try:
    >         return x * LATER
    >     except NameError:
    >         return x
a global that hides a builtin | None | x * len([1, 2]) | globals().update(len=lambda x: 5)
a global that hid a builtin
    | globals().update(len=lambda x: 5) | x * len([1, 2]) | globals().pop('len')
an annotation in a signature
    | annotated | x * len(inspect.signature(o).parameters['k'].annotation)
    | o.__annotations__.update(k='three')
    > def annotated(k: "two"):
    >     return k
elements that are more
    | np.arange(4.0) | x * wg.asarray(wg.asarray(o).mean(), dtype=x.dtype)
    | o.resize(8, refcheck=False)
elements of another shape
    | np.ones((4, 1)) | x * wg.asarray(o).shape[0] | o.resize((1, 4), refcheck=False)
elements of a Tensor of another shape
    | wg.asarray(np.ones((4, 1))) | x * o.shape[0] | o.numpy().resize((1, 4), refcheck=False)
elements of another dtype | torch().ones(3) | x * o.itemsize | o.data = o.data.double()
nan as the object that it is | [np.nan] | x * (2.0 if o[0] is np.nan else 3.0) | o[0] = 2.0
a value of another type | Plain(k=1) | x * len(repr(o.k)) | o.k = True
a zero of another sign | Plain(k=0.0) | x * np.copysign(1.0, o.k) | o.k = -0.0
an attribute that was not there and is asked for
    | Plain() | x * 2 if hasattr(o, 'scale') else x | o.scale = 1
an attribute that its class did not have
    | type('Local', (Plain,), {})() | x * 2 if hasattr(o, 'scale') else x | type(o).scale = 1
a key that was not there | {} | x * o.get('a', 3) | o['a'] = 5
another attribute among all | Plain(a=1.0) | x * sum(vars(o).values()) | o.b = 4.0
an attribute that goes | Plain(a=1.0, b=4.0) | x * sum(vars(o).values()) | del o.b
an attribute among all that comes by its dict
    | Plain(a=1.0) | x * sum(vars(o).values()) | vars(o)['b'] = 4.0
a slot that was empty | Slotted() | x * getattr(o, 'kk', 3) | o.kk = 5
a name of a module that was not there
    | ModuleType('settings_of_a_user') | x * getattr(o, 'SCALE', 3) | o.SCALE = 5
an equal key of a Tensor
    | {Layer(2.0): X} | x * next(iter(o)).k | o.clear(); o.update({Layer(3.0): X})
the parameter of an identity
    | [p := wg.nn.Parameter(X), {id(p): 2.0}, p] | x * o[1].get(id(o[0]), 3.0)
    | o[0] = wg.nn.Parameter(X)
an object of a hash that is held
    | [p := Plain(), {hash(p): 2.0}, p, hash] | x * o[1].get(o[3](o[0]), 3.0) | o[0] = Plain()
the defaults of an optimizer
    | [wg.optim.SGD([wg.nn.Parameter(X)], lr=2.0)] | x * o[0].defaults['lr']
    | o[0] = wg.optim.SGD([wg.nn.Parameter(X)], lr=3.0)
a default of an optimizer | wg.optim.SGD([wg.nn.Parameter(X)], lr=2.0) | x * o.defaults['lr']
    | o.defaults['lr'] = 3.0
a method that an enum calls | Mode | x * o('x').value | rescale(1)
    > SCALE = 2
    > class Mode(Enum):
    >     A, B = 1, 2
    >     @classmethod
    >     def _missing_(cls, name):
    >         return cls(SCALE)
a method that a library calls | Encoder() | x * float(o.encode(o)) | rescale()
    > class Encoder(json.JSONEncoder):
    >     def default(self, x):
    >         return SCALE
a method of a computed name
    | Visitor(), ast.parse('1', mode='eval') | x * o[0].visit(o[1]) | rescale()
    > import ast
    > class Visitor(ast.NodeVisitor):
    >     def visit_Expression(self, node):
    >         return self.visit(node.body)
    >     def visit_Constant(self, node):
    >         return node.value * SCALE
a generator with numbers of its own
    | type('Made', (random.Random,), {'random': lambda self: SCALE})() | x * o.uniform(0, 1)
    | rescale()
what is given by keywords | Keys() | x * dict(**o)['k'] | rescale()
    > class Keys:
    >     def keys(self):
    >         return ["k"]
    >     def __getitem__(self, key):
    >         return SCALE
the class of a static method | Made.scaled | o(x) | o.__globals__['Made'].k = 3.0
    > class Made(Plain):
    >     @staticmethod
    >     def scaled(x):
    >         return x * __class__.k
the class above a static method | Made.scaled | o(x) | Plain.k = 3.0
    > class Made(Plain):
    >     @staticmethod
    >     def scaled(x):
    >         return x * super(__class__, __class__).k
the name of a function | [like_a_librarys] | x * len(o[0].__name__) | o[0].__name__ = 'f'
the name of a like function
    | [like_a_librarys] | x * len(o[0].__name__)
    | o[0] = types.FunctionType(o[0].__code__, globals(), 'f')
the text of a function | like_a_librarys | x * len(o.__doc__) | o.__doc__ = 'f'
the name of a class | type('Made', (), {})() | x * len(type(o).__name__) | type(o).__name__ = 'M'
annotations of a class
    | type('Made', (), {'__annotations__': {'a': int}}) | x * len(typing.get_type_hints(o))
    | o.__annotations__.update(b=int)
    > import typing
annotations of a function | annotated | x * len(o.__annotations__) | o.__annotations__.update(b=int)
    > def annotated(a: int): pass
the room of a deque
    | [collections.deque([1.0], 1)] | x * len(o[0] + o[0]) | o[0] = collections.deque([1.0], 2)
    > import collections
a protocol | Plain() | x * (2.0 if isinstance(o, Runs) else 3.0) | o.run = 1
    > import typing
    > @typing.runtime_checkable
    > class Runs(typing.Protocol):
    >     def run(self): ...
a cell that was empty | later | o(x) | o(X, 3.0)
    > def made():
    >     def later(x, new=None):
    >         nonlocal k
    >         if new:
    >             k = new
    >         try:
    >             return x * k
    >         except NameError:
    >             return x
    >     if 0:
    >         k = 1.0
    >     return later
    > later = made()
the order of a pattern | Pair(2.0, 3.0) | in_a_pattern(x, o) | Pair.__match_args__ = ('b', 'a')
    > @dataclasses.dataclass
    > class Pair:
    >     a: float
    >     b: float
    > def in_a_pattern(x, o):
    >     match o:
    >         case Pair(a, b):
    >             return x * a + b
a field that no constructor takes | Made() | x * o.k | o.k = 3.0
    > @dataclasses.dataclass
    > class Made:
    >     k: float = dataclasses.field(default=2.0, init=False)
an attribute that a constructor makes | Made(2.0) | x * o.k * o.y | o.k = 3.0
    > @dataclasses.dataclass
    > class Made:
    >     k: dataclasses.InitVar[float]
    >     def __post_init__(self, k):
    >         self.k, self.y = k, X * k
the parts of an attribute of a dataclass | with_k(Layer2(), [2.0]) | x * o.k[0] | o.k[0] = 3.0
    > @dataclasses.dataclass
    > class Layer2:
    >     a: float = 1.0
the parts of a static field | Made([2.0]) | x * o.k[0] | o.k[0] = 3.0
    > @dataclasses.dataclass
    > class Made:
    >     k: list = dataclasses.field(metadata={"static": True})
a Tensor in a static field | Made(wg.nn.Parameter(X * 1)) | x * o.k.detach() | added(o.k)
    > def added(x):
    >     with wg.no_grad():
    >         x.add_(1.0)
    > @dataclasses.dataclass
    > class Made:
    >     k: object = dataclasses.field(metadata={"static": True})
items that are made when they are asked for
    | collections.defaultdict(lambda: 2.0, a=1.0) | sum([o[key] for key in o], x) | o.clear()
    > import collections
what makes items of a dict
    | [d := collections.defaultdict(lambda: SCALE, k=X)] | x * o[0].default_factory() | rescale()
    > import collections
an array of a named tuple's object | hidden(X) | x * o.k | o.k = -X
what PyTorch's data sets hold
    | torch().utils.data.Subset(Scales(), [0, 1]) | x * o[1] | o.indices = [0, 2]
    > class Scales:
    >     def __getitem__(self, i):
    >         return i * SCALE
the order of parameters
    | Pair() | x + next(iter(o.parameters())).detach() | a = o.a; del o.a; o.a = a
    > class Pair(wg.nn.Module):
    >     def __init__(self):
    >         self.a, self.b = wg.nn.Parameter(X), wg.nn.Parameter(-X)
the order of a layer's parameters
    | wg.nn.Linear(3, 3) | x * wg.sum(next(iter(o.parameters())).detach())
    | a = o.weight; del o.weight; o.weight = a
the order of a layer's attributes
    | wg.nn.Linear(3, 3) | x * [*vars(o)].index('weight') | a = o.weight; del o.weight; o.weight = a
an attribute of a compiled function | scaled | o(x) | o.k = 3.0
    > @wg.compile
    > def scaled(x):
    >     return x * scaled.k
    > scaled.k = 2.0
an attribute of a compiled function by a computed name | scaled | o(x) | o.kk = 3.0
    > @wg.compile
    > def scaled(x):
    >     return x * getattr(scaled, "k" + "k")
    > scaled.kk = 2.0
an attribute of a compiled method | Made() | o.scaled(x) | Made.scaled.k = 3.0
    > class Made:
    >     @wg.compile
    >     def scaled(self, x):
    >         return x * Made.scaled.k
    > Made.scaled.k = 2.0
an attribute of a compiled method by its object | Made() | o.scaled(x) | Made.scaled.k = 3.0
    > class Made:
    >     @wg.compile
    >     @with_k
    >     def scaled(self, x):
    >         return x * self.scaled.k
an attribute of a compiled module
    | with_k(wg.compile(wg.nn.LeakyReLU(0.1))) | o(x) * o.k | o.k = 3.0
a Tensor of a compiled function | with_k(wg.compile(like_a_librarys), X) | x * o.k | o.k = -X
attributes in an ordered dict | Ordered() | x * o.k | o.k = 3.0
    > class Ordered:
    >     def __init__(self):
    >         self.__dict__ = collections.OrderedDict(k=2.0)
    > import collections
an attribute that an ordered dict lacks | Ordered() | x * getattr(o, 'k', 2.0) | o.k = 3.0
    > class Ordered:
    >     def __init__(self):
    >         self.__dict__ = collections.OrderedDict()
    > import collections
a method of a compiled function's name | Odd() | x * o.k | o.k = 3.0
    > class Odd(Plain):
    >     def _original(self):
    >         return print
a class with a cache | functools.update_wrapper(Cached(), np.mean) | x * o.k | o.k = 3.0
    > class Cached(Plain):
    >     def cache_clear(self):
    >         pass
slots of a library's object | statistics.NormalDist(2.0) | x * o.mean | o._mu = 3.0
    > import statistics
an attribute of a counter | with_k(collections.Counter()) | x * o.k | o.k = 3.0
    > import collections
an attribute of a library's generator | with_k(random.Random(0)) | x * o.k | o.k = 3.0
an attribute of a vectorized function | with_k(np.vectorize(abs)) | x * o.k | o.k = 3.0
what a library reads by a method | Source() | x * json.load(o) | o.k = 3.0
    > class Source(Plain):
    >     def read(self):
    >         return str(self.k)
a function with derivatives of its own | scaled | o(x, k=1.0) | rescale()
    > @wg.custom_vjp
    > def scaled(x, k):
    >     return x * k * SCALE
    > scaled.defvjp(lambda x, k: (x, k), lambda saved, g: (g, g))
what makes an object a node | Node(2.0) | x * sum(wg.func.tree_leaves(o)) | o.kk = 3.0
    > class Node(Slotted):
    >     def __init__(self, kk):
    >         self.kk = kk
    > wg.func.register_node(Node, lambda o: ((o.kk,), None), lambda extra, kk: Node(*kk))
what a node's function names | Node() | x * sum(wg.func.tree_leaves(o)) | rescale()
    > class Node:
    >     pass
    > wg.func.register_node(Node, lambda o: ((SCALE,), None), lambda extra, kk: Node())
the order of an optimizer's state | Adam([wg.nn.Parameter(X)]) | o.first() + x | turned(o.all())
    > class Adam(wg.optim.Adam):
    >     def __init__(self, params):
    >         super().__init__(params)
    >         params[0].grad = X * 1
    >         self.step()
    >     def all(self):
    >         return next(iter(self.state.values()))
    >     def first(self):
    >         return wg.asarray([x for x in self.all().values() if hasattr(x, 'shape')][0])
    > def turned(space):
    >     items = [*space.items()]
    >     space.clear()
    >     space.update(reversed(items))
"""
)
#: Those whose arguments are put together anew, or flattened.
NOT_GIVEN = {
    *("a replaced dataclass", "an attribute of an equal tuple"),
    *("a field that no constructor takes", "an attribute that a constructor makes"),
    *("the parts of an attribute of a dataclass", "an array of a named tuple's object"),
    *("what makes an object a node", "what a node's function names"),
}
