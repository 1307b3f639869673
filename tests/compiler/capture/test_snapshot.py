"""Snapshots: what there was of any kind of object is put back, and what differs is found."""

import math
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler.capture.places import Place
from wengert.compiler.capture.snapshot import COPIED, LARGEST, Snapshot, same_states


class Slots:
    __slots__ = ("__hidden", "late", "value")

    def __init__(self) -> None:
        self.value = 1
        self.__hidden = 2

    def change(self) -> None:
        self.__hidden = 3
        self.late = 4
        del self.value

    def seen(self) -> Any:
        return self.value, self.__hidden, hasattr(self, "late")


class Attributes(Slots):
    def __init__(self) -> None:
        super().__init__()
        self.more = [1]

    def change(self) -> None:
        super().change()
        self.more = 2
        self.new = 3

    def seen(self) -> Any:
        return super().seen(), dict(vars(self))


class Class:
    value = 1


def function(x: Any, y: Any = 1) -> Any:
    return x + y


def _class(cls: Any) -> None:
    cls.value, cls.new = 2, 3


def _function(f: Any) -> None:
    f.__defaults__ = (2,)
    f.__code__ = (lambda x, y: x * y).__code__
    f.count = 1


def _ordered(x: Any) -> None:
    x.move_to_end("a")


def _deque(x: Any) -> None:
    x.appendleft(0)
    x.pop()


def _emptied(x: Any) -> None:
    x.clear()
    x.update({"z": 1})


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "a list's item": ([1, 2], lambda x: x.__setitem__(0, 5), list),
    "a list's end": ([1, 2], lambda x: x.append(5), list),
    "a list's order": ([1, 2], lambda x: x.reverse(), list),
    "a dict's item": ({"a": 1}, lambda x: x.update(a=2), dict),
    "a dict's new key": ({"a": 1}, lambda x: x.update(b=2), dict),
    "a dict's order": ({"a": 1, "b": 2}, lambda x: x.update(a=x.pop("a")), list),
    "an ordered dict": (OrderedDict(a=1, b=2), _ordered, lambda x: list(x.items())),
    "a default dict": (defaultdict(list, a=1), lambda x: x["new"], dict),
    "a counter": (Counter("aab"), lambda x: x.update("b"), dict),
    "a deque": (deque([1, 2], maxlen=2), _deque, list),
    "a set": ({1, 2}, lambda x: (x.add(3), x.discard(1)), set),
    "a bytearray": (bytearray(b"ab"), lambda x: x.append(1), bytes),
    "a namespace": (SimpleNamespace(a=1), lambda x: setattr(x, "b", 2), lambda x: dict(vars(x))),
    "slots": (Slots(), lambda x: x.change(), lambda x: x.seen()),
    "attributes and slots": (Attributes(), lambda x: x.change(), lambda x: x.seen()),
    "a class": (Class, _class, lambda x: (x.value, hasattr(x, "new"))),
    "a function": (function, _function, lambda x: (x(3), dict(vars(x)))),
    "a group of an optimizer": (
        wg.optim.SGD([wg.ones(1)], lr=0.5).param_groups[0],
        _emptied,
        lambda x: {k: v for k, v in x.items() if k != "params"},
    ),
    "an array": (np.arange(3.0), lambda x: x.__setitem__(0, 7.0), lambda x: x.tolist()),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_was_there_is_put_back(name: str) -> None:
    x, change, seen = KINDS[name]
    before = seen(x)
    snapshot = Snapshot([x], contents=True)
    assert not list(snapshot.changes())
    snapshot.restore()
    assert seen(x) == before
    change(x)
    assert name.endswith("order") or isinstance(x, OrderedDict) or list(snapshot.changes())
    snapshot.restore()
    assert seen(x) == before
    assert not list(snapshot.changes())


def test_a_name_is_put_back() -> None:
    names: dict[str, Any] = {"a": 1}
    snapshot = Snapshot([], [Place(names, "a", "a"), Place(names, "b", "b")])
    names.update(a=2, b=3)
    assert next(map(str, snapshot.changes())) == "dict.a from 1 to 2"
    snapshot.restore()
    assert names == {"a": 1}


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        (1, 1, False), (1, True, True), (1, 1.0, True), (0.0, -0.0, True), (-0.0, -0.0, False),
        (math.nan, math.nan, False), (math.nan, float("nan"), True), (1.5, 2.5, True),
        ("a", "a", False), (None, 0, True), ((1,), (1, 2), True), (1j, -1j, True),
    ],
)  # fmt: skip
def test_numbers_are_compared_exactly(before: Any, now: Any, differs: bool) -> None:
    held = {"a": before}
    snapshot = Snapshot([held])
    held["a"] = now
    assert bool(list(snapshot.changes())) is differs


def test_a_tensor_with_its_gradient_graph_and_hooks() -> None:
    x = wg.asarray([1.0, 2.0], requires_grad=True)
    x.grad = wg.ones(2)
    x.register_hook(lambda g: g * 2)
    held = x._array, x.grad, x.grad._array, x._node, type(x._node)
    snapshot = Snapshot([x], contents=True)
    assert not list(snapshot.changes())
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda x: None)
    assert [change.key for change in snapshot.changes()] == ["hooks"]
    x._array[0] = 7.0
    x.grad._array = np.zeros(2)
    x.grad = None
    x.requires_grad = False
    x._array = np.zeros(2)
    snapshot.restore()
    assert all(
        a is b
        for a, b in zip(
            held, (x._array, x.grad, x.grad._array, x._node, type(x._node)), strict=True
        )
    )
    assert x.tolist() == [1.0, 2.0]
    (x * 1.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_generators() -> None:
    snapshot = Snapshot([])
    state = wg.random.get_rng_state()
    first = wg.randn(2).tolist(), wg.rand_like(wg.ones(2)).tolist()
    assert not same_states(state, wg.random.get_rng_state())
    snapshot.restore()
    assert (wg.randn(2).tolist(), wg.rand_like(wg.ones(2)).tolist()) == first


def test_states_are_compared_through_containers() -> None:
    def state(last: float, kind: type = tuple) -> Any:
        return {"a": kind([3, np.asarray([1.0, last]), None]), "b": [last]}

    assert same_states(state(2.0), state(2.0))
    assert not same_states(state(2.0), state(3.0))
    assert not same_states(state(2.0), state(2.0, list))
    assert not same_states((1, 2), (1,))
    assert not same_states({"a": 1}, {"b": 1})


def test_modules_that_were_changed_back_are_not_remembered_as_they_were_between() -> None:
    layer = wg.nn.Linear(2, 2)
    run = wg.compile(layer)
    x = wg.ones(1, 2)
    with wg.no_grad():
        run(x), run(x)
        snapshot = Snapshot([layer])
        layer.bias = None
        without = run(x), run(x)
        snapshot.restore()
        assert run(x).tolist() == layer(x).tolist() != without[1].tolist()


def test_of_many_large_tensors_few_are_copied() -> None:
    """Programs write into no array that a snapshot holds: copies find those that do."""
    tensors = [wg.zeros(LARGEST) for _ in range(3 * COPIED // LARGEST)]
    found = Snapshot([*tensors, small := np.zeros(3)], contents=True)
    copied = [copy for _, copy in found._elements]
    assert sum(copy.size for copy in copied) == COPIED + small.size
    assert all(copy is not x._array for copy in copied for x in tensors)
