"""What is assumed of CPython's counts of references."""

import gc
from pathlib import Path

import numpy as np

import wengert
from wengert.backends.references import (
    contents,
    counts,
    has_holders,
    has_shared_base,
    held_elsewhere,
    holders,
    living,
)


def test_a_reference_more_is_seen() -> None:
    parts = (np.empty(3), np.empty(2))
    before = counts(parts)
    held = parts[1]
    assert counts(parts) == [before[0], before[1] + 1]
    del held
    assert counts(parts) == before
    view = parts[0][:1]
    assert counts(parts) == [before[0] + 1, before[1]]
    del view


def test_what_is_held_elsewhere() -> None:
    kept = np.empty(3)
    constants = {i: np.empty(3) for i in range(3)} | {3: kept}
    found = held_elsewhere([x for i, x in constants.items() if i != 1], known=1)
    assert len(found) == 1 and found[0] is kept
    holder = [constants[0]]
    assert len(held_elsewhere(list(constants.values()), known=1)) == 2
    del holder, found
    assert held_elsewhere(list(constants.values()), known=2) == []


def test_the_base_of_a_view() -> None:
    assert not has_shared_base(np.empty(4)[1:])
    whole = np.empty(4)
    view = whole[1:]
    assert has_shared_base(view)
    del whole
    assert not has_shared_base(view)
    other = view[1:]  # which NumPy makes a view of the whole
    assert has_shared_base(view) and has_shared_base(other)
    del other
    assert not has_shared_base(view)


class Slotted:
    """As Tensors and nodes are, without a dict of its own."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held


class Further(Slotted):
    __slots__ = ("more",)


def test_who_holds_an_object() -> None:
    held, other = np.empty(2), np.empty(2)
    one, two, apart = Slotted(held), Further(held), Slotted(other)
    assert {id(x) for x in holders([held], Slotted)} == {id(one), id(two)}
    assert holders([held], Further) == [two]
    assert holders([np.empty(2)], Slotted) == []
    del apart


def test_what_lives() -> None:
    one, two = Slotted(None), Further(1)
    assert {id(x) for x in living(Slotted)} == {id(one), id(two)}
    del one
    assert living(Slotted) == [two]
    assert living(Further) == [two]
    held_by_nobody = Slotted(np.empty(2))
    held_by_nobody.held = held_by_nobody  # a cycle, which the collector alone would free
    del held_by_nobody
    assert len(living(Slotted)) == 2
    gc.collect()
    assert living(Slotted) == [two]


def test_what_an_object_holds_in_each_depth() -> None:
    x = np.empty(2)
    rows = [x]
    slotted = Slotted({"a": rows})
    rows.append(slotted)  # a circle
    found = list(contents((slotted, lambda x=x: x), lambda one: False))
    depth = [i for i, level in enumerate(found) for one in level if one is x]
    assert depth == [4]  # the tuple, the object, its dict, the list; functions are closed
    everything = [id(one) for level in found for one in level]
    assert len(everything) == len(set(everything))
    assert not any(one is x for level in contents(rows, lambda one: one is rows) for one in level)


def test_nowhere_else_is_asked() -> None:
    asked = ("getrefcount", "get_referrers", "get_referents", "get_objects")
    package = Path(wengert.__file__).parent
    files = {path for path in package.rglob("*.py") if any(map(path.read_text().count, asked))}
    assert files == {package / "backends" / "references.py"}


def test_an_argument_with_holders() -> None:
    def asks(x: np.ndarray) -> bool:
        return has_holders(x)

    box = [np.empty(2)]
    found = [asks(box[0])]  # an assertion would hold the argument
    held = box[0]
    found.append(asks(box[0]))
    del held
    found.append(asks(box[0]))
    assert found == [False, True, False]
