"""Where a wrong program goes wrong: its first line that gives another value.

The function is recorded once more, from the state in which the program has failed, with what each
instruction gives. Then three things are compared with that: which instructions there are, what the
recorded ones give, and what the lines of the source give.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wengert.backends.backend import bare
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
    """Name the first line that gives another value than the function.

    Parameters
    ----------
    program : Program
        As it was recorded.
    emitted : Emitted
        What was made of it.
    inputs : tuple
        What was given to that: the program's inputs come first.
    recorded : Program
        As it is recorded now, from the same state.
    samples : dict
        What each instruction of ``recorded`` has given.
    start : callable
        Puts random generators back to where the call began.
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
        return "it can't be found, for the program runs call by call"
    start()
    for number, step, values in _run(emitted, inputs):
        for value, x in zip(step.results, values, strict=True):
            if value in known and any(different("", x, known[value])):
                return _line(emitted, number, step)
    return "each line gives what it should, so that it is what becomes of it that is wrong"


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
) -> Iterator[tuple[int, Instruction, tuple[Any, ...]]]:
    """Run a program statement by statement: what each gives, before others write over it."""
    function = bare(emitted.function)
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
    """Run a statement. The program's inputs tell on which device."""
    exec(compile(ast.Module([statement], []), "<statement>", "exec"), names)  # noqa: S102
