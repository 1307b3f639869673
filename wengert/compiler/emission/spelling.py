"""Calls, constants and names of programs as Python expressions."""

import builtins
import cmath
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from keyword import iskeyword
from operator import attrgetter
from types import MethodType
from typing import Any, Final

import numpy as np

from wengert.backends import Backend
from wengert.backends.keys import cut
from wengert.compiler.capture.recorded import Arithmetic
from wengert.compiler.cupy import Kernel
from wengert.compiler.facts import SYMBOLS, row_of
from wengert.compiler.libraries import library_of
from wengert.compiler.passes.forms import Method, form
from wengert.compiler.program import Instruction, Value

__all__ = ["SHORT", "Names", "Speller", "conditions", "identifier", "plain"]

#: Submodules of a library whose functions are written by name.
PARTS: Final = ("", "linalg", "fft", "special", "nn", "nn.functional", "lax")

#: Operators that differ from the functions for some operands.
OTHERWISE: Final = frozenset({"**", "//", "%", "<<", ">>"})


#: Characters up to which expressions are nested.
SHORT: Final = 200

#: Characters that are not allowed in names.
_OTHERS: Final = re.compile("[^0-9A-Za-z]")


@cache
def identifier(name: str) -> str:
    """A Python name that reads like ``name``: ``fc1.weight`` becomes ``fc1_weight``."""
    found = _OTHERS.sub("_", name).strip("_")
    if not found or found[0].isdigit():
        return f"p{found}"
    return f"{found}_" if iskeyword(found) else found


def plain(x: Any) -> str | None:
    """The literal of a number, string, None or `...`; None for other objects."""
    if x is Ellipsis:
        return "..."
    if x is None or type(x) in (bool, int, str, bytes):
        return repr(x)
    if type(x) is float:
        return repr(x) if math.isfinite(x) else f"float({str(x)!r})"
    if type(x) is complex:
        if cmath.isfinite(x) and x.real and x.imag:
            return repr(x)  # which loses the signs of zeros
        return f"complex({plain(x.real)}, {plain(x.imag)})"
    return None


@cache
def _dtype_name(x: Any) -> str:
    """The name of a NumPy data type; cached, because NumPy takes long to find it."""
    return str(x.name)


def dtype_home(x: Any) -> str | None:
    """The module of an object whose `repr` is its public name, such as ``torch.float32``."""
    root, _, name = repr(x).partition(".")
    if not name.isidentifier():
        return None
    found = getattr(sys.modules.get(root), name, None)
    return root if type(found) is type(x) and found == x else None


def conditions(
    decided: Arithmetic, given: Sequence[str], otherwise: Callable[[str], str], speller: "Speller"
) -> Iterator[str]:
    """Lines that check whether comparisons of numbers have the recorded outcomes.

    ``given`` are expressions for the numbers; ``otherwise`` gives the statement for a failed
    condition, from the condition's text.
    """
    program = decided.program
    known = dict(zip(program.inputs, given, strict=True))
    whole = dict(known)
    outcomes = dict(zip(program.outputs, decided.gives, strict=True))
    for step in program.instructions:
        text = speller.call(step, known)
        told = speller.call(step, whole)
        if step.result in outcomes:
            yield f"if not ({text}):" if outcomes[step.result] else f"if {text}:"
            yield f"    {otherwise(f'{told} is {outcomes[step.result]}')}"
        else:
            whole[step.result] = f"({told})" if len(told) < SHORT else "..."
            known[step.result] = f"_{len(known)}"
            yield f"{known[step.result]} = {text}"


