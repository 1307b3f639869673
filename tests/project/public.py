"""The public names: what the namespace lists, and the modules that it lists, all the way down."""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

#: Public modules that no list names.
BESIDE = ("wengert.backends", "wengert.testing.strategies")


def public_modules() -> dict[str, ModuleType]:
    """The public modules by the names that users write."""
    found: dict[str, ModuleType] = {}

    def walk(name: str, module: ModuleType) -> None:
        if module in found.values() or not hasattr(module, "__all__"):
            return
        found[name] = module
        for each in module.__all__:
            value = getattr(module, each)
            if isinstance(value, ModuleType):
                walk(f"{name}.{each}", value)

    for name in ("wengert", *BESIDE):
        walk(name, import_module(name))
    return found


def public_names() -> Iterator[tuple[str, Any]]:
    """Each public function, class and value, by the first name that it has."""
    seen: list[Any] = []
    for space, module in public_modules().items():
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, ModuleType) or name in ("__version__", "__array_api_version__"):
                continue
            if not callable(found) or not any(found is one for one in seen):
                seen.append(found)
                yield f"{space}.{name}", found
