"""Trees: taken apart and put together again."""

import re
from collections import OrderedDict, defaultdict, deque
from dataclasses import InitVar, dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from wengert import func


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = field(default="layer", metadata={"static": True})
    doubled: Any = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = (self.weight, self.weight)


class Interval:
    def __init__(self, low: Any, high: Any, unit: str) -> None:
        self.low, self.high, self.unit = low, high, unit


func.register_node(
    Interval, lambda i: ((i.low, i.high), i.unit), lambda unit, ends: Interval(*ends, unit)
)

letters = "abé "  # of a few, because Hypothesis takes a second to list all that there are
keys = st.text(letters, max_size=3) | st.integers()
trees = st.recursive(
    st.integers() | st.none() | st.text(letters, max_size=2),
    lambda below: (
        st.lists(below, max_size=3)
        | st.lists(below, max_size=3).map(tuple)
        | st.dictionaries(keys, below, max_size=3)
        | st.dictionaries(keys, below, max_size=3).map(OrderedDict)
        | st.lists(below, max_size=3).map(lambda items: deque(items, 5))
        | st.builds(Point, below, below)
        | st.builds(Layer, below, below, st.text(letters, max_size=2))
    ),
    max_leaves=12,
)


@given(trees)
def test_a_tree_is_rebuilt(tree: Any) -> None:
    leaves, structure = func.tree_flatten(tree)
    rebuilt = func.tree_unflatten(structure, leaves)
    assert rebuilt == tree
    assert type(rebuilt) is type(tree)
    assert func.tree_structure(rebuilt) == structure
    assert hash(func.tree_structure(rebuilt)) == hash(structure)
    assert structure.num_leaves == len(leaves) == len(structure.paths())
    assert repr(structure)
    assert str(structure)
    assert not any(leaf is None or isinstance(leaf, list | dict | tuple) for leaf in leaves)


def test_a_structure_is_hashed_without_what_it_compares() -> None:
    first, second = (func.tree_structure(Layer([], x, "layer")) for x in ([], (1,)))
    assert hash(first) == hash(func.tree_structure(Layer([], [], "layer")))
    assert first != second


@given(trees)
def test_the_structure_has_places_not_values(tree: Any) -> None:
    replaced = func.tree_map(lambda leaf: object(), tree)
    assert func.tree_structure(replaced) == func.tree_structure(tree)
    assert func.tree_structure([tree]) != func.tree_structure(tree)
    assert func.tree_structure(tree).flatten_up_to(replaced) == func.tree_leaves(replaced)


@pytest.mark.oracle
def test_leaves_of_jax_come_in_the_same_order() -> None:
    jax = pytest.importorskip("jax")
    tree = {"b": [1, (2, None)], "a": {"z": 3, "y": Point(4, 5)}, "c": OrderedDict(q=6, p=7)}
    assert func.tree_leaves(tree) == jax.tree.leaves(tree) == [4, 5, 3, 1, 2, 6, 7]


def test_dicts_keep_the_order_of_their_keys() -> None:
    leaves, structure = func.tree_flatten({"b": 1, "a": 2})
    assert leaves == [2, 1]
    assert list(structure.unflatten(leaves)) == ["b", "a"]
    assert structure == func.tree_structure({"a": 2, "b": 1})
    assert func.tree_leaves({"b": 1, 0: 2}) == [1, 2]  # these cannot be sorted
    default = defaultdict(list, x=1)
    rebuilt = func.tree_map(lambda leaf: leaf + 1, default)
    assert rebuilt == {"x": 2}
    assert rebuilt["new"] == []


def test_dataclasses() -> None:
    layer = Layer(1, [2, 3], "first")
    leaves, structure = func.tree_flatten(layer)
    assert leaves == [1, 2, 3]
    assert structure.paths() == [".weight", ".bias[0]", ".bias[1]"]
    rebuilt = structure.unflatten([10, 20, 30])
    assert rebuilt == Layer(10, [20, 30], "first")
    assert rebuilt.doubled == (10, 10)
    assert structure != func.tree_structure(Layer(1, [2, 3], "second"))
    assert func.tree_leaves(Layer) == [Layer]  # the class itself is no node


class Named(Point):
    """A named tuple whose objects have attributes, and whose constructor computes."""

    def __new__(cls, x: Any, y: Any) -> "Named":
        return super().__new__(cls, x / 4, y)


@dataclass
class Output(OrderedDict[str, Any]):
    loss: Any

    def __post_init__(self) -> None:
        self["loss"] = self.loss

    @cached_property
    def double(self) -> Any:
        return self.loss * 2


@dataclass
class Seeded:
    x: Any
    k: InitVar[float] = 1.0

    def __post_init__(self, k: float) -> None:
        self.k = k


@dataclass
class Quarter:
    x: Any

    def __post_init__(self) -> None:
        self.x = self.x / 4