class Names:
    """The names of one scope."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self.taken = set() if taken is None else taken
        self._last: dict[str, int] = {}
        self._free: dict[str, list[tuple[int, str]]] = {}

    def release(self, name: str, wanted: str) -> None:
        """Make a numbered name available again."""
        heappush(self._free.setdefault(wanted, []), (len(name), name))

    def new(self, wanted: str, *, numbered: bool = False) -> str:
        """An unused name like the wanted one; ``numbered`` ones start at 1."""
        if numbered and self._free.get(wanted):
            return heappop(self._free[wanted])[1]
        name = wanted
        while numbered or name in self.taken:
            number = self._last[wanted] = self._last.get(wanted, not numbered) + 1
            name, numbered = f"{wanted}_{number}", False
        self.taken.add(name)
        return name


class Speller:
    """Writes calls, and collects the imports and globals that they need.

    The functions of the backend's library are written by name.
    """

    def __init__(self, backend: Backend | None, names: Names) -> None:
        self.names = names
        self.imports: set[str] = set()  # lines
        self.bound: dict[str, Any] = {}  # globals: objects that no expression makes
        self._library = backend.name if backend is not None else ""
        self._modules = library_of(backend).modules if backend is not None else ()
        self._written: dict[int, str] = {}  # by identity, which `bound` or a module keeps alive

    def bind(self, x: Any, wanted: str) -> str:
        """The global name of an object."""
        written = self._written.get(id(x))
        if written is None:
            written = self._written[id(x)] = self.names.new(
                f"{wanted}_" if hasattr(builtins, wanted) else wanted
            )
            self.bound[written] = x
        return written

    def module(self, path: str, alias: str) -> str:
        """Import a module; return its name."""
        self.imports.add(f"import {path}" if path == alias else f"import {path} as {alias}")
        return alias

    def kernel(self, kernel: Kernel) -> list[str]:
        """The lines that define a kernel."""
        name = self.names.new(kernel.__name__)
        self.bind_call(kernel, name)
        lines = [f"{name} = {self.module('cupy', 'cp')}.{kernel.kind}("]
        named = [("", x) for x in kernel.arguments]
        named += [(f"{key}=", x) for key, x in kernel.keywords.items()]
        for key, x in named:
            told = f'"""{x}"""' if type(x) is str and "\n" in x else repr(x)
            lines += f"    {key}{told},".splitlines()
        return [*lines, ")"]

    def bind_call(self, function: Any, name: str) -> None:
        """Note the name of a function that is defined here."""
        self._written[id(function)] = name

    # -- constants -----------------------------------------------------------------------------

    def literal(self, x: Any, known: Mapping[Value, str]) -> str:
        """An operand: a value's name, a literal, or the global name of an object."""
        if isinstance(x, Value):
            return known[x]
        text = plain(x)
        if text is not None:
            return text
        if isinstance(x, slice):
            return f"slice({x.start!r}, {x.stop!r}, {x.step!r})"
        if type(x) is tuple:
            parts = [self.literal(part, known) for part in x]
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        if type(x) is list:
            return f"[{', '.join(self.literal(part, known) for part in x)}]"
        if type(x) is dict:
            pairs = [f"{self.literal(k, known)}: {self.literal(v, known)}" for k, v in x.items()]
            return "{" + ", ".join(pairs) + "}"
        name = x.__name__ if isinstance(x, type) else type(x).__name__.lower()
        return self.spell_constant(x) or self.bind(x, identifier(name))

    def spell_constant(self, x: Any) -> str | None:
        """A data type by its public name."""
        if isinstance(x, np.dtype) and x.isbuiltin == 1:
            name = _dtype_name(x)
            if hasattr(np, name):
                return f"{self.module('numpy', 'np')}.{name}"
        home = dtype_home(x)
        if home is not None:
            self.module(home, home)
            return repr(x)
        return None

    # -- calls ---------------------------------------------------------------------------------

    def call(self, step: Instruction, known: Mapping[Value, str], out: str | None = None) -> str:
        """The right-hand side that computes an instruction."""
        operands = [self.literal(x, known) for x in step.operands]
        pattern = "" if out is None else form(step).writes
        if pattern and pattern != "keyword":
            f = self.function(step.function, step.name) if "{f}" in pattern else ""
            key = self._key(step, iter(())) if "{key}" in pattern else ""
            return pattern.format(*operands, f=f, out=out, key=key)
        if out is None:
            infix = self._infix(step, operands)
            if infix is not None:
                return infix
        taken = [f"{name}={self.literal(x, known)}" for name, x in step.parameters.items()]
        if out is not None:
            taken.append(f"out={out}")
        function = step.function
        if isinstance(function, Method):
            return f"{operands[0]}.{function.name}({', '.join(operands[1:] + taken)})"
        if isinstance(function, attrgetter):
            name = function.__reduce__()[1][0]
            return f"{operands[0]}.{name}"
        return f"{self.function(function, step.name)}({', '.join(operands + taken)})"

    def _infix(self, step: Instruction, operands: list[str]) -> str | None:
        """The call as an operator; None if the operator may differ."""
        found = row_of(step.name)
        symbol = None if found is None else SYMBOLS.get(found.name)
        if step.name.startswith("number.") and symbol is not None:
            if len(operands) == 1:
                return f"{symbol}{operands[0]}"
            left, right = [f"({x})" if x[0] == "-" else x for x in operands]
            return f"{left} {symbol} {right}"
        if step.name == "number.abs":
            return f"abs({operands[0]})"
        if step.name.startswith("number.") and step.function.__module__ == "math":
            return f"{self.module('math', 'math')}.{step.function.__name__}({operands[0]})"
        if step.function is cut or (step.name == "getitem" and self._library in ("numpy", "cupy")):
            return operands[0] + self._key(step, iter(operands[1:]))
        if symbol in OTHERWISE or symbol is None or step.parameters or len(operands) != 2:
            return None
        kinds = [getattr(x, "dtype", type(x)) for x in step.operands]
        # By identity, because a dtype equals the Python type of its name. Complex numbers are left
        # out: their operator with a NumPy scalar may be Python's own.
        mixed = self._library == "numpy" and any(kind is int or kind is float for kind in kinds)
        if kinds[0] != kinds[1] and not mixed:
            return None
        scalar = self._library in ("numpy", "cupy") and step.result.shape == ()
        if scalar and any(np.dtype(kind).kind == "c" for kind in kinds):
            return None  # NumPy's operators on complex scalars round and compare NaN otherwise
        if self.public(step.function, step.name) is None:
            return None
        return f"{operands[0]} {symbol} {operands[1]}"

    def _key(self, step: Instruction, arrays: Iterator[str]) -> str:
        """The index expression of an instruction's key."""
        parts = []
        for part in step.parameters["key"]:
            if type(part) is str:
                parts.append(next(arrays))
            elif isinstance(part, slice):
                start, stop = ["" if x is None else repr(x) for x in (part.start, part.stop)]
                step_ = "" if part.step in (None, 1) else f":{part.step}"
                parts.append(f"{start}:{stop}{step_}")
            else:
                parts.append(self.literal(part, {}))
        return f"[{', '.join(parts) or '()'}]"

    def function(self, function: Callable[..., Any], name: str) -> str:
        """A function by its public name, or else by a global name."""
        if isinstance(function, MethodType):
            owner = function.__self__
            called = getattr(owner, "name", type(owner).__name__.lower())
            return f"{self.bind(owner, identifier(called))}.{function.__name__}"
        return self.public(function, name) or self.bind(
            function, identifier(name.removeprefix("number."))
        )

    def public(self, function: Callable[..., Any], name: str) -> str | None:
        """The public name of a library's function; None if it has none."""
        written = self._written.get(id(function))
        if written is not None:
            return None if written in self.bound else written
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc):
            return f"{self.function(owner, owner.__name__)}.{function.__name__}"
        names = name.rpartition(".")[2], getattr(function, "__name__", "")
        for path, alias in self._modules:
            for part in PARTS:
                module = sys.modules.get(f"{path}.{part}" if part else path)
                for each in names:
                    if module is not None and getattr(module, each, None) is function:
                        prefix = self.module(path, alias) + (f".{part}" if part else "")
                        written = self._written[id(function)] = f"{prefix}.{each}"
                        return written
        return None
