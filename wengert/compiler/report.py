"""What `compile` did, as a report for users."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from wengert.compiler.capture.errors import several
from wengert.compiler.state import Exact, Identity, Missing

__all__ = ["Report", "difference"]


class Report:
    """What was recorded of a function, and which calls ran eagerly."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: How often it was recorded, how many programs others have replaced, and how many calls
        #: ran by both program and function, and were compared.
        self.recordings = self.dropped = self.checks = 0
        #: Why it was recorded, for each recording.
        self.reasons: list[str] = []
        #: What was not looked into, or what a backend could not do, and what is done instead.
        self.notes: list[str] = []
        self._fallbacks: Counter[str] = Counter()

    def add(self, recording: Any, why: str, unseen: Sequence[str]) -> None:
        """Count a recording; ``unseen`` is what the walk has not looked into."""
        self.recordings += 1
        self.reasons.append(f"{why}: {several(len(recording.program.instructions), 'instruction')}")
        for text in unseen:
            self.note(f"not looked into: {text}")

    def fell_back(self, reason: str) -> bool:
        """Count a call that ran eagerly; return whether it is the first for this reason."""
        self._fallbacks[reason] += 1
        return self._fallbacks[reason] == 1

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


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first difference of two signatures, of those that can be described; "" if none."""
    old, new = _entries(before), _entries(now)
    changed = [x for x in {**new, **old} if old.get(x, Missing) != new.get(x, Missing)]
    changed.sort(key=lambda x: not _describe(new.get(x, Missing)))
    if changed:
        return _change(changed[0], *[each.get(changed[0], Missing) for each in (old, new)])
    same = before["the state"] == now["the state"]
    return "" if same else "the order of what the function reads has changed"


def _entries(signature: dict[str, Any]) -> dict[str, Any]:
    """What a signature says of each name."""
    names, facts = signature["the structure of the arguments"].names, signature["the state"]
    tensors = [name for name, fact in facts if fact == "a Tensor"]
    listed = {"an argument", "the state", "a Tensor of the state"}
    return {
        **{what: value for what, value in signature.items() if what not in listed},
        "the structure of the arguments": ", ".join(names) or "none",
        **dict(zip([f"the argument {x}" for x in names], signature["an argument"], strict=True)),
        **dict(facts),
        **dict(zip(tensors, signature["a Tensor of the state"], strict=True)),
    }


def _change(what: str, before: Any, now: Any) -> str:
    old, new = _describe(before), _describe(now)
    if isinstance(now, Identity) and (old == new or not new):
        kind = type(now.x).__name__
        return f"{what} is another {'function' if kind == 'code' else kind} now"
    if old == new or not (old and new):
        return f"{what} has changed"
    return f"{what} was {old} and is {new} now"


def _name(dtype: Any) -> str:
    """A raw dtype's name, also of one that the standard lacks."""
    return str(dtype).rpartition(".")[2]


def _describe(value: Any) -> str:
    """A fact or a kind in words; "" if it would say nothing to users."""
    match value:
        case type():
            return f"{'an' if value.__name__[0] in 'aeiou' else 'a'} {value.__name__}"
        case str():
            return value
        case (Identity(), int() as length, *_):
            return f"of length {length}"
        case (Identity(), Exact() as keys):
            return f"of the keys {keys!r}"
        case Identity():
            return repr(value) if hasattr(value.x, "__name__") else ""
        case (type(), tuple() as shape, dtype, str() as device, _, *tracked):
            flag = {None: " without requires_grad", True: " that is a leaf"}
            told = flag.get(tracked[0], " with a grad_fn") if tracked else ""
            return f"{_name(dtype)} of shape {shape} on {device}{told}"
        case (type(), dtype):
            return f"of {_name(dtype)}"
        case tuple():
            return ""
    return repr(value)
