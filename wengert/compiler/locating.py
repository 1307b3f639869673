"""Finds the first line of a wrong program that gives another value than the function.

The function is recorded once more, from the state before the failed check, with the results of each
instruction. Three things are compared with that recording: the program's instructions, the values
that these give when interpreted, and the values that the emitted source gives line by line.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wengert.backends.backend import function_of
from wengert.backends.registry import placed_by
from wengert.compiler.capture.lines import described
from wengert.compiler.capture.trace import copied
from wengert.compiler.checking import different
from wengert.compiler.emission.emit import Emitted
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["located"]


def located(
    program: Program,
    emitted: Emitted,
    inputs: tuple[Any, ...],
    recorded: Program,
    samples: Mapping[Value, Any],
    start: Callable[[], None],
) -> str:
    """Describe the first line that gives another value than the function.

    The emitted function's ``inputs`` begin with the program's. ``recorded`` is the new recording,
    from the same state, and ``samples`` has the values of its results. ``start`` restores the
    random generators' state at the call's begin.
    """
    start()
    known: dict[Value, Any] = dict(program.constants)
    known.update(zip(program.inputs, inputs, strict=False))
    for at, step in enumerate(program.instructions):
        new = recorded.instructions[at] if at < len(recorded.instructions) else None
        if new is None or (step.name, len(step.results)) != (new.name, len(new.results)):
            now = "takes another way" if new is None else f"calls {new.name} otherwise"
            return _at(emitted, step, f"the function {now} there now")
        known.update(zip(step.results, map(copied, step.run(known)), strict=True))
        for value, other in zip(step.results, new.results, strict=True):
            if other in samples and any(different("", known[value], samples[other])):
                return _at(emitted, step, "it computes with other values than the function")
    if len(recorded.instructions) > len(program.instructions):
        step = recorded.instructions[len(program.instructions)]
        return _at(emitted, step, "the function takes another way there now")
    if isinstance(emitted.function, Program):
        return "unknown, because the program is interpreted"
    start()
    for number, step, values in _run(emitted, inputs):
        for value, x in zip(step.results, values, strict=True):
            if value in known and any(different("", x, known[value])):
                return _line(emitted, number, step)
    return "no line gives another value, so that its results are stored wrongly"


def _at(emitted: Emitted, step: Instruction, why: str) -> str:
    """Describe the source line of an instruction, or the first one of the same user's line."""
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
) -> Iterator[tuple[int, Instruction, tuple[Any, ...]]]:
    """Run a program by statements; yield each one's results before others overwrite them."""
    function = function_of(emitted.function)
    execute = placed_by(inputs, _execute)
    names = function.__globals__ | dict(zip(function.__code__.co_varnames, inputs, strict=False))
    (body,) = [x.body for x in ast.parse(emitted.source).body if isinstance(x, ast.FunctionDef)]
    for statement in body:
        if isinstance(statement, ast.Return):
            return
        execute(statement, names, *inputs)
        if statement.lineno in emitted.lines:
            step, given = emitted.lines[statement.lineno]
            yield statement.lineno, step, tuple([names[name] for name in given])


def _execute(statement: ast.stmt, names: dict[str, Any], *inputs: Any) -> None:
    """Run a statement; `placed_by` takes the device from the program's inputs."""
    exec(compile(ast.Module([statement], []), "<statement>", "exec"), names)  # noqa: S102
