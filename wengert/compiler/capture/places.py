"""The state of a function: places of objects, and values that guards compare."""

import marshal
import operator
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import reduce
from types import MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.interpreters.lifted import Lifted
from wengert.tape.tensor import Tensor

__all__ = [
    "CALLS",
    "NUMBERS",
    "PLAIN",
    "PROGRAMS",
    "Contents",
    "Exact",
    "Fact",
    "Identity",
    "Missing",
    "Place",
    "Replaced",
    "State",
    "TensorAt",
    "WalkOptions",
    "contents",
    "dump",
    "is_array",
    "is_array_class",
    "is_nan",
    "same",
    "settable",
    "slots_of",
]

#: Types that are guarded by value.
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
#: Types of numbers that may be inputs.
NUMBERS = (int, float)
#: The variable of a running call with calls that store changes, which are made from C at its end.
CALLS = "calls"
#: The attribute in which an object has its compiled methods, which is no state.
PROGRAMS = "_wengert_programs"


#: Stands for the absence of an object.
Missing: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()


class Place(NamedTuple):
    """Where an object is held.

    Attributes
    ----------
    owner : object
        The holder; of a part the tuple's place.
    key : object
        The key, index or name there; of a part its path: an index for each tuple on the way.
    name : str
        A readable name.
    kind : {"item", "part", "attribute", "class"}
        An item of a container (mostly of an instance's ``__dict__``), a part of a tuple, an
        attribute (a slot or a closure's cell), or an attribute of a class.
    of_user : bool
        Of an input of programs, whether it belongs to the user, and not to an optimiser.
    """

    owner: Any
    key: Any
    name: str
    kind: str = "item"
    of_user: bool = False

    @property
    def at(self) -> tuple[int, Any]:
        """The owner's identity and the key; for a part of a tuple those of the tuple."""
        return id(self.whole.owner), self.whole.key

    @property
    def spot(self) -> tuple[Any, ...]:
        """The owner's identity, the key, and the path in a tuple: equal for the same place."""
        return *self.at, self.key if self.kind == "part" else ()

    @property
    def whole(self) -> "Place":
        """The place that is set with this one: of a part the tuple's."""
        found: Place = self.owner if self.kind == "part" else self
        return found

    def get(self) -> Any:
        """The object there, or `Missing`."""
        try:
            if self.kind == "attribute":
                return getattr(self.owner, self.key)
            if self.kind == "part":
                return reduce(operator.getitem, self.key, self.owner.get())
            held = vars(self.owner) if self.kind == "class" else self.owner
            return dict.get(held, self.key, Missing) if _makes_items(held) else held[self.key]
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            return Missing

    def set(self, value: Any) -> None:
        """Store an object there, or delete what is there for `Missing`."""
        cls = type if self.kind == "class" else object  # bypasses the owner's own methods
        if self.kind == "item":
            if value is Missing:
                del self.owner[self.key]
            else:
                self.owner[self.key] = value
        elif self.kind == "part":
            self.owner.set(_with(self.owner.get(), self.key, value))
        elif value is Missing:
            cls.__delattr__(self.owner, self.key)
        else:
            cls.__setattr__(self.owner, self.key, value)

    def reading(self, bind: Callable[[Any], str]) -> str:
        """The expression that reads the place; ``bind`` gives names to objects, and to tuples."""
        if self.kind == "part":
            return bind(self.owner) + "".join([f"[{index}]" for index in self.key])
        held = vars(self.owner) if self.kind == "class" else self.owner
        owner = bind(held)
        if self.kind == "attribute":
            plain = self.key.isidentifier()
            return f"{owner}.{self.key}" if plain else f"getattr({owner}, {self.key!r})"
        key = self._key(bind)
        return f"item({owner}, {key}, MISS)" if _makes_items(held) else f"{owner}[{key}]"

    @property
    def by_call(self) -> bool:
        """Whether a call stores an object there, and no statement."""
        if self.kind in ("item", "part"):
            return False
        usual: Any = type if self.kind == "class" else object
        return type(self.owner).__setattr__ is not usual.__setattr__ or not self.key.isidentifier()

    def writing(self, value: str, bind: Callable[[Any], str]) -> str:
        """The statement that stores a value there, or that adds a call that does to `CALLS`."""
        if self.kind == "part":  # of a tuple of numbers
            at, (index,) = bind(self.owner), self.key
            return self.whole.writing(f"(*{at}[:{index}], {value}, *{at}[{index + 1}:])", bind)
        owner = bind(self.owner)
        if self.kind == "item":
            return f"{owner}[{self._key(bind)}] = {value}"
        if not self.by_call:
            return f"{owner}.{self.key} = {value}"
        put = "setattr" if self.kind == "class" else "put"  # bypasses the owner's own methods
        return f"{CALLS} += (({put}, {owner}, {self.key!r}, {value}),)"

    def _key(self, bind: Callable[[Any], str]) -> str:
        return repr(self.key) if type(self.key) in (str, int) else bind(self.key)


