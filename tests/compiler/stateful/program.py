"""A random program: its parts, and how they are written down as source.

A program is a frame (a bare function, a training step, a method, …), pieces, which are a few lines
of its body with the variables that they read, and a script of calls and changes between them.
Variables live in places: globals, cells, attributes, items. In a piece's text ``@name`` is one of
its variables, wherever it lives, and ``$`` the piece's number.
"""

import ast
import re
from dataclasses import dataclass
from textwrap import indent
from typing import NamedTuple

__all__ = ["PLACES", "Event", "Frame", "Part", "Piece", "Program"]

PRELUDE = """\
import contextlib, copy, dataclasses, functools, itertools, math, operator, os, random, time, types
from collections import OrderedDict, defaultdict, deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
import numpy as np
import wengert as wg
from wengert.nn import functional as F

def plain(*given):
    inner = lambda x: isinstance(x, wg.Tensor) and x.requires_grad and not x.is_leaf
    return wg.func.tree_map(lambda x: x.detach() if inner(x) else x, given)
"""

#: Where variables live: what makes the container, and how one is written in it.
PLACES: dict[str, tuple[str, str]] = {
    "global": ("", "{v}"),
    "object": ("class Holder:\n    pass\nholder = Holder()", "holder.{v}"),
    "class": ("class Shared:\n    pass", "Shared.{v}"),
    "slots": ("class Slotted:\n    __slots__ = ({slots})\nslotted = Slotted()", "slotted.{v}"),
    "namespace": ("space = types.SimpleNamespace()", "space.{v}"),
    "dict": ("held = {{}}", 'held["{v}"]'),
    "ordered": ("ordered = OrderedDict()", 'ordered["{v}"]'),
    "list": ("row = [None] * {count}", "row[{i}]"),
    "deque": ("queue = deque([None] * {count})", "queue[{i}]"),
    "module": ('lib = types.ModuleType("lib")', "lib.{v}"),
    "nested": ('tree = {{"a": [types.SimpleNamespace()]}}', 'tree["a"][0].{v}'),
    "dataclass": (
        "@dataclasses.dataclass\nclass Config:\n    x: int = 0\nconfig = Config()",
        "config.{v}",
    ),
    "nn": ("class Net(wg.nn.Module):\n    pass\nnet = Net()", "net.{v}"),
    "given": ("given = types.SimpleNamespace()", "given.{v}"),
    "itself": ("", "self.{v}"),
}


class Piece(NamedTuple):
    """A few lines that make of ``h``, of shape (n, 4), another ``h``; see `pieces`."""

    name: str
    body: str
    holds: dict[str, tuple[str, ...]] = {}
    setup: str = ""
    after: str = ""
    gives: str = ""
    changes: tuple[str, ...] = ()
    argument: tuple[str, ...] = ()
    trains: str = ""
    pure: bool = True


class Frame(NamedTuple):
    """What pieces stand in: the function, with words in capitals to fill in, and its calls."""

    name: str
    lines: str
    setup: str = ""
    calls: tuple[str, ...] = ("results.append(step(CALL))",)
    changes: tuple[str, ...] = ()
    pure: bool = True
    method: bool = False


class Part(NamedTuple):
    """A piece of a program: its number, where its variables are, and what they start with."""

    piece: Piece
    number: int
    places: tuple[tuple[str, str, str], ...]  # variable, place, value

    def written(self, text: str, inside: bool) -> str:
        for i, (name, place, _) in enumerate(self.places):
            v = f"{name}{self.number}"
            form = "mine.{v}" if place == "itself" and not inside else PLACES[place][1]
            at = form.format(v=v, i=10 * self.number + i)
            text = re.sub(rf"@{name}\b", at, text)
        return text.replace("$", str(self.number))


class Event(NamedTuple):
    """A change, or a call with its arguments by name."""

    line: str
    arguments: dict[str, str] | None = None


