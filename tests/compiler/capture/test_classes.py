"""Classes, the objects that code makes of them, and how code comes by an object.

Programs are a product of three tables: where a value is, how code comes by the object that leads to
it, and where that code stands. The value changes between two calls.
"""

import operator
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.capture.changing import outcome
from wengert.tape.primitive import PRIMITIVES

X = [1.5, -2.0, 0.25]

PREAMBLE = """
import copy, contextlib, dataclasses, functools, typing
import wengert as wg
K = [2.0]
"""


def _table(text: str) -> dict[str, tuple[list[str], str]]:
    """Sources by their titles, which are comments: ``# name | more | more``."""
    parts = [part.partition("\n") for part in text.strip().removeprefix("# ").split("\n\n# ")]
    return {
        title.split(" | ")[0]: (title.split(" | ")[1:], source + "\n") for title, _, source in parts
    }


#: Where a value is: a name, an expression of an object h, a change, and classes. The object is at
#: ``{o}``, or another one where code makes it.
HOLDERS = _table("""
# an attribute | h.get() | {o}.v = 3.0
class H:
    def __init__(self): self.v = 2.0
    def get(self): return self.v

# a class | h.v | H.v = 3.0
class H:
    v = 2.0

# a class, by self | h.get() | H.v = 3.0
class H:
    v = 2.0
    def get(self): return self.v

# a base, by another method | h.get() | B.v = 3.0
class B:
    v = 2.0
    def get(self): return self.hidden()
    def hidden(self): return self.v
class H(B): pass

# a base of a base, by super | h.get() | A.v = 3.0
class A:
    v = 2.0
    def get(self): return self.v
class B(A):
    def get(self): return super().get()
class H(B): pass

# a constructor | h.v | K[0] = 3.0; {o}.v = 4.0
class H:
    def __init__(self): self.v = K[0]

# a base's constructor | h.v | K[0] = 3.0; {o}.v = 4.0
class B:
    def __init__(self): self.v = K[0]
class H(B): pass

# a default in the class | h.w | H.v = 3.0; {o}.w = 4.0
class H:
    v = 2.0
    def __init__(self): self.w = self.v

# another class, of which it makes an object | h.get() | Part.v = 3.0
class Part:
    v = 2.0
    def get(self): return self.v
class H:
    def get(self): return Part().get()

# its own class, of which it makes an object | h.again().v | K[0] = 3.0
class H:
    def __init__(self): self.v = K[0]
    def again(self): return H()

# its own class, by an operator | (h + h).v | K[0] = 3.0
class H:
    def __init__(self, v=1.0): self.v = v * K[0]
    def __add__(self, o): return H(self.v)

# a class inside | h.get() | H.In.v = 3.0
class H:
    class In:
        v = 2.0
        def get(self): return self.v
    def get(self): return self.In().get()

# settings | h.get() | SETTINGS.rate = 3.0
class Settings:
    rate = 2.0
SETTINGS = Settings()
class H:
    def __init__(self): self.settings = SETTINGS
    def get(self): return self.settings.rate

# a property | h.v | K[0] = 3.0
class H:
    @property
    def v(self): return self.w()
    def w(self): return K[0]

# a static and a class method | h.one() + h.two() | K[0] = 3.0; H.v = 5.0
class H:
    v = 2.0
    @staticmethod
    def one(): return K[0]
    @classmethod
    def two(cls): return cls.v

# special methods | h() + h['a'] + sum(h) | H.v = 3.0
class H:
    v = 2.0
    def __call__(self): return self.v
    def __getitem__(self, k): return self.v
    def __iter__(self): yield self.v

# a callback | h.get() | H.v = 3.0
class H:
    v = 2.0
    def one(self, i): return i * self.v
    def get(self): return sum(map(self.one, [1.0, 2.0]))

# a context | h.get() | H.v = 3.0
class H:
    v = 2.0
    @contextlib.contextmanager
    def held(self): yield self.v
    def get(self):
        with self.held() as v: return v

# a dataclass | h.get() | H.w = 3.0
@dataclasses.dataclass
class H:
    v: float = 2.0
    w: typing.ClassVar[float] = 2.0
    def get(self): return self.v + self.w

# a named tuple | h.get() | H.w = 3.0
class H(typing.NamedTuple):
    v: float = 2.0
    def get(self): return self.w
H.w = 2.0

# a generic class | h.get() * H.v | Of.v = 3.0
T = typing.TypeVar('T')
class Of(typing.Generic[T]):
    v = 2.0
    def __init__(self): self.w = K[0]
    def get(self): return self.v * self.w
H = Of[int]

# a metaclass | h.get() | Meta.v = 3.0
class Meta(type):
    v = 2.0
class H(metaclass=Meta):
    def get(self): return type(self).v

# a Module | h() | H.v = 3.0
class H(wg.nn.Module):
    v = 2.0
    def forward(self): return self.hidden()
    def hidden(self): return self.v

# an attribute that was not there | getattr(h, 'v', 2.0) | H.v = 3.0
class H: pass
""")

