"""What arithmetic of numbers that change raises, what stands beside them, and what holds them."""

import enum
from collections.abc import Callable
from typing import Any

import pytest

import wengert as wg
from tests.compiler.capture.courses import Made, same_course


class Phase(enum.IntEnum):
    """Plain numbers with names."""

    WARM = 2
    HOT = 4


class Doubling(int):
    """A number that computes otherwise."""

    def __radd__(self, other: Any) -> Any:
        return other + 2 * int(self)

    def __lt__(self, other: Any) -> bool:
        return 2 * int(self) < other


class Rate(float):
    """A number of a class of its own, and no more."""


class Stopping(Exception):
    """Holds the number for which it was raised."""

    def __init__(self, n: Any) -> None:
        self.n = n

    def __str__(self) -> str:
        return f"at {self.n}"


class Counts:
    """What the functions count in."""

    n: Any
    m: Any = 0


def caught(held: Counts, x: Any) -> Any:
    held.n -= 1
    try:
        k = 1 << held.n
    except ValueError:
        k = 100
    return x * k


def caught_where_it_begins(held: Counts, x: Any) -> Any:
    try:
        k = 1 << (held.n - 5)
    except ValueError:
        k = 100
    held.n += 1
    return x * k


def compared_and_caught(held: Counts, x: Any) -> Any:
    held.n += 1
    try:
        k = 2 if (held.n - 5.0) ** 0.5 < 1 else 3
    except TypeError:  # it is complex
        k = 100
    return x * k


def only_where_it_can(held: Counts, x: Any) -> Any:
    k = 2.0 if held.n >= 0 and 1 << held.n > 2 else 3.0
    held.n -= 1
    return x * k


def only_where_it_is_real(held: Counts, x: Any) -> Any:
    k = 2.0 if held.n >= 0 and (held.n * 1.0) ** 0.5 > 1 else 3.0
    held.n -= 1
    return x * k


def not_caught(held: Counts, x: Any) -> Any:
    held.m += 1
    held.n -= 1
    return x * (1 << held.n)


def members(held: Counts, x: Any) -> Any:
    held.n += Phase.WARM
    if held.n >= Phase.HOT * 2:
        return x * held.n
    return x * (2 if held.n == Phase.HOT else 3)


def rates(held: Counts, x: Any) -> Any:
    held.n = Rate(0.5) * held.n + Rate(2.5)
    return x * held.n if held.n < Rate(3.5) else x


def of_its_own(held: Counts, x: Any) -> Any:
    held.n = held.n + Doubling(1)
    return x * held.n if held.n > Doubling(4) else x


def given_to_errors(held: Counts, x: Any) -> Any:
    held.n += 1
    held.m += 1
    if held.n == 5:
        raise Stopping(held.n)
    if held.n == 6:
        raise KeyError(held.n, held.m)
    held.m += 10
    return x * held.n


def too_large_for_an_array(held: Counts, x: Any) -> Any:
    held.n += 30
    small = wg.astype(x, wg.int8)
    return small * held.n, small > held.n, wg.full_like(small, held.n)


def too_large_in_between(held: Counts, x: Any) -> Any:
    held.n += 1
    return wg.astype(x, wg.uint8) + (held.n - 5) * 50


COURSES: dict[str, Callable[[Counts, Any], Any]] = {
    each.__name__: each
    for each in (
        *(caught, caught_where_it_begins, compared_and_caught, only_where_it_can),
        *(only_where_it_is_real, not_caught, members, rates, of_its_own, given_to_errors),
        *(too_large_for_an_array, too_large_in_between),
    )
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("name", COURSES)
def test_a_course_with_errors(name: str, check: int | None) -> None:
    def make() -> Made:
        held = Counts()
        held.n = 3
        return lambda x: COURSES[name](held, x), lambda: [held.n, held.m], [None] * 8

    same_course(make, check=check)


class Answering:
    """Finds all attributes in a dict, and is not careful with what is not there."""

    def __init__(self) -> None:
        self.__dict__["held"] = {"n": 0}

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["held"][name]

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["held"][name] = value


class Items(dict[str, Any]):
    """A dict whose items are attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]


@pytest.mark.parametrize("make_it", [Answering, lambda: Items(n=0)])
def test_who_answers_to_every_name(make_it: Callable[[], Any]) -> None:
    def make() -> Made:
        held = make_it()

        def step(x: Any) -> Any:
            held.n += 1
            return x * held.n if held.n < 4 else x

        return step, lambda: held.n, [None] * 6

    assert same_course(make, strict=True).report.recordings == 2


@pytest.mark.parametrize("check", [None, 0])
def test_a_number_that_an_array_does_not_hold(backend: Any, check: int | None) -> None:
    """Eagerly that is an error; some libraries wrap it around."""

    def step(x: Any, n: int) -> Any:
        return x * n, x + (n - 100), x > n

    f = wg.compile(step, check=check)
    for n in (5, 100, 120, 130, 127, 300, 5):
        x, seen = wg.asarray([1, 2, 3], dtype=wg.int8), []
        for function in (step, f):
            try:
                seen.append([part.tolist() for part in function(x, n)])
            except OverflowError as error:
                seen.append(str(error))
        assert seen[0] == seen[1]
