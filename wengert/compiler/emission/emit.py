"""Emission: a program as Python source that calls the array library."""

import linecache
import weakref
from collections import Counter
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
from wengert.compiler.capture.trace import copied as of_any
from wengert.compiler.cupy import Kernel, fused
from wengert.compiler.emission.spelling import Names, Speller, identifier
from wengert.compiler.libraries import library_of
from wengert.compiler.passes.blocks import Run, blocks, together
from wengert.compiler.passes.buffers import buffers
from wengert.compiler.passes.forms import COPY, form
from wengert.compiler.passes.inplace import at_once, writable
from wengert.compiler.passes.liveness import copy_outputs, holders
from wengert.compiler.program import Instruction, Line, Program, Value, values_in

__all__ = ["Emitted", "emit", "folded", "tupled"]

_made: Callable[[], int] = count(1).__next__

#: Columns of the source.
WIDTH = 100


@dataclass(frozen=True, eq=False)
class Emitted:
    """A program as a Python function.

    Attributes
    ----------
    source : str
        The module that defines the function.
    function : callable
        ``function(*inputs)`` returns a tuple. It is the interpreted program if the library has a
        current device and the inputs do not tell which device to use.
    bound : dict of str to object
        The source's globals: constants, and functions that no library has by name.
    """

    source: str
    function: Callable[..., tuple[Any, ...]]
    bound: Mapping[str, Any] = field(default_factory=dict)


def emit(program: Program, backend: Backend | None, *, name: str = "step") -> Emitted:
    """Write a program as a Python function, and compile it.

    The functions of the backend's library are written by name.
    """
    library = backend.name if backend is not None else ""
    program = _with_copied_outputs(program, backend)
    calls = program
    if library == "cupy":
        program = fused(program)
    if library in ("numpy", "cupy"):
        program = buffers(program, kept=library == "numpy")
    writer = _Writer(program, backend, identifier(name))
    source = writer.source()
    file = f"<compiled {writer.name} {_made()}>"
    names = {"__name__": f"wengert.compiled.{writer.name}", **writer.speller.bound}
    # For tracebacks; removed when the function is collected.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)  # noqa: S102
    function: Any = names.pop(writer.name)  # no reference cycle
    weakref.finalize(function, linecache.cache.pop, file, None)
    return Emitted(source, _placed(backend, function, calls), dict(writer.speller.bound))


def _with_copied_outputs(program: Program, backend: Backend | None) -> Program:
    """The program with copied outputs, unless the library's arrays are immutable."""
    if backend is not None and backend.immutable:
        return program
    return copy_outputs(program, partial(_copying, backend))


def _placed(backend: Backend | None, function: Any, calls: Program) -> Any:
    """A function that runs on the device of its operands.

    If these do not tell one device, the program is interpreted, each call on its own device.
    """
    if backend is None or backend.elsewhere is None:
        return function
    moves = any(step.name == "to_device" for step in calls.instructions)
    given = any(x.shape is not None for x in calls.inputs)
    return on_device(backend, function, calls) if given and not moves else calls


def _copying(backend: Backend | None, x: Value, result: Value) -> Instruction:
    """The instruction that copies an array of a library, or of any if ``backend`` is None."""
    if backend is None:
        return Instruction("copy", of_any, (x,), {}, (result,))
    if backend.name != "numpy":
        return Instruction("copy", backend.xp.asarray, (x,), {"copy": True}, (result,))
    if not x.shape:
        return Instruction("copy", copied, (x,), {}, (result,))
    # "K" keeps the memory layout.
    return Instruction("copy", COPY, (x,) if x.order is None else (x, "K"), {}, (result,))


def copied(x: Any) -> Any:
    """A copy of a 0-d array; NumPy's scalars are immutable, and returned as they are."""
    return x if isinstance(x, np.generic) else x.copy()


