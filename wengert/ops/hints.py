"""Errors for names that a module or a Tensor does not have, which say what to write instead."""

from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from typing import Any, Final, Self, TypeVar

from wengert.names import HINTS, KEYWORDS

F = TypeVar("F", bound=Callable[..., Any])

#: Not the standard's names.
_BEYOND: Final = (
    *("wg.special", "wg.quantile", "wg.expit", "wg.manual_seed", "wg.clone", "wg.Tensor"),
    *("wg.nn", "wg.optim", "wg.pad", "wg.compile", "wg.func", "wg.vmap"),
)


def no_attribute(module: str, name: str, known: list[str], also: str = "wengert") -> AttributeError:
    """The error for a name that a module does not have, beside those that it and another have."""
    # With a name alone, CPython's traceback adds no second "Did you mean".
    return AttributeError(_text(module, name, tuple(known), also), name=name)


def list_public(module: str, shown: str = "") -> None:
    """Let `dir` list a module's ``__all__``; errors for other names call the module ``shown``."""
    space = vars(import_module(module))
    space["__dir__"] = lambda: space["__all__"]

    def refuse(name: str) -> Any:
        raise no_attribute(shown or module, name, space["__all__"])

    space["__getattr__"] = refuse


@cache
def _text(module: str, name: str, known: tuple[str, ...], also: str) -> str:
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return text
    if instead := HINTS.get(module, {}).get(name) or HINTS["wengert"].get(name):
        return f"{text}; {_instead(instead)}"
    if name in import_module(also).__all__:
        return f"{text}; {_instead(f'wg{also[7:]}.{name}')}"
    close = import_module("difflib").get_close_matches(name, known, n=1, cutoff=0.75)
    return f"{text}; did you mean {close[0]!r}?" if close else text


def no_method(kind: str, name: str) -> AttributeError:
    """The error for a method of other libraries that Tensors, or nodes, do not have."""
    instead = HINTS[kind].get(name) or HINTS["wengert"][name]
    return AttributeError(f"{kind!r} object has no attribute {name!r}; {_instead(instead)}")


def _instead(what: str) -> str:
    plain = what.startswith("wg.") and what[3:].replace(".", "").isidentifier()
    standard = plain and not what.startswith(_BEYOND)
    return f"use {what}" + (", the Array API standard's name" if standard else "")


def refuse_keywords(function: F, refused: Mapping[str, str] = KEYWORDS["transforms"]) -> F:
    """Let a function refuse keywords of other libraries, by default those of transforms."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for name in refused.keys() & options if options else ():
            raise TypeError(f"{function.__name__} takes no {name}, {refused[name]}")
        return function(*args, **options)

    return call  # type: ignore[return-value]


class Refusing:
    """A base, since signatures show the first ``__new__``, of classes that refuse some keywords."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse keywords that a class of a door does not take by its signature."""
        own = getattr(vars(cls).get("__signature__"), "parameters", {})
        for base in cls.__mro__:
            for name in KEYWORDS.get(base.__name__, {}).keys() & kwargs - own.keys():
                raise TypeError(f"{cls.__name__} takes no {name}, {KEYWORDS[base.__name__][name]}")
        return super().__new__(cls)
