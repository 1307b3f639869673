"""Random draws of a recording, of which repeated ones are recorded once."""

from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any

from wengert.backends import generators
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line

__all__ = ["Draws"]


class Draws:
    """The draws of a recording, in order; `wengert.backends.generators` reports states to it.

    A function that restores a state that it has saved, as a checkpoint does, draws the same numbers
    again. The program draws them once, and uses them twice.
    """

    def __init__(self) -> None:
        self._drawn: list[tuple[Any, Any]] = []
        self._states: list[tuple[Any, int]] = []  # each with the number of draws before it
        self._at = 0
        #: The state after all draws, while the generators are at an earlier one.
        self._end: Any = None

    def repeated(
        self, name: str, operands: Sequence[Any], parameters: Mapping[str, Any]
    ) -> Any | None:
        """What was drawn at this position before; None if it is a new draw."""
        if self._at == len(self._drawn):
            return None
        what, drawn = self._drawn[self._at]
        if what != _described(name, operands, parameters):
            raise _refused("other random numbers are drawn from a state than were drawn before")
        self._at += 1
        if self._at == len(self._drawn):
            Context().run(generators.set_rng_state, self._end)  # which is not followed there
        return drawn

    def made(
        self, name: str, operands: Sequence[Any], parameters: Mapping[str, Any], drawn: Any
    ) -> None:
        """Add a new draw."""
        self._drawn.append((_described(name, operands, parameters), drawn))
        self._at += 1

    def taken(self, state: Any) -> None:
        """Note that the generators' state is saved."""
        self._states.append((state, self._at))

    def given(self, state: Any) -> None:
        """Note that a saved state is restored."""
        at = next((at for known, at in self._states if known is state), None)
        if at is None:
            raise _refused("random generators get a state that was not saved in the function")
        if at < self._at == len(self._drawn):
            self._end = Context().run(generators.get_rng_state)
        self._at = at

    def seeded(self) -> None:
        """Refuse seeding."""
        raise _refused("random generators are seeded inside a function that is compiled")

    def end(self) -> None:
        """Free the draws; raise if the generators are left at an earlier state."""
        if self._at != len(self._drawn):
            raise _refused("random generators are left at an earlier state, and not by a replay")
        self._drawn.clear()
        self._states.clear()
        self._at = 0


def _refused(what: str) -> TraceError:
    return TraceError(f"{user_line()}: {what}; do so outside")


def _described(name: str, operands: Sequence[Any], parameters: Mapping[str, Any]) -> Any:
    """A draw to compare: the function, and its arguments with arrays as shapes and dtypes."""
    given = [*operands, *sorted(parameters.items())]
    return name, [(tuple(x.shape), str(x.dtype)) if hasattr(x, "shape") else repr(x) for x in given]
