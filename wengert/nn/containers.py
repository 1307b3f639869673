"""Modules that hold modules or parameters."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, Self, overload

from wengert.nn.hooks import changes
from wengert.nn.module import Module, bracket_children
from wengert.nn.overlays import plain
from wengert.nn.parameter import Parameter
from wengert.nn.state import hints
from wengert.tape.tensor import Tensor


class _Holder(Module):
    """Modules, or parameters, by their names."""

    #: Of what class its elements are.
    _kind: type = Module

    def _element(self, value: Any) -> Any:
        """An element as it is held."""
        if not isinstance(value, Module):
            raise hints().no_module(value, f"nn.{type(self).__name__}")
        return value

    def _items(self) -> list[tuple[str, Any]]:
        kind = self._kind
        return [(name, value) for name, value in self.__dict__.items() if isinstance(value, kind)]

    def __len__(self) -> int:
        return len(self._items())


class _Parameters(_Holder):
    """Parameters, and not modules."""

    _kind = Parameter

    def _element(self, value: Any) -> Parameter:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"nn.{type(self).__name__} holds parameters, and {type(value).__name__} is no "
                "Tensor: make one with wg.tensor(...)"
            )
        return value if isinstance(value, Parameter) else Parameter(value)

    def __repr__(self) -> str:
        lines = []
        for name, held in self._items():
            size = "x".join(map(str, held.shape))
            kind = f"[wengert.{held.dtype.name} of size {size}]"
            lines.append(f"  ({name}): Parameter containing: {kind}")
        return bracket_children(type(self).__name__, "", lines)


class _Numbered(_Holder):
    """Modules or parameters named by their positions."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        self.extend(() if values is None else values)

    def _elements(self) -> list[Any]:
        return [value for _, value in self._items()]

    def _set(self, values: Iterable[Any]) -> None:
        """Hold these elements and no others, under the names "0", "1", ..."""
        taken = [self._element(value) for value in values]
        for name, _ in self._items():
            del self.__dict__[name]
        changes[0] += 1
        self.__dict__.update(_renumber(taken))

    def _position(self, idx: Any) -> int:
        length, position = len(self), index(idx)
        if not -length <= position < length:
            what = f"{self._kind.__name__.lower()}s"
            raise IndexError(f"index {position} is out of range for {length} {what}")
        return position % length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements())

    def __contains__(self, value: object) -> bool:
        return any(held is value for held in self._elements())

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    def __getitem__(self, idx: int | slice) -> Any:
        items = self._items()
        if not isinstance(idx, slice):
            return items[self._position(idx)][1]
        cls = plain(type(self))
        part = cls.__new__(cls)
        part.__dict__.update(
            items[idx] if self._keeps_names else _renumber(dict(items[idx]).values())
        )
        return part

    _keeps_names = False

    def __setitem__(self, idx: int, value: Any) -> None:
        setattr(self, self._items()[self._position(idx)][0], self._element(value))

    def __delitem__(self, idx: int | slice) -> None:
        held = self._elements()
        if isinstance(idx, slice):
            del held[idx]
        else:
            del held[self._position(idx)]
        self._set(held)

    def __add__(self, other: Iterable[Any]) -> Self:
        return self[:].extend(other)

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)

    def append(self, module: Any) -> Self:
        """Add a module at the end, and return this one."""
        return self.extend([module])

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end, and return this one."""
        added = [self._element(module) for module in modules]
        for position, module in enumerate(added, len(self)):
            self._claim(str(position))
            setattr(self, str(position), module)
        return self

    def insert(self, idx: int, module: Any) -> Self:
        """Add a module before a position, and return this one."""
        held = self._elements()
        held.insert(idx, module)
        self._set(held)
        return self

    def pop(self, idx: int = -1) -> Any:
        """Remove a module and return it."""
        module = self[idx]
        del self[idx]
        return module


def _renumber(modules: Iterable[Any]) -> Iterator[tuple[str, Any]]:
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

    Examples
    --------
    >>> layers = wg.nn.ModuleList([wg.nn.Linear(4, 4) for _ in range(3)])
    >>> x = wg.ones((2, 4))
    >>> for layer in layers:
    ...     x = wg.relu(layer(x))
    >>> x.shape
    (2, 4)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        if isinstance(modules, Module) and not isinstance(modules, Iterable):
            raise TypeError(
                "nn.ModuleList takes one list of modules, nn.ModuleList([first, second]), and not "
                f"{type(modules).__name__}"
            )
        super().__init__(modules)

    def __repr__(self) -> str:
        """Write a run of equal modules once, as PyTorch does."""
        runs: list[tuple[int, int, str]] = []
        for position, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], position, text)
            else:
                runs.append((position, position, text))
        return bracket_children(
            type(self).__name__,
            "",
            [
                f"({first}): {text}"
                if first == last
                else f"({first}-{last}): {last - first + 1} x {text}"
                for first, last, text in runs
            ],
        )


class ParameterList(_Parameters, _Numbered):
    """A list of parameters.

    Parameters
    ----------
    values : iterable of Tensor, optional
        What it holds at first. A Tensor that is no parameter becomes one.

    Examples
    --------
    >>> params = wg.nn.ParameterList([wg.zeros(2), wg.ones((2, 3))])
    >>> [p.shape for p in params]
    [(2,), (2, 3)]
    """

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__(values)


class _Named(_Holder):
    """Modules or parameters as a dict has them."""

    def __init__(self, held: Any = None) -> None:
        if held is not None:
            self.update(held)

    def __getitem__(self, key: str) -> Any:
        found = self.__dict__.get(key)
        if not isinstance(found, self._kind):
            raise KeyError(key)
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        taken = self._element(value)
        self._claim(key)
        setattr(self, key, taken)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def keys(self) -> list[str]:
        """The names."""
        return [name for name, _ in self.items()]

    def values(self) -> list[Any]:
        """What is held."""
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[str, Any]]:
        """The names with what is held."""
        return self._items()

    def update(self, held: Any) -> None:
        """Add what a mapping or pairs hold; one under a name that is taken replaces the other."""
        pairs = held.items() if isinstance(held, Mapping | _Named) else list(held)
        if any(isinstance(pair, self._kind) for pair in pairs):
            what = self._kind.__name__
            raise TypeError(
                f"nn.{what}Dict takes a mapping or pairs of a name and a {what.lower()}; "
                f"{what.lower()}s without names are for nn.{what}List"
            )
        for name, value in pairs:
            self[name] = value

    def pop(self, key: str) -> Any:
        """Remove what has a name and return it."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all."""
        for key in self.keys():
            del self[key]


class ModuleDict(_Named):
    """A dict of modules.

    Examples
    --------
    >>> heads = wg.nn.ModuleDict({"mean": wg.nn.Linear(4, 1), "scale": wg.nn.Linear(4, 1)})
    >>> heads["mean"](wg.ones((2, 4))).shape
    (2, 1)
    >>> [name for name, _ in heads.named_parameters()]
    ['mean.weight', 'mean.bias', 'scale.weight', 'scale.bias']
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__(modules)


class ParameterDict(_Parameters, _Named):
    """A dict of parameters.

    Parameters
    ----------
    parameters : mapping of str to Tensor, or iterable of pairs, optional
        What it holds at first. A Tensor that is no parameter becomes one.

    Examples
    --------
    >>> params = wg.nn.ParameterDict({"shift": wg.zeros(2), "scale": wg.ones(2)})
    >>> params["scale"].requires_grad
    True
    """

    def __init__(
        self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None
    ) -> None:
        super().__init__(parameters)

    def update(self, held: Any) -> None:
        """Add parameters, as in PyTorch those of a plain dict in the order of their names."""
        if isinstance(held, Mapping) and not isinstance(held, OrderedDict):
            held = sorted(held.items())
        super().update(held)
