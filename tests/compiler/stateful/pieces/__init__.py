"""The pieces of which random programs are made.

A row is a piece: its name, with ``!`` if it changes state; lines of setup (``>``), its variables
and their values (``@name:``), values of its argument (``a$:``), its body, lines at the end
(``<``), what it returns and trains, and changes between calls (``~``).
"""

import re

from tests.compiler.stateful.pieces import code, state, values
from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]


def _values(text: str) -> tuple[str, ...]:
    named: tuple[str, ...] | None = getattr(values, text, None)
    return named or tuple(text.split(" | "))


def _piece(name: str, lines: list[str]) -> Piece:
    parts: dict[str, list[str]] = {}
    holds = {}
    for line in lines:
        mark, rest = re.fullmatch(
            r"(@\w+:|a\$:|[<>~]|return|train|)(?:(?<=.) )?(.*)", line
        ).groups()  # type: ignore[union-attr]
        if mark[:1] == "@":
            holds[mark[1:-1]] = _values(rest)
        else:
            parts.setdefault(mark, []).append(rest)
    text = {mark: "\n".join(rest) for mark, rest in parts.items()}
    return Piece(
        name.removesuffix(" !"),
        text.get("", ""),
        holds,
        text.get(">", ""),
        text.get("<", ""),
        text.get("return", ""),
        _values(text["~"]) if "~" in text else (),
        _values(text["a$:"]) if "a$:" in text else (),
        text.get("train", ""),
        not name.endswith(" !"),
    )


PIECES = [
    _piece(name, [line[4:] for line in lines])
    for text in (state.TEXT, code.TEXT)
    for name, *lines in map(
        str.splitlines, re.split(r"\n(?=\S)", text.strip().replace(" |\n       ", " |"))
    )
]
