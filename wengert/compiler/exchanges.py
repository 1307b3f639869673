"""Notes of what runs once in a call, however often the function runs: collectives, external calls.

A call may compute the same twice: a program is checked by the function, a recording that fails is
followed by an eager run. The other processes wait for each collective once. So its operands and its
result are noted, and when the state is restored for another run (`Before.restore`), so is the
place among the notes. There the collective answers from the note, if it is given what it was given.
An external function, which may do anything besides, is treated in the same way.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wengert.compiler import messages
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.checking import different
from wengert.compiler.program import mapped

__all__ = ["noted"]


class _Notes:
    """Follows the collectives of one call of a compiled function.

    Attributes
    ----------
    position : int
        How many collectives have run since the begin of the call, in the present run.
    """

    def __init__(self, called: str, outer: Any) -> None:
        self.position = 0
        self._called, self._outer = called, outer
        self._notes: list[list[Any]] = []  # name and parameters, operands, result or error

    def called(self, what: Any, run: Callable[[], Any], apart: Callable[[], Any]) -> Any:
        """Answer from the note at this place, or run the collective and note it."""
        xp, name, operands, how = what
        at, self.position = self.position, self.position + 1
        if at == len(self._notes):
            self._notes.append([(name, how), _copied(xp, operands), None])
            try:
                # The outer notes are of a compiled function whose eager run calls this one.
                result = run() if self._outer is None else self._outer.called(what, run, apart)
            except BaseException as error:
                self._notes[at][2] = error
                raise
            self._notes[at][2] = _copied(xp, result)
            return result
        before, given, result = self._notes[at]
        if before != (name, how) or len(given) != len(operands):
            raise self._error(f"{name} is called where {before[0]} was called")
        for old, new in zip(given, operands, strict=True):
            for found in different(f"the operand of {name}", old, new):
                raise self._error(found)
        if isinstance(result, BaseException):
            raise result
        return _copied(xp, result)

    def check(self) -> None:
        """Raise if a collective has run that the run that counts does not call."""
        if self.position < len(self._notes):
            name = self._notes[self.position][0][0]
            raise self._error(f"{name} was called, and is not called by the function")

    def _error(self, what: str) -> CompileError:
        others = ". The other processes have got the first run's" if messages.connected() else ""
        return CompileError(
            f"a call of {self._called} has run twice on this process, by its program and by the "
            f"function, and its collectives or external functions differ: {what}{others}"
        )


def _copied(xp: Any, x: Any) -> Any:
    """A copy of an array, or of several."""
    return mapped(lambda array: xp.asarray(array, copy=True), x)


@contextmanager
def noted(called: str) -> Iterator[None]:
    """Note the collectives of a call in a ``with`` block."""
    notes = _Notes(called, messages.follower.get())
    token = messages.follower.set(notes)
    try:
        yield
        notes.check()
    finally:
        messages.follower.reset(token)
