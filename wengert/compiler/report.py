"""What `compile` did, as a report for users."""

import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from wengert.compiler.capture.places import Fact

__all__ = ["Report", "difference", "summary"]


class Report:
    """What was recorded of a function, and which calls ran eagerly.

    Attributes
    ----------
    name : str
        The function's.
    recordings : int
        How often it was recorded.
    checks : int
        How many calls ran by both program and function, and were compared.
    reasons : list of str
        Why it was recorded, for each recording.
    notes : list of str
        What a backend could not do, and what is done instead.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.recordings = self.checks = 0
        self.reasons: list[str] = []
        self.notes: list[str] = []
        self._fallbacks: Counter[str] = Counter()

    def recorded(self, recording: Any, why: str) -> None:
        """Count a recording."""
        self.recordings += 1
        steps = len(recording.program.instructions)
        self.reasons.append(f"{why}: {steps} instructions")
        if not recording.repeatable:
            self.note("a call that made new state, such as an optimizer's, was not kept")

    def fell_back(self, reason: str) -> None:
        """Count a call that ran eagerly."""
        self._fallbacks[reason] += 1

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def __str__(self) -> str:
        lines = [f"{self.name}: recorded {self.recordings} times, checked {self.checks} times"]
        lines += [f"  {i}. {reason}" for i, reason in enumerate(self.reasons, 1)]
        lines += [f"  {text}" for text in self.notes]
        lines += [f"  {n} calls ran eagerly: {why}" for why, n in self._fallbacks.items()]
        return "\n".join(lines)

    __repr__ = __str__


def summary(error: BaseException) -> str:
    """An error on one line, with the innermost line of its traceback."""
    try:
        text = f"{type(error).__name__} ({str(error).partition(chr(10))[0]})"
    except Exception:  # its text may hold a value of a closed trace
        text = type(error).__name__
    for frame in traceback.extract_tb(error.__traceback__)[-1:]:
        text += f" at {Path(frame.filename).name}, line {frame.lineno} ({frame.line})"
    return text


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first difference of two signatures; "" if there is none."""
    for what, value in now.items():
        if what in before and before[what] != value:
            return f"{what} was {_shown(before[what], value)}"
    return ""


def _shown(before: Any, now: Any) -> str:
    """The difference of one entry of two signatures."""
    if isinstance(before, tuple) and isinstance(now, tuple):
        pairs = [(a, b) for a, b in zip(before, now, strict=False) if a != b]
        if pairs:
            before, now = pairs[0]
    if isinstance(before, Fact) and isinstance(now, Fact):
        if before.name != now.name:
            return f"{before.name} was there, and {now.name} is now"
        return f"{before.name} was {before.what!r} and is {now.what!r} now"
    return f"{before!r} and is {now!r} now"