class _Writer:
    """Writes the module of one program."""

    def __init__(self, program: Program, backend: Backend | None, name: str) -> None:
        self.program = program
        library = backend.name if backend is not None else ""
        modules = library_of(backend).modules if backend is not None else ()
        taken = {"abs", "at", "call", "complex", "float", "math", "np", "range", "round", "slice"}
        self.names = Names(taken.union(*modules))
        self.name = self.names.new(name)
        self.speller = Speller(backend, self.names)
        self.known: dict[Value, str] = {}
        self._runs = blocks(program) if library == "numpy" else []

    def source(self) -> str:
        """The module's text."""
        program = self.program
        for i, value in enumerate(program.inputs):
            self.known[value] = self.names.new(identifier(value.name) if value.name else f"x{i}")
        constants = [self._constant(value) for value in program.constants]
        kept = [self._buffer(value) for value in program.buffers]
        kept += [self._view(step) for step in program.views]
        kernels = [line for kernel in self._kernels() for line in self.speller.kernel(kernel)]
        body = _Body(self, self._runs)
        kept += [
            f"{name} = [slice(i, i + {rows}) for i in range(0, {length}, {rows})]"
            for (length, rows), name in body.rows.items()
        ]
        answer = [self.speller.literal(x, self.known) for x in program.outputs]
        lines = body.text + tupled("    return ", answer)
        inputs = [self.known[value] for value in program.inputs]
        head = folded(f"def {self.name}({', '.join(inputs)}):")
        parts = [sorted(self.speller.imports), constants + kept, kernels, [*head, *lines]]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def _kernels(self) -> dict[Kernel, None]:
        """The kernels that are called, each once."""
        functions = [step.function for step in self.program.instructions]
        return dict.fromkeys([x for x in functions if isinstance(x, Kernel)])

    def _constant(self, value: Value) -> str:
        """Bind a constant, and say what it is."""
        array = self.program.constants[value]
        self.known[value] = name = self.speller.bind(array, identifier(value.name or "constant"))
        return f"# {name}: {value.dtype} of shape {value.shape}"

    def _buffer(self, value: Value) -> str:
        """Allocate a buffer."""
        self.known[value] = name = self.names.new(identifier(value.name), numbered=True)
        return f"{name} = {self.empty(value)}"

    def empty(self, value: Value) -> str:
        """The call that allocates an array."""
        shape, dtype = (self.speller.literal(x, {}) for x in (value.shape, value.dtype))
        return f"{self.speller.function(np.empty, 'empty')}({shape}, {dtype})"

    def _view(self, step: Instruction) -> str:
        """Take a view of a buffer."""
        call = self.speller.call(step, self.known)
        wanted = f"{self.known[step.operands[0]]}_{identifier(_short(step))}"
        self.known[step.result] = self.names.new(wanted)
        return f"{self.known[step.result]} = {call}"


class _Body:
    """Writes the instructions of a program, with comments for the user's lines.

    Attributes
    ----------
    text : list of str
        The lines.
    rows : dict of (int, int) to str
        The names of blocks' slices.
    """

    def __init__(self, writer: _Writer, runs: Sequence[Run]) -> None:
        self.program, self.speller = writer.program, writer.speller
        self.names, self.known, self._empty = writer.names, writer.known, writer.empty
        self.text: list[str] = []
        self.rows: dict[tuple[int, int], str] = {}
        self._joined, self._runs = together(self.program.instructions, runs)
        self._inline = _inline(self.program)
        self._ending = _last_uses(self.program, self._inline, self._runs.values())
        self._wanted = self._results()
        #: Results in buffers, whose names need not be reused.
        written = [x.result for x in self.program.instructions if x.out is not None]
        self._kept = set(written if self.program.buffers else ())
        self._written: dict[str, Value] = {}  # the value of each name so far
        self._line: Line | None = None
        self._comments: dict[Line, str] = {}
        self._calls, self._end = list[str](), 0  # of the open `at_once`
        self._alone = ""
        stop = 0
        for i, step in enumerate(self.program.instructions):
            if i >= stop:
                stop = i + 1
                if step in self._inline:
                    self.known[step.result] = self.speller.call(step, self.known)
                    continue
                run = self._runs.get(i)
                stop = i + 1 if run is None else run.stop
                self._write(i, step, run)

    def _write(self, i: int, step: Instruction, run: Run | None) -> None:
        """Write an instruction, or a run that begins with it."""
        self._comment(step)
        if step.function is writable:
            self.text += self._forgotten(step)
            self._alone = self.known[step.operands[-1]]
        if run is not None:
            self._allocate(self.program.instructions[i : run.stop])
        if i in self._joined or self._calls:
            self._gather(i, step, run)
        elif run is not None:
            self._loop(run)
        else:
            self._call(i, step)

    def _comment(self, step: Instruction) -> None:
        line = step.line
        if line is not None and line != self._line:
            self._line = line
            self.text.append(
                self._comments.get(line) or self._comments.setdefault(line, _comment(line))
            )

    def _gather(self, i: int, step: Instruction, run: Run | None) -> None:
        """Add calls to an `at_once`, which is written with the last of them."""
        if run is not None:
            self._calls += self._by_blocks(run, at_once=True)
        else:
            out = self.known[step.result] = self.known[step.out]  # type: ignore[index]
            self._kept.add(step.result)
            self._calls.append(self._as_operand(step, out, self.known))
        self._end = self._joined.get(i, self._end)
        if self._end < (i + 1 if run is None else run.stop):
            start = f"    {self.speller.function(at_once, 'at_once')}"
            self.text += folded(f"{start}({', '.join([self._alone, *self._calls])})")
            self._calls = []

    def _loop(self, run: Run) -> None:
        """Write a run that is computed by blocks."""
        self.text += self._by_blocks(run, at_once=False)
        for at in range(run.start, run.stop):
            self._release(self._ending.get(at, ()))

    def _call(self, i: int, step: Instruction) -> None:
        """Write one call."""
        out = None if step.out is None else self.known[step.out]
        call = self.speller.call(step, self.known, out)
        # Names of dead values are reused, which frees their arrays before the return.
        self._release(self._ending.get(i, ()))
        if out is not None and form(step).statement:
            self.known[step.result] = out
            self.text += folded(f"    {call}")
            return
        given = tuple([self._named(value) for value in step.results])
        if not step.several:
            self.text += folded(f"    {given[0]} = {call}")
        else:
            self.text += tupled("    ", given, f" = {call}") if given else folded(f"    {call}")

    def _named(self, value: Value) -> str:
        """Give a result its name."""
        name = self.names.new(self._wanted[value], numbered=not value.name)
        self.known[value], self._written[name] = name, value
        return name

    def _release(self, values: Iterable[Value]) -> None:
        """Make the names of dead values available."""
        for value in values:
            wanted = self._wanted.get(value)
            if wanted and value.shape and not value.name and value not in self._kept:
                self.names.release(self.known[value], wanted)

    def _allocate(self, steps: Sequence[Instruction]) -> None:
        """Allocate the results of a run that the caller gets, and have no memory yet."""
        self._line = steps[-1].line
        self._kept.update(step.result for step in steps)
        for step in steps:
            if step.out is None:
                self.text.append(f"    {self._named(step.result)} = {self._empty(step.result)}")

    def _by_blocks(self, run: Run, *, at_once: bool) -> list[str]:
        """The loop of a run, or an operand of `at_once`."""
        size, steps = (run.shape[0], run.rows), self.program.instructions[run.start : run.stop]
        rows = self.rows.get(size) or self.rows.setdefault(size, self.names.new("blocks"))
        calls: list[str] = []
        line: Line | None = steps[0].line
        for step in steps:
            out = self.known[step.result if step.out is None else step.out]
            divided = [x for x in step.used() if x.shape and run.divided(x)]
            known = self.known | {x: f"{self.known[x]}[at]" for x in divided}
            if at_once:
                calls.append(self._as_operand(step, f"{out}[at]", known))
            else:
                if step.line is not None and step.line != line:
                    line = step.line
                    calls.append(f"    {_comment(line)}")
                calls += folded(f"        {self.speller.call(step, known, f'{out}[at]')}")
            self.known[step.result] = out
        if at_once:
            return [f"*[call for at in {rows} for call in ({', '.join(calls)})]"]
        return [f"    for at in {rows}:", *calls]

    def _as_operand(self, step: Instruction, out: str, known: Mapping[Value, str]) -> str:
        """A call as an operand of `at_once`: a tuple of a function and its operands."""
        function, operands = self.speller.call(step, known, out)[:-1].split("(", 1)
        if "out=" not in form(step).writes:
            return f"({function}, {operands})"
        return f"({self.speller.function(partial, 'partial')}({function}, {operands}),)"

    def _forgotten(self, step: Instruction) -> list[str]:
        """A ``del`` of views of arrays to be overwritten, whose reference counts are then known."""
        held, over = holders(self.program), set(step.operands)
        names = [name for name, value in self._written.items() if not over.isdisjoint(held[value])]
        return folded(f"    del ({', '.join(names)},)") if names else []

    def _results(self) -> dict[Value, str]:
        """The preferred name of each result."""
        names: dict[Value, str] = {}
        for step in self.program.instructions:
            short = identifier(_short(step))
            stage = "d_" if step.line is not None and step.line.stage == "backward" else ""
            for value in step.results:
                names[value] = identifier(value.name) if value.name else stage + short
        return names


