"""What `compile` did, as a report for users."""

import re
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wengert.backends import DType, dtype_of
from wengert.compiler.capture.errors import several
from wengert.compiler.state import Exact, Fact, Identity
from wengert.nn.hooks import HOOKS, Hooked

__all__ = ["Report", "difference", "summary"]

#: Reasons for eager calls that a report tells apart.
LISTED = 20
_FURTHER = "further reasons like these"


class Report:
    """What was recorded of a function, and which calls ran eagerly.

    Attributes
    ----------
    name : str
        The function's.
    recordings : int
        How often it was recorded.
    dropped : int
        How many programs were dropped, because others took their place.
    checks : int
        How many calls ran by both program and function, and were compared.
    reasons : list of str
        Why it was recorded, for each recording.
    notes : list of str
        What a backend could not do, and what is done instead.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.recordings = self.dropped = self.checks = 0
        self.reasons: list[str] = []
        self.notes: list[str] = []
        self._fallbacks: Counter[str] = Counter()

    def recorded(self, recording: Any, why: str, unseen: Sequence[str]) -> None:
        """Count a recording; ``unseen`` is what the walk has not looked into."""
        self.recordings += 1
        self.reasons.append(f"{why}: {several(len(recording.program.instructions), 'instruction')}")
        if not recording.repeatable:
            self.note("a call in which an optimizer began to keep something was not kept")
        for text in unseen:
            self.note(f"not looked into: {text}")

    def fell_back(self, reason: str) -> None:
        """Count a call that ran eagerly."""
        listed = reason in self._fallbacks or len(self._fallbacks) < LISTED
        self._fallbacks[reason if listed else _FURTHER] += 1

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def __str__(self) -> str:
        recorded, checked = (several(n, "time") for n in (self.recordings, self.checks))
        lines = [f"{self.name}: recorded {recorded}, checked {checked}"]
        lines += [f"  {i}. {reason}" for i, reason in enumerate(self.reasons, 1)]
        lines += [f"  {text}" for text in self.notes]
        lines += [
            f"  {several(n, 'call')} ran eagerly: {why}" for why, n in self._fallbacks.items()
        ]
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
            return _told(what, before, now)
    return ""


def _told(what: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """The difference of one entry of two signatures, as a sentence."""
    old, new = before[what], now[what]
    if what == _ARGUMENTS:
        if (names := _listed(old.names)) != _listed(new.names):
            return f"the arguments were {names} and are {_listed(new.names)} now"
        return "the arguments are in containers of other kinds than before"
    if what in _ALIKE:
        return f"{what} has changed"
    if what == "the recording mode":
        return f"{what} was {_mode(*old)} and is {_mode(*new)} now"
    if what == "the state":
        return _of_state(old, new)
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b]
    if not pairs:
        return f"there were {len(old)} of: {what}, and there are {len(new)} now"
    at, old, new = pairs[0]
    if what == "an argument" and at < len(names := now[_ARGUMENTS].names):
        what = f"the argument {names[at]}"
    if what == "a Tensor of the state":
        what = [fact.name for fact in now["the state"] if fact.what == "a Tensor"][at]
    return _change(what, old, new)


_ARGUMENTS = "the structure of the arguments"
#: Names of facts about the hooks of a Tensor, or of a module.
_HOOKS = re.compile(rf"(?:a key of )?(?:hooks of (.+?)(?:\[\d+\])?$|(.+)\.{HOOKS}\b)")
#: Entries whose values say nothing to users.
_ALIKE = ("which arguments are the same Tensor or array", "which gradients there are")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _mode(recording: bool, inference: bool) -> str:
    return "inference_mode" if inference else "enable_grad" if recording else "no_grad"


def _of_state(before: Sequence[Fact], now: Sequence[Fact]) -> str:
    """How what a function reads has changed."""
    old, new = ({fact.name: fact.what for fact in facts} for facts in (before, now))
    changed = [name for name in new if name in old and old[name] != new[name]]
    changed.sort(key=lambda name: not _described(new[name]))
    apart = [name for name in (*new, *old) if (name in old) is not (name in new)]
    if not (changed or apart):
        return "what the function reads comes in another order"
    name = (changed or apart)[0]
    if owner := _hooked(name, old.get(name), new.get(name)):
        return f"the hooks of {owner} have changed"
    if changed:
        return _change(name, old[name], new[name])
    return f"{name} {'was not there before' if name in new else 'is not there any more'}"


def _hooked(name: str, *facts: Any) -> str:
    """What has the hooks that two facts are about; "" if they are about something else."""
    classes = [fact.x for fact in facts if isinstance(fact, Identity) and type(fact.x) is type]
    if len({issubclass(x, Hooked) for x in classes}) > 1:
        return name.removeprefix("type of ")
    about = name.startswith(("a key of ", "hooks of ")) or any(
        type(fact) is tuple for fact in facts
    )
    found = _HOOKS.match(name) if about else None
    return "" if found is None else found[1] or found[2]


def _change(what: str, before: Any, now: Any) -> str:
    old, new = _described(before), _described(now)
    if old == new or not (old and new):
        return f"{what} has changed"
    return f"{what} was {old} and is {new} now"


def _described(value: Any) -> str:
    """A fact or a kind in words; "" if it would say nothing to users."""
    match value:
        case type():
            return f"{'an' if value.__name__[0] in 'aeiou' else 'a'} {value.__name__}"
        case str():
            return value
        case bool() | None | DType():
            return repr(value)
        case (Identity(), int() as length):
            return f"of length {length}"
        case Exact():
            return repr(value)
        case Identity():
            return repr(value) if hasattr(value.x, "__name__") else ""
        case (type(), tuple() as shape, dtype, str() as device, _, *tracked):
            flag = {None: " without requires_grad", True: " that is a leaf"}
            told = flag.get(tracked[0], " with a grad_fn") if tracked else ""
            return f"{_named(dtype)} of shape {shape} on {device}{told}"
        case (type(), dtype):
            return f"of {_named(dtype)}"
    return ""


def _named(dtype: Any) -> str:
    """A raw dtype's name, also of one that the standard lacks."""
    try:
        return dtype_of(dtype).name
    except TypeError:
        return str(dtype)
