"""Notes of the collectives of a call, each of which runs once, however often the function runs.

A call may compute the same twice: a program is checked by the function, a recording that fails is
followed by an eager run. The other processes wait for each collective once. So its operand and its
result are noted, and when the state is restored for another run (`Snapshot.restore`), so is the
place among the notes. There the collective answers from the note, if it is given what it was given.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from wengert.backends import messages
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.checking import different

__all__ = ["noted"]


class _Note(NamedTuple):
    """A collective that has run: its name, its parameters, and copies of operand and result."""

    name: str
    how: Mapping[str, Any]
    given: Any
    result: Any


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
        self._notes: list[_Note] = []

    def exchanged(self, xp: Any, name: str, x: Any, how: Mapping[str, Any]) -> Any:
        """Answer from the note at this place, or run the collective and note it."""
        at, self.position = self.position, self.position + 1
        if at < len(self._notes):
            note = self._notes[at]
            self._compare(note, name, x, how)
            return xp.asarray(note.result, copy=True)
        given = xp.asarray(x, copy=True)
        if self._outer is None:
            result = messages.known(name).carry(xp, name, x, how)
        else:  # a compiled function that another one's eager run calls
            result = self._outer.exchanged(xp, name, x, how)
        self._notes.append(_Note(name, how, given, xp.asarray(result, copy=True)))
        return result

    def _compare(self, note: _Note, name: str, x: Any, how: Mapping[str, Any]) -> None:
        if (name, how) != (note.name, note.how):
            raise self._error(f"{name} is called where {note.name} was called")
        for found in different(f"the operand of {name}", note.given, x):
            raise self._error(found)

    def check(self) -> None:
        """Raise if a collective has run that the run that counts does not call."""
        if self.position < len(self._notes):
            name = self._notes[self.position].name
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
