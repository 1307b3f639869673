"""The factory of namespaces that rules run against, for all but libraries' own."""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from wengert.backends import EXTENSIONS


def namespace(
    name: str,
    find: Callable[[str], Any],
    extensions: Iterable[str] = EXTENSIONS,
    **known: Any,
) -> ModuleType:
    """A namespace whose names are looked up at their first use, and cached.

    ``find(name)`` looks a name up; names of an extension are prefixed by its name and a dot.
    ``known`` are attributes of the module such as ``plain`` and ``device``.
    """
    module = ModuleType(name)

    def get(short: str) -> Any:
        if short[:2] == "__":
            raise AttributeError(short)
        found = find(short)
        setattr(module, short, found)
        return found

    vars(module).update(known, __getattr__=get)
    for extension in extensions:

        def find_in(short: str, extension: str = extension) -> Any:
            return find(f"{extension}.{short}")

        setattr(module, extension, namespace(f"{name}.{extension}", find_in, ()))
    return module
