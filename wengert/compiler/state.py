"""State: what a function leads to, and the values and classes that the walk tells apart."""

import dis
import functools
import random
import threading
from collections.abc import Callable, MappingView
from contextvars import ContextVar
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import CodeType, FunctionType, MappingProxyType, WrapperDescriptorType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.polynomial._polybase import ABCPolyBase

from wengert.backends import DTYPES, DType, namespaces
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.owners import class_of_user, package_of
from wengert.interpreters.lifted import Lifted
from wengert.nn.module import Module
from wengert.tape.tensor import Tensor

__all__ = [
    "GENERATORS",
    "NUMBERS",
    "PLAIN",
    "PROGRAMS",
    "STILL",
    "UNCHANGING",
    "Exact",
    "Identity",
    "Missing",
    "Place",
    "State",
    "TensorAt",
    "check_dtype",
    "is_array",
    "is_generated",
    "is_generator",
    "is_plain",
    "item_name",
    "leads_on",
    "operands_of",
    "same",
    "traits_of",
]

#: Types of values that are compared.
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
#: Classes of further values that are compared, by their texts.
UNCHANGING = (np.generic, np.dtype, DType, range, Decimal, Fraction, date, PurePath)
#: Classes of generators of random numbers, whose states can be put back.
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
#: Packages of Wengert whose objects are walked.
_OWN = (
    *[f"wengert.{room}" for room in ("nn", "optim", "amp", "distributed", "func", "data")],
    *[f"wengert.{room}" for room in ("numpy", "scipy", "torch", "tape.hooks")],
)
#: Packages of objects that never change, or that do nothing to a program.
STILL = frozenset({
    *("numpy", "builtins", "typing", "types", "re", "pathlib", "enum", "abc", "jax"),
    *("jaxlib", "cupy", "dask", "array_api_strict", "ml_dtypes", "datetime", "fractions"),
    *("wengert", "dataclasses", "_abc", "array_api_compat", "logging", "warnings", "_thread"),
    *("_io", "_csv", "attr", "inspect", "sympy"),
})  # fmt: skip
#: Classes whose objects change unseen.
_CHANGING = (
    *(
        BaseException,
        MappingProxyType,
        bytearray,
        memoryview,
        np.poly1d,
        np.void,
        np.ndarray,
        np.random.BitGenerator,
        threading.local,
    ),
    *(ContextVar, MappingView, ABCPolyBase, functools._lru_cache_wrapper, np.random.SeedSequence),
)
#: Classes with a dtype that are no raw arrays.
_NO_RAW = (Tensor, Lifted, np.generic)
#: Types of numbers that may be inputs.
NUMBERS = (int, float)
#: The attribute in which an object has its compiled methods, which is no state.
PROGRAMS = "_wengert_programs"
#: Stands for the absence of an object.
Missing: Any = type("Missing", (), {"__repr__": lambda self: "not set"})()


class Place(NamedTuple):
    """Where an object is held: ``holder[key]``, ``holder.key``, or a part of another place."""

    holder: Any
    key: Any
    name: str
    kind: Literal["item", "attr", "part"] = "item"

    @property
    def spot(self) -> Any:
        """What is equal for the same place."""
        if self.kind == "part":
            return self.holder.spot, self.key
        return id(self.holder), self.key

    @property
    def root(self) -> "Place":
        """The place that it is a part of, or itself."""
        return self.holder.root if self.kind == "part" else self

    def get(self) -> Any:
        """The object there, or `Missing`."""
        try:
            if self.kind == "attr":
                return getattr(self.holder, self.key)
            holder = self.holder.get() if self.kind == "part" else self.holder
            if isinstance(holder, dict):
                return dict.get(holder, self.key, Missing)  # which makes no item
            return holder[self.key]
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            return Missing

    def set(self, x: Any) -> None:
        """Put an object there, or delete what is there for `Missing`."""
        if self.kind == "part":
            held = self.holder.get()
            parts = (*held[: self.key], x, *held[self.key + 1 :])
            self.holder.set(tuple.__new__(type(held), parts))
        elif self.kind == "attr" and x is Missing:
            delattr(self.holder, self.key)
        elif self.kind == "attr":
            setattr(self.holder, self.key, x)
        elif x is Missing:
            del self.holder[self.key]
        else:
            self.holder[self.key] = x

    def text(self, bind: Callable[[Any], str]) -> str:
        """The expression for what is there; ``bind`` gives the names of objects."""
        if self.kind == "part":
            return f"{self.holder.text(bind)}[{self.key}]"
        if self.kind == "attr":
            return f"{bind(self.holder)}.{self.key}"
        plain = type(self.key) in (str, int)
        return f"{bind(self.holder)}[{repr(self.key) if plain else bind(self.key)}]"