def _inline(program: Program) -> set[Instruction]:
    """Attributes such as ``x.mT`` that are used once, and written inline."""
    times = Counter(value for step in program.instructions for value in step.used())
    outputs = set(values_in(program.outputs))
    return {
        step
        for step in program.instructions
        if isinstance(step.function, attrgetter)
        and times[step.result] == 1
        and step.result not in outputs
    }


def _last_uses(
    program: Program, inline: set[Instruction], runs: Iterable[Run]
) -> dict[int, list[Value]]:
    """For each instruction the results whose names are used there for the last time."""
    blocked = {step for run in runs for step in program.instructions[run.start : run.stop]}
    written: dict[Value, Value] = {}  # the value that has the name
    last: dict[Value, int] = {}
    for i, step in enumerate(program.instructions):
        for x in (*step.used(), *(() if step.out is None else (step.out,))):
            last[written.get(x, x)] = i
        if step in inline:
            operand = step.operands[0]
            written[step.result] = written.get(operand, operand)
        elif step.out is not None and (form(step).statement or step in blocked):
            written[step.result] = written.get(step.out, step.out)
        else:
            for result in step.results:
                last[result] = i + 1  # unless it is used
    for x in values_in(program.outputs):
        last.pop(written.get(x, x), None)
    ending: dict[int, list[Value]] = {}
    for value, i in last.items():
        ending.setdefault(i, []).append(value)
    return ending


def tupled(start: str, names: Sequence[str], end: str = "") -> list[str]:
    """The lines of a statement with a tuple of names, in brackets unless it is short."""
    text = f"{', '.join(names)}{',' if len(names) == 1 else ''}"
    line = f"{start}{text}{end}"
    short = len(names) > 1 and len(line) <= WIDTH
    return [line] if short else folded(f"{start}({text}){end}")


def folded(line: str) -> list[str]:
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
