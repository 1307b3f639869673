"""Loops: a program that runs for each member of a first axis, as one instruction of another."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wengert.backends import backend_of
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["Loop", "load", "store"]


def load(x: Any, t: int) -> Any:
    """A member of a first axis, as an array."""
    return x[t, ...]


def store(x: Any, t: int, value: Any) -> None:
    """Write a member of a first axis."""
    x[t] = value


class Loop:
    """Runs of a program: ``loop(*carried, *rows, *others)`` gives what is carried, and results.

    Attributes
    ----------
    body : Program
        Of what is carried, a member of each of the rows, and the same others in each run; it gives
        what is carried on, and the members of the results.
    carried, rows : int
        How many of the operands these are.
    count : int
        The number of runs, at least one.
    reverse : bool
        Whether the first run is for the last members.
    """

    def __init__(
        self, body: Program, carried: int, rows: int, count: int, *, reverse: bool = False
    ) -> None:
        self.body, self.carried, self.rows, self.count = body, carried, rows, count
        self.reverse = reverse

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Interpret the loop: the reference for what is emitted."""
        n, found = self.carried, list[Any]()
        carried, rows, others = operands[:n], operands[n : n + self.rows], operands[n + self.rows :]
        for t in reversed(range(self.count)) if self.reverse else range(self.count):
            answer = self.body(*carried, *[load(x, t) for x in rows], *others)
            carried = answer[:n]
            found.append(answer[n:])
        parts = zip(*found[:: -1 if self.reverse else 1], strict=True)
        return (*carried, *[backend_of(part[0]).namespace.stack(part) for part in parts])

    def in_place(self, results: Sequence[Value]) -> tuple[Program, tuple[Value, ...]]:
        """The body as a program that reads and writes members in place.

        Its last inputs, given too, are the arrays of the results, and the members' index.
        """
        body, n, t = self.body, self.carried, Value(None, int, "t")
        members, others = body.inputs[n : n + self.rows], body.inputs[n + self.rows :]
        wholes = [Value((self.count, *(x.shape or ())), x.dtype, x.name) for x in members]
        arrays = tuple([Value(x.shape, x.dtype, x.name or "y") for x in results])
        loads = [
            Instruction("load", load, (whole, t), {}, (x,))
            for whole, x in zip(wholes, members, strict=True)
        ]
        stores = [
            Instruction("store", store, (whole, t, x), {}, (), several=True, pure=False)
            for whole, x in zip(arrays, body.outputs[n:], strict=True)
        ]
        steps, last = (*loads, *body.instructions, *stores), (*arrays, t)
        inputs = (*body.inputs[:n], *wholes, *others, *last)
        return replace(body, inputs=inputs, instructions=steps, outputs=body.outputs[:n]), last
