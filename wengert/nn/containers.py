"""Modules that hold modules or parameters."""

from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, Generic, Self, TypeVar, overload

from wengert.func.functional import swapped
from wengert.nn.module import Module, bracket_children
from wengert.nn.parameter import Parameter
from wengert.nn.state import hints
from wengert.tape.tensor import Tensor

#: The class of the elements. Others may be added, so that layers of several classes are held.
E = TypeVar("E")


class _Holder(Module, Generic[E]):
    """Modules, or parameters, by their names."""

    #: Of what class its elements are.
    _kind: type = Module

    def _as_element(self, value: Any) -> Any:
        if self._kind is Module:
            if not isinstance(value, Module):
                raise hints().no_module(value, f"nn.{type(self).__name__}")
            return value
        if not isinstance(value, Tensor):
            raise TypeError(
                f"nn.{type(self).__name__} holds parameters, and {type(value).__name__} is no "
                "Tensor: make one with wg.tensor(...)"
            )
        return value if isinstance(value, Parameter) else Parameter(value)

    def _items(self) -> list[tuple[str, Any]]:
        if self._kind is Parameter:
            return list(self._own_parameters())
        return [(name, value) for name, value in self.__dict__.items() if isinstance(value, Module)]

    def __len__(self) -> int:
        return len(self._items())


class _Numbered(_Holder[E]):
    """Modules or parameters named by their positions."""

    def _elements(self) -> list[Any]:
        return [value for _, value in self._items()]

    def _renumber(self, values: Iterable[Any]) -> None:
        """Hold these elements and no others, under the names "0", "1", ..."""
        elements = [self._as_element(value) for value in values]
        for name, _ in self._items():
            del self.__dict__[name]
        self.__dict__.update(_number(elements))

    def _position(self, idx: Any) -> int:
        length, position = len(self), index(idx)
        if not -length <= position < length:
            what = f"{self._kind.__name__.lower()}s"
            raise IndexError(f"index {position} is out of range for {length} {what}")
        return position % length

    def __iter__(self) -> Iterator[E]:
        return iter(self._elements())

    def __contains__(self, value: object) -> bool:
        return any(element is value for element in self._elements())

    @overload
    def __getitem__(self, idx: int) -> E: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    def __getitem__(self, idx: int | slice) -> Any:
        items = self._items()
        if not isinstance(idx, slice):
            return items[self._position(idx)][1]
        cls = type(self)
        part = cls.__new__(cls)
        part.__dict__.update(
            items[idx] if self._keeps_names else _number(dict(items[idx]).values())
        )
        if others := swapped.get():  # it has Tensors that are no Parameters
            swapped.set({**others, **{(id(part), name): part for name in vars(part)}})
        return part

    _keeps_names = False

    def __setitem__(self, idx: int, value: Module | Tensor) -> None:
        setattr(self, self._items()[self._position(idx)][0], self._as_element(value))

    def __delitem__(self, idx: int | slice) -> None:
        elements = self._elements()
        del elements[idx if isinstance(idx, slice) else self._position(idx)]
        self._renumber(elements)

    def __add__(self, other: Iterable[Module | Tensor]) -> Self:
        return self[:].extend(other)

    def __iadd__(self, other: Iterable[Module | Tensor]) -> Self:
        return self.extend(other)

    def append(self, module: Module | Tensor) -> Self:
        """Add a module at the end, and return this one."""
        return self.extend([module])

    def extend(self, modules: Iterable[Module | Tensor]) -> Self:
        """Add modules at the end, and return this one."""
        for name, module in _number([self._as_element(value) for value in modules], len(self)):
            self._claim(name)
            setattr(self, name, module)
        return self

    def insert(self, idx: int, module: Module | Tensor) -> Self:
        """Add a module before a position, and return this one."""
        elements = self._elements()
        elements.insert(idx, module)
        self._renumber(elements)
        return self

    def pop(self, idx: int = -1) -> E:
        """Remove a module and return it."""
        module = self[idx]
        del self[idx]
        return module


def _number(elements: Iterable[Any], start: int = 0) -> Iterator[tuple[str, Any]]:
    return ((str(position), element) for position, element in enumerate(elements, start))