#: How code comes by an object: what is defined, a line, and where the object is.
WAYS: list[tuple[str, str, str]] = [
    ("H0 = H()", "h = H0", "H0"),
    ("H0 = types.SimpleNamespace()", "h = H()", "H0"),
    ("H0 = types.SimpleNamespace()\nMADE = {'h': H}", "h = MADE['h']()", "H0"),
    ("H0 = types.SimpleNamespace()\ndef make(): return H()", "h = make()", "H0"),
    ("MANY = [H()]", "h = max(MANY, key=lambda h: 0)", "MANY[0]"),
    ("class Outer:\n    def me(self): return self\nO = Outer()\nO.h = H()", "h = O.me().h", "O.h"),
    ("H0 = H()", "h = copy.copy(H0)", "H0"),
]

#: Where the code stands: the source of a function f of a Tensor.
READERS = _table("""
# function
def f(x):
    {way}
    return x * ({e})

# inner function
def f(x):
    def g():
        {way}
        return {e}
    return x * g()

# method of a new object
class R:
    def run(self, x):
        {way}
        return x * ({e})
def f(x): return R().run(x)

# another method than the constructor
class R:
    def __init__(self):
        {way}
        self.got = h
    def run(self, x):
        h = self.got
        return x * ({e})
def f(x): return R().run(x)

# attribute of self
class R:
    def __init__(self):
        {way}
        self.got = h
    def run(self, x): return x * ({own})
def f(x): return R().run(x)

# Module
class R(wg.nn.Module):
    def forward(self, x):
        {way}
        return x * ({e})
f = R()

# rule of custom_vjp
@wg.custom_vjp
def own(x): return x * 1.0
def forward(x):
    {way}
    return x * ({e}), None
own.defvjp(forward, lambda kept, g: (g * K[0],))
def f(x): return wg.func.vjp(own, x)[0] + wg.grad(lambda x: wg.sum(own(x)))(x)

# rule of a Function
class Own(wg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {way}
        return x * ({e})
    @staticmethod
    def backward(ctx, g): return g
def f(x): return Own.apply(x)

# transform
def f(x):
    def g(v):
        {way}
        return wg.sum(v * v * ({e}))
    return wg.grad(g)(x)
""")


def defined(source: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "a_program_of_a_test", "types": types}
    exec(PREAMBLE + source, space)
    return space


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_objects_lead_to(holder: str) -> None:
    (expression, change), classes = HOLDERS[holder]
    own = re.sub(r"\bh\b(?!')", "self.got", expression)
    first = list(HOLDERS).index(holder)
    for i, (reader, (_, code)) in enumerate(READERS.items()):
        made, way, place = WAYS[(first + i) % len(WAYS)]
        source = f"{classes}{made}\n{code.format(way=way, e=expression, own=own)}"
        plain, other = defined(source), defined(source)
        function, x = wg.compile(other["f"], check=0), wg.asarray(X)
        for step in range(4):
            if step == 2:
                for space in (plain, other):
                    exec(change.format(o=place), space)
            found, expected = outcome(function, x), outcome(plain["f"], x)
            assert found == expected, f"{reader}: stale\n{source}\n{function.report}"
        assert not function.report._fallbacks, f"{reader}:\n{source}\n{function.report}"


# -- arguments -------------------------------------------------------------------------------------

