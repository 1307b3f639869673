"""Updates of large arrays in place, where nobody else looks at them.

What is written over is gone, and a call that fails is run again by the function. So all that may
fail comes first: the updates are the last instructions, and whether memory may be written over is
asked once, just before them.
"""

import operator
import sys
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any, Final
from weakref import getweakrefcount

import numpy as np

from wengert.backends.references import counts
from wengert.compiler.passes.forms import form
from wengert.compiler.passes.liveness import Holders
from wengert.compiler.program import Instruction, Value

__all__ = ["ALONE", "CHANGED", "LATE", "at_once", "in_place", "together", "writable"]

#: What `numpy.errstate` may ask for: nothing of it raises an error.
_QUIET: Final = {"ignore", "warn"}

#: The last input of a program that writes in place: an array to which a call refers as often as to
#: one that nobody else has. It holds whether anything is written in place.
ALONE: Final = "alone"

#: The variable of a running call that is true once what it reaches may have changed.
CHANGED: Final = "changed"

#: What was raised while updates were written. A call raises it when it has stored all the others.
LATE: Final[list[BaseException]] = []


def writable(*arrays: Any) -> list[Any]:
    """For each array but the last, itself, if its next values may be written into it; or another.

    Nobody else may refer to it, by whatever view or weakly; no other thread may run, which could
    look at it meanwhile; and no warning may become an error, which would come when the numbers are
    lost.

    Parameters
    ----------
    *arrays : ndarray
        In order in memory. The caller refers to the last as often as to one that is its own.
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


def at_once(alone: Any, *calls: Any) -> None:
    """Call functions with operands; what interrupts them is kept in `LATE`, and the rest called.

    Between two of them no instruction of Python's runs, at which a signal's handler could. What a
    handler raises while a warning is shown comes after the work of the function that warned.

    Parameters
    ----------
    alone : ndarray
        Whether anything is written in place, as `writable` says. Otherwise nothing is lost, and
        errors are raised.
    *calls : tuple
        Of a function that runs no Python, and its operands.
    """
    rest = iter(calls)
    if not alone[0]:
        deque(starmap(operator.call, rest), 0)
    while alone[0]:
        try:
            deque(starmap(operator.call, rest), 0)
        except BaseException as error:
            LATE.append(error)
        else:
            break


def together(steps: Sequence[Instruction]) -> dict[int, int]:
    """The first and the last of instructions in a row that are called `at_once`.

    These are all from the first that writes to an updated array, or else those that write to one.
    """
    found: dict[int, int] = {}
    places = {x for step in steps if step.function is writable for x in step.results}
    first: dict[Value, int] = {}
    for i, step in enumerate(steps):
        if step.out in places:
            found[first.setdefault(step.out, i)] = i
    if found:
        start, end = min(found), max(found.values())
        if all(map(_plainly, steps[start : end + 1])):
            found = {start: end}
    return {start: end for start, end in found.items() if start < end}


def _plainly(step: Instruction) -> bool:
    """Whether a call runs no Python, and takes the memory that it writes to as its last operand."""
    return (
        step.out is not None and type(step.function) is np.ufunc and "out=" not in form(step).writes
    )


def _nothing_raises() -> bool:
    """Whether arithmetic gives warnings at most, and these only print."""
    return (
        _QUIET.issuperset(np.geterr().values())
        and not any(issubclass(RuntimeWarning, x[2]) for x in warnings.filters if x[0] == "error")
        and warnings.showwarning.__module__ == warnings.formatwarning.__module__ == "warnings"
        and not getattr(sys.stderr, "closed", False)  # to which a warning can't be written
    )


def in_place(
    runs: Sequence[Sequence[Instruction]],
    becomes: Mapping[Value, Value],
    held: Holders,
    alone: Value,
    outputs: Iterable[Value],
) -> list[Instruction]:
    """The instructions of updates, which are a program's last, with memory to write to.

    Parameters
    ----------
    runs : sequence of sequence of Instruction
        The updates, in order. Of each, nothing else takes the results.
    becomes : dict of Value to Value
        For outputs that are the next values of inputs, these inputs.
    held : dict
        Whose memory each value may have, as `holders` says.
    alone : Value
        The input `ALONE`.
    outputs : iterable of Value
        The program's.
    """
    steps = [step for run in runs for step in run]
    free = _free(steps, held)
    uses = Counter([*outputs, *[value for step in steps for value in step.used()]])
    places: dict[Value, Value] = {}
    outs: dict[Instruction, Value] = {}
    for i, step in enumerate(steps):
        x = becomes.get(step.result)
        if x is None or x in places or not (_like(x, step.result) and _writes(step)):
            continue
        # Only the last of an update writes, or several at once: who is interrupted finds the old
        # values or the next.
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
    """Those in a row before an instruction that may write where it does: `at_once` calls them.

    Each gives what the next one takes, and nothing else does.
    """
    found: list[Instruction] = []
    while i > first and "out=" not in form(steps[i]).writes:
        before, result = steps[i - 1], steps[i - 1].result
        alone = uses[result] == steps[i].used().count(result) > 0
        if not (alone and _like(result, steps[i].result) and _writes(before)):
            break
        found.append(before)
        i -= 1
    return found if not found or "out=" not in form(found[-1]).writes else found[:-1]


def _free(steps: Sequence[Instruction], held: Holders) -> dict[Value, int]:
    """By value the first of the instructions that may write to its memory: none reads it later."""
    found: dict[Value, int] = {}
    for i, step in enumerate(steps):
        for value in step.used():
            # What reads an array element by element may write each where it was; not so a view.
            found.update({x: i if x is value else i + 1 for x in held.get(value, ())})
    return found


def _writes(step: Instruction) -> bool:
    """Whether a call can be told where to write, also into the memory of what it takes."""
    return form(step).inside == "any" and step.result.dtype.kind != "c"


def _like(x: Value, y: Value) -> bool:
    """Whether two arrays are alike, and in order."""
    return x.shape == y.shape and x.dtype == y.dtype and x.order is None is y.order
