"""CUDA graphs of the kernels that a program launches between products of matrices.

A graph launches kernels with the addresses and numbers of its capture. So one kernel first copies
the inputs, numbers included, to fixed addresses, and outputs are copied into new arrays. All other
memory has fixed addresses in a pool of its own. Calls that CuPy can't capture, or that might read
host memory, are made between the graphs, and their results are copied to fixed addresses.
"""

from _thread import get_ident
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wengert.backends import generators
from wengert.backends.backend import placed
from wengert.compiler import messages
from wengert.compiler.emission.kernels import fused, in_ranges
from wengert.compiler.facts import facts_of
from wengert.compiler.kernels import KERNELS, PLAIN
from wengert.compiler.passes.cupy_routines import reduction
from wengert.compiler.passes.forms import Kernel, form, fresh, row
from wengert.compiler.passes.fusion import ARGUMENTS
from wengert.compiler.program import Instruction, Program, Value, substitute
from wengert.compiler.report import Report, summary

__all__ = ["captured"]

Function = Callable[..., tuple[Any, ...]]
Known = dict[Value, Any]


def captured(program: Program, function: Function, backend: Any, report: Report) -> Function:
    """Return a function that runs a program of CuPy arrays by graphs, or ``function``.

    The program is without arithmetic of numbers, and no output shares memory with another array
    (`wengert.compiler.passes.outputs`). The report gets a note on what was captured, or why nothing
    was.
    """
    if backend.cupy.cuda.runtime.is_hip:
        report.note("not captured: CuPy has no graphs on AMD's GPUs; plain calls instead")
        return function
    draws = not all(step.pure for step in program.instructions)
    made: _Graphs | None = _Graphs(program, backend.cupy)

    def call(*inputs: Any) -> tuple[Any, ...]:
        nonlocal made
        if made is None:
            return function(*inputs)
        if not made.ready:
            try:
                report.note(made.capture(_sample(made, inputs, draws)))
            except Exception as error:
                answer = function(*inputs)  # if it fails too, that error is raised
                made = None
                why = str(error) if type(error) is _NotCapturedError else summary(error)
                report.note(f"not captured ({why}): plain calls instead")
                return answer
        return made(*inputs)

    return placed(backend, call, function)  # type: ignore[no-any-return]


class _NotCapturedError(Exception):
    """Why a program is not captured."""


def _lasting(cuda: Any) -> Any:
    """A pool that frees nothing before it goes, when memory is short: graphs name its places."""
    kept: list[Any] = []

    def allocate(size: int) -> Any:
        kept.append(cuda.Memory(size))
        return cuda.MemoryPointer(kept[-1], 0)

    return cuda.MemoryPool(allocate)


def gains(started: int, others: int) -> bool:
    """Whether there are fewer launches of graphs and copies than of the captured kernels."""
    return others < started


def _sample(graphs: "_Graphs", inputs: Sequence[Any], draws: bool) -> Known:
    """Run all instructions by plain calls, which compiles their kernels; return all values."""
    if not draws:
        return graphs.sample(inputs)
    state, at = generators.get_rng_state(), messages.position()
    try:
        return graphs.sample(inputs)
    finally:
        generators.set_rng_state(state)  # the call itself draws the same numbers
        messages.rewind(at)  # and gets the same from other processes