ARGUMENTS = {
    "a named tuple": "class Q(typing.NamedTuple):\n    w: typing.Any\n",
    "a dataclass": "@dataclasses.dataclass\nclass Q:\n    w: typing.Any\n",
    "a registered class": (
        "class Q:\n    def __init__(self, w): self.w = w * L[0]\n"
        "L = [1.0]\nwg.func.register_node(Q, lambda q: ((q.w * L[0],), None), lambda e, c: Q(*c))\n"
    ),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_methods_of_arguments(kind: str) -> None:
    """Also what takes a node apart and puts it together."""
    source = (
        "    def go(self, x): return self.on(x)\n"
        "    def on(self, x): return x * self.w * self.k\n"
        "Q.k = 2.0\ndef f(x, q): return q.go(x)\n"
    )
    head, line, tail = ARGUMENTS[kind].partition("L = [1.0]\n")
    space = defined(head + source + line + tail)
    function, x = wg.compile(space["f"], check=0), wg.asarray(X)
    changes = [None, lambda: setattr(space["Q"], "k", 3.0)]
    changes += [lambda: space["L"].__setitem__(0, 2.0)] if line else []
    for change in changes:
        if change is not None:
            change()
        for _ in range(2):
            expected = space["f"](x, space["Q"](x))
            assert outcome(function, x, space["Q"](x)) == outcome(lambda e=expected: e)


def test_arguments_of_a_subclass_of_tensor() -> None:
    class Marked(wg.Tensor):
        by = 2.0

    def marked(tag: float) -> Any:
        made: Any = Marked(np.ones(3, dtype=np.float32))
        made.tag = tag
        return made

    function = wg.compile(lambda x, t: x * t.by * t.tag)
    for tag in (1.0, 1.0, 3.0):
        assert function(wg.ones(3), marked(tag)).tolist() == [2.0 * tag] * 3
    Marked.by = 5.0
    assert function(wg.ones(3), marked(1.0)).tolist() == [5.0] * 3
    assert "a subclass of Tensor" in str(function.report)


# -- what asks for attributes without their names in the code ------------------------------------


def _protocol() -> tuple[Callable[..., Any], list[Callable[[], Any]]]:
    space = defined(
        "@typing.runtime_checkable\nclass P(typing.Protocol):\n    scale: float\n"
        "class A: pass\na = A()\ndef f(x): return x * 2 if isinstance(a, P) else x\n"
    )
    a = space["a"]
    return space["f"], [lambda: setattr(a, "scale", 1.0), lambda: delattr(a, "scale")]


def _getters() -> tuple[Callable[..., Any], list[Callable[[], Any]]]:
    by, call = operator.attrgetter, operator.methodcaller
    held = types.SimpleNamespace(scale=2.0)
    cls = defined("class A:\n    v = 2.0\n    def get(self): return self.v\n")["A"]
    a = cls()
    return (
        lambda x: x * by("scale")(held) * call("get")(a),
        [lambda: setattr(held, "scale", 3.0), lambda: setattr(cls, "v", 3.0)],
    )


def _patterns() -> tuple[Callable[..., Any], list[Callable[[], Any]]]:
    space = defined(
        "class P:\n    __match_args__ = ('a', 'b')\n    a, b = 1.0, 2.0\n"
        "p = P()\ndef f(x):\n    match p:\n        case P(a, b): return x * a + b\n    return x\n"
    )
    return space["f"], [lambda: setattr(space["P"], "__match_args__", ("b", "a"))]


def _annotations() -> tuple[Callable[..., Any], list[Callable[[], Any]]]:
    space = defined("class A:\n    a: int\ndef f(x): return x * len(A.__annotations__)\n")
    return space["f"], [lambda: space["A"].__annotations__.update(b=int)]


def _unions() -> tuple[Callable[..., Any], list[Callable[[], Any]]]:
    space = defined(
        "class Meta(type):\n    def __instancecheck__(cls, x): return K[0] > 2\n"
        "class A(metaclass=Meta): pass\nU = int | A\n"
        "O = typing.Optional[A]\nA.v = 2.0\n"
        "def f(x): return x * (2 if isinstance('', U) else 3) * typing.get_args(O)[0].v\n"
    )
    return space["f"], [
        lambda: space["K"].__setitem__(0, 3.0),
        lambda: setattr(space["A"], "v", 3.0),
    ]


def _operation() -> tuple[Callable[..., Any], list[Callable[[], Any]]]:
    """An operation of the user's own."""
    space = defined(
        "from wengert.ops.define import elementwise\n"
        "def rule(xp, g, x): return xp.multiply(g, K[0])\n"
        "def forward(xp, x): return xp.multiply(x, K[0])\n"
        "def scaled(x, /): '''Scaled.\\n\\n    Derivative constant.\\n    '''\n"
        "scaled = elementwise(x=rule, composite=forward)(scaled)\n"
        "def f(x): return wg.grad(lambda v: wg.sum(scaled(v) * v))(x)\n"
    )
    return space["f"], [lambda: space["K"].__setitem__(0, 3.0)]


ASKING = [_protocol, _getters, _patterns, _annotations, _unions, _operation]


@pytest.fixture
def own_operations() -> Iterator[None]:
    """Takes back the operations that a test declares."""
    before = {*PRIMITIVES}
    yield
    for name in PRIMITIVES.keys() - before:
        del PRIMITIVES[name]


@pytest.mark.usefixtures("own_operations")
@pytest.mark.parametrize("make", ASKING)
def test_what_is_asked_for_without_its_name(make: Callable[[], Any]) -> None:
    function, changes = make()
    compiled, x = wg.compile(function, check=0), wg.asarray(X)
    for change in (None, *changes):
        if change is not None:
            change()
        for _ in range(2):
            assert outcome(compiled, x) == outcome(function, x), compiled.report
    assert compiled.report.recordings > 1
    assert not compiled.report._fallbacks, compiled.report


def test_modules_that_are_imported_by_name() -> None:
    from importlib import import_module as imported

    module: Any = types.ModuleType("a_module_by_name_of_a_test")
    module.v = 2.0
    sys.modules[module.__name__] = module
    try:
        function = wg.compile(lambda x: x * imported("a_module_by_name_of_a_test").v, check=0)
        for value in (2.0, 2.0, 3.0):
            module.v = value
            assert function(wg.ones(2)).tolist() == [value] * 2
    finally:
        del sys.modules[module.__name__]
    assert "looks names up by import_module" in str(function.report)
