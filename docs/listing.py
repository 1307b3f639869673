"""What the directives of the reference list, which the tests ask too."""

from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from types import ModuleType
from typing import Any, NamedTuple

import wengert as wg


class Listed(NamedTuple):
    """A name of the reference, under which users find it, and what it is the name of."""

    name: str
    found: Any

    @property
    def kind(self) -> str:
        """The object's type as Sphinx calls it."""
        if isinstance(self.found, type):
            return "exception" if issubclass(self.found, Exception) else "class"
        return "function" if callable(self.found) else "data"


def module(name: str) -> Any:
    """A module by the name that users write, which may be that of an attribute."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        home, _, attribute = name.rpartition(".")
        return getattr(module(home), attribute)


def listed(public: str, chapter: str, options: dict[str, list[str]]) -> Iterator[Listed]:
    """What ``.. functions::`` documents for its arguments and options."""
    home = module(chapter)
    for name in options.get("names") or home.__all__:
        found = getattr(home, name)
        if isinstance(found, ModuleType):
            continue
        of = getattr(found, "__module__", "").rpartition(".")[2]
        if of in options.get("of", [of]) and name not in options.get("without", []):
            yield Listed(f"{public}.{name}", found)


def summary(found: Any) -> str:
    """The first line of a docstring, which the tests hold to one sentence."""
    return (getdoc(found) or "").partition("\n\n")[0].replace("\n", " ")


def members(options: dict[str, list[str]]) -> list[str]:
    """The names that ``.. members::`` lists for its options."""
    if "names" in options:
        return options["names"]
    public = sorted(name for name in dir(wg.zeros(())) if name[0] != "_")
    return [name for name in public if is_function(name) and home_of(name) in options["of"]]


def home_of(name: str) -> str:
    """The last part of the name of the module that defines a method."""
    return str(getattr(wg.Tensor, name).__module__).rpartition(".")[2]


def is_function(name: str) -> bool:
    """Whether a method is the function of its name."""
    return name in wg.__all__ and getattr(wg.Tensor, name) is getattr(wg, name)
