"""Source of the functions and objects of this package that a saved program uses."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.backends import Backend
from wengert.backends.backend import composite_of
from wengert.compiler.emission.spelling import Names, dtype_home, identifier, plain
from wengert.compiler.owners import package_of

__all__ = ["Sources"]

#: The package whose functions are copied; others are imported.
_OWN = __name__.partition(".")[0]


class Sources:
    """Collects definitions of objects, in order of dependence.

    The ``library`` is the modules of the array library, with their names in the module that is
    written. ``spelled`` gives an expression for an object of the library, or "".

    Attributes
    ----------
    imports : set of str
        Lines that import what the definitions need.
    definitions : list of str
        In their order.
    arrays : dict of str to ndarray
        Arrays that the definitions read from ``held``.
    """

    def __init__(
        self,
        names: Names,
        library: Sequence[tuple[str, str]] = (),
        spelled: Callable[[Any], str] = lambda x: "",
    ) -> None:
        self.names, self.library, self.spelled = names, library, spelled
        self.imports: set[str] = set()
        self.definitions: list[str] = []
        self.arrays: dict[str, Any] = {}
        self._known: dict[int, str] = {}
        self._alive: list[Any] = []  # keeps identities unique

    def define(self, x: Any, wanted: str, name: str | None = None) -> str:
        """Define an object, and return its name: ``name``, or else one like ``wanted``."""
        known = self._known.get(id(x))
        if known is not None:
            if name is not None and name != known:
                self.definitions.append(f"{name} = {known}")
            return known
        if isinstance(x, ModuleType):
            return self._module(x, name or wanted)
        if name is None and self._standard(x, wanted):
            return wanted
        if wanted in sys.modules:  # which an import may bind
            self.names.taken.add(wanted)
        name = name or self.names.new(identifier(wanted))
        self._known[id(x)] = name
        self._alive.append(x)
        self._define(x, name)
        return name

    def _define(self, x: Any, name: str) -> None:
        function = inspect.unwrap(x) if callable(x) else x
        if isinstance(function, FunctionType | type) and package_of(function.__module__) == _OWN:
            try:
                self._copied(x, function, name)
            except _NotWrittenError as error:
                raise _NotWrittenError(f"{name}, which uses {error.what}") from None
        elif composite_of(x) is not None:
            raise _NotWrittenError(f"{name}, which here is composed of the standard's functions,")
        elif isinstance(x, np.ndarray):
            self.arrays[name] = x
            self.definitions.append(f"{name} = held[{name!r}]")
        elif isinstance(x, np.random.Generator):
            self._generator(x, name)
        else:
            self.definitions.append(f"{name} = {self.expression(x)}")

    def _module(self, module: ModuleType, wanted: str) -> str:
        line = f"import {module.__name__}"
        if wanted != module.__name__:
            line += f" as {wanted}"
        self._known[id(module)] = wanted
        self.names.taken.add(wanted)
        self.imports.add(line)
        return wanted

    def _standard(self, x: Any, wanted: str) -> bool:
        """Import a function of Python's library by its name."""
        path = str(getattr(x, "__module__", None))
        if path not in sys.stdlib_module_names or wanted in self.names.taken:
            return False
        if getattr(sys.modules.get(path), wanted, None) is not x:
            return False
        self._known[id(x)] = wanted
        self.names.taken.add(wanted)
        self.imports.add(f"from {path} import {wanted}")
        return True

    def _generator(self, x: Any, name: str) -> None:
        """Define a generator with its present state."""
        self.imports.add("import numpy as np")
        bits = type(x.bit_generator).__name__
        self.definitions.append(
            f"{name} = np.random.Generator(np.random.{bits}())\n"
            f"{name}.bit_generator.state = {self.expression(x.bit_generator.state)}"
        )

    def expression(self, x: Any) -> str:
        """An expression for an object."""
        text = plain(x)
        if text is not None:
            return text
        if isinstance(x, np.ufunc):
            return self._imported(x, x.__name__)
        if isinstance(x, np.dtype):
            self.imports.add("import numpy as np")
            return f"np.dtype({x.str!r})"
        if isinstance(x, np.ndarray):
            self.imports.add("import numpy as np")
            return f"np.array({x.tolist()!r}, np.{x.dtype.name})"
        if type(x) in (tuple, list):
            parts = ", ".join(map(self.expression, x))
            return f"[{parts}]" if type(x) is list else f"({parts}{',' if len(x) == 1 else ''})"
        if type(x) is dict:
            pairs = [f"{self.expression(k)}: {self.expression(v)}" for k, v in x.items()]
            return "{" + ", ".join(pairs) + "}"
        owner = getattr(x, "__self__", None)
        if isinstance(owner, np.ufunc):
            return f"{self.expression(owner)}.{x.__name__}"
        if isinstance(x, MethodType):
            return f"{self.define(owner, identifier(type(owner).__name__.lower()))}.{x.__name__}"
        if isinstance(x, MethodDescriptorType):
            return f"{self.expression(x.__objclass__)}.{x.__name__}"
        if callable(x) and hasattr(x, "__name__"):
            return self._imported(x, x.__name__)
        text = self.spelled(x)
        if text:
            return text
        home = dtype_home(x)
        if home is not None:
            self.imports.add(f"import {home}")
            return repr(x)
        made = _made_by(x)
        if made is None:
            raise _NotWrittenError(f"an object of the class {type(x).__qualname__}")
        kind, arguments = made
        parts = ", ".join(map(self.expression, arguments))
        return f"{self.define(kind, kind.__name__)}({parts})"

    def _imported(self, x: Any, short: str) -> str:
        """A library's function, by its import."""
        for path, alias in (("numpy", "np"), *self.library, *_homes(x)):
            module = sys.modules.get(path)
            if module is not None and getattr(module, short, None) is x:
                self.imports.add(f"import {path}" + ("" if path == alias else f" as {alias}"))
                return f"{alias}.{short}"
        raise _NotWrittenError(repr(x))

    # -- functions of our own ------------------------------------------------------------------

    def _copied(self, x: Any, function: Any, name: str) -> None:
        """Copy the source of a function or class, with its globals renamed as defined here."""
        text = textwrap.dedent(inspect.getsource(function))
        (node,) = ast.parse(text).body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise _NotWrittenError(repr(x))
        known = dict(vars(sys.modules[function.__module__]))
        if isinstance(function, FunctionType) and function.__closure__:
            cells = [cell.cell_contents for cell in function.__closure__]
            known.update(zip(function.__code__.co_freevars, cells, strict=True))
        local = set(_locals(function))
        changes: list[tuple[int, int, str, str]] = []
        if node.name != name:
            at = node.lineno - 1
            changes.append((at, text.splitlines()[at].index(node.name), node.name, name))
        for used, attribute in _names(node):
            if used.id not in known or used.id in local:
                continue
            old, held = used.id, known[used.id]
            if isinstance(held, Backend) and attribute is not None:
                # Attributes of a backend are constants: `BACKEND.torch` is the module.
                old, held = f"{old}.{attribute}", getattr(held, attribute)
            wanted = attribute or used.id if old != used.id else used.id
            found = name if used.id == node.name else self.define(held, wanted)
            if found in local:  # it is also a local variable
                other = self.names.new(f"the_{found}")
                self.definitions.append(f"{other} = {found}")
                found = other
            if found != old:
                changes.append((used.lineno - 1, used.col_offset, old, found))
        lines = text.splitlines()
        for row, column, old, new in sorted(changes, reverse=True):
            line = lines[row].encode()  # offsets are of bytes
            rest = line[column + len(old.encode()) :]
            lines[row] = (line[:column] + new.encode() + rest).decode()
        self.definitions.append("\n".join(lines))


