"""Where a program that is wrong goes wrong: its first line that gives something else.

The function is recorded once more, from the state in which the program has failed, with what each
instruction gives. Then three things are compared with that: which instructions there are, what the
recorded ones give, and what the lines of the source give.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from wengert.compiler.capture.lines import described
from wengert.compiler.capture.trace import copied
from wengert.compiler.checking import distance
from wengert.compiler.emission.emit import Emitted
from wengert.compiler.program import Instruction, Program, Value, substitute, values_in

__all__ = ["located"]


def located(
    program: Program,
    emitted: Emitted,
    inputs: tuple[Any, ...],
    again: Program,
    samples: Mapping[Value, Any],
    start: Callable[[], None],
) -> str:
    """Say which line is the first that gives something else than the function.

    Parameters
    ----------
    program : Program
        As it was recorded.
    emitted : Emitted
        What was made of it.
    inputs : tuple
        What it was given.
    again : Program
        As it is recorded now, from the same state.
    samples : dict
        What each instruction of ``again`` has given.
    start : callable
        Puts random generators back to where the call began.
    """
    same: dict[Value, Value] = dict(zip(program.inputs, again.inputs, strict=False))
    steps = zip(program.instructions, again.instructions, strict=False)
    for old, new in steps:
        if not _alike(old, new, same, program, again):
            return _at(emitted, old, f"the function calls {new.name} otherwise there now")
        same.update(zip(old.results, new.results, strict=True))
    if len(program.instructions) != len(again.instructions):
        longer = max(program, again, key=lambda x: len(x.instructions))
        step = longer.instructions[min(len(program.instructions), len(again.instructions))]
        return _at(emitted, step, "the function takes another way there now")
    start()
    known: dict[Value, Any] = dict(program.constants)
    known.update(zip(program.inputs, inputs, strict=True))
    for step in program.instructions:
        operands = substitute(step.operands, known)
        answer = step.function(*operands, **substitute(dict(step.parameters), known))
        parts = answer if step.several else (answer,)
        known.update(zip(step.results, map(copied, parts), strict=True))
        for value in step.results:
            if same[value] in samples and _differ(known[value], samples[same[value]]):
                return _at(emitted, step, "it computes with other values than the function")
    start()
    for number, step, values in _run(emitted, inputs):
        for value, x in zip(step.results, values, strict=True):
            if value in known and _differ(x, known[value]):
                return _line(emitted, number, step)
    return "each line gives what it should, so that it is what becomes of it that is wrong"


def _alike(
    old: Instruction,
    new: Instruction,
    same: dict[Value, Value],
    program: Program,
    again: Program,
) -> bool:
    """Whether two instructions do the same; constants that they take are compared."""
    given, now = ([*x.operands, *x.parameters.values()] for x in (old, new))
    if old.name != new.name or len(given) != len(now) or len(old.results) != len(new.results):
        return False
    for one, other in zip(values_in(given), values_in(now), strict=False):
        if one in program.constants and other in again.constants:
            if _differ(program.constants[one], again.constants[other]):
                return False
            same.setdefault(one, other)
        if same.get(one) is not other:
            return False
    blank: dict[Value, Any] = dict.fromkeys(values_in([*given, *now]))
    return repr(substitute(given, blank)) == repr(substitute(now, blank))


def _differ(x: Any, y: Any) -> bool:
    if hasattr(x, "dtype") and hasattr(y, "dtype"):
        return tuple(x.shape) != tuple(y.shape) or x.dtype != y.dtype or distance(x, y) > 0
    return repr(x) != repr(y)


def _at(emitted: Emitted, step: Instruction, why: str) -> str:
    """The line of the source that an instruction has become, or the first of the user's line."""
    found = [n for n, (each, _) in emitted.lines.items() if {*each.results} & {*step.results}]
    found += [n for n, (each, _) in emitted.lines.items() if each.line == step.line]
    if found:
        return f"{_line(emitted, found[0], step)}; {why}"
    where = "" if step.line is None else f" of {described(step.line)}"
    return f"{step.name}{where}, which has no line of its own; {why}"


def _line(emitted: Emitted, number: int, step: Instruction) -> str:
    text = emitted.source.splitlines()[number - 1].strip()
    where = "" if step.line is None else f", from {described(step.line)}"
    return f"line {number} of its source ({text}){where}"


def _run(
    emitted: Emitted, inputs: tuple[Any, ...]
) -> list[tuple[int, Instruction, tuple[Any, ...]]]:
    """Run a program line by line; what each gives, before others write over it."""
    found: list[tuple[int, Instruction, tuple[Any, ...]]] = []
    code = emitted.function.__code__
    last: list[int] = []

    def look(frame: FrameType) -> None:
        for number in last:
            step, names = emitted.lines[number]
            known = dict(frame.f_locals) | {k: v for k, v in frame.f_globals.items() if k in names}
            if all(name in known for name in names):
                found.append((number, step, tuple([copied(known[name]) for name in names])))
        last.clear()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not code:
            return None
        if event == "return":
            look(frame)
        elif event == "line" and frame.f_lineno in emitted.lines:
            look(frame)
            last.append(frame.f_lineno)
        return trace

    with _tracing(trace):
        emitted.function(*inputs)
    return found


@contextmanager
def _tracing(trace: Any) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
