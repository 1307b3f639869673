"""Reducing a program to the few lines that show what is wrong."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert as wg
from tests.fuzz.engines import WENGERT
from tests.fuzz.generator import Program

__all__ = ["reduced"]


def _needed(made: Program) -> Program:
    """Without the lines and inputs that no output needs, as far as names tell."""
    wanted = {name for name, _ in made.outputs}
    kept: list[str] = []
    for line in reversed(_statements(made.lines)):
        written = re.match(r"(?:with xp.no_grad\(\):\s+)?(\w+)", line)
        if written and written[1] in wanted:
            kept.insert(0, line)
            wanted |= set(re.findall(r"\b[vx]\d+a?\b", line))
    inputs = {k: x for k, x in made.inputs.items() if k in wanted}
    lines = [part for line in kept for part in line.split("\n")]
    return made._replace(lines=lines, inputs=inputs or dict(list(made.inputs.items())[:1]))


def _statements(lines: list[str]) -> list[str]:
    """Lines, each with those that are indented below it."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" "):
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


def _shorter(made: Program) -> Iterator[Program]:
    """Programs with fewer outputs, or that begin later, or leave out a line."""
    if len(made.outputs) > 1:
        for output in made.outputs:
            yield made._replace(outputs=[output])
    for name, weight in made.outputs:
        if weight != "{}":
            yield made._replace(outputs=[(n, "{}" if n == name else w) for n, w in made.outputs])
    statements = _statements(made.lines)
    scope: dict[str, Any] = {"np": np, "xp": WENGERT}
    with np.errstate(all="ignore"), wg.use_backend("numpy"):
        scope |= {k: wg.asarray(x) for k, x in made.inputs.items()}
        late = []
        for i, line in enumerate(statements[:-1], 1):
            exec(line, scope)
            rest = "\n".join(statements[i:])
            values = {k: x.numpy() for k, x in scope.items()
                      if isinstance(x, wg.Tensor) and re.search(rf"\b{k}\b", rest)}  # fmt: skip
            late.append(made._replace(inputs=values, lines=rest.split("\n")))
    yield from reversed([p for p in late if all(x.dtype.kind in "fc" for x in p.inputs.values())])
    for i in range(len(statements)):
        left = "\n".join(statements[:i] + statements[i + 1 :])
        yield made._replace(lines=left.split("\n") if left else [])
    for name, x in made.inputs.items():
        if x.ndim > 1 and x.size == x.shape[-1]:
            yield made._replace(inputs=made.inputs | {name: x.reshape(-1)})


def reduced(made: Program, wrong: Callable[[Program], str | None]) -> tuple[Program, str | None]:
    """The shortest program found that is still wrong, and how."""
    message = None
    for _ in range(20):
        made = _needed(made)
        for shorter in _shorter(made):
            shorter = _needed(shorter)
            try:
                found = wrong(shorter)
            except Exception:
                continue
            if found is not None:
                made, message = shorter, found
                break
        else:
            break
    return made, message
