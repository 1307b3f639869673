"""Emission: a program as Python source that calls the array library."""

import linecache
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from wengert.backends import Backend
from wengert.backends.backend import on_device
from wengert.compiler.capture.trace import copy_of
from wengert.compiler.cupy import Kernel, fuse
from wengert.compiler.emission.spelling import Names, Speller, identifier
from wengert.compiler.libraries import library_of
from wengert.compiler.passes.buffers import buffers
from wengert.compiler.passes.forms import COPY, form
from wengert.compiler.passes.inplace import writable
from wengert.compiler.passes.liveness import copy_outputs, holders
from wengert.compiler.passes.loops import Loop
from wengert.compiler.program import Instruction, Line, Program, Value, values_in

__all__ = ["Emitted", "emit", "fold", "spell_tuple"]

_made: Callable[[], int] = count(1).__next__

#: Columns of the source.
WIDTH = 100


@dataclass(frozen=True, eq=False)
class Emitted:
    """A program as a Python function."""

    #: The module that defines the function.
    source: str
    #: ``function(*inputs)`` returns a tuple. It is the interpreted program if the library has a
    #: current device and the inputs do not tell which device to use.
    function: Callable[..., tuple[Any, ...]]
    #: The source's globals: constants, and functions that no library has by name.
    bound: Mapping[str, Any] = field(default_factory=dict)


def emit(program: Program, backend: Backend | None, *, name: str = "step") -> Emitted:
    """Write a program as a Python function, and compile it.

    The functions of the backend's library are written by name.
    """
    program, calls = _place(program, backend)
    writer = _Writer(program, backend, identifier(name))
    source = writer.source()
    file = f"<compiled {writer.name} {_made()}>"
    names = {"__name__": f"wengert.compiled.{writer.name}", **writer.speller.bound}
    # For tracebacks; removed when the function is collected.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)  # noqa: S102
    function: Any = names.pop(writer.name)  # no reference cycle
    weakref.finalize(function, linecache.cache.pop, file, None)
    if backend is not None and backend.elsewhere is not None:  # libraries with a current device
        moves = any(step.name == "to_device" for step in calls.instructions)
        told = any(x.shape is not None for x in calls.inputs) and not moves
        function = on_device(backend, function, calls) if told else calls
    return Emitted(source, function, dict(writer.speller.bound))


def _place(
    program: Program, backend: Backend | None, carried: int | None = None
) -> tuple[Program, Program]:
    """The program with memory for its results, and before that."""
    library = backend.name if backend is not None else ""
    if backend is None or not backend.immutable:
        program = copy_outputs(program, partial(_copying, backend), carried)
    calls = program
    if library == "cupy":
        program = fuse(program)
    if library in ("numpy", "cupy"):
        program = buffers(program, kept=library == "numpy")
    return program, calls


def _copying(backend: Backend | None, x: Value, result: Value) -> Instruction:
    """The instruction that copies an array of a library, or of any if ``backend`` is None."""
    if backend is None:
        return Instruction("copy", copy_of, (x,), {}, (result,))
    if backend.name != "numpy":
        return Instruction("copy", backend.xp.asarray, (x,), {"copy": True}, (result,))
    # "K" keeps the memory layout.
    return Instruction("copy", COPY, (x,) if x.order is None else (x, "K"), {}, (result,))