class TensorAt(NamedTuple):
    """A Tensor of the state, its readable name, and its first place if there is one."""

    tensor: Tensor
    name: str
    place: Place | None


class Exact:
    """A plain value, compared with its type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __repr__(self) -> str:
        text = repr(self.value)
        return text if len(text) < 60 else text[:57] + "..."


class Identity:
    """An object that is compared by identity."""

    __slots__ = ("x",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.x is other.x

    def __repr__(self) -> str:
        return str(getattr(self.x, "__qualname__", None) or getattr(self.x, "co_qualname", self.x))


class State:
    """What the walk has found."""

    def __init__(self) -> None:
        #: Each Tensor once; those that are met at no place.
        self.tensors: list[TensorAt] = []
        self.fixed: list[Tensor] = []
        #: Raw arrays, which are inputs; which of them are the user's; further places of them.
        self.arrays: list[Place] = []
        self.own: set[int] = set()
        self.twins: list[Place] = []
        #: Numbers of optimisers and schedules, which are inputs; the first that each has to equal.
        self.numbers: list[Place] = []
        self.shares: list[int] = []
        #: Places with a Tensor, or with a tuple of Tensors or numbers, which calls may replace.
        self.spots: list[tuple[Place, Any]] = []
        #: What a program assumes about any objects of this structure, by their names.
        self.facts: list[tuple[str, Any]] = []
        #: What is at places: plain values, and objects.
        self.held: list[tuple[Place, Any]] = []
        #: Containers, with their length, or where the order matters their keys, and their names. A
        #: list is of names of attributes.
        self.sizes: list[tuple[Any, Any, str]] = []
        #: The dicts in which optimisers begin to keep something, and whether one keeps nothing yet.
        self.growing: set[int] = set()
        self.starting = False
        #: All objects, and their names by identity.
        self.objects: list[Any] = []
        self.known: dict[int, str] = {}
        #: Generators of random numbers.
        self.randoms: list[tuple[str, Any]] = []
        #: Names of objects that are not looked into.
        self.unseen: list[str] = []

    def place(self, kind: str, index: int) -> Place:
        """The place of an array or a number."""
        return (self.arrays if kind == "array" else self.numbers)[index]

    def changing(self) -> list[Place]:
        """The places that calls may change."""
        found = [*self.arrays, *self.twins, *self.numbers, *[place for place, _ in self.spots]]
        return [place for place in found if place.kind != "part"]

    def structure(self) -> tuple[Any, ...]:
        """The state's part of a signature."""
        return (*self.facts, ("which numbers of optimizers are equal", tuple(self.shares)))


def is_plain(x: Any) -> bool:
    """Whether a value, or all of a tuple or slice, is plain."""
    if type(x) in PLAIN or isinstance(x, Enum):
        return True
    x = (x.start, x.stop, x.step) if type(x) is slice else x
    if isinstance(x, tuple):
        return all(map(is_plain, x))
    kind = type(x)
    return isinstance(x, UNCHANGING) and kind is not np.void and not class_of_user(kind)


def leads_on(x: Any) -> bool:
    """Whether an argument may lead to state: an object, or one with a class of the user's."""
    return type(x) is not Tensor and (isinstance(x, Enum) or not (is_plain(x) or is_array(x)))


