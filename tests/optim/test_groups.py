"""A parameter group is a dict, whose methods all convert what they set."""

import copy
import pickle
from typing import Any

import numpy as np

from wengert.optim.groups import Group

HALF = np.float32(0.5)
#: What the methods of dict are tried with; not all of it fits.
ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *(((x,), {}) for x in ({"b": HALF}, [("b", HALF)], "a", "z", ["a", "b"], 3, {}, {"a": 1})),
    *(((), {}), ((), {"b": HALF}), (({"b": HALF},), {"c": HALF})),
    *((("z", HALF), {}), (("a", HALF), {}), ((["a", "b"], HALF), {})),
]
SKIPPED = {*dir(type), "__repr__", "__str__", "__format__", "__class_getitem__"}
METHODS = sorted({*dir(dict)} - SKIPPED | {"__init__", "__or__", "__ror__"})


def test_a_group_converts_whatever_is_set_and_stays_one() -> None:
    """In each way to change one, generated from the methods of dict; copies are plain dicts."""
    wrong: list[Any] = []
    numbers = {int, float, type(None)}
    for args, keywords in ARGUMENTS:
        for name in METHODS:
            group = Group({"a": 1, "b": 2})
            try:
                made = getattr(group, name)(*args, **keywords)
            except Exception:  # it does not fit
                made = None
            wrong += [
                (name, args, type(each), each)
                for each in (group, made if name == "__ior__" else None)
                if isinstance(each, dict)
                and (type(each) is not Group or not {*map(type, each.values())} <= numbers)
            ]
    group = Group({"a": HALF})
    for again in (copy.copy(group), copy.deepcopy(group), pickle.loads(pickle.dumps(group))):
        assert type(again) is Group and again == {"a": 0.5} and again is not group
    assert not wrong, "\n".join(map(str, wrong))