class _Writer:
    """Writes the module of one program, with comments for the user's lines."""

    def __init__(
        self, program: Program, backend: Backend | None, name: str, within: "Any" = None
    ) -> None:
        self.program, self.backend = program, backend
        if within is None:
            modules = library_of(backend).modules if backend is not None else ()
            taken = {"abs", "complex", "float", "math", "np", "range", "slice"}
            self.names = Names(taken.union(*modules))
            self.speller = Speller(backend, self.names)
        else:  # the body of a loop
            self.names, self.speller = within.names, within.speller
        self.name = self.names.new(name)
        self.known: dict[Value, str] = {}
        self._text: list[str] = []
        self._wanted: dict[Value, str] = {}  # of numbered names, which dead values leave
        self._written: dict[str, Value] = {}  # the value of each name so far
        self._line: Line | None = None
        self._comments: dict[Line, str] = {}

    def source(self) -> str:
        """The module's text."""
        parts, lines, answer = self.write()
        inputs = [self.known[value] for value in self.program.inputs]
        head = fold(f"def {self.name}({', '.join(inputs)}):")
        parts += [[*head, *lines, *spell_tuple("    return ", answer)]]
        parts = [sorted(self.speller.imports), *parts]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def write(self) -> tuple[list[list[str]], list[str], list[str]]:
        """What stands before the function, its lines, and the outputs."""
        program = self.program
        for i, value in enumerate(program.inputs):
            self.known[value] = self.names.new(identifier(value.name) if value.name else f"x{i}")
        kept = [self._constant(value) for value in program.constants]
        kept += [self._buffer(value) for value in program.buffers]
        kept += [self._view(step) for step in program.views]
        functions = dict.fromkeys(step.function for step in program.instructions)
        kernels = [
            line for x in functions if isinstance(x, Kernel) for line in self.speller.kernel(x)
        ]
        loops = [
            part
            for step in program.instructions
            if isinstance(step.function, Loop)
            for part in self._loop(step.function, step.results[step.function.carried :])
        ]
        inline = _inline(program)
        ending = _last_uses(program, inline)
        for i, step in enumerate(program.instructions):
            if step in inline:
                self.known[step.result] = self.speller.call(step, self.known)
            else:
                self._write(step, ending.get(i, ()))
        answer = [self.speller.literal(x, self.known) for x in program.outputs]
        return [kept, kernels, *loops], self._text, answer

    def _loop(self, loop: Loop, results: Sequence[Value]) -> list[list[str]]:
        """The function of a loop, by JAX's own there, and what stands before it."""
        body, _ = _place(loop.body, self.backend, loop.carried)
        inner = _Writer(body, self.backend, "loop", self)
        self.speller.bind_call(loop, inner.name)
        parts, lines, after = inner.write()
        names, n, new = [inner.known[x] for x in loop.body.inputs], loop.carried, self.names.new
        state, rows = names[:n], names[n : n + loop.rows]
        lines = [f"    {line}" for line in lines]
        if self.backend is not None and self.backend.name == "jax":
            step, whole, part = (new(x) for x in ("body", "carried", "members"))
            text = [f"    def {step}({whole}, {part}):"]
            text += [f"        {_tuple(x)} = {y}" for x, y in ((state, whole), (rows, part)) if x]
            text += [*lines, f"        return {_tuple(after[:n])}, {_tuple(after[n:])}"]
            scan = f"{self.speller.module('jax', 'jax')}.lax.scan({step}, {_tuple(state)}, "
            text.append(
                f"    {whole}, {part} = {scan}{_tuple(rows)}, {loop.count}, {loop.reverse})"
            )
            answer = [f"*{whole}", f"*{part}"]
        else:
            wholes, made, t = [new(x) for x in rows], [new("y") for _ in results], new("t")
            text = [f"    {x} = {self._empty(y)}" for x, y in zip(made, results, strict=True)]
            order = f"range({loop.count})"
            text.append(f"    for {t} in {f'reversed({order})' if loop.reverse else order}:")
            pairs = zip(rows, wholes, strict=True)
            text += [*[f"        {x} = {y}[{t}, ...]" for x, y in pairs], *lines]
            text += [f"        {y}[{t}] = {x}" for x, y in zip(after[n:], made, strict=True)]
            carried = f"        {', '.join(state)} = {', '.join(after[:n])}"
            text.append(carried if state else "        pass")
            names[n : n + loop.rows], answer = wholes, [*state, *made]
        head = fold(f"def {inner.name}({', '.join(names)}):")
        return [*parts, [*head, *text, *spell_tuple("    return ", answer)]]

    def _empty(self, x: Value) -> str:
        shape, dtype = (self.speller.literal(part, {}) for part in (x.shape, x.dtype))
        if x.order is not None:
            made = self.speller.function(np.ndarray, "ndarray")
            return f"{made}({shape}, {dtype}, strides={x.order})"
        return f"{self.speller.function(np.empty, 'empty')}({shape}, {dtype})"

    def _constant(self, value: Value) -> str:
        """Bind a constant, and say what it is."""
        array = self.program.constants[value]
        self.known[value] = name = self.speller.bind(array, identifier(value.name or "constant"))
        return f"# {name}: {value.dtype} of shape {value.shape}"

    def _buffer(self, value: Value) -> str:
        """Allocate a buffer."""
        self.known[value] = name = self.names.new(identifier(value.name), numbered=True)
        return f"{name} = {self._empty(value)}"

    def _view(self, step: Instruction) -> str:
        """Take a view of a buffer."""
        call = self.speller.call(step, self.known)
        wanted = f"{self.known[step.uses()[0]]}_{identifier(_short(step))}"
        self.known[step.result] = self.names.new(wanted)
        return f"{self.known[step.result]} = {call}"

    # -- instructions ----------------------------------------------------------------------------

    def _write(self, step: Instruction, ending: Iterable[Value]) -> None:
        """Write an instruction, after which values are ``ending``."""
        line = step.line
        if line is not None and line != self._line:
            self._line = line
            if line not in self._comments:
                self._comments[line] = _comment(line)
            self._text.append(self._comments[line])
        if step.function is writable:
            self._text += self._forgotten(step)
        out = None if step.out is None else self.known[step.out]
        call = self.speller.call(step, self.known, out)
        # Names of dead values are reused, which frees their arrays before the return.
        for value in ending:
            if value in self._wanted:
                self.names.release(self.known[value], self._wanted[value])
        if out is not None and form(step).statement:
            self.known[step.result] = out
            self._text += fold(f"    {call}")
            return
        given = [self._name(step, value) for value in step.results]
        if step.several and given:
            self._text += spell_tuple("    ", given, f" = {call}")
        else:
            self._text += fold(f"    {given[0]} = {call}" if given else f"    {call}")

    def _name(self, step: Instruction, value: Value) -> str:
        """Give a result its name."""
        wanted = identifier(value.name or _short(step))
        if not value.name and step.line is not None and step.line.stage == "backward":
            wanted = f"d_{wanted}"
        # Names of results in buffers need not be reused.
        if value.shape and not value.name and not (step.out is not None and self.program.buffers):
            self._wanted[value] = wanted
        name = self.names.new(wanted, numbered=not value.name)
        self.known[value], self._written[name] = name, value
        return name

    def _forgotten(self, step: Instruction) -> list[str]:
        """A ``del`` of views of arrays to be overwritten, whose reference counts are then known."""
        held, over = holders(self.program), set(step.operands)
        names = [name for name, value in self._written.items() if not over.isdisjoint(held[value])]
        return fold(f"    del ({', '.join(names)},)") if names else []


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def _inline(program: Program) -> set[Instruction]:
    """Attributes such as ``x.mT`` that are used once, and written inline."""
    times = program.uses()
    times.update(dict.fromkeys(values_in(program.outputs), 2))
    return {
        step
        for step in program.instructions
        if isinstance(step.function, attrgetter) and times[step.result] == 1
    }