class _NotWrittenError(ValueError):
    """An object that can't be written as source."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} can't be written into a file that runs without {_OWN}")


def _made_by(x: Any) -> tuple[Any, ...] | None:
    """The class and arguments that make an equal object, by its ``__reduce__``."""
    if not any("__reduce__" in vars(base) for base in type(x).__mro__[:-1]):
        return None
    made = x.__reduce__()
    return made if isinstance(made, tuple) and len(made) == 2 else None


def _homes(x: Any) -> Iterator[tuple[str, str]]:
    """Modules that may export a library's function."""
    yield "scipy.special", "scipy.special"
    parts = str(getattr(x, "__module__", "") or "").split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        yield path, path


def _names(node: ast.AST) -> Iterator[tuple[ast.Name, str | None]]:
    """Names that are read at run time, so not in annotations, each with its attribute."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Name):
                yield child, None
            elif isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name):
                yield child.value, child.attr
            elif isinstance(child, ast.AST):
                yield from _names(child)


def _locals(function: Any) -> Iterator[str]:
    """The names of local variables, inner functions included."""
    if isinstance(function, type):
        for member in vars(function).values():
            if isinstance(member, FunctionType):
                yield from _locals(member)
        return
    for code in _codes(function.__code__):
        yield from (*code.co_varnames, *code.co_cellvars)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of all functions and classes inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