def is_array(x: Any) -> bool:
    """Whether something is a raw array of a library."""
    kind = type(x)
    if not hasattr(kind, "dtype") or issubclass(kind, _NO_RAW):
        return False
    try:
        namespaces[kind]
    except TypeError:
        return not issubclass(kind, np.ndarray) and hasattr(kind, "__array_namespace__")
    return True


def is_generator(x: Any) -> bool:
    """Whether something generates random numbers from a state that can be read."""
    of_torch = type(x).__module__ == "torch._C" and type(x).__name__ == "Generator"
    return of_torch or (isinstance(x, GENERATORS) and not isinstance(x, random.SystemRandom))


def is_generated(x: Any) -> bool:
    """Whether this is no function that a user has written, as `dataclass` makes them."""
    x = getattr(x, "__wrapped__", x)
    return type(x) is not FunctionType or x.__code__.co_filename == "<string>"


def check_dtype(x: Any, name: str) -> None:
    """Raise for an array of a dtype that the standard has not."""
    if isinstance(x, np.ndarray) and _name_of(x.dtype) not in DTYPES:
        raise TraceError(f"{name} is an array of {x.dtype}, which a program does not take")


@functools.lru_cache(maxsize=64)
def _name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name  # which NumPy composes in each call


def same(a: Any, b: Any) -> bool:
    """Whether two plain values are equal, and of one type."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Enum):
        return False
    if type(a) in (int, str, bool, bytes):
        return bool(a == b)
    if isinstance(a, tuple):
        more = getattr(a, "__dict__", None) or getattr(b, "__dict__", None)
        return not more and len(a) == len(b) and all(map(same, a, b))
    return bool(repr(a) == repr(b))  # which tells 0.0 from -0.0


@functools.lru_cache(maxsize=1024)
def traits_of(kind: type) -> tuple[bool, bool, bool]:
    """Whether objects of a class are walked, can't be looked into, and are read by other code.

    Other code than the user's is Wengert's, a library's, or that of generated methods.
    """
    mine = class_of_user(kind)
    bases = [base for base in kind.__mro__ if base not in (Module, object)]
    # What stands for objects of SciPy's has tables of its own.
    own = str(kind.__module__).startswith(_OWN) and not hasattr(kind, "__mro_entries__")
    walked = mine or own or package_of(kind.__module__) not in STILL
    walked &= bool(kind.__dictoffset__) or package_of(kind.__module__) != "torch"
    written = kind.__dictoffset__ or any("__slots__" in vars(base) for base in bases)
    opaque = walked and not written and not hasattr(kind, "__get__")
    # What is in C, of which a Python class inherits.
    opaque |= walked and any(traits_of(base)[1] for base in bases[1:] if base not in UNCHANGING)
    # Iterators, but a walked class with a method in Python.
    nexts = [vars(base)["__next__"] for base in bases if "__next__" in vars(base)]
    kept = [x for x in nexts if not walked or type(x) is WrapperDescriptorType]
    opaque |= bool(kept) and kind.__module__ != "_io"
    # PyTorch's modules compute with what is replaced while a function is recorded.
    opaque |= any(base.__module__ == "torch.nn.modules.module" for base in bases)
    others = [base for base in bases if not class_of_user(base) and "__dict__" in vars(base)]
    whole = not mine or is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")
    whole |= any(package_of(base.__module__) not in STILL for base in others)
    whole |= any(str(base.__module__).startswith("wengert.") for base in bases)
    return walked, opaque or issubclass(kind, _CHANGING), whole


@functools.cache
def operands_of(code: CodeType, operation: str) -> frozenset[str]:
    """What an operation of a function's code, or of a function within it, is about."""
    inner = [operands_of(x, operation) for x in code.co_consts if isinstance(x, CodeType)]
    own = [x.argval for x in dis.get_instructions(code) if x.opname == operation]
    return frozenset(own).union(*inner)


def item_name(name: str, key: Any) -> str:
    """A readable name of an item."""
    return f"{name}[{repr(key) if type(key) in PLAIN else f'a {type(key).__name__}'}]"
