"""Containers among the arguments that the function also reaches in another way."""

import collections
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import wengert as wg


@dataclasses.dataclass
class Settings:
    """A node of trees."""

    n: Any
    w: Any


Make = Callable[[], Any]

#: A container with a number and a Tensor, which are found by `_get` and `_put`.
CONTAINERS: dict[str, Make] = {
    "dict": lambda: {"n": 1, "w": wg.ones(3)},
    "ordered": lambda: collections.OrderedDict(n=1, w=wg.ones(3)),
    "defaultdict": lambda: collections.defaultdict(int, n=1, w=wg.ones(3)),
    "list": lambda: [1, wg.ones(3)],
    "deque": lambda: collections.deque([1, wg.ones(3)]),
    "dataclass": lambda: Settings(1, wg.ones(3)),
}


def _get(held: Any, key: str) -> Any:
    if isinstance(held, Settings):
        return getattr(held, key)
    return held[key] if isinstance(held, dict) else held["nw".index(key)]


def _put(held: Any, key: str, value: Any) -> None:
    if isinstance(held, Settings):
        setattr(held, key, value)
    elif isinstance(held, dict):
        held[key] = value
    else:
        held["nw".index(key)] = value


def counts(mine: Any, x: Any, given: Any) -> Any:
    _put(mine, "n", _get(mine, "n") + 1)
    return x * _get(given, "n")


def replaces(mine: Any, x: Any, given: Any) -> Any:
    _put(mine, "w", _get(mine, "w") * 2)
    return x * _get(given, "w")


def asks(mine: Any, x: Any, given: Any) -> Any:
    return x * (2 if given is mine else 3) + _get(given, "n")


@pytest.mark.parametrize("body", [counts, replaces, asks])
@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("nested", [False, True])
def test_what_is_given_is_what_is_reached(
    kind: str, body: Callable[..., Any], nested: bool
) -> None:
    found = []
    for compiled in (False, True):
        mine, other = CONTAINERS[kind](), CONTAINERS[kind]()

        def step(x: Any, given: Any) -> Any:
            return body(mine, x, given["a"] if nested else given)  # noqa: B023

        function: Any = wg.compile(step) if compiled else step
        seen: list[Any] = []
        for which in (mine, mine, other, other, mine, mine, other, copy.copy(mine), mine):
            answer = function(wg.asarray([1.0, 2.0, 3.0]), {"a": which} if nested else which)
            held = [_get(part, "w").tolist() for part in (mine, other)]
            seen.append((answer.tolist(), _get(mine, "n"), _get(other, "n"), held))
        found.append(seen)
    assert found[0] == found[1]
    assert function.report.recordings <= 4, function.report
    assert not function.report._fallbacks, function.report


def test_by_name_and_in_an_object() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.settings = {"n": 0}

        def step(self, x: Any, *, settings: Any) -> Any:
            self.settings["n"] += 1
            return x * settings["n"]

    trainer = Trainer()
    step = wg.compile(trainer.step, strict=True)
    for n in range(1, 5):
        assert step(wg.asarray(2.0), settings=trainer.settings).item() == 2 * n
    assert step.report.recordings == 1


TENSORS: dict[str, Callable[..., Any]] = {
    "reads": lambda held, x, w: x * w + held["w"] + held["v"] * 10,
    "asks": lambda held, x, w: x * (2 if w is held["w"] else 3) + held["v"],
    "changes": lambda held, x, w: (held["w"].add_(1), x * w)[1],
    "in a container": lambda held, x, w: x * {"w": w}["w"] - held["w"],
}


@pytest.mark.parametrize("order", ["wwvvuw", "uwuvvw", "vuwuwv"])
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("check", [None, 0])
def test_a_tensor_that_is_given_may_be_one_of_the_state(
    name: str, order: str, check: int | None
) -> None:
    found = []
    for compiled in (False, True):
        held = {"w": wg.full(3, 2.0), "v": wg.full(3, 3.0)}
        tensors = {**held, "u": wg.full(3, 5.0)}

        def step(x: Any, w: Any) -> Any:
            return TENSORS[name](held, x, w)  # noqa: B023

        function: Any = wg.compile(step, check=check) if compiled else step
        x = wg.asarray([1.0, 2.0, 3.0])
        answers = [(function(x, tensors[key]).tolist(), held["w"].tolist()) for key in order]
        found.append(answers)
    assert found[0] == found[1]
    assert function.report.recordings == 3 and not function.report._fallbacks, function.report


def _leaf(value: float) -> Any:
    tensor = wg.full(3, value)
    tensor.requires_grad = True
    return tensor


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("zeros", [False, True])
def test_gradients_that_are_also_other_tensors(
    zeros: bool, check: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each course another name gets the gradient that a program changes in place."""
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    found = []
    for compiled in (False, True):
        w, v, held = _leaf(2.0), _leaf(3.0), {"g": wg.full(3, 5.0)}

        def step(x: Any, given: Any) -> Any:
            if zeros:
                w.grad = None  # noqa: B023
            wg.sum(x * w * v).backward()  # noqa: B023
            return x * held["g"] + given  # noqa: B023

        function: Any = wg.compile(step, check=check) if compiled else step
        x, other, seen = wg.asarray([1.0, 2.0, 3.0]), wg.full(3, 7.0), []
        changes: list[Callable[[], Any]] = [
            lambda: held.update(g=w.grad),  # noqa: B023
            lambda: held.update(g=wg.ones(3)),  # noqa: B023
            lambda: setattr(v, "grad", w.grad),  # noqa: B023
            lambda: setattr(v, "grad", wg.ones(3)),  # noqa: B023
            lambda: setattr(w, "grad", held["g"]),  # noqa: B023
            lambda: setattr(w, "grad", wg.ones(3)),  # noqa: B023
        ]
        for i in range(len(changes) * 3):
            given = w.grad if i % 7 == 5 else other
            seen.append([part.tolist() for part in (function(x, given), w.grad, v.grad, held["g"])])
            if i % 3 == 2:
                changes[i // 3]()
        found.append(seen)
    assert found[0] == found[1]
    assert sum(function.report._fallbacks.values()) < len(found[0]) - 4, function.report
