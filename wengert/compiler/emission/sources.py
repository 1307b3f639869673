"""Source of the functions and objects of this package that a saved program uses."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.backends import Backend
from wengert.backends.backend import composite_of
from wengert.compiler.emission.spelling import Names, Speller, identifier, plain
from wengert.compiler.libraries import library_of
from wengert.compiler.owners import package_of

__all__ = ["Sources"]

#: The package whose functions are copied; others are imported.
_OWN = __name__.partition(".")[0]


class Sources(Speller):
    """Defines the objects that another speller binds, in order of dependence."""

    def __init__(self, backend: Backend, names: Names) -> None:
        super().__init__(backend, names)
        self._backend = backend
        self.definitions: list[str] = []
        self.arrays: dict[str, Any] = {}  # which the definitions read from ``held``
        self._alive: list[Any] = []  # keeps identities unique

    def bind(self, x: Any, wanted: str) -> str:
        return self.define(x, wanted)

    def define(self, x: Any, wanted: str, name: str | None = None) -> str:
        """Define an object, and return its name: ``name``, or else one like ``wanted``."""
        known = self._written.get(id(x))
        if known is not None:
            if name is not None and name != known:
                self.definitions.append(f"{name} = {known}")
            return known
        if isinstance(x, ModuleType):
            if package_of(x.__name__) == _OWN:
                raise _NotWrittenError(f"the module {x.__name__}")
            self._written[id(x)] = wanted = name or wanted
            self.names.taken.add(wanted)
            return self.module(x.__name__, wanted)
        if wanted in sys.modules:  # which an import may bind
            self.names.taken.add(wanted)
        name = name or self.names.new(identifier(wanted))
        function = inspect.unwrap(x) if callable(x) else x
        if isinstance(function, FunctionType | type) and package_of(function.__module__) == _OWN:
            self._written[id(x)] = name
            try:
                self._copy(x, function, name)
            except _NotWrittenError as error:
                raise _NotWrittenError(f"{name}, which uses {error.what}") from None
        else:
            self.definitions.append(f"{name} = {self._expression(x, name)}")
        self._written[id(x)] = name
        self._alive.append(x)
        return name

    def _expression(self, x: Any, name: str) -> str:
        """The expression that makes an object which is no function of this package."""
        if composite_of(x) is not None:
            raise _NotWrittenError(f"{name}, which here is composed of the standard's functions,")
        if isinstance(x, np.ndarray):
            self.arrays[name] = x
            return f"held[{name!r}]"
        if isinstance(x, MethodType):
            return self.function(x, x.__name__)
        if isinstance(x, MethodDescriptorType):
            return f"{self.literal(x.__objclass__, {})}.{x.__name__}"
        if callable(x) and hasattr(x, "__name__"):
            found = self.public(x, x.__name__)
            if found is None:
                raise _NotWrittenError(repr(x))
            return found
        device = any(type(x) is type(one) for one in self._backend.devices())
        if device and (text := library_of(self._backend).device(x)):
            return text
        if plain(x) is not None or type(x) in (tuple, list, dict, slice) or self.spell_constant(x):
            return self.literal(x, {})
        # An object of this package, with the arguments that make an equal one.
        own = any("__reduce__" in vars(kind) for kind in type(x).__mro__[:-1])
        made: Any = x.__reduce__() if own else ()
        if not isinstance(made, tuple) or len(made) != 2:
            raise _NotWrittenError(f"an object of the class {type(x).__qualname__}")
        parts = ", ".join([self.literal(part, {}) for part in made[1]])
        return f"{self.define(made[0], made[0].__name__)}({parts})"

    def public(self, function: Callable[..., Any], name: str) -> str | None:
        found = super().public(function, name)
        for path, alias in (("numpy", "np"), *_homes(function)):
            if found is None and getattr(sys.modules.get(path), name, None) is function:
                found = f"{self.module(path, alias)}.{name}"
        return found

    def _copy(self, x: Any, function: Any, name: str) -> None:
        """Copy the source of a function or class, with its globals renamed as defined here."""
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise _NotWrittenError(repr(x))
        known = dict(vars(sys.modules[function.__module__]))
        if isinstance(function, FunctionType) and function.__closure__:
            cells = [cell.cell_contents for cell in function.__closure__]
            known.update(zip(function.__code__.co_freevars, cells, strict=True))
        own, local = node.name, set[str]()
        inner = node.body if isinstance(node, ast.FunctionDef) else []
        for each in ast.walk(node):  # annotations are left out, which are not read
            if isinstance(each, ast.arg):
                each.annotation = None
                local.add(each.arg)
            elif isinstance(each, ast.FunctionDef):
                each.returns = None
                local |= {each.name} if each in inner else set()
            elif isinstance(each, ast.alias):
                local.add(each.asname or each.name)
            elif isinstance(each, ast.AnnAssign):
                each.annotation = ast.Constant("Any")
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                local.add(each.id)

        def rename(used: str, attribute: str = "") -> str:
            held = getattr(known[used], attribute) if attribute else known[used]
            found = name if used == own else self.define(held, attribute or used)
            if found in local:  # it is also a local variable
                found, of = self.names.new(f"the_{found}"), found
                self.definitions.append(f"{found} = {of}")
            return found

        node.name = name
        made = _Renaming({k: x for k, x in known.items() if k not in local}, rename).visit(node)
        self.definitions.append(ast.unparse(made))


class _NotWrittenError(ValueError):
    """An object that can't be written as source."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} can't be written into a file that runs without {_OWN}")


class _Renaming(ast.NodeTransformer):
    """Renames globals."""

    def __init__(self, known: dict[str, Any], rename: Callable[..., str]) -> None:
        self.known, self.rename = known, rename

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.rename(node.id) if node.id in self.known else node.id, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        of = node.value.id if isinstance(node.value, ast.Name) else ""
        if isinstance(self.known.get(of), Backend):
            # Attributes of a backend are constants: `BACKEND.torch` is the module.
            return ast.Name(self.rename(of, node.attr), node.ctx)
        return self.generic_visit(node)


def _homes(x: Any) -> Iterator[tuple[str, str]]:
    """Modules that may export a library's function."""
    yield "scipy.special", "scipy.special"
    parts = str(getattr(x, "__module__", "") or "").split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        yield path, path
