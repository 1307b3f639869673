"""The names in a state that is to be loaded."""

from collections.abc import Iterable, Mapping
from typing import Any


def check_names(owner: str, state: Any, names: Iterable[str]) -> None:
    """Refuse a state that has other names than its owner's.

    Raises
    ------
    TypeError
        If the state is no mapping.
    ValueError
        If names are missing or unexpected. The error lists all of them.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"the state of {owner} is a dict, not a {type(state).__name__}")
    names = list(names)
    missing = [repr(name) for name in names if name not in state]
    unexpected = [repr(name) for name in state if name not in names]
    if missing or unexpected:
        found = (
            f"{what} {', '.join(each)}"
            for what, each in (("lacks", missing), ("has in excess", unexpected))
            if each
        )
        raise ValueError(f"this is no state of {owner}: it {' and '.join(found)}")