@dataclass(frozen=True)
class Program:
    frame: Frame
    parts: tuple[Part, ...]
    events: tuple[Event, ...]
    seed: int
    closed: bool = False  # whether all of it is inside a function
    decorator: str = "@wg.compile"

    @property
    def pure(self) -> bool:
        """Whether no call changes state."""
        return self.frame.pure and all(part.piece.pure for part in self.parts)

    def _places(self) -> list[str]:
        used = [place for part in self.parts for _, place, _ in part.places]
        return list(dict.fromkeys(used))

    def setup(self) -> str:
        used = self._places()
        slots = "".join(
            f'"{name}{part.number}", '
            for part in self.parts
            for name, place, _ in part.places
            if place == "slots"
        )
        count = 10 * (max([p.number for p in self.parts], default=0) + 1)
        lines = [PLACES[place][0].format(slots=slots, count=count) for place in used]
        lines += [part.written(part.piece.setup, inside=False) for part in self.parts]
        if self.frame.method:
            lines.append("class Mine:\n    pass\nmine = Mine()")
        for part in self.parts:
            for name, _, value in part.places:
                lines.append(part.written(f"@{name} = {value}", inside=False))
        trains = [part.written(p, inside=False) for part in self.parts if (p := part.piece.trains)]
        lines.append(self.frame.setup.replace("TRAINS", " + ".join([*trains, "[spare]"])))
        return "\n".join(filter(None, lines))

    def function(self, compiled: str) -> str:
        """The lines of the function; ``compiled`` is the decorator, or nothing."""
        body = [part.written(part.piece.body, inside=True) for part in self.parts]
        after = [part.written(part.piece.after, inside=True) for part in self.parts]
        gives = [part.written(part.piece.gives, inside=True) for part in self.parts]
        text = self.frame.lines.replace("COMPILE", compiled or "")
        arguments = "".join(f", {name}" for name in self._arguments())
        text = text.replace(", ARGUMENTS", arguments)
        text = text.replace(", GIVES", "".join(f", {g}" for g in gives if g))
        lines: list[str] = []
        outer = set(_assigned(self.setup()))
        for line in text.splitlines():
            room = line[: len(line) - len(line.lstrip())]
            if line.strip() in ("BODY", "AFTER"):
                some = [one for one in (body if line.strip() == "BODY" else after) if one]
                changed = [name for name in _assigned("\n".join(some)) if name in outer]
                if changed:
                    some.insert(
                        0, f"{'nonlocal' if self.closed else 'global'} {', '.join(changed)}"
                    )
                lines += [indent(one, room) for one in some]
            elif line.strip():
                lines.append(line)
        return "\n".join(lines)

    def _arguments(self) -> list[str]:
        names = ["given"] if "given" in self._places() else []
        return names + [f"a{part.number}" for part in self.parts if part.piece.argument]

    def source(self, compiled: str = "@wg.compile") -> str:
        """Prelude, setup and function; the script's lines come after it."""
        setup, function = self.setup(), self.function(compiled)
        if not compiled:
            setup = setup.replace("@wg.compile\n", "")
        start = f"wg.manual_seed({self.seed % 1000})\nresults = []\nx0 = wg.randn(3, 4)\n"
        start += "spare = wg.randn(4, requires_grad=True)\n"
        if not self.closed:
            return f"{PRELUDE}{start}{setup}\n{function}\n"
        names = _assigned(setup)
        changes = []
        for i, event in enumerate(self.events):
            if event.arguments is None:
                own = ", ".join(name for name in _assigned(event.line) if name in names)
                lines = [f"nonlocal {own}"] * bool(own) + [event.line]
                changes.append(f"def change{i}():\n" + indent("\n".join(lines), "    "))
        shown = ", ".join(f"{name!r}: {name}" for name in names)
        # A name may be unbound when it is deleted.
        look = "def look():\n    return {" + shown + "}"
        inner = "\n".join([setup, function, *changes, look, "return locals()"])
        end = "made = make()\nstep, look = made['step'], made['look']\n"
        end += "given = made.get('given')\n"
        return f"{PRELUDE}{start}def make():\n{indent(inner, '    ')}\n{end}"

    def script(self) -> list[str]:
        lines = []
        for i, event in enumerate(self.events):
            if event.arguments is None:
                lines.append(f"made['change{i}']()  # {event.line}" if self.closed else event.line)
            else:
                names = self._arguments()
                given = [event.arguments["x"], *[event.arguments.get(a, a) for a in names]]
                lines.append(event.line.replace("CALL", ", ".join(given)))
        return lines


def _assigned(source: str) -> list[str]:
    """The names that a text binds at its top level."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
            continue
        every = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        names += [each.id for each in every if not isinstance(each.ctx, ast.Load)]
    return list(dict.fromkeys(names))
