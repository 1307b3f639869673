"""Families of functions: what their docstrings have in common is written once."""

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: numpydoc's sections, in their order; what is before them has no title.
_ORDER: Final = (
    *("", "Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also"),
    *("Notes", "References", "Examples"),
)
#: Python removes the indentation of docstrings when it compiles them, from 3.13 on.
_INDENTED: Final = sys.version_info < (3, 13)
_VARIADIC, _KEYWORDS = 4, 8  # of a code's flags


class Family:
    """What the docstrings of some functions have in common.

    A function's own docstring then has the summary, the formula, the derivative, and of parameters,
    results and errors what the family does not say.

    Parameters
    ----------
    text : str
        Sections as in a docstring, without indentation. ``$name`` stands for the function's name,
        and other words with a ``$`` for what the family is called with.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip("\n")

    def __call__(self, **words: str) -> "Family":
        """Return the family with words in place of those with a ``$``."""
        text = self.text
        for name, word in words.items():
            text = text.replace("$" + name, word)
        return Family(text)

    def complete(self, function: F) -> F:
        """Complete the docstring of a function with the family's sections, and return it.

        A parameter or an error that both describe is described by the function's own text, and so
        is any other section but the notes, which are the function's and then the family's.
        Parameters come in the order of the signature; those that the function does not have are
        left out.

        Parameters
        ----------
        function : callable
            Under ``python -OO``, where it has no docstring, it gets none.
        """
        own = function.__doc__
        if own is None:
            return function
        mine = _sections(own.replace("\n    ", "\n") if _INDENTED else own)
        theirs = _sections(self.text.replace("$name", function.__name__))
        for title, body in theirs.items():
            if title == "Parameters":
                mine[title] = _parameters(_entries(mine.get(title)), _entries(body), function)
            elif title == "Raises":
                mine[title] = _errors(_entries(mine.get(title)), _entries(body))
            elif title == "Notes" and title in mine:
                mine[title] += "\n\n" + body
            else:
                mine.setdefault(title, body)
        function.__doc__ = "\n\n".join(
            [
                f"{title}\n{'-' * len(title)}\n{mine[title]}" if title else mine[title]
                for title in _ORDER
                if mine.get(title)
            ]
        )
        return function


def _sections(text: str) -> dict[str, str]:
    """The sections of a docstring by their titles."""
    found: dict[str, str] = {}
    title = ""
    for block in text.rstrip().split("\n\n"):
        first, _, rest = block.partition("\n")
        if rest.startswith("---"):
            title = first
            found[title] = rest.partition("\n")[2]
        else:
            found[title] = f"{found[title]}\n\n{block}" if title in found else block
    return found


def _entries(body: str | None) -> dict[str, str]:
    """The entries of a section by their names."""
    found: dict[str, str] = {}
    name = ""
    for line in (body or "").splitlines():
        if line[:1].strip():
            name = line.partition(" :")[0]
            found[name] = f"{found[name]}\n{line}" if name in found else line
        else:
            found[name] += "\n" + line
    return found


def _names(entries: dict[str, str]) -> set[str]:
    return {name for key in entries for name in key.split(", ")}


def _errors(own: dict[str, str], common: dict[str, str]) -> str:
    described = _names(own)
    others = [entry for key, entry in common.items() if described.isdisjoint(key.split(", "))]
    return "\n".join([*others, *own.values()])


def _parameters(own: dict[str, str], common: dict[str, str], function: Any) -> str:
    code = (vars(function)["__init__"] if isinstance(function, type) else function).__code__
    names = list(code.co_varnames)
    fixed = code.co_argcount
    rest = fixed + code.co_kwonlyargcount
    order = names[:fixed]
    if code.co_flags & _VARIADIC:
        order.append("*" + names[rest])
    order += names[fixed:rest]
    if code.co_flags & _KEYWORDS:
        order.append("**" + names[rest + bool(code.co_flags & _VARIADIC)])
    described = _names(own)
    entries = dict(own)
    for key, entry in common.items():
        left = [name for name in key.split(", ") if name in order and name not in described]
        if left:
            entries[", ".join(left)] = ", ".join(left) + entry[len(key) :]
    first = {key: order.index(key.split(", ")[0]) for key in entries}
    return "\n".join([entries[key] for key in sorted(entries, key=first.__getitem__)])
