"""The arguments of calls: by position, and by the names that a reader would call them."""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from wengert.func.trees import TreeDef

__all__ = ["Arguments"]


class Arguments:
    """What is known of a function's arguments.

    Parameters
    ----------
    function : callable
        It.
    static : frozenset of str
        Arguments whose numbers decide the program.
    """

    def __init__(self, function: Callable[..., Any], static: frozenset[str]) -> None:
        self._function, self._static = function, static
        self._signature: inspect.Signature | None = None

    def positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give by position what can be."""
        if self._signature is None:
            self._signature = inspect.signature(self._function)
        bound = self._signature.bind(*args, **kwargs)
        return bound.args, bound.kwargs

    def names(self, structure: TreeDef) -> list[str]:
        """How a reader would call each leaf of the arguments."""
        positional, keyword = structure.children
        names: list[str] = []
        first = self._parameters(len(positional.children))
        for name, child in zip(first, positional.children, strict=False):
            names += [name + path for path in child.paths()]
        for name, child in zip(keyword.names, keyword.children, strict=True):
            names += [name.strip("[]'") + path for path in child.paths()]
        return names

    def static(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], structure: TreeDef
    ) -> list[bool]:
        """Which leaves are of static arguments."""
        if not self._static:
            return [False] * structure.num_leaves
        positional, keyword = structure.children
        found: list[bool] = []
        for name, child in zip(self._parameters(len(args)), positional.children, strict=False):
            found += [name in self._static] * child.num_leaves
        for name, child in zip(keyword.names, keyword.children, strict=True):
            found += [name.strip("[]'") in self._static] * child.num_leaves
        return found

    def _parameters(self, count: int) -> list[str]:
        function = self._function
        if type(function) is FunctionType and not vars(function):
            code = function.__code__  # looking at a signature takes as long as half a small step
            if count <= code.co_argcount:
                return list(code.co_varnames[:count])
        try:
            known = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return [f"x{i}" for i in range(count)]
        names: list[str] = []
        for parameter in known:
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}{i}" for i in range(count - len(names))]
            elif parameter.kind is not parameter.VAR_KEYWORD:
                names.append(parameter.name)
        return names
