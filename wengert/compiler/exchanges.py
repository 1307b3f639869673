"""Notes of the collectives of a call, which run once, however often the function runs.

A program is checked by the function, and a recording is followed by an eager run; the other
processes wait for each collective once. So its operand and its result are noted. When the state is
restored for another run (`Before.restore`), so is the place among the notes. There the collective
answers from the note, if it is given what it was given.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wengert.compiler import messages
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.checking import different

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
        self._notes: list[list[Any]] = []  # name and parameters, operand, result or error

    def carry(self, xp: Any, name: str, x: Any, how: Mapping[str, Any]) -> Any:
        """Answer from the note at this place, or run the collective and note it."""
        at, self.position = self.position, self.position + 1
        if at == len(self._notes):
            self._notes.append([(name, how), xp.asarray(x, copy=True), None])
            try:
                # The outer notes are of a compiled function whose eager run calls this one.
                result = (self._outer or messages.known(name)).carry(xp, name, x, how)
            except BaseException as error:
                self._notes[at][2] = error
                raise
            self._notes[at][2] = xp.asarray(result, copy=True)
            return result
        before, given, result = self._notes[at]
        if before != (name, how):
            raise self._error(f"{name} is called where {before[0]} was called")
        for found in different(f"the operand of {name}", given, x):
            raise self._error(found)
        if isinstance(result, BaseException):
            raise result
        return xp.asarray(result, copy=True)

    def check(self) -> None:
        """Raise if a collective has run that the run that counts does not call."""
        if self.position < len(self._notes):
            name = self._notes[self.position][0][0]
            raise self._error(f"{name} was called, and is not called by the function")

    def _error(self, what: str) -> CompileError:
        return CompileError(
            f"a call of {self._called} has run twice on this process, by its program and by the "
            f"function, and its collectives differ: {what}. The other processes have got the first "
            "run's"
        )


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
