"""Where things are, and how it is told that they are as they were."""

import marshal
from collections import OrderedDict, deque
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import backend_of, namespaces
from wengert.interpreters.lifted import Lifted
from wengert.tape.tensor import Tensor

__all__ = [
    "NUMBERS",
    "PLAIN",
    "PROGRAMS",
    "Contents",
    "Exact",
    "Fact",
    "Identity",
    "Missing",
    "Place",
    "State",
    "TensorAt",
    "WalkOptions",
    "contents",
    "dump",
    "is_array",
    "is_array_class",
    "same",
    "settable",
    "slots_of",
]

#: Types of what is guarded by its value.
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
#: Types of numbers that may be inputs.
NUMBERS = (int, float)
#: The attribute in which an object has its compiled methods, which is no state.
PROGRAMS = "_wengert_programs"


#: Stands for nothing at a place.
Missing: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()


class Place(NamedTuple):
    """Where something is.

    Attributes
    ----------
    owner : object
        What holds it.
    key : object
        Its key, index or name there.
    name : str
        How a reader would call it.
    kind : {"item", "part", "attribute", "class"}
        An item of a container (an instance's ``__dict__``, mostly), a part of a tuple that is such
        an item (the key is the item's, with the index), an attribute (a slot, or what a closure's
        cell holds), or an attribute of a class itself.
    of_user : bool
        Of an input of programs, whether it is the user's, and not kept by an optimiser.
    """

    owner: Any
    key: Any
    name: str
    kind: str = "item"
    of_user: bool = False

    @property
    def at(self) -> tuple[int, Any]:
        """Where this is, to be compared: for a part of a tuple, where the tuple is."""
        return id(self.owner), self.key[0] if self.kind == "part" else self.key

    def get(self) -> Any:
        """What is there; `Missing` where nothing is."""
        try:
            if self.kind == "attribute":
                return getattr(self.owner, self.key)
            if self.kind == "part":
                key, index = self.key
                return self.owner[key][index]
            held = vars(self.owner) if self.kind == "class" else self.owner
            return dict.get(held, self.key, Missing) if _makes_items(held) else held[self.key]
        except (AttributeError, KeyError, IndexError, ValueError):
            return Missing

    def set(self, value: Any) -> None:
        """Put something else there, or take away what is there for `Missing`."""
        cls = type if self.kind == "class" else object  # whatever the owner's class does
        if self.kind == "item":
            if value is Missing:
                del self.owner[self.key]
            else:
                self.owner[self.key] = value
        elif self.kind == "part":
            key, index = self.key
            held = self.owner[key]
            self.owner[key] = (*held[:index], value, *held[index + 1 :])
        elif value is Missing:
            cls.__delattr__(self.owner, self.key)
        else:
            cls.__setattr__(self.owner, self.key, value)

    def reading(self, bind: Callable[[Any], str]) -> str:
        """What is there, as an expression in which objects have the names that ``bind`` gives."""
        held = vars(self.owner) if self.kind == "class" else self.owner
        owner = bind(held)
        if self.kind == "attribute":
            plain = self.key.isidentifier()
            return f"{owner}.{self.key}" if plain else f"getattr({owner}, {self.key!r})"
        if self.kind == "part":
            return f"{owner}[{self.key[0]!r}][{self.key[1]}]"
        key = self._key(bind)
        return f"item({owner}, {key}, MISS)" if _makes_items(held) else f"{owner}[{key}]"

    def writing(self, value: str, bind: Callable[[Any], str]) -> str:
        """A line that puts something else there."""
        owner = bind(self.owner)
        if self.kind == "item":
            return f"{owner}[{self._key(bind)}] = {value}"
        if self.kind == "part":
            at, index = f"{owner}[{self.key[0]!r}]", self.key[1]
            return f"{at} = (*{at}[:{index}], {value}, *{at}[{index + 1}:])"
        usual: Any = type if self.kind == "class" else object
        if type(self.owner).__setattr__ is usual.__setattr__ and self.key.isidentifier():
            return f"{owner}.{self.key} = {value}"
        put = "setattr" if self.kind == "class" else "put"  # whatever the owner's class does
        return f"{put}({owner}, {self.key!r}, {value})"

    def _key(self, bind: Callable[[Any], str]) -> str:
        return repr(self.key) if type(self.key) in (str, int) else bind(self.key)


class WalkOptions(NamedTuple):
    """Which of the user's values are inputs of programs, and not guarded by value.

    Attributes
    ----------
    by_contents : bool
        Whether the user's raw arrays are compared by what is in them. Otherwise they are inputs,
        where something else can be put for a recording.
    counted : frozenset of str
        Names of places whose numbers calls change, so that these are inputs, too.
    """

    by_contents: bool = False
    counted: frozenset[str] = frozenset()


