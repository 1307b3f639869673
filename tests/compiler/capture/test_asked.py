"""What code asks for otherwise than by a name: classes, identities, attributes in a format."""

import abc
import dataclasses
import numbers
from collections.abc import Callable, Sized
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.capture.courses import Made, same_course
from tests.compiler.ordinary import alike


class Plain:
    """An object with attributes."""

    k: Any = 2


class Abstract(abc.ABC):  # noqa: B024
    """What others may be registered with."""


@pytest.mark.parametrize("kind", [Abstract, Sized, numbers.Number])
@pytest.mark.parametrize("how", ["isinstance", "issubclass", "a class of several", "match"])
def test_classes_that_are_registered_later(how: str, kind: Any) -> None:
    def make() -> Made:
        other = type("Other", (), {"__module__": __name__})
        held = other()

        def matched(x: Any) -> Any:
            match held:
                case kind():
                    return x * 2
            return x

        functions: dict[str, Callable[[Any], Any]] = {
            "isinstance": lambda x: x * 2 if isinstance(held, kind) else x,
            "issubclass": lambda x: x * 2 if issubclass(other, kind) else x,
            "a class of several": lambda x: x * 2 if isinstance(held, (str, kind)) else x,
            "match": matched,
        }
        return functions[how], lambda: 0, [None, None, lambda: kind.register(other), None, None]

    assert same_course(make).report.recordings == 2


TEMPLATES: dict[str, Callable[[Any, Any], str]] = {
    "computed": lambda held, texts: ".".join(texts[:2]).format(held),
    "a map": lambda held, texts: ".".join(["{held", *texts[1:2]]).format_map({"held": held}),
    "a variable": lambda held, texts: texts[2].format(held),
    "a bound method": lambda held, texts: texts[3](held),
    "a constant": lambda held, texts: "{0.k}".format(held),  # noqa: UP030, UP032
}


@pytest.mark.parametrize("how", TEMPLATES)
def test_attributes_that_a_format_asks_for(how: str) -> None:
    def make() -> Made:
        held, texts = Plain(), ["{0", "k}", "{0.k}", "{0.k}".format]
        template = TEMPLATES[how]

        def step(x: Any) -> Any:
            return x * float(template(held, texts))

        put = lambda value: lambda: setattr(held, "k", value)
        return step, lambda: 0, [None, None, put(3), None, put(2), None]

    assert same_course(make).report.recordings >= 2


# -- dataclasses whose constructor does more ---------------------------------------------------


@dataclasses.dataclass
class Derived:
    """Has a field that the constructor does not take."""

    a: Any = 1.0
    b: Any = dataclasses.field(init=False, default=2.0)


@dataclasses.dataclass
class Doubling:
    """Makes something of what it is given."""

    a: Any = 1.0
    b: Any = 2.0

    def __post_init__(self) -> None:
        self.a = self.a * 2


@dataclasses.dataclass(init=False)
class Own:
    """Has a constructor of its own."""

    a: Any
    b: Any

    def __init__(self, a: Any = 1.0, b: Any = 2.0) -> None:
        self.a, self.b = a + 1, b


@dataclasses.dataclass
class Usual:
    """Keeps what it is given."""

    a: Any = 1.0
    b: Any = 2.0


@pytest.mark.parametrize("kind", [Derived, Doubling, Own, Usual])
def test_dataclasses_as_arguments_and_results(kind: Any) -> None:
    def make() -> Made:
        one, other = kind(wg.ones(3)), kind(3.0)
        one.b = 5.0

        def step(x: Any, held: Any) -> Any:
            return x * held.a * held.b * getattr(held, "more", 1.0)

        def given(x: Any) -> Any:
            made = step(x, one), step(x, other)
            return [*made, one.b, other.a]

        put = lambda name, value: lambda: setattr(one, name, value)
        changes = [None, None, put("b", 7.0), None, put("a", wg.ones(3) * 2), None]
        return given, lambda: (one.a, one.b), [*changes, put("more", 3.0), None]

    same_course(make)
    step, x = (
        wg.compile(lambda x, held: x * held.a * held.b * getattr(held, "more", 1.0)),
        wg.ones(2),
    )
    held = kind(2.0)
    for held.b in (3.0, 3.0, 3.0, 5.0, 5.0):
        for _ in range(2):
            assert step(x, held).tolist() == step._function(x, held).tolist()
    held.more = 2.0
    for _ in range(3):
        assert step(x, held).tolist() == step._function(x, held).tolist()

    def gives(x: Any) -> Any:
        made = kind(x)
        made.b = x * 3
        return made

    run = wg.compile(gives)
    for i in range(4):
        found, expected = run(x * i), gives(x * i)
        assert (found.a.tolist(), found.b.tolist()) == (expected.a.tolist(), expected.b.tolist())
    assert run.report._fallbacks.total() == (0 if kind is Usual else 4), run.report


# -- types and identities ------------------------------------------------------------------------


def test_numbers_that_are_compared_by_identity() -> None:
    space: dict[str, Any] = {}
    with pytest.warns(SyntaxWarning):
        exec("def step(x, k):\n    return x * (5 if k is 2 else 7 if 3 is k else 9)", space)
    calls = [(wg.asarray([1.0, 2.0]), k) for k in (2, 2, 3, 2, 4, 3)]
    alike(lambda: (space["step"], list), calls)


kept: Any = Plain()
kept.k = "text"


class Model:
    """Asks for its own type alone."""

    def __init__(self) -> None:
        self.n = 0

    def step(self, x: Any, k: Any) -> Any:
        self.n += 1
        name = type(self).__name__ + type(kept).__name__ + type(kept.k).__name__
        return wg.asarray(x * np.float32(2)) * len(name) * k

    def asks_for_more(self, x: Any, k: Any) -> Any:
        return wg.asarray(x) * len(type(k).__name__) * k

    def asks_for_a_number(self, x: Any, k: Any) -> Any:
        return wg.asarray(x) * len(type(number).__name__) * k


number = 2


def test_the_type_of_self_is_no_type_of_a_number() -> None:
    calls = [(np.ones(3, np.float32) * i, i * 0.5) for i in range(5)]
    found = alike(lambda: ((held := Model()).step, lambda: held.n), calls)
    assert found.report.recordings == 1, found.report
    for name in ("asks_for_more", "asks_for_a_number"):
        found = alike(lambda name=name: (getattr(Model(), name), list), calls, compiles=False)  # type: ignore[misc]
        assert "asks for types" in str(found.report)