class WalkOptions(NamedTuple):
    """Which of the user's values are inputs of programs, and not guarded by value.

    Attributes
    ----------
    by_contents : bool
        Whether the user's raw arrays are guarded by their contents; otherwise they are inputs.
    changed : frozenset of str
        Names of places whose numbers, or tuples of Tensors, calls replace: these are inputs.
    """

    by_contents: bool = False
    changed: frozenset[str] = frozenset()


def settable(place: Place) -> bool:
    """Whether storing an object at a place changes nothing else."""
    place = place.whole
    cls: Any = type(place.owner)
    if place.kind == "class":
        return bool(cls.__setattr__ is type.__setattr__)
    if place.kind == "item":
        return any(
            getattr(cls, "__setitem__", None) is base.__setitem__
            and cls.__getitem__ is base.__getitem__
            for base in (dict, OrderedDict, list, deque)
        )
    return True


def _with(held: tuple[Any, ...], path: tuple[int, ...], value: Any) -> tuple[Any, ...]:
    """A tuple with another value at the end of a path."""
    index, *rest = path
    value = _with(held[index], tuple(rest), value) if rest else value
    return tuple.__new__(type(held), (*held[:index], value, *held[index + 1 :]))


def _makes_items(x: Any) -> bool:
    """Whether a dict makes missing items when they are read."""
    return type(x) is not dict and isinstance(x, dict) and hasattr(type(x), "__missing__")


def slots_of(cls: type) -> list[str]:
    """The names of the slots that a class itself defines."""
    held = vars(cls)
    if "__slots__" not in held:
        return []
    return [key for key, x in held.items() if isinstance(x, MemberDescriptorType)]


class TensorAt(NamedTuple):
    """A Tensor of the state, its readable name, and its place if that can be set."""

    tensor: Tensor
    name: str
    place: Place | None


class Replaced(NamedTuple):
    """A tuple of Tensors that calls replace by another one of this structure.

    Attributes
    ----------
    place : Place
        Where it is.
    held : tuple
        The tuple, whose parts may be such tuples.
    parts : dict of tuple to int
        For the path of each Tensor the number of its place among the state's parts.
    """

    place: Place
    held: tuple[Any, ...]
    parts: dict[tuple[int, ...], int]


