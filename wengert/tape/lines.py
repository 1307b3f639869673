"""Which line of the program is running: for errors, warnings and reports."""

import ast
import builtins
import linecache
import sys
import sysconfig
import textwrap
import warnings
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any


def is_own(frame: FrameType) -> bool:
    """Whether a frame runs this package's code."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "wengert"


@cache
def in_library(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    if filename.startswith("<frozen"):
        return True
    path = Path(filename)
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return any(map(path.is_relative_to, roots))


def user_frame() -> FrameType | None:
    """The innermost frame of the program's own; failing that, the innermost of a library's."""
    frame: FrameType | None = sys._getframe(1)
    library: FrameType | None = None
    while frame is not None:
        if not is_own(frame):
            if not in_library(frame.f_code.co_filename):
                return frame
            library = library or frame
        frame = frame.f_back
    return library


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn the user, of the line of the program's own that is running."""
    wanted, level = user_frame(), 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not wanted:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def described(frame: FrameType) -> str:
    """A line as an error names it: file, number, text."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    where = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
    return f"{where} ({text})" if text else where


def _positions(frame: FrameType) -> tuple[int | None, ...]:
    """First and last line, and first and last column in bytes, of the running expression."""
    code: CodeType = frame.f_code
    none = (None, None, None, None)
    return next(islice(code.co_positions(), frame.f_lasti // 2, None), none)


def expression(frame: FrameType) -> tuple[int, int | None, int | None]:
    """Where in its file a frame is: the line, and the columns of the expression, if known.

    Columns are in bytes, as CPython counts them, and the second is None if the expression goes on
    in the next line.
    """
    line, last, start, end = _positions(frame)
    if line is None:
        return frame.f_lineno, None, None
    return line, start, end if last == line else None


def applied(frame: FrameType) -> tuple[str, Any]:
    """What is called, or indexed, where a frame is: as the program writes it, and the object.

    The text is empty where that is unknown, and the object None.
    """
    line, last, start, end = _positions(frame)
    if line is None or last is None or start is None or end is None:
        return "", None
    lines = [linecache.getline(frame.f_code.co_filename, n).encode() for n in range(line, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    text = textwrap.dedent(b"".join(lines).decode(errors="replace"))
    try:
        found = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):
        return "", None
    name: Any = getattr(found, "func", None) or getattr(found, "value", None)
    if not isinstance(found, ast.Call | ast.Subscript):
        return "", None
    return ast.unparse(name), _object(name, frame)


def _object(name: ast.expr, frame: FrameType) -> Any:
    """What a name, or a name in a module, stands for."""
    if isinstance(name, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
            if name.id in scope:
                return scope[name.id]
    elif isinstance(name, ast.Attribute):
        home = _object(name.value, frame)
        if isinstance(home, ModuleType):
            return getattr(home, name.attr, None)
    return None
