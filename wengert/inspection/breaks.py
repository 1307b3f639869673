"""Graph breaks as objects, their reports, and the line of the program where one occurs."""

import linecache
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from wengert.tape.leaving import in_library, is_own

if TYPE_CHECKING:
    from types import FrameType

#: Of each kind of break, what has happened and what to do about it.
KINDS = {
    "number": (
        "a Tensor became a Python number",
        (
            "compute with the Tensor itself; numbers are for printing, and for what needs no "
            "derivative"
        ),
    ),
    "branch": (
        "a Tensor decided a branch",
        "only the branch that was taken is differentiated; wg.where(condition, a, b) computes both",
    ),
    "array": (
        "a Tensor became an array off the tape",
        (
            "keep it a Tensor: wengert has the functions of the Array API standard, and NumPy's "
            "take Tensors"
        ),
    ),
    "copy": (
        "a Tensor was copied off the tape",
        (
            "wg.asarray(x, copy=True) and x.clone() stay on the tape; wg.stack makes one Tensor of "
            "several"
        ),
    ),
    "detach": (
        "a Tensor was detached",
        "nothing flows back through detach(); leave it out, or keep it if that is what you want",
    ),
    "no_grad": (
        "an operation was not recorded",
        (
            "recording is off: move the operation out of no_grad or inference_mode, or wrap it in "
            "enable_grad"
        ),
    ),
    "flag": (
        "a Tensor was taken off the tape by requires_grad = False",
        "set the flag before the computation, or use detach() for a part of it",
    ),
    "cast": (
        "a Tensor was cast to a dtype that has no derivative",
        "cast to a floating dtype; integers and booleans carry no derivative",
    ),
    "zero": (
        "the derivative of an operation is zero wherever it exists",
        (
            "use a smooth function in its place, or a Function with the derivative that you mean "
            "(a straight-through estimator, say)"
        ),
    ),
    "undefined": (
        "an operation has no derivative",
        "detach its input if none is needed, or give it one by a Function",
    ),
    "not implemented": (
        "the derivative of an operation is not implemented",
        "write the derivative as a Function",
    ),
    "numpy": (
        "a function of NumPy's does not take Tensors",
        "write it with functions that do, or as a Function with a derivative of its own",
    ),
    "condition": (
        "an operation has no derivative by its nature",
        (
            "a comparison, an index or a count can select values that have derivatives, and has "
            "none itself"
        ),
    ),
}
#: Longer lines of source are cut.
WIDTH = 96

#: Kinds after which values cannot be followed.
CONVERSIONS = frozenset({"number", "array", "copy", "numpy", "flag"})


