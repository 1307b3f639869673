"""Random draws of a recording: what is drawn again from a state was drawn from it before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.backends import generators
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line

__all__ = ["Draws"]


class Draws:
    """What a recording has drawn, in order; `wengert.backends.generators` reports states to it.

    A function that goes back to a state which it has taken, as a checkpoint does, draws the same
    numbers once more. In a program these are drawn once, and used twice.
    """

    def __init__(self) -> None:
        self._drawn: list[tuple[Any, Any]] = []
        self._states: list[tuple[Any, int]] = []  # with how much had been drawn then
        self._at = 0
        self._end: Any = None  # the generators' state after all draws, while they are before it

    def repeated(
        self, name: str, operands: Sequence[Any], parameters: Mapping[str, Any]
    ) -> Any | None:
        """What was drawn at this place before; None if nothing was as yet."""
        if self._at == len(self._drawn):
            return None
        what, drawn = self._drawn[self._at]
        if what != _described(name, operands, parameters):
            raise TraceError(
                f"{user_line()}: other random numbers are drawn from a state of the generators "
                "than were drawn from it before"
            )
        self._at += 1
        if self._at == len(self._drawn):
            with _unfollowed():
                generators.set_rng_state(self._end)
        return drawn

    def made(
        self, name: str, operands: Sequence[Any], parameters: Mapping[str, Any], drawn: Any
    ) -> None:
        """Note what is drawn now."""
        self._drawn.append((_described(name, operands, parameters), drawn))
        self._at += 1

    def taken(self, state: Any) -> None:
        """The generators' state is asked for."""
        self._states.append((state, self._at))

    def given(self, state: Any) -> None:
        """The generators go back to a state."""
        for known, at in self._states:
            if known is state:
                if at < self._at == len(self._drawn):
                    with _unfollowed():
                        self._end = generators.get_rng_state()
                self._at = at
                return
        raise TraceError(
            f"{user_line()}: random generators are given a state that was not taken in the "
            "compiled function; do so outside"
        )

    def seeded(self) -> None:
        """The generators start from a seed."""
        raise TraceError(
            f"{user_line()}: random generators are seeded inside a function that is compiled; do "
            "so outside"
        )

    def end(self) -> None:
        """Let go of what was drawn; an error if the generators were left at an earlier state."""
        if self._at != len(self._drawn):
            raise TraceError(
                "the compiled function leaves random generators at an earlier state, where a "
                "replay would not leave them"
            )
        self._drawn.clear()
        self._states.clear()
        self._at = 0


@contextmanager
def _unfollowed() -> Iterator[None]:
    token = generators.follower.set(None)
    try:
        yield
    finally:
        generators.follower.reset(token)


def _described(name: str, operands: Sequence[Any], parameters: Mapping[str, Any]) -> Any:
    """What is drawn: the function, and shapes and dtypes in the place of arrays."""
    given = [*operands, *sorted(parameters.items())]
    return name, [(tuple(x.shape), str(x.dtype)) if hasattr(x, "shape") else repr(x) for x in given]
