"""What bytecode names: globals, attributes of what is known, attributes of anything."""

from collections.abc import Callable
from typing import Any

import pytest

from wengert.compiler.capture.reads import Chain, Reads, reads

held: Any = None


def of(function: Callable[..., Any]) -> Reads:
    return reads(function.__code__)


def of_method(self: Any, x: Any) -> Any:
    return self.model.train(x) + x.scale


def of_global(x: Any) -> Any:
    return held.settings.scale * x


def of_self_that_is_replaced(self: Any) -> Any:
    self = self.other
    return self.scale


def of_inner(self: Any, xs: Any) -> Any:
    return [x.scale * self.by for x in xs], lambda: held.far


def test_attributes_of_what_is_known_are_chains() -> None:
    found = of(of_method)
    assert found.chains == {Chain("self", "self", ("model", "train"))}
    assert found.names == {"scale"}
    assert of(of_global).chains == {Chain("global", "held", ("settings", "scale"))}
    assert of(of_global).globals == ("held",)
    assert not of(of_self_that_is_replaced).chains
    assert of(of_self_that_is_replaced).names == {"other", "scale"}


def test_inner_functions_count() -> None:
    found = of(of_inner)
    assert found.chains == {Chain("self", "self", ("by",)), Chain("global", "held", ("far",))}
    assert found.names == {"scale"}


def test_a_variable_of_an_enclosing_function() -> None:
    def outer(box: Any, other: Any) -> Any:
        def inner(x: Any) -> Any:
            return box.scale * other.scale * x

        return inner, other

    inner = next(c for c in outer.__code__.co_consts if getattr(c, "co_name", "") == "inner")
    assert reads(inner).chains == {
        Chain("free", "box", ("scale",)),
        Chain("free", "other", ("scale",)),
    }
    found = of(outer)  # for which one of these is an argument of any kind
    assert Chain("self", "box", ("scale",)) in found.chains
    assert found.names == {"scale"}


@pytest.mark.parametrize(
    ("function", "asked", "computed", "anywhere"),
    [
        (lambda self: getattr(self, "scale"), {"scale"}, False, False),  # noqa: B009
        (lambda self, x: getattr(self, "scale", x + 1), {"scale"}, False, False),
        (lambda self, x: hasattr(self.of(x, 2), "scale"), {"scale"}, False, False),
        (lambda self, x: setattr(self, "scale", x), {"scale"}, False, False),
        (lambda self: delattr(self, "scale"), {"scale"}, False, False),
        (lambda self, i: getattr(self, f"layer{i}"), set(), True, False),
        (lambda self, i: getattr(self, "layer" + i), set(), True, False),
        (lambda self, i: getattr(self, "a" if i else "b"), set(), True, True),
        (lambda self, i: getattr(self.other, i), set(), True, True),
        (lambda self, names: [*map(getattr, [self], names)], set(), True, True),
        (lambda self, i: vars(self)[i], set(), True, True),
        (lambda self, i: self.__dict__[i], set(), True, False),
    ],
)
def test_names_that_are_computed(function: Any, asked: Any, computed: bool, anywhere: bool) -> None:
    found = of(function)
    assert found.asked == asked
    assert (found.computed, found.anywhere) == (computed, anywhere)


@pytest.mark.parametrize(
    "name",
    [
        *("asdict", "astuple", "attrgetter", "dir", "dumps", "fields", "methodcaller", "vars"),
        *("tree_flatten", "tree_leaves", "tree_map", "tree_structure"),
    ],
)
def test_what_reads_all_attributes_computes_their_names(name: str) -> None:
    for called in (f"lambda self: {name}(self)", f"lambda self: library.{name}(self.part)"):
        assert of(eval(called)).computed


def test_containers_that_are_only_added_to() -> None:
    kept: list[Any] = []
    seen: list[Any] = []

    def function(x: Any) -> Any:
        kept.append(x)
        seen.append(x)
        return len(seen)

    assert of(function).filled == {"kept"}


def test_imports_and_format_strings() -> None:
    def function(x: Any) -> Any:
        from xml.sax.saxutils import escape

        return escape("{0.scale} {1.by}".format(x, x))  # noqa: UP030, UP032

    found = of(function)
    assert found.imports == (("xml.sax.saxutils", 0),)
    assert {"escape", "scale", "by"} <= found.names
