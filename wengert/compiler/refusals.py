"""Why calls run eagerly."""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from types import FrameType
from typing import Any

from wengert.compiler.capture.traced import Traced
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.passes.inplace import CHANGED
from wengert.compiler.report import summary
from wengert.interpreters.lifted import Lifted
from wengert.nn.hooks import changes
from wengert.tape.hooks import has_hooks
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor

__all__ = ["RECORDING", "Refusal", "RefusedError", "failed", "never", "not_traceable"]

#: Why a call waits: another thread records.
RECORDING = "another thread records a function of the same Tensors"


class Refusal:
    """A kind of calls that can't be recorded.

    Later calls of that kind are not looked at more closely: they have the same arguments, and no
    module was changed from outside. What else decides whether a call can be recorded is looked at
    again after 1, 2, 4, … calls, because looking takes as long as a small step.

    Attributes
    ----------
    arguments, signature : object
        Of these calls; no signature where the state can't be compared.
    reason : str
        Why.
    failed : bool
        Whether the recording has raised another error than a `TraceError`.
    version : int
        Of all modules' attributes, after the last call.
    """

    def __init__(
        self, arguments: Any, reason: str, signature: Any = None, *, failed: bool = False
    ) -> None:
        self.arguments, self.signature, self.reason = arguments, signature, reason
        self.failed, self.version = failed, changes[0]
        self._calls, self._looks_at = 0, 1

    def after(self, before: "Refusal") -> None:
        """Take over the count of an earlier refusal of such calls."""
        self._calls, self._looks_at = before._calls, before._looks_at

    def stands(self) -> bool:
        """Whether this call, too, is refused without a look at the state."""
        self._calls += 1
        if self._calls < self._looks_at and self.version == changes[0]:
            return True
        self._looks_at = 2 * self._calls
        return False


class RefusedError(Exception):
    """Ends the search for a program: the call runs eagerly, because of ``refusal``."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def failed(error: Exception, *, restored: bool = False) -> Refusal:
    """Why a call runs eagerly whose program has failed, which has changed nothing.

    The function may raise, or catch, what the program itself has raised. An error while the
    program is made is one of the compiler, unless memory was too short for it. One that comes
    after the program has begun to change what it reaches is the caller's: it is raised, for the
    function would begin with what has changed, unless that has been ``restored``. So is what a
    signal's handler raises: a second run would take the time that a handler may have said is up.
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


def _handles(frame: FrameType, before: FrameType | None) -> bool:
    """Whether a frame is of a signal's handler: it is given a number and what it interrupts."""
    code, held = frame.f_code, frame.f_locals
    given = [held.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        given += held.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    return any(isinstance(number, int) and x is before for number, x in pairwise(given))


def never(function: Any) -> str:
    """Why a function can't be recorded whatever it does, if so."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    flags = 0 if code is None else code.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        return "it is a coroutine or generator function, of which a call runs nothing"
    return ""


def not_traceable(leaves: Sequence[Any]) -> str:
    """Why a call cannot be traced, if it can't."""
    if observing:
        return "anomaly detection, hooks on saved values or graph_breaks() look at each operation"
    for leaf in leaves:
        array = leaf._array if isinstance(leaf, Tensor) else leaf
        if isinstance(array, Traced) or type(array) is TracedNumber:  # of a trace that is not here
            if isinstance(leaf, Tensor) and array.value in array.trace.inputs:
                return RECORDING
            raise array.trace.closed((array,))
        if isinstance(leaf, Tensor) and leaf._node is not None and has_hooks(leaf._node):
            return "there are hooks on an argument"
        if isinstance(array, Lifted):
            return f"the call is inside a transform ({type(array).__name__})"
    return ""
