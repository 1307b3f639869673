"""Our subclasses of Python's own types do what these do: all methods, with whatever they take."""

import copy
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from wengert.backends.lengths import Unknown
from wengert.export.lengths import Lengths
from wengert.optim.groups import Group

from .test_structure import DOORS, MODULES

#: What a method is tried with, by the type: also numbers that a `Group` converts.
HALF = np.float32(0.5)
ARGUMENTS: dict[type, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    dict: [
        *(((x,), {}) for x in ({"b": HALF}, [("b", HALF)], "a", "z", ["a", "b"], 3, {}, {"a": 1})),
        *(((), {}), ((), {"b": HALF}), (({"b": HALF},), {"c": HALF})),
        *((("z", HALF), {}), (("a", HALF), {}), ((["a", "b"], HALF), {})),
    ],
    list: [
        *(((x,), {}) for x in (0, -1, 9, slice(1, 3), [4, 5], "ab", 2.5)),
        *(((), {}), ((0, 7), {}), ((slice(0, 1), [8, 9]), {}), ((), {"reverse": True})),
    ],
    tuple: [(args, {}) for args in ((), (0,), (-1,), (slice(1, 3),), ((4, 5),), (2, 0), ("a",))],
    int: [
        *((x, {}) for x in ((), (3,), (-2,), (2.5,), ("d",), ("05",), (0,), (2, 5), (2, "big"))),
        ((2,), {"byteorder": "little"}),
    ],
    float: [(x, {}) for x in ((), (3,), (-2.0,), (2.5,), (".3f",), (0.0,), (1,), ("x",))],
}
CONTENT: dict[type, Any] = {
    dict: {"a": 1, "b": 2},
    list: [3, 1, 2, 1],
    tuple: (3, 1, 2, 1),
    int: 7,
    float: 2.5,
}
#: What no type has a meaning of its own for, how things are shown, and constructors of no length.
SKIPPED = {*dir(type), "__repr__", "__str__", "__format__", "__class_getitem__", "__getnewargs__"}
SKIPPED |= {"fromhex", "from_bytes"}
SKIPPED -= {"__init__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
SKIPPED -= {"__or__", "__ror__"}


def walked() -> Iterator[type]:
    """Each class of the package that inherits from a type with contents, or from a number."""
    for place in MODULES:
        if place.endswith("__main__") or place.startswith(DOORS):
            continue
        try:
            module = importlib.import_module(place)
        except (ImportError, RuntimeError):  # of a library that is not here
            continue
        for each in vars(module).values():
            if each is Unknown:  # which raises wherever it is used
                continue
            own = inspect.isclass(each) and each.__module__ == place
            if own and any(base in ARGUMENTS for base in each.__mro__):
                yield each


def plain(x: Any) -> Any:
    """What can be compared of a result."""
    return [*x] if isinstance(x, Iterator) or type(x).__name__.startswith("dict_") else x


class Outcome(NamedTuple):
    """What a call gives, and what it leaves."""

    kind: str
    answer: Any
    left: Any


def outcome(x: Any, kind: type, name: str, args: Any, keywords: Any) -> Outcome:
    args, keywords = copy.deepcopy((args, keywords))  # which the call may change
    try:
        answer = plain(getattr(x, name)(*args, **keywords))
        if answer is NotImplemented:  # an error of the operator, if the other one says so too
            raise TypeError
        return Outcome("answer", answer, kind(x))
    except Exception as error:
        return Outcome("error", type(error), kind(x))


def own_init(cls: type, kind: type) -> bool:
    """Whether a class of ours is made of something else: caches, which no user makes."""
    return cls.__name__ in ("Programs", "_Kernels", "_Plans") or kind in (int, float, tuple)


def differences(kind: type, make: Callable[[], Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """The calls of which one of ours and one of Python's give, or leave, something else."""
    fields = getattr(type(make()), "_fields", ())
    for name in sorted({*dir(kind)} - SKIPPED - {*fields}):
        if name in ("__init__", "fromkeys") and own_init(type(make()), kind):
            continue
        if not callable(getattr(kind, name)):
            if hasattr(kind, name) and getattr(make(), name) != getattr(CONTENT[kind], name):
                yield name, (), getattr(make(), name), getattr(CONTENT[kind], name)
            continue
        if name in ("__getitem__", "__missing__") and hasattr(type(make()), "__missing__"):
            continue
        for args, keywords in ARGUMENTS[kind]:
            found = outcome(make(), kind, name, args, keywords)
            right = outcome(copy.copy(CONTENT[kind]), kind, name, args, keywords)
            if found != right and not (kind in (int, float) and right.answer is TypeError):
                yield name, (args, keywords), found, right


@pytest.mark.slow  # imports every module
def test_every_subclass_is_as_its_builtin() -> None:
    wrong, seen = [], set()
    for cls in walked():
        kind = next(base for base in cls.__mro__ if base in ARGUMENTS)
        own = {name for base in cls.__mro__[: cls.__mro__.index(kind)] for name in vars(base)}
        if kind is tuple and not own & (set(dir(tuple)) - SKIPPED - {"__new__", "__slots__"}):
            continue  # a NamedTuple with nothing of its own
        seen.add(cls.__name__)

        def make(cls: Any = cls, kind: Any = kind) -> Any:
            if kind in (int, float):  # a length of `wengert.export`
                made = kind.__new__(cls, CONTENT[kind])
                return made._from(Lengths(), frozenset(), lambda at: CONTENT[kind])
            made = kind.__new__(cls, CONTENT[kind]) if kind is tuple else kind.__new__(cls)
            if kind is not tuple:
                (dict.update if kind is dict else list.extend)(made, CONTENT[kind])
            return made

        wrong += [(cls.__name__, *each) for each in differences(kind, make)]
    assert not wrong, "\n".join(map(str, wrong))
    assert {"Group", "Hooks", "_Int", "_Float", "_Own"} <= seen


def test_a_group_converts_whatever_is_set_and_stays_one() -> None:
    """In each way to make or change one, generated from the methods of dict."""
    wrong: list[Any] = []
    numbers = {int, float, type(None)}
    for args, keywords in ARGUMENTS[dict]:
        for name in sorted({*dir(dict)} - SKIPPED):
            group = Group({"a": 1, "b": 2})
            try:
                made = getattr(group, name)(*args, **keywords)
            except Exception:  # which the test above compares
                made = None
            wrong += [
                (name, args, type(each), each)
                for each in (group, made)
                if isinstance(each, dict)
                and (type(each) is not Group or not {*map(type, each.values())} <= numbers)
            ]
    group = Group({"a": HALF})
    for again in (copy.copy(group), copy.deepcopy(group), pickle.loads(pickle.dumps(group))):
        assert type(again) is Group and again == {"a": 0.5} and again is not group
    assert not wrong, "\n".join(map(str, wrong))