@dataclass
class Squared:
    x: Any
    square: Any = field(init=False)

    def __post_init__(self) -> None:
        self.square = self.x**2


@dataclass
class Listed(list[Any]):
    k: Any


class Mode(Enum):
    A = Quarter(4.0)
    B = Quarter(8.0)


def test_derived_attributes_are_made_again() -> None:
    g = wg.grad(lambda s: s.x * s.square)(Squared(2.0))
    assert (float(g.x), float(g.square)) == (12.0, 144.0)
    output = Output(wg.asarray(2.0))
    assert float(output.double) == 4.0
    value, g = wg.value_and_grad(lambda o: o["loss"] * o.loss * o.double)(output)
    assert (float(value), float(g["loss"]), float(g.double)) == (16.0, 24.0, 48.0)
    assert func.tree_structure(output).paths() == [".loss"]
    named = Named(8.0, 1.0)
    assert wg.grad(lambda p: p.x * p.y)(named) == (1.0, 2.0)


def changed(x: Any, **values: Any) -> Any:
    vars(x).update(values)
    return x


def listed() -> Listed:
    made = Listed(1.0)
    assert func.tree_leaves(made) == [1.0]
    made.append(3.0)
    return made


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (Seeded(2.0, 7.0), ".k would be another one"),
        (Quarter(8.0), ".x would be another one"),
        (Quarter(wg.ones(2)), ".x would be another one"),
        (changed(Squared(2.0), square=5.0), ".square would"),
        (changed(Squared(np.ones(2)), square=np.ones(2) * 3), ".square would"),
        (changed(Squared(wg.ones(2)), square=wg.ones(2) * 3), ".square would"),
        (changed(Squared(2.0), more=wg.ones(2)), ".more would"),
        (changed(Output(2.0), loss=3.0), "elements would be others"),
        (listed(), "elements would be others"),
        (changed(Named(8.0, 1.0), k=2.0), ".k is no field"),
    ],
)
def test_what_a_constructor_would_make_otherwise_is_refused(tree: Any, says: str) -> None:
    with pytest.raises(TypeError, match=re.escape(says)):
        func.tree_leaves(tree)
    with pytest.raises(TypeError, match=re.escape(says)):
        wg.compile(lambda o: wg.ones(1))(tree)


def test_members_of_enums_are_leaves() -> None:
    f = lambda x, mode: x * (2 if mode is Mode.A else 3)
    assert wg.vmap(f, in_axes=(0, None))(wg.ones(2), Mode.A).tolist() == [2.0, 2.0]
    run = wg.compile(f)
    for mode in (Mode.A, Mode.A, Mode.B, Mode.A):
        assert run(wg.ones(2), mode).tolist() == f(wg.ones(2), mode).tolist()


def test_registered_nodes() -> None:
    leaves, structure = func.tree_flatten({"range": Interval(1, [2], "m")})
    assert leaves == [1, 2]
    rebuilt = structure.unflatten([3, 4])["range"]
    assert (rebuilt.low, rebuilt.high, rebuilt.unit) == (3, [4], "m")
    assert structure.paths() == ["['range']<Interval child 0>", "['range']<Interval child 1>[0]"]
    with pytest.raises(ValueError, match="Interval are nodes of trees already"):
        func.register_node(Interval, lambda i: ((), None), lambda e, c: None)
    with pytest.raises(ValueError, match="dict are nodes"):
        func.register_node(dict, lambda i: ((), None), lambda e, c: None)
    with pytest.raises(TypeError, match="takes a class"):
        func.register_node(3, lambda i: ((), None), lambda e, c: None)


def test_tree_map_of_several_trees() -> None:
    tree = {"a": 1, "b": (2, None)}
    assert func.tree_map(lambda *x: x, tree, {"a": [9], "b": (8, None)}) == {
        "a": (1, [9]),
        "b": ((2, 8), None),
    }
    assert func.tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": 1, "b": [2, None]}, r"rest\[0\]\['b'\] should be a tuple, .* and is a list"),
        ({"a": 1, "b": (2,)}, r"rest\[0\]\['b'\] should have the structure tuple\(\*, None\)"),
        ({"a": 1, "c": (2, None)}, r"rest\[0\] should have the structure dict"),
        ({"a": 1, "b": (2, 3)}, r"rest\[0\]\['b'\]\[1\] should be a None, .* and is a int"),
        (3, r"rest\[0\] should be a dict, as its counterpart is, and is a int"),
    ],
)
def test_another_structure_is_an_error_that_names_the_place(other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        func.tree_map(lambda x, y: x, {"a": 1, "b": (2, None)}, other)


def test_as_many_leaves_as_places() -> None:
    structure = func.tree_structure([1, 2])
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"2 leaves can't be made of {len(leaves)}"):
            func.tree_unflatten(structure, leaves)


def test_arrays_are_leaves() -> None:
    array = np.ones((2, 2))
    assert func.tree_leaves([array, "text", 3.0])[0] is array