def _last_uses(program: Program, inline: set[Instruction]) -> dict[int, list[Value]]:
    """For each instruction the results whose names are used there for the last time."""
    written: dict[Value, Value] = {}  # the value that has the name
    last: dict[Value, int] = {}
    for i, step in enumerate(program.instructions):
        for x in (*step.uses(), *(() if step.out is None else (step.out,))):
            last[written.get(x, x)] = i
        if step in inline or (step.out is not None and form(step).statement):
            x = step.operands[0] if step.out is None else step.out
            written[step.result] = written.get(x, x)
        else:
            last |= dict.fromkeys(step.results, i + 1)  # unless it is used
    for x in values_in(program.outputs):
        last.pop(written.get(x, x), None)
    ending: dict[int, list[Value]] = {}
    for value, i in last.items():
        ending.setdefault(i, []).append(value)
    return ending


def spell_tuple(start: str, names: Sequence[str], end: str = "") -> list[str]:
    """The lines of a statement with a tuple of names, in brackets unless it is short."""
    text = f"{', '.join(names)}{',' if len(names) == 1 else ''}"
    line = f"{start}{text}{end}"
    short = len(names) > 1 and len(line) <= WIDTH
    return [line] if short else fold(f"{start}({text}){end}")


def fold(line: str) -> list[str]:
    """A line, wrapped if it is long."""
    lines, inner = list[str](), "        "
    while len(line) > WIDTH:
        at = line.rfind(", ", len(inner), WIDTH)
        head = line[: max(at, 0)]
        # A statement can be wrapped only inside brackets; a continued line always is inside.
        opened = sum(map(head.count, "([{")) > sum(map(head.count, ")]}"))
        if at < 0 or not (opened or head.startswith(inner)):
            break
        lines.append(line[: at + 1])
        line = inner + line[at + 2 :]
    return [*lines, line]


def _short(step: Instruction) -> str:
    """The function's short name, for the names of results."""
    if isinstance(step.function, attrgetter):
        name = step.function.__reduce__()[1][0]
        return str(name)
    return step.name.rpartition(".")[2]


def _comment(line: Line) -> str:
    """The comment with the user's line."""
    text = linecache.getline(line.file, line.number).strip()
    what = {"backward": "adjoint of ", "update": "update, "}.get(line.stage, "")
    comment = f"{what}{Path(line.file).name}:{line.number}  {text}".rstrip()
    return f"    # {comment if len(comment) <= WIDTH - 6 else comment[: WIDTH - 9] + '...'}"
