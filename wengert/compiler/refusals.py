"""Why calls run eagerly."""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from types import FrameType
from typing import Any

from wengert.backends import backend_of
from wengert.compiler.capture.errors import TraceError, several
from wengert.compiler.capture.places import State, is_array
from wengert.compiler.capture.traced import Traced
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.passes.inplace import CHANGED
from wengert.compiler.replay import Replay
from wengert.compiler.report import Report, summary
from wengert.interpreters.lifted import Lifted
from wengert.nn.hooks import changes
from wengert.tape.hooks import has_hooks
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor

__all__ = [
    "RECORDING",
    "STEPS",
    "Refusal",
    "RefusedError",
    "check_alone",
    "failed",
    "is_known",
    "never",
    "not_traceable",
    "untraced",
    "unused",
]

#: Eager calls that a recording takes the time of.
STEPS = 20
#: Why a call waits for another thread's recording.
RECORDING = "another thread records a function of the same Tensors"


class Refusal:
    """Why calls of one kind run eagerly.

    Later calls with the same arguments run eagerly at once, as long as no module has changed.
    After ``wait`` such calls, twice as many, four times, … the state is inspected again, since it
    may have changed; not each time, because that takes as long as a small step.

    Attributes
    ----------
    arguments, signature : object
        Of these calls; no signature if the state can't be compared.
    reason : str
        As a sentence for the report.
    failed : bool
        Whether the compiler has a bug: the recording raised another error than `TraceError`.
    version : int
        The count of changes of modules after the last call.
    over : bool
        Whether the wait was over at the last call.
    """

    def __init__(
        self,
        arguments: Any,
        reason: str,
        signature: Any = None,
        *,
        failed: bool = False,
        wait: int = 1,
    ) -> None:
        self.arguments, self.signature, self.reason = arguments, signature, reason
        self.failed, self.version = failed, changes[0]
        self._calls, self._looks_at, self.over = 0, wait, False

    def after(self, before: "Refusal") -> None:
        """Continue the count of an earlier refusal of such calls."""
        self._calls, self._looks_at = before._calls, before._looks_at

    def stands(self) -> bool:
        """Whether this call is refused without inspecting the state."""
        self._calls += 1
        self.over = self._calls >= self._looks_at
        if self.over:
            self._looks_at = 2 * self._calls
        return not self.over and self.version == changes[0]


class RefusedError(Exception):
    """Ends the search for a program: the call runs eagerly, because of ``refusal``."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def failed(error: Exception, *, restored: bool = False) -> Refusal:
    """Why a call runs eagerly after its program raised an error.

    The function then runs from the unchanged state, and may raise or catch the same error. An error
    while the program is made is a bug of the compiler, unless it is a `MemoryError`. Two errors are
    raised instead: one that comes after the program began to change the state, unless the state has
    been ``restored``; and one raised by a signal handler, such as a timeout.
    """
    at, before = error.__traceback__, None
    ran = changed = outside = False
    while at is not None:
        frame, at = at.tb_frame, at.tb_next
        if frame.f_code.co_filename == "<glue>":
            ran, changed = True, changed or bool(frame.f_locals.get(CHANGED))
        outside |= _handles(frame, before)
        before = frame
    if (changed or outside) and not restored:
        raise error
    is_bug = not ran and not isinstance(error, MemoryError)
    return Refusal(None, f"the program raised {summary(error)}", failed=is_bug)


def untraced(error: Exception) -> Exception:
    """The error itself, or a `TraceError` where a function takes Python's own numbers alone."""
    if not (isinstance(error, TypeError) and TracedNumber.__name__ in str(error)):
        return error
    found = TraceError(
        f"{summary(error)}: this takes Python's own numbers alone, and was given one that changes "
        "from call to call. Compute it outside"
    )
    return found.with_traceback(error.__traceback__)


def _handles(frame: FrameType, before: FrameType | None) -> bool:
    """Whether a frame is of a signal handler: its arguments are a number and the frame before."""
    code, held = frame.f_code, frame.f_locals
    given = [held.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        given += held.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    return any(isinstance(number, int) and x is before for number, x in pairwise(given))


def never(function: Any) -> str:
    """Why a function can never be recorded; "" if it may be."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    flags = 0 if code is None else code.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        return "it is a coroutine or generator function, and a call runs none of its code"
    return ""


def check_alone(state: State, leaves: Sequence[Any]) -> None:
    """Raise if an array's functions exchange data with processes that may not run them again."""
    tensors = [each.tensor for each in state.tensors]
    for x in (*leaves, *tensors, *state.reached_arrays()):
        array = x._array if isinstance(x, Tensor) else x
        if is_array(array) and backend_of(array).exchanging:
            raise TraceError(
                f"functions on arrays of {backend_of(array).name} exchange data between processes, "
                "and recording or checking would run them once more on this one"
            )


def not_traceable(leaves: Sequence[Any]) -> str:
    """Why a call can't be traced; "" if it can."""
    if observing:
        return "anomaly detection, hooks on saved values or graph_breaks() look at each operation"
    for leaf in leaves:
        array = leaf._array if isinstance(leaf, Tensor) else leaf
        if isinstance(array, Traced) or type(array) is TracedNumber:  # of another trace
            if isinstance(leaf, Tensor) and array.value in array.trace.inputs:
                return RECORDING
            raise array.trace.closed((array,))
        if isinstance(leaf, Tensor) and leaf._node is not None and has_hooks(leaf._node):
            return "there are hooks on an argument"
        if isinstance(array, Lifted):
            return f"the call is inside a transform ({type(array).__name__})"
    return ""


def is_known(arguments: Any, replays: Sequence[Replay]) -> bool:
    """Whether there is a program for arguments of these shapes and kinds."""
    return any(arguments[0] == replay.signature["an argument"] for replay in replays)


def unused(arguments: Any, replays: Sequence[Replay], report: Report, why: str) -> Refusal | None:
    """Why a call is not recorded: programs are not kept for long enough to be worth it.

    If as many as are kept have run in no second call, a call of another kind, as of another shape,
    is recorded if it comes again; one that differs in numbers or state alone when recording has
    taken no longer than the calls since. If programs run again, but others have been dropped for
    them, a call is recorded that comes so often, or takes as long.
    """
    size = len(replays)
    if any(x.reused for x in replays):
        wait = min(report.dropped - size, STEPS)
        why += f", and {several(report.dropped, 'program')} had to be dropped for others"
    else:
        wait = STEPS * report.recordings if is_known(arguments, replays) else 1
        has = f"none of the {size} programs" if size > 1 else "not the one program"
        why += f", and {has} kept has run again"
    return Refusal(arguments, why, wait=wait) if wait > 0 else None