def settable(place: Place) -> bool:
    """Whether nothing but the place changes when something else is put there."""
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


def _makes_items(x: Any) -> bool:
    """Whether an item that is not there may be made when it is asked for."""
    return isinstance(x, dict) and hasattr(type(x), "__missing__")


def slots_of(cls: type) -> list[str]:
    """The names of the slots that a class itself has given its objects."""
    held = vars(cls)
    if "__slots__" not in held:
        return []
    return [key for key, x in held.items() if isinstance(x, MemberDescriptorType)]


class TensorAt(NamedTuple):
    """A Tensor, how a reader would call it, and where it is; None if nothing can be put there."""

    tensor: Tensor
    name: str
    place: Place | None


class Exact:
    """Something that is compared by its value to the last bit, its types included."""

    __slots__ = ("kind", "value")

    def __init__(self, value: Any) -> None:
        self.kind, self.value = type(value), dump(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and (self.kind, self.value) == (other.kind, other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        text = repr(marshal.loads(self.value))
        return text if len(text) < 60 else text[:57] + "..."


class Identity:
    """Something that is compared by being the same object."""

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
    """What is in a raw array: dtype, shape, strides and bytes, and its class and NumPy's flags."""

    __slots__ = ()

    def __repr__(self) -> str:
        values = np.frombuffer(self[3], self[0])
        text = ", ".join(map(str, values[:4])) + (", …" if len(values) > 4 else "")
        return f"an array ({text}) of dtype {values.dtype} and shape {self[1]}"


class Fact(NamedTuple):
    """What a program depends on: by the name of a place, what is there."""

    name: str
    what: Any


class State:
    """What a function can reach.

    Attributes
    ----------
    tensors : list of TensorAt
        Each Tensor once.
    arrays : list of Place
        Raw arrays that optimisers keep, and those of the user's that programs get as inputs.
    options : WalkOptions
        With which it was found.
    numbers : list of Place
        They may differ from call to call: hyper-parameters and counters of optimisers, and what the
        user's code counts in.
    shares : list of int
        For each of the numbers the first that has to be the same: an optimiser's counters.
    facts : list of Fact
        What has to be the same for one program, wherever the objects are: structure, plain values,
        code.
    held : list of (Place, object)
        What is looked for in each call: a plain value that is the same exactly, `Missing` where
        nothing may be, and otherwise this very object.
    tests : list of (str, tuple)
        What else is checked: an expression, with ``{}`` for each of the objects, that is true where
        something has changed.
    types : bool
        Whether the code asks for the types of objects by name: ``type(x)``.
    objects : list
        Every mutable object that was reached: what a run can change.
    growing : set of int
        By identity, those of them to which an optimiser may add.
    called : dict of int to str
        The names of what was reached, by identity.
    """

    def __init__(self) -> None:
        self.tensors: list[TensorAt] = []
        self.arrays: list[Place] = []
        self.options = WalkOptions()
        self.numbers: list[Place] = []
        self.shares: list[int] = []
        self.facts: list[Fact] = []
        self.held: list[tuple[Place, Any]] = []
        self.tests: list[tuple[str, tuple[Any, ...]]] = []
        self.types = False
        self.objects: list[Any] = []
        self.growing: set[int] = set()
        self.called: dict[int, str] = {}

    def place(self, kind: str, index: int) -> Place:
        """Where an array or a number is; for ``"place"``, a Tensor."""
        if kind != "place":
            return (self.arrays if kind == "array" else self.numbers)[index]
        found = self.tensors[index].place
        assert found is not None, "a Tensor without a place is not replaced"
        return found

    def reached_arrays(self) -> list[Any]:
        """The raw arrays that are reached: inputs, and those whose contents are compared."""
        return [place.get() for place in self.arrays] + [x for x in self.objects if is_array(x)]

    def structure(self) -> tuple[Any, ...]:
        """What has to be the same for one program: where there is what."""
        return (*self.facts, Fact("what optimizers share", tuple(self.shares)))


# -- exact comparison ------------------------------------------------------------------------------

#: The format in which plain values are compared: version 2 writes equal nests in the same way.
_VERSION = 2


def dump(x: Any) -> bytes:
    """The bytes of a nest of plain values."""
    return marshal.dumps(x, _VERSION)


def same(a: Any, b: Any) -> bool:
    """Whether two plain values, or two scalars of NumPy's, are equal to the last bit."""
    if type(a) is not type(b):
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
    """What is in a raw array, to be compared with what was."""
    backend = backend_of(array)
    held = backend.to_numpy(backend.array(array))
    flags = array.flags.num if isinstance(array, np.ndarray) else None
    told = type(array), flags
    return Contents((held.dtype.str, held.shape, held.strides, held.tobytes(), *told))
