"""Random generators in a recording: a replay goes on, and never back to an earlier state."""

from typing import Any

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line

__all__ = ["Draws"]


class Draws:
    """Counts draws; `wengert.backends.generators` reports states to it."""

    def __init__(self) -> None:
        self._count = self._at = 0  # draws so far, and those before the present state
        self._states: list[tuple[Any, int]] = []  # each with the number of draws before it

    def count(self) -> None:
        """Count a draw."""
        self.end()
        self._count = self._at = self._count + 1

    def note_saved(self, state: Any) -> None:
        """Note that the generators' state is saved."""
        self._states.append((state, self._at))

    def note_restored(self, state: Any) -> None:
        """Note that a saved state is restored, as a checkpoint does for a while."""
        self._at = next((count for known, count in self._states if known is state), -1)
        if self._at < 0:
            self.end()

    def end(self) -> None:
        """Raise unless the generators are where they were after the last draw."""
        if self._at != self._count:
            raise _refusal("random generators go back to a state, as by a checkpoint of dropout,")

    def refuse_seed(self) -> None:
        """Refuse seeding."""
        raise _refusal("random generators are seeded")


def _refusal(what: str) -> TraceError:
    return TraceError(
        f"{user_line()}: {what} inside a function that is compiled; leave this part outside "
        "wg.compile"
    )
