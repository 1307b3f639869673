"""Namespaces that rules run against: one factory for all that are no library's own."""

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
    """A namespace whose names are found when they are first asked for, and kept.

    ``find(name)`` gives what a name stands for; names in an extension have the extension's name and
    a dot in front. ``known`` is what the module has from the beginning: ``plain``, ``device``.
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
