"""Families of functions: what their docstrings have in common is written once."""

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: numpydoc's sections, in their order; what is before them has no title.
_ORDER: Final = (
    *("", "Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also"),
    *("Notes", "References", "Examples"),
)
#: Sections of entries, each of which has a line of names.
_LISTS: Final = frozenset({"Parameters", "Raises"})
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
        self._endings: dict[tuple[str, ...], str] = {}

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
        if _INDENTED:
            method = not isinstance(function, type) and "." in function.__qualname__
            own = own.replace("\n        " if method else "\n    ", "\n")
        own, title, examples = own.rstrip().partition("\n\nExamples\n")
        names = _parameters_of(function)
        if "\n---" in own:
            text = _joined(_sections(own), self._sections, names)
        else:  # as of most functions, at every import
            if names not in self._endings:
                self._endings[names] = _joined({}, self._sections, names)
            text = f"{own}\n\n{self._endings[names]}"
        text += title + examples
        function.__doc__ = text.replace("$name", function.__name__)
        return function

    @cached_property
    def _sections(self) -> dict[str, Any]:
        """The sections by their titles; those of entries by the entries' names."""
        found: dict[str, Any] = _sections(self.text)
        return {k: _entries(body) if k in _LISTS else body for k, body in found.items()}


def inherited(cls: type, function: Callable[..., Any], says: str, more: str) -> None:
    """Complete the docstring of a class with what a function's says of parameters of the same name.

    Parameters
    ----------
    cls : type
        Without a docstring, or with one of examples alone, it gets the function's summary, and
        ``says``.
    function : callable
        Whose docstring has all its parameters.
    says : str
        A paragraph.
    more : str
        Further parameters, and sections that follow.
    """
    text = function.__doc__
    if text is None:
        return
    sections = _sections(text.replace("\n    ", "\n") if "\n    ---" in text else text)
    own = vars(cls).get("__doc__") or ""
    if not own or own.startswith("Examples\n"):
        cls.__doc__ = f"{sections[''].partition(chr(10))[0]}\n\n{says}\n\n{own}"
    known = sections.get("Parameters", "")
    Family(f"Parameters\n----------\n{known}\n{more}").complete(cls)


def _joined(own: dict[str, str], common: dict[str, Any], names: tuple[str, ...]) -> str:
    """The text of a function's own sections and those of its family."""
    found = dict(own)
    for title, body in common.items():
        if title in _LISTS:
            merge = _parameters if title == "Parameters" else _errors
            found[title] = merge(_entries(own.get(title)), body, names)
        elif title == "Notes" and title in own:
            found[title] += "\n\n" + body
        else:
            found.setdefault(title, body)
    return "\n\n".join(
        [
            f"{title}\n{'-' * len(title)}\n{found[title]}" if title else found[title]
            for title in _ORDER
            if found.get(title)
        ]
    )


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


def _errors(own: dict[str, str], common: dict[str, str], names: tuple[str, ...]) -> str:
    described = _names(own)
    others = [entry for key, entry in common.items() if described.isdisjoint(key.split(", "))]
    return "\n".join([*others, *own.values()])


def _parameters(own: dict[str, str], common: dict[str, str], names: tuple[str, ...]) -> str:
    described = _names(own)
    entries = dict(own)
    for key, entry in common.items():
        left = [name for name in key.split(", ") if name in names and name not in described]
        if left:
            entries[", ".join(left)] = ", ".join(left) + entry[len(key) :]
    first = {key: names.index(key.split(", ")[0]) for key in entries}
    return "\n".join([entries[key] for key in sorted(entries, key=first.__getitem__)])


def _parameters_of(function: Any) -> tuple[str, ...]:
    """The names of a signature as docstrings have them, with stars, and in its order."""
    if isinstance(function, type):
        init: Any = function.__init__  # type: ignore[misc]
        function = getattr(init, "__wrapped__", init)
        if not hasattr(function, "__code__"):
            return ()
    code = function.__code__
    names, fixed, flags = code.co_varnames, code.co_argcount, code.co_flags
    rest = fixed + code.co_kwonlyargcount
    if not flags & (_VARIADIC | _KEYWORDS):
        return names[:rest]  # type: ignore[no-any-return]
    order = list(names[:fixed])
    if flags & _VARIADIC:
        order.append("*" + names[rest])
    order += names[fixed:rest]
    if flags & _KEYWORDS:
        order.append("**" + names[rest + bool(flags & _VARIADIC)])
    return tuple(order)