@dataclass(frozen=True)
class GraphBreak:
    """A line where the values of a Tensor were used without their derivative.

    Attributes
    ----------
    kind : str
        ``"number"``, ``"branch"``, ``"array"``, ``"copy"``, ``"detach"``, ``"no_grad"``,
        ``"flag"``, ``"cast"``, ``"zero"``, ``"undefined"``, ``"not implemented"``, ``"numpy"``, or
        ``"condition"`` (a comparison or an index, among the notes alone).
    operation : str
        The operation or method, such as ``"float"``, ``"floor"`` or ``"detach"``.
    shape : tuple of int
        Of the Tensor.
    dtype : str
        Of the Tensor.
    filename, line, function
        The innermost line of the program that is in no library.
    source : str
        The text of that line.
    columns : tuple of int, or None
        Where in the text the expression begins and ends.
    through : str or None
        The library's own line, if the break is in a library that the program calls.
    inputs : tuple of str
        The names of the inputs that the Tensor was computed from.
    count : int
        How many times the line ran.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.testing.graph_breaks() as breaks:
    ...     y = x * x.item()
    >>> breaks[0].kind, breaks[0].operation, breaks[0].dtype
    ('number', 'item', 'float32')
    """

    kind: str
    operation: str
    shape: tuple[int, ...]
    dtype: str
    filename: str
    line: int
    function: str
    source: str
    columns: tuple[int, int] | None
    through: str | None
    inputs: tuple[str, ...]
    count: int = 1

    @property
    def what(self) -> str:
        """What has happened, in a sentence."""
        return KINDS[self.kind][0]

    @property
    def advice(self) -> str:
        """What to do about it."""
        return KINDS[self.kind][1]

    def report(self, severity: str = "warning") -> str:
        """Return a message of several lines, in the form of a compiler's."""
        number = str(self.line)
        margin = " " * len(number)
        lines = [
            f"{severity}: {self.what}: {self.operation}",
            f"{margin}--> {_short(self.filename)}:{self.line}, in {self.function}",
        ]
        if self.source:
            text, marks = _excerpt(self.source, self.columns)
            lines += [f"{margin} |", f"{number} | {text}", f"{margin} | {marks}".rstrip()]
        origin = f", computed from {', '.join(self.inputs)}" if self.inputs else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        lines.append(f"{margin} = of {self.dtype} and shape {self.shape}{origin}{times}")
        if self.through:
            lines.append(f"{margin} = through {self.through}")
        lines.append(f"{margin} = help: {self.advice}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return (
            f"<graph break: {self.operation} of {self.dtype} {self.shape} at "
            f"{_short(self.filename)}:{self.line}: {self.source.strip()}>"
        )


class GraphBreaks(Sequence[GraphBreak]):
    """Graph breaks in the order in which they first occurred: a sequence that prints as a report.

    Attributes
    ----------
    notes : tuple of GraphBreak
        Comparisons, indices and other operations on tracked Tensors whose results have no
        derivative by their nature. They do not count as breaks.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.testing.graph_breaks() as breaks:
    ...     y = x * x.item()
    ...     larger = x > 1
    >>> len(breaks), len(breaks.notes)
    (1, 1)
    """

    def __init__(self) -> None:
        self._breaks: list[GraphBreak] = []
        self._notes: list[GraphBreak] = []

    @property
    def notes(self) -> tuple[GraphBreak, ...]:
        """What has no derivative by its nature."""
        return tuple(self._notes)

    def __len__(self) -> int:
        return len(self._breaks)

    @overload
    def __getitem__(self, index: int) -> GraphBreak: ...
    @overload
    def __getitem__(self, index: slice) -> list[GraphBreak]: ...
    def __getitem__(self, index: int | slice) -> GraphBreak | list[GraphBreak]:
        return self._breaks[index]

    def __iter__(self) -> Iterator[GraphBreak]:
        return iter(self._breaks)

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self._breaks)) or "no graph breaks"


