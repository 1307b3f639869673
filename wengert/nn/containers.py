"""Modules that hold modules."""

from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, Self, overload

from wengert.nn.module import Module, bracketed, changes, hints


class _Numbered(Module):
    """Modules named by their positions."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.extend(modules)

    def _held(self) -> list[Module]:
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def _set(self, modules: Iterable[Module]) -> None:
        """Hold these modules and no others, under the names "0", "1", ..."""
        modules = list(modules)
        for module in modules:
            if not isinstance(module, Module):
                raise hints().no_module(module, f"nn.{type(self).__name__}")
        for name in [n for n, value in self.__dict__.items() if isinstance(value, Module)]:
            del self.__dict__[name]
        changes[0] += 1
        for position, module in enumerate(modules):
            self.__dict__[str(position)] = module

    def _position(self, idx: Any) -> int:
        length, position = len(self), index(idx)
        if not -length <= position < length:
            raise IndexError(f"index {position} is out of range for {length} modules")
        return position % length

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[Module]:
        return iter(self._held())

    def __contains__(self, module: object) -> bool:
        return any(held is module for held in self._held())

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    def __getitem__(self, idx: int | slice) -> Module | Self:
        held = list(self.__dict__.items())
        modules = [(name, value) for name, value in held if isinstance(value, Module)]
        if not isinstance(idx, slice):
            return modules[self._position(idx)][1]
        part = type(self).__new__(type(self))
        part.__dict__.update(
            modules[idx] if self._keeps_names else _renumbered(m for _, m in modules[idx])
        )
        return part

    _keeps_names = False

    def __setitem__(self, idx: int, module: Module) -> None:
        names = [n for n, value in self.__dict__.items() if isinstance(value, Module)]
        setattr(self, names[self._position(idx)], module)

    def __delitem__(self, idx: int | slice) -> None:
        held = self._held()
        if isinstance(idx, slice):
            del held[idx]
        else:
            del held[self._position(idx)]
        self._set(held)

    def __add__(self, other: Iterable[Module]) -> Self:
        return self[:].extend(other)

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def append(self, module: Module) -> Self:
        """Add a module at the end, and return this one."""
        return self.extend([module])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end, and return this one."""
        added = list(modules)
        for module in added:
            if not isinstance(module, Module):
                raise hints().no_module(module, f"nn.{type(self).__name__}")
        start = len(self)
        for position, module in enumerate(added, start):
            self.add_module(str(position), module)
        return self

    def insert(self, idx: int, module: Module) -> Self:
        """Add a module before a position, and return this one."""
        held = self._held()
        held.insert(idx, module)
        self._set(held)
        return self

    def pop(self, idx: int = -1) -> Module:
        """Remove a module and return it."""
        module = self[idx]
        del self[idx]
        return module


def _renumbered(modules: Iterable[Module]) -> Iterator[tuple[str, Module]]:
    for position, module in enumerate(modules):
        yield str(position), module


class Sequential(_Numbered):
    """Modules that are called one after the other.

    Parameters
    ----------
    *modules : Module, or one mapping of str to Module
        They are named "0", "1", ..., or as the mapping names them.

    Examples
    --------
    >>> model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 1))
    >>> model[:2](wg.ones((3, 4))).shape
    (3, 8)
    """

    _keeps_names = True

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            super().__init__(modules)

    def forward(self, x: Any) -> Any:
        """Call the modules in order, each with the result of the one before."""
        for module in self.__dict__.values():
            if isinstance(module, Module):
                x = module(x)
        return x


class ModuleList(_Numbered):
    """A list of modules.

    Parameters
    ----------
    modules : iterable of Module, optional
        What it holds at first.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        if isinstance(modules, Module) and not isinstance(modules, Iterable):
            raise TypeError(
                "nn.ModuleList takes one list of modules, nn.ModuleList([first, second]), and not "
                f"{type(modules).__name__}"
            )
        super().__init__(() if modules is None else modules)

    def __repr__(self) -> str:
        """Write modules that read the same in a row once, as PyTorch does."""
        runs: list[tuple[int, int, str]] = []
        for position, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], position, text)
            else:
                runs.append((position, position, text))
        return bracketed(
            type(self).__name__,
            "",
            [
                f"({first}): {text}"
                if first == last
                else f"({first}-{last}): {last - first + 1} x {text}"
                for first, last, text in runs
            ],
        )


class ModuleDict(Module):
    """A dict of modules.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional
        What it holds at first.
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        found = self.__dict__.get(key)
        if not isinstance(found, Module):
            raise KeyError(key)
        return found

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def keys(self) -> list[str]:
        """The names."""
        return [name for name, value in self.__dict__.items() if isinstance(value, Module)]

    def values(self) -> list[Module]:
        """The modules."""
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def items(self) -> list[tuple[str, Module]]:
        """The names with their modules."""
        return list(zip(self.keys(), self.values(), strict=True))

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules; one under a name that is taken replaces the other."""
        pairs = modules.items() if isinstance(modules, Mapping) else list(modules)
        if any(isinstance(pair, Module) for pair in pairs):
            raise TypeError(
                "nn.ModuleDict takes a mapping or pairs of a name and a module; modules without "
                "names are for nn.ModuleList"
            )
        for name, module in pairs:
            self.add_module(name, module)

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Remove all modules."""
        for key in self.keys():
            del self[key]
