"""One object in two places: programs and recordings tell it from two that are equal."""

import dataclasses
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.compiler.capture.test_shared import CONTAINERS, Make, _get
from wengert.backends import Backend
from wengert.compiler.capture.errors import TraceError


def follow(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
    """Compare a compiled function with itself run eagerly, in calls that are each made thrice."""
    compiled = wg.compile(function)
    for given in calls:
        for _ in range(3):
            np.testing.assert_array_equal(compiled(*given).numpy(), function(*given).numpy())
    return compiled


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_that_is_given_twice(make: Make) -> None:
    def f(a: Any, b: Any) -> Any:
        return _get(a, "w") * (2 if a is b else 3)

    def inner(a: Any, b: Any) -> Any:
        return _get(a, "w") * (2 if a is b[0] else 3)

    x, y = make(), make()
    follow(f, [(x, x), (x, y), (y, y), (y, x), (x, x)])
    follow(f, [(x, y), (y, y)])
    follow(inner, [(x, [x]), (x, [y]), (y, [y])])


def test_a_tuple_that_is_given_twice() -> None:
    x, y = (wg.ones(2),), (wg.ones(2),)
    follow(lambda a, b: a[0] * (2 if a is b else 3), [(x, x), (x, y), (y, y), (y, x)])


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any


def _pairs() -> list[Any]:
    w = wg.ones(2)
    return [(w, w), (1.0, 2.0), ((1.0, w), 2.0), Pair(w, 3.0), ("a", w)]


@pytest.mark.parametrize("which", range(5))
def test_a_tuple_that_is_given_and_reached(which: int) -> None:
    mine, other = _pairs()[which], _pairs()[which]
    held = SimpleNamespace(mine=mine, listed=[mine], inner=(mine, 1))

    def f(x: Any, t: Any) -> Any:
        return x * (2 if t is held.mine else 3)

    def listed(x: Any, t: Any) -> Any:
        return x * (2 if any(t is each for each in held.listed) else 3)

    def inner(x: Any, t: Any) -> Any:
        return x * (2 if t[0] is held.inner[0] else 3)

    x = wg.ones(2)
    for function in (f, listed):
        follow(function, [(x, mine), (x, other), (x, mine), (x, (5.0, wg.ones(2))), (x, other)])
    follow(inner, [(x, (mine, 1)), (x, (other, 1)), (x, held.inner), (x, (mine, 2))])


def test_a_tuple_that_is_given_and_replaced() -> None:
    def run(wrap: Callable[..., Any]) -> list[Any]:
        held = SimpleNamespace(mine=(wg.ones(2), wg.ones(2)))

        def f(x: Any, t: Any) -> Any:
            y = x * (10 if t is held.mine else 1)
            held.mine = x + 1, x + 2
            return y

        called, found, old = wrap(f), [], held.mine
        for k, present in enumerate([0, 1, 1, 0, 0, 1, 1, 1, 0, 0]):
            old = held.mine if present else old
            found.append(called(wg.ones(2) * k, old).numpy().tolist())
        return found

    assert run(wg.compile) == run(lambda f: f)


@pytest.mark.parametrize("which", range(5))
def test_a_tuple_that_is_given_and_stored(which: int) -> None:
    def run(wrap: Callable[..., Any]) -> list[Any]:
        held = SimpleNamespace(mine=_pairs()[which], listed=[_pairs()[which]])
        given = [_pairs()[which] for _ in range(2)]

        def f(x: Any, t: Any) -> Any:
            y = x * (10 if t is held.mine else 1) + (2 if t is held.listed[0] else 0)
            held.mine = held.listed[0] = t
            return y

        called, found = wrap(f), []
        for at in (0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1):
            found.append(called(wg.ones(2), given[at]).numpy().tolist())
            found.append((held.mine is given[at], held.listed[0] is given[at]))
        return found

    assert run(wg.compile) == run(lambda f: f)


def test_a_raw_array_that_is_given_twice(backend: Backend) -> None:
    x, y = (backend.from_numpy(np.asarray([1.0, 2.0])) for _ in range(2))
    compiled = wg.compile(lambda a, b: wg.asarray(a) * (2 if a is b else 3))
    for a, b, factor in ((x, x, 2), (x, y, 3), (y, y, 2), (y, x, 3), (x, x, 2)):
        for _ in range(3):
            answer = backend.to_numpy(compiled(a, b)._array)
            np.testing.assert_array_equal(answer, [factor, 2 * factor])


def test_a_raw_array_that_is_given_and_reached() -> None:
    reached, other = np.ones(2), np.ones(2)
    compiled = wg.compile(lambda a: wg.asarray(reached) * (2 if a is reached else 3))
    for given, factor in ((reached, 2), (other, 3), (other, 3), (other, 3), (reached, 2)):
        np.testing.assert_array_equal(compiled(given).numpy(), [factor, factor])
    assert "also reaches" in str(compiled.report)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_that_is_returned(make: Make) -> None:
    """A replay would give a copy, and what is done to that would be lost."""
    held = make()

    def reaches(x: Any) -> Any:
        return x * 2, held

    def given(x: Any, mine: Any) -> Any:
        return x * 2, mine

    def twice(x: Any) -> Any:
        made = [x * 2]
        return made, made

    x = wg.ones(3)
    for function, args in ((reaches, (x,)), (given, (x, held)), (twice, (x,))):
        compiled = wg.compile(function)
        for _ in range(4):
            first, second = compiled(*args)
            assert second is (first if function is twice else held)
        assert "return a copy of your own" in str(compiled.report)
        with pytest.raises(TraceError, match="return a copy"):
            wg.compile(function, strict=True)(*args)


def test_containers_that_are_made_are_returned_by_programs() -> None:
    compiled = wg.compile(lambda x, d: {"a": x * 2, "b": [x, x * d["k"]], "c": (x, x)})
    for _ in range(4):
        answer = compiled(wg.ones(2), {"k": 3.0})
    assert answer["b"][1].tolist() == [3, 3]
    assert "ran eagerly" not in str(compiled.report)


def _in_a_field(w: wg.Tensor) -> Callable[..., Any]:
    field = dataclasses.field(default=w)
    return lambda x: x * field.default


def test_tensors_that_no_name_leads_to() -> None:
    """What holds them is taken to be immutable, and is not looked through."""

    def run(compiled: bool) -> list[Any]:
        found = []
        for hide in (lambda w: operator.methodcaller("__mul__", w), _in_a_field):
            w = wg.asarray([2.0, 3.0])
            hidden = hide(w)
            step = lambda x, hidden=hidden: hidden(x)
            function = wg.compile(step, check=0) if compiled else step
            for i in range(4):
                with wg.no_grad():
                    w[...] = float(i)
                found.append(function(wg.ones(2)).tolist())
            if compiled:
                assert "by none of the names" in str(function.report)
        return found

    assert run(True) == run(False)