class GraphBreakError(AssertionError):
    """A result does not depend differentiably on an input.

    Parameters
    ----------
    message : str
        What is wrong.
    errors : sequence of GraphBreak
        The breaks that are the cause.
    breaks : GraphBreaks
        All breaks that occurred.

    Attributes
    ----------
    errors, breaks
        As given.

    Examples
    --------
    >>> wg.testing.assert_differentiable(lambda x: wg.tensor(x.item() ** 2), wg.tensor(2.0))
    Traceback (most recent call last):
        ...
    GraphBreakError: <lambda> is not differentiable: the result does not depend ...
    """

    def __init__(
        self, message: str, errors: Sequence[GraphBreak], breaks: Iterable[GraphBreak]
    ) -> None:
        self._message = message
        self.errors = tuple(errors)
        self.breaks = breaks
        parts = [message, *(one.report("error") for one in self.errors)]
        parts += [one.report("warning") for one in breaks if one not in self.errors]
        super().__init__("\n\n".join(parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._message, self.errors, self.breaks), vars(self)


# -- where ---------------------------------------------------------------------------------------


class CallSite(NamedTuple):
    """A line of the program, the library's line below it, and Wengert's function that is called.

    ``through`` is None if no library lies between, and ``entry`` if a method is called directly.
    """

    filename: str
    line: int
    function: str
    columns: tuple[int, int] | None
    through: str | None
    entry: str | None

    @property
    def source(self) -> str:
        return linecache.getline(self.filename, self.line).rstrip()


#: Modules whose frames lie between a public function and the observer.
_BETWEEN = frozenset(
    {
        __name__,
        "wengert.inspection.lineage",
        "wengert.tape.observers",
        "wengert.tape.record",
        "wengert.tape.tensor",
    }
)
#: Where NumPy's names are: an operation that is called from there has one name more.
_NAMES = "wengert.protocols"


def call_site() -> CallSite | None:
    """Return the line of the program that is running; None if all frames are this package's."""
    site: FrameType | None = None
    user: FrameType | None = None
    entry: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_own(frame):
            module = frame.f_globals["__name__"]
            if site is None and module != _NAMES and module not in _BETWEEN:
                entry = (entry if module.startswith(_NAMES) else None) or frame
        else:
            site = site or frame
            if user is None and not in_library(frame.f_code.co_filename):
                user = frame
        frame = frame.f_back
    if site is None:
        return None
    chosen = user or site
    code = chosen.f_code
    line, start, end = _expression(chosen)
    through = None
    if site is not chosen:
        inner, _, _ = _expression(site)
        module = str(site.f_globals.get("__name__"))
        text = linecache.getline(site.f_code.co_filename, inner).strip()
        through = f"{module}:{inner}, in {site.f_code.co_name}" + (f": {text}" if text else "")
    columns = _characters(linecache.getline(code.co_filename, line), start, end)
    name = None if entry is None else entry.f_code.co_name
    return CallSite(code.co_filename, line, code.co_name, columns, through, name)


def _characters(text: str, start: int | None, end: int | None) -> tuple[int, int] | None:
    """Columns in characters for columns in bytes; an unknown end is the end of the line."""
    if start is None or not text:
        return None
    encoded = text.rstrip().encode()
    left = len(encoded[:start].decode(errors="replace"))
    return left, len(encoded[:end].decode(errors="replace"))


def _excerpt(source: str, columns: tuple[int, int] | None) -> tuple[str, str]:
    """A line without its indent, shortened if it is long, and the marks below the columns."""
    indent = len(source) - len(source.lstrip())
    text = source.strip()
    if columns is None:
        return text[:WIDTH], ""
    start, end = columns[0] - indent, min(columns[1] - indent, len(text))
    if len(text) > WIDTH:
        cut = max(0, min(start - WIDTH // 4, len(text) - WIDTH))
        text = ("…" if cut else "") + text[cut : cut + WIDTH]
        start, end = start - cut + bool(cut), min(end - cut + bool(cut), len(text))
    return text, " " * start + "^" * (end - start)


def _short(filename: str) -> str:
    """A file's name relative to the working directory, if it is below it."""
    try:
        return str(Path(filename).relative_to(Path.cwd()))
    except ValueError:
        return filename


def again(one: GraphBreak) -> GraphBreak:
    """Return the break with one more occurrence."""
    return replace(one, count=one.count + 1)


def made(
    kind: str, operation: str, tensor: Any, where: CallSite, inputs: Iterable[str]
) -> GraphBreak:
    """Return a break of a Tensor at a line."""
    return GraphBreak(
        kind,
        operation,
        tuple(tensor.shape),
        tensor.dtype.name,
        where.filename,
        where.line,
        where.function,
        where.source,
        where.columns,
        where.through,
        tuple(inputs),
    )


def _expression(frame: "FrameType") -> tuple[int, int | None, int | None]:
    """Where in its file a frame is: the line, and the columns of the expression, if known.

    Columns are in bytes, as CPython counts them, and the second is None if the expression goes on
    in the next line.
    """
    positions = frame.f_code.co_positions()
    none = (None, None, None, None)
    line, last, start, end = next(islice(positions, frame.f_lasti // 2, None), none)
    if line is None:
        return frame.f_lineno, None, None
    return line, start, end if last == line else None
