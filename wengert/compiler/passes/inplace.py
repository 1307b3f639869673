"""In-place updates of large arrays that nobody else refers to.

If a replay fails, the function runs from the old state, so that nothing may be overwritten before
all that can fail has run. Therefore the updates are the last instructions, and one instruction just
before them, `writable`, decides which arrays they overwrite. An interrupt between two of them
leaves what it leaves of an optimiser's own step.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from weakref import getweakrefcount

import numpy as np

from wengert.backends.references import counts
from wengert.compiler.passes.forms import form
from wengert.compiler.passes.liveness import Holders
from wengert.compiler.program import Instruction, Value

__all__ = ["ALONE", "CHANGED", "in_place", "writable"]

#: The settings of `numpy.errstate` that raise no error.
_QUIET: Final = {"ignore", "warn"}

#: Where Python's own functions are that print warnings: the second since Python 3.14.
_PRINTING: Final = {"warnings", "_py_warnings"}

#: The last input of a program that writes in place: an array that has the reference count of one
#: that nobody else refers to. `writable` stores in it whether anything is written in place.
ALONE: Final = "alone"

#: The variable of a running call that is true once the state may have changed.
CHANGED: Final = "changed"


def writable(*arrays: Any) -> list[Any]:
    """For each array but the last: itself if it may be overwritten, or else a new array.

    It may be overwritten if nobody else refers to it, not even weakly or by a view; if no other
    thread runs, which could read it meanwhile; and if no warning becomes an error, because the old
    values could not be restored. All are C-contiguous. The last one is `ALONE`, whose reference
    count is that of an unshared array.
    """
    *held, known = counts(arrays)
    free = len(sys._current_frames()) == 1 and _nothing_raises()
    own = [
        free and n == known and x.base is None and x.flags.writeable and not getweakrefcount(x)
        for x, n in zip(arrays, held, strict=False)
    ]
    found = [
        x if mine else np.empty(x.shape, x.dtype) for x, mine in zip(arrays, own, strict=False)
    ]
    arrays[-1][0] = any(own)
    return found


def _nothing_raises() -> bool:
    """Whether arithmetic can raise no error: it warns at most, and warnings are only printed."""
    return (
        _QUIET.issuperset(np.geterr().values())
        and not any(issubclass(RuntimeWarning, x[2]) for x in warnings.filters if x[0] == "error")
        and {warnings.showwarning.__module__, warnings.formatwarning.__module__} <= _PRINTING
        and not getattr(sys.stderr, "closed", False)  # to which a warning can't be written
    )


def in_place(
    runs: Sequence[Sequence[Instruction]],
    becomes: Mapping[Value, Value],
    held: Holders,
    alone: Value,
    outputs: Iterable[Value],
) -> list[Instruction]:
    """A program's last instructions, the updates, with memory to write to.

    Nothing else uses the results of the ``runs``. ``becomes`` has the inputs whose next values
    outputs are; ``held`` is as of `holders`, and ``alone`` is the input `ALONE`.
    """
    steps = [step for run in runs for step in run]
    free = _free(steps, held)
    uses = Counter([*outputs, *[value for step in steps for value in step.uses()]])
    places: dict[Value, Value] = {}
    outs: dict[Instruction, Value] = {}
    for i, step in enumerate(steps):
        x = becomes.get(step.result)
        if x is None or x in places or not (_order(x, step.result) and _writes(step)):
            continue
        if i >= free.get(x, 0):
            places[x] = outs[step] = Value(x.shape, x.dtype)
            outs |= dict.fromkeys(_row(steps, i, free.get(x, 0), uses), places[x])
    if not places:
        return steps
    given, line = (*places, alone), steps[0].line
    memory = tuple(places.values())
    ask = Instruction("writable", writable, given, {}, memory, True, pure=False, line=line)
    return [ask, *[step.writing(outs[step]) if step in outs else step for step in steps]]


def _row(
    steps: Sequence[Instruction], i: int, first: int, uses: Mapping[Value, int]
) -> list[Instruction]:
    """The chain of instructions before one that may write to the same memory.

    Each one's result is used by the next one alone.
    """
    found: list[Instruction] = []
    while i > first:
        before, result = steps[i - 1], steps[i - 1].result
        alone = uses[result] == steps[i].uses().count(result) > 0
        if not (alone and _order(result, steps[i].result) and _writes(before)):
            break
        found.append(before)
        i -= 1
    return found


def _free(steps: Sequence[Instruction], held: Holders) -> dict[Value, int]:
    """For each value the position from which instructions may write to its memory."""
    found: dict[Value, int] = {}
    for i, step in enumerate(steps):
        for value in step.uses():
            # An elementwise call may write over the operand itself, but not over one it views.
            found.update({x: i if x is value else i + 1 for x in held.get(value, ())})
    return found


def _writes(step: Instruction) -> bool:
    """Whether a call can write into given memory, its operands' included."""
    return form(step).inside == "any" and step.result.dtype.kind != "c"


def _order(x: Value, y: Value) -> bool:
    """Whether two arrays have the same shape and dtype, and are in C order."""
    return x.order is None and x.alike(y)
