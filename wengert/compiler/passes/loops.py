"""Loops: a program that runs for each member of a first axis, as one instruction of another."""

from dataclasses import dataclass
from typing import Any

from wengert.backends import backend_of
from wengert.compiler.program import Program

__all__ = ["Loop"]


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """Runs of a program: ``loop(*carried, *rows, *others)`` gives what is carried, and results."""

    #: Of what is carried, a member of each of the rows, and the same others in each run. It gives
    #: what is carried on, and the members of the results.
    body: Program
    #: How many of the operands are carried and are rows, and the number of runs, at least one.
    carried: int
    rows: int
    count: int
    #: Whether the first run is for the last members.
    reverse: bool = False

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Interpret the loop: the reference for what is emitted."""
        n, found = self.carried, list[Any]()
        carried, rows, others = operands[:n], operands[n : n + self.rows], operands[n + self.rows :]
        for t in reversed(range(self.count)) if self.reverse else range(self.count):
            answer = self.body(*carried, *[x[t, ...] for x in rows], *others)
            carried = answer[:n]
            found.append(answer[n:])
        parts = zip(*found[:: -1 if self.reverse else 1], strict=True)
        return (*carried, *[backend_of(part[0]).namespace.stack(part) for part in parts])