class _Graphs:
    """A program as graphs, and calls between them.

    Attributes
    ----------
    ready : bool
        Whether it has been captured.
    """

    def __init__(self, program: Program, cupy: Any) -> None:
        program = fused(program, stored=True)
        self.ready = False
        self._cupy, self._program = cupy, program
        self._pool = _lasting(cupy.cuda)
        self._last: Any = None  # the stream of the last call, and the thread
        self._numbers: dict[tuple[Value, str], Value] = {}
        self._steps = [self._stored(step) for step in program.instructions]
        self._outputs = [x for x in program.outputs if isinstance(x, Value)]
        #: Values that graphs read, at fixed addresses.
        self._read = {x for step in self._steps if _captures(step) for x in step.used()}
        for step in self._steps:
            if not fresh(step):  # perhaps a view of fixed memory, to be copied out
                self._read.update(set(step.results).intersection(self._outputs))
        inputs = program.inputs
        self._given = [i for i, x in enumerate(inputs) if x.shape is not None and x in self._read]
        self._items: list[Callable[[Known], None]] = []

    def _stored(self, step: Instruction) -> Instruction:
        """The call of a kernel with 0-d arrays in place of numbers, in the types it uses."""
        function, operands = step.function, list(step.operands)
        numbers = [i for i, x in enumerate(operands) if isinstance(x, Value) and x.shape is None]
        arrays = [x.dtype for x in step.used() if x.shape is not None]
        for i in numbers:
            x = operands[i]
            if isinstance(function, Kernel):
                kind = function.arguments[0].split(", ")[i].split()[-2]
            elif type(function).__name__ == "ufunc" and arrays:
                kind = str(np.result_type(*arrays, x.dtype(1)))
            else:
                return step
            place = self._numbers.get((x, kind))
            if place is None:
                place = self._numbers[x, kind] = Value((), np.dtype(kind), x.name)
            operands[i] = place
        return replace(step, operands=tuple(operands)) if numbers else step

    # -- the first call ------------------------------------------------------------------------

    def sample(self, inputs: Sequence[Any]) -> Known:
        """Run the program once by plain calls, on inputs at fixed addresses."""
        program, cupy = self._program, self._cupy
        at = {x: i for i, x in enumerate(program.inputs)}
        with cupy.cuda.using_allocator(self._pool.malloc):
            fixed = {program.inputs[i]: cupy.empty_like(inputs[i]) for i in self._given}
            fixed |= {x: cupy.empty((), x.dtype) for x in self._numbers.values()}
        self._done = cupy.cuda.Event(disable_timing=True)
        kinds = [_kind(fixed[program.inputs[i]], raw=True) for i in self._given]
        kinds += [(kind, 1, 0, False) for _, kind in self._numbers]
        self._loaded = [*self._given, *(at[x] for x, _ in self._numbers)]
        self._load = partial(_Copies("graph_load", kinds), into=list(fixed.values()))
        self._load([inputs[i] for i in self._loaded])
        known = {**program.constants, **dict(zip(program.inputs, inputs, strict=True)), **fixed}
        self._first = {**program.constants, **fixed}
        for step in self._steps:
            known.update(zip(step.results, step.run(known), strict=True))
        return known

    def capture(self, known: Known) -> str:
        """Capture the program; ``known`` has all its values. Return a note for the report."""
        if len({x.device for x in known.values() if isinstance(x, self._cupy.ndarray)}) > 1:
            raise _NotCapturedError("arrays are on several devices")
        cuda, fixed = self._cupy.cuda, dict(self._first)
        stream = cuda.Stream(non_blocking=True)
        ending = _dead_after(self._steps, self._outputs)
        self._items = []
        started = graphs = copies = 0
        active = False
        with cuda.using_allocator(self._pool.malloc), stream:
            try:
                for step in (*self._steps, None):
                    if active and (step is None or not _captures(step)):
                        active = False
                        graph = stream.end_capture()
                        self._items.append(partial(_launch, graph.launch))
                        graphs += 1
                    if step is None:
                        break
                    if not _captures(step):
                        copies += self._between(step, fixed, known)
                    elif not active and (made := _unstarted(step, fixed)) is not None:
                        fixed[step.result] = made
                    else:
                        if not active:
                            stream.begin_capture()
                            active = True
                        started += not (form(step).takes or step.name == "empty")
                        fixed.update(zip(step.results, step.run(fixed), strict=True))
                    for x in ending.get(step, ()):  # its memory may be reused
                        fixed.pop(x, None)
            except BaseException:
                if active:
                    _abandon(stream)
                raise
        # Copies that were tried before a capture may still be running, in memory that graphs use.
        stream.record(self._done)
        self._last = stream, get_ident()
        self._known = fixed
        self._shown = [x for x in self._outputs if x in fixed]
        held = [fixed[x] for x in self._shown]
        self._store = _Copies("graph_store", [_kind(x, raw=True) for x in held])
        copies += len(self._store.parts) + len(self._load.func.parts)  # type: ignore[attr-defined]
        if not gains(started, graphs + copies):
            raise _NotCapturedError(
                f"{graphs} graphs and {copies} copies are no less than the {started} kernels"
            )
        self.ready = True
        calls = len(self._items) - graphs
        return f"{started} kernels are captured in {graphs} CUDA graphs, beside {calls} calls"

    def _between(self, step: Instruction, fixed: Known, known: Known) -> int:
        """Add a call between graphs, with fixed memory for its results that graphs read.

        Return how many results have to be copied there.
        """
        places = {x: self._cupy.empty_like(known[x]) for x in step.results if x in self._read}
        operands = substitute(step.operands, fixed)
        parameters = {name: substitute(x, fixed) for name, x in step.parameters.items()}
        function = step.function
        matrices = [x.shape is not None and len(x.shape) > 1 for x in step.used()]
        if step.name == "matmul" and places and all(matrices):
            function, parameters = self._cupy.matmul, {**parameters, "out": places.pop(step.result)}
            fixed[step.result] = parameters["out"]
        fixed.update(places)
        changed = replace(step, function=function, operands=operands, parameters=parameters)
        self._items.append(partial(_call, changed, places))
        return len(places)

    # -- each call -----------------------------------------------------------------------------

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        stream, me = self._cupy.cuda.get_current_stream(), get_ident()
        # Streams of different threads may be equal to CuPy (per-thread default streams).
        if self._last is not None and self._last != (stream, me):
            stream.wait_event(self._done)  # the last call may still use the memory
        self._last = stream, me
        try:
            return self._run(inputs)
        finally:
            stream.record(self._done)

    def _run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        cupy = self._cupy
        self._load([inputs[i] for i in self._loaded])
        known = dict(zip(self._program.inputs, inputs, strict=True))
        for item in self._items:
            item(known)
        held = [self._known[x] for x in self._shown]
        new = [cupy.empty_like(x) for x in held]
        self._store(held, new)
        known.update(zip(self._shown, new, strict=True))
        return substitute(self._program.outputs, known)  # type: ignore[no-any-return]


