"""What a function sets, and never reads, is set by each call, whatever others make of it."""

import types
from collections.abc import Callable
from typing import Any

import pytest

from tests.compiler.capture.courses import Made, same_course


class Plain:
    """An object with attributes."""

    flag: Any
    inner: Any


class Slotted:
    """An object with slots."""

    __slots__ = ("flag",)


def of_object() -> tuple[Any, Callable[[Any], Any]]:
    held = Plain()

    def step(x: Any) -> Any:
        held.flag = True
        return x * 2

    return held, step


def of_slots() -> tuple[Any, Callable[[Any], Any]]:
    held = Slotted()

    def step(x: Any) -> Any:
        held.flag = True
        return x * 2

    return held, step


def of_attribute() -> tuple[Any, Callable[[Any], Any]]:
    outer = Plain()
    outer.inner = Plain()

    def step(x: Any) -> Any:
        outer.inner.flag = True
        return x * 2

    return outer.inner, step


def of_unknown() -> tuple[Any, Callable[[Any], Any]]:
    held = [Plain()]

    def step(x: Any) -> Any:
        for each in held:
            each.flag = True
        return x * 2

    return held[0], step


def of_class() -> tuple[Any, Callable[[Any], Any]]:
    class Shared:
        flag: Any

    def step(x: Any) -> Any:
        Shared.flag = True
        return x * 2

    return Shared, step


def of_base() -> tuple[Any, Callable[[Any], Any]]:
    class Base:
        @classmethod
        def note(cls) -> None:
            cls.flag = True  # type: ignore[attr-defined]

    class Derived(Base):
        pass

    def step(x: Any) -> Any:
        Derived.note()
        return x * 2

    return Derived, step


def of_module() -> tuple[Any, Callable[[Any], Any]]:
    lib: Any = types.ModuleType("settings_that_are_set")

    def step(x: Any) -> Any:
        lib.flag = True
        return x * 2

    return lib, step


def of_function() -> tuple[Any, Callable[[Any], Any]]:
    def step(x: Any) -> Any:
        step.flag = True  # type: ignore[attr-defined]
        return x * 2

    return step, step


PLACES = [of_object, of_slots, of_attribute, of_unknown, of_class, of_base, of_module, of_function]


@pytest.mark.parametrize("there", [True, False], ids=["there before", "not there"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_is_set_and_not_read(
    place: Callable[[], tuple[Any, Callable[[Any], Any]]], there: bool
) -> None:
    def make() -> Made:
        held, step = place()
        if there:
            held.flag = True
        put = lambda value: lambda: setattr(held, "flag", value)
        changes = [
            *(None, None, None, put(False), None, None, put("text"), None, put(True)),
            *(None, lambda: delattr(held, "flag"), None, None),
        ]
        return step, lambda: getattr(held, "flag", "nothing"), changes

    assert same_course(make).report.recordings


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_is_taken_away(place: Callable[[], tuple[Any, Callable[[Any], Any]]]) -> None:
    def make() -> Made:
        held, _ = place()
        held.flag = 1

        def step(x: Any) -> Any:
            if hasattr(held, "flag"):
                del held.flag
            return x * 2

        changes = [None, None, None, lambda: setattr(held, "flag", 2), None, None]
        return step, lambda: getattr(held, "flag", "nothing"), changes

    assert same_course(make).report.recordings


def test_a_global_that_is_made() -> None:
    def make() -> Made:
        space: dict[str, Any] = {"__name__": "program"}
        exec("def step(x):\n    global made\n    made = 3.0\n    return x * 2\n", space)
        changes = [None, None, None, lambda: space.pop("made"), None, None, None]
        return space["step"], lambda: space.get("made"), changes

    assert same_course(make).report.recordings