class Exact:
    """A plain value that is compared bitwise, types included; NaN by identity."""

    __slots__ = ("kind", "value")

    def __init__(self, value: Any) -> None:
        self.kind, self.value = type(value), value if is_nan(value) else dump(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and (self.kind, self.value) == (other.kind, other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        text = repr(self.value if is_nan(self.value) else marshal.loads(self.value))
        return text if len(text) < 60 else text[:57] + "..."


class Identity:
    """An object that is compared by identity."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)

    def __repr__(self) -> str:
        return str(getattr(self.x, "__qualname__", None) or getattr(self.x, "co_qualname", self.x))


class Contents(tuple[Any, ...]):
    """A raw array's contents: dtype, shape, strides, bytes, class, and NumPy's flags."""

    __slots__ = ()

    def __repr__(self) -> str:
        values = np.frombuffer(self[3], self[0])
        text = ", ".join(map(str, values[:4])) + (", …" if len(values) > 4 else "")
        return f"an array ({text}) of dtype {values.dtype} and shape {self[1]}"


class Fact(NamedTuple):
    """What a program assumes about the place of a name."""

    name: str
    what: Any


class State:
    """The objects and values that a function can reach.

    Attributes
    ----------
    tensors : list of TensorAt
        Each Tensor once.
    also : list of TensorAt
        The further places of these Tensors.
    arrays : list of Place
        Raw arrays that are inputs: those of optimisers, and the user's.
    raws : list
        Raw arrays that are guarded by their contents; they are among ``objects``, too.
    options : WalkOptions
        With which it was found.
    numbers : list of Place
        Numbers that are inputs: hyper-parameters and counters of optimisers, and numbers that the
        user's code changes.
    shares : list of int
        For each number the first one that it has to equal: an optimiser's counters.
    fixed : set of int
        Identities of Tensors that are somewhere where no guard looks: parts of other tuples,
        defaults.
    tuples : list of Replaced
        Tuples of Tensors that the user's code replaces.
    parts : list of Place
        The places of these Tensors.
    facts : list of Fact
        What a program assumes about any objects of this structure: types, plain values, code.
    held : list of (Place, object)
        Guards of places: a plain value is compared bitwise, another object by identity; `Missing`
        means that nothing may be there.
    tests : list of (str, tuple)
        Other guards: an expression that is true after a change, with ``{}`` for each object.
    types : bool
        Whether the code calls ``type(x)``.
    objects : list
        Every mutable object that was reached.
    growing : set of int
        Identities of the objects that an optimiser may extend.
    called : dict of int to str
        Readable names of objects, by identity.
    """

    def __init__(self) -> None:
        self.tensors: list[TensorAt] = []
        self.also: list[TensorAt] = []
        self.arrays: list[Place] = []
        self.raws: list[Any] = []
        self.options = WalkOptions()
        self.numbers: list[Place] = []
        self.shares: list[int] = []
        self.fixed: set[int] = set()
        self.tuples: list[Replaced] = []
        self.parts: list[Place] = []
        self.facts: list[Fact] = []
        self.held: list[tuple[Place, Any]] = []
        self.tests: list[tuple[str, tuple[Any, ...]]] = []
        self.types = False
        self.objects: list[Any] = []
        self.growing: set[int] = set()
        self.called: dict[int, str] = {}

    def place(self, kind: str, index: int) -> Place:
        """The place of an array, a number, a part; for ``"place"`` and ``"also"`` of a Tensor."""
        tensors = {"place": self.tensors, "also": self.also}.get(kind)
        if tensors is None:
            return {"array": self.arrays, "number": self.numbers, "part": self.parts}[kind][index]
        found = tensors[index].place
        assert found is not None, "a Tensor without a place is not replaced"
        return found

    def tensor_at(self, part: int) -> int | None:
        """Which Tensor was found first at the place of a part; None if it is at another, too."""
        spot = self.parts[part].spot
        places = enumerate(at.place for at in self.tensors)
        return next((i for i, place in places if place is not None and place.spot == spot), None)

    def reached_arrays(self) -> list[Any]:
        """The raw arrays: inputs, and those guarded by contents."""
        return [place.get() for place in self.arrays] + self.raws

    def structure(self) -> tuple[Any, ...]:
        """The facts that the state's part of a signature consists of."""
        return (*self.facts, Fact("what optimizers share", tuple(self.shares)))


# -- exact comparison ------------------------------------------------------------------------------

#: Classes of values that may differ from themselves.
_INEXACT = (float, complex, np.inexact, np.datetime64, np.timedelta64)
#: The marshal version for comparisons: version 2 writes equal nested values equally.
_VERSION = 2


def dump(x: Any) -> bytes:
    """The bytes of nested plain values."""
    return marshal.dumps(x, _VERSION)


def is_nan(x: Any) -> bool:
    """Whether this is NaN or NaT, which ``in`` and ``==`` find in containers by identity alone."""
    return isinstance(x, _INEXACT) and bool(x != x)


def same(a: Any, b: Any) -> bool:
    """Whether two plain values, or NumPy scalars, are equal bitwise; NaN equals itself alone."""
    if a is b:
        return True
    if type(a) is not type(b) or is_nan(a):
        return False
    try:
        return dump(a) == dump(b)
    except ValueError:
        return a is b


def is_array_class(kind: type) -> bool:
    """Whether objects of a class are raw arrays of a library."""
    if not hasattr(kind, "dtype") or issubclass(kind, Tensor | Lifted | np.generic):
        return False
    try:
        namespaces[kind]
    except TypeError:
        return not issubclass(kind, np.ndarray) and hasattr(kind, "__array_namespace__")
    return True


def is_array(x: Any) -> bool:
    """Whether something is a raw array of a library."""
    return is_array_class(type(x))


def contents(array: Any) -> "Contents":
    """The contents of a raw array, for guards."""
    backend = backend_of(array)
    held = backend.to_numpy(backend.array(array))
    flags = array.flags.num if isinstance(array, np.ndarray) else None
    told = type(array), flags
    return Contents((held.dtype.str, held.shape, held.strides, held.tobytes(), *told))