class Sequential(_Numbered[E]):
    """Modules that are called one after the other.

    They are named "0", "1", ..., or as the one mapping names them that is given instead.

    Examples
    --------
    >>> model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 1))
    >>> model[:2](wg.ones((3, 4))).shape
    (3, 8)
    """

    _keeps_names = True

    @overload
    def __init__(self: "Sequential[Any]") -> None: ...
    @overload
    def __init__(self, modules: Mapping[str, E], /) -> None: ...
    @overload
    def __init__(self, *modules: E) -> None: ...
    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def forward(self, x: Any) -> Any:
        """Call the modules in order, each with the result of the one before."""
        for module in self.__dict__.values():
            if isinstance(module, Module):
                x = module(x)
        return x


class ModuleList(_Numbered[E]):
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

    @overload
    def __init__(self: "ModuleList[Any]") -> None: ...
    @overload
    def __init__(self, modules: Iterable[E] | None) -> None: ...
    def __init__(self, modules: Any = None) -> None:
        if isinstance(modules, Module) and not isinstance(modules, Iterable):
            raise TypeError(
                "nn.ModuleList takes one list of modules, nn.ModuleList([first, second]), and not "
                f"{type(modules).__name__}"
            )
        self.extend(() if modules is None else modules)

    def __repr__(self) -> str:
        """Write a run of equal modules once, as PyTorch does."""
        runs: list[tuple[int, int, str]] = []
        for position, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], position, text)
            else:
                runs.append((position, position, text))
        lines = [
            f"({first}): {text}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        return bracket_children(type(self).__name__, "", lines)


class ParameterList(_Numbered[Parameter]):
    """A list of parameters; a Tensor that is none becomes one.

    Examples
    --------
    >>> params = wg.nn.ParameterList([wg.zeros(2), wg.ones((2, 3))])
    >>> [p.shape for p in params]
    [(2,), (2, 3)]
    """

    _kind = Parameter

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        self.extend(() if values is None else values)

    def __repr__(self) -> str:
        lines = []
        for name, param in self._items():
            size = "x".join(map(str, param.shape))
            kind = f"[wengert.{param.dtype.name} of size {size}]"
            lines.append(f"  ({name}): Parameter containing: {kind}")
        return bracket_children(type(self).__name__, "", lines)


class ModuleDict(_Holder[E]):
    """A dict of modules.

    Examples
    --------
    >>> heads = wg.nn.ModuleDict({"mean": wg.nn.Linear(4, 1), "scale": wg.nn.Linear(4, 1)})
    >>> heads["mean"](wg.ones((2, 4))).shape
    (2, 1)
    >>> [name for name, _ in heads.named_parameters()]
    ['mean.weight', 'mean.bias', 'scale.weight', 'scale.bias']
    """

    @overload
    def __init__(self: "ModuleDict[Any]") -> None: ...
    @overload
    def __init__(self, modules: Mapping[str, E] | Iterable[tuple[str, E]] | None) -> None: ...
    def __init__(self, modules: Any = None) -> None:
        self.update({} if modules is None else modules)

    def __getitem__(self, key: str) -> E:
        found: Any = self.__dict__.get(key)
        if not isinstance(found, Module):
            raise KeyError(key)
        return found  # type: ignore[return-value]

    def __setitem__(self, key: str, value: Module) -> None:
        element = self._as_element(value)
        self._claim(key)
        setattr(self, key, element)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def keys(self) -> list[str]:
        """The names."""
        return [name for name, _ in self._items()]

    def values(self) -> list[E]:
        """What is held."""
        return [value for _, value in self._items()]

    def items(self) -> list[tuple[str, E]]:
        """The names with what is held."""
        return self._items()

    def update(self, held: Any) -> None:
        """Add what a mapping or pairs hold; one under a name that is taken replaces the other."""
        pairs = held.items() if isinstance(held, Mapping | ModuleDict) else list(held)
        if any(isinstance(pair, Module) for pair in pairs):
            raise TypeError(
                "nn.ModuleDict takes a mapping or pairs of a name and a module; modules without "
                "names are for nn.ModuleList"
            )
        for name, value in pairs:
            self[name] = value

    def pop(self, key: str) -> E:
        """Remove what has a name and return it."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all."""
        for key in self.keys():
            del self[key]