def _captures(step: Instruction) -> bool:
    """Whether a call can be captured: it reads device memory and constants alone.

    A call that copies from host memory might find it freed when the graph runs.
    """
    function = step.function
    if isinstance(function, Kernel):
        return True
    if any(x.shape is None for x in step.used()):  # a number that changes
        return False
    if step.name == "empty" or (form(step).takes and not step.several):
        return True
    if not step.pure or not step.results:
        return False
    if type(function).__name__ == "ufunc" or KERNELS.get(function, PLAIN).launches:
        return True
    found, x = row(step), step.operands[0]
    if found is None or not isinstance(x, Value):
        return False
    sums = reduction(step.name, x.dtype, step.results[0].dtype) is not None
    return sums or facts_of(found).reduces


def _unstarted(step: Instruction, fixed: Known) -> Any:
    """The result of a call that launches no kernel (empty memory, a view); None for others."""
    if step.name == "empty":
        return step.run(fixed)[0]
    if not form(step).takes:
        return None
    (made,), x = step.run(fixed), fixed[step.used()[0]]
    return made if _owner(made) is _owner(x) else None  # a copy has to be captured


def _owner(x: Any) -> Any:
    return x if x.base is None else x.base


def _launch(launch: Callable[[], None], known: Known) -> None:
    launch()


def _call(step: Instruction, places: Mapping[Value, Any], known: Known) -> None:
    """Make a call, and copy its results to fixed memory."""
    for x, made in zip(step.results, step.run(known), strict=True):
        if x in places:
            places[x][...] = made
        else:
            known[x] = made


def _abandon(stream: Any) -> None:
    with suppress(RuntimeError):  # the capture may be invalid
        stream.end_capture()


def _dead_after(steps: Sequence[Instruction], outputs: Sequence[Value]) -> dict[Any, list[Value]]:
    """For each instruction the values that are dead after it."""
    last = {x: step for step in steps for x in (*step.results, *step.used())}
    ending: dict[Any, list[Value]] = {}
    for x in last.keys() - set(outputs):
        ending.setdefault(last[x], []).append(x)
    return ending


# -- copies --------------------------------------------------------------------------------------


def _kind(x: Any, *, raw: bool) -> tuple[str, int, int, bool]:
    return str(x.dtype), x.size, x.ndim, raw


class _Copies:
    """Copies arrays and numbers by one kernel, or as few as possible.

    Attributes
    ----------
    parts : list of (Kernel, list of int, int)
        Each kernel with the positions of what it copies, and the number of elements.
    """

    def __init__(self, name: str, kinds: Sequence[tuple[str, int, int, bool]]) -> None:
        self.parts = [
            (_copying(name, [kinds[i] for i in part]), part, sum(kinds[i][1] for i in part))
            for part in _groups(kinds)
        ]

    def __call__(self, given: Sequence[Any], into: Sequence[Any]) -> None:
        for kernel, part, size in self.parts:
            kernel(*[given[i] for i in part], *[into[i] for i in part], size=size)


def _groups(kinds: Sequence[tuple[str, int, int, bool]]) -> Iterator[list[int]]:
    """Groups of positions, each small enough for one kernel's arguments."""
    part, size = list[int](), 64
    for i, (_, elements, axes, _) in enumerate(kinds):
        more = 2 * (16 + 16 * axes)
        if part and size + more > ARGUMENTS:
            yield part
            part, size = [], 64
        if elements:
            part.append(i)
            size += more
    if part:
        yield part


def _copying(name: str, kinds: Sequence[tuple[str, int, int, bool]]) -> Kernel:
    copies, start = list[tuple[int, str]](), 0
    for i, (_, size, _, raw) in enumerate(kinds):
        at = f"[i - {start}]" if start else "[i]"
        start += size
        copies.append((start, f"out_{i}{at} = x_{i}{at if raw else ''};"))
    return Kernel(
        "ElementwiseKernel",
        (
            ", ".join(
                f"{'raw ' if raw else ''}{x} x_{i}" for i, (x, _, _, raw) in enumerate(kinds)
            ),
            ", ".join(f"raw {x} out_{i}" for i, (x, *_) in enumerate(kinds)),
            "\n".join(in_ranges(copies)),
            name,
        ),
        {},
    )
