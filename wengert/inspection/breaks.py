"""Graph breaks: the lines at which a program loses track of its derivatives."""

import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

from wengert.tape.grad_mode import recording
from wengert.tape.leaving import is_own, user_frame
from wengert.tape.node import Node
from wengert.tape.observers import Observer, observed_by
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

#: Of each kind of break, what has happened and what to do about it.
_KINDS = {
    "number": ("a Tensor became a Python number", "compute with the Tensor itself"),
    "branch": ("a Tensor decided a branch", "wg.where(condition, a, b) differentiates both"),
    "array": ("a Tensor became an array off the tape", "Wengert's and NumPy's functions take it"),
    "copy": ("a Tensor was copied off the tape", "x.clone() and wg.asarray(x, copy=True) stay"),
    "detach": ("a Tensor was detached", "leave detach() out, or keep it if that is what you want"),
    "no_grad": ("an operation was not recorded", "recording is off: move it out of no_grad"),
    "cast": ("a Tensor was cast to a dtype without derivatives", "cast to a floating dtype"),
    "zero": ("a derivative is zero wherever it exists", "use a smooth function, or a Function"),
    "undefined": ("an operation has no derivative", "detach its input, or write a Function"),
}
#: The kinds of the methods and functions by which values leave; "number" of others.
_WAYS = dict.fromkeys(("__array__", "__dlpack__", "array", "numpy"), "array")
_WAYS |= dict.fromkeys(("__deepcopy__", "__reduce__", "tensor"), "copy")
_WAYS |= {"__bool__": "branch", "detach": "detach"}
#: The functions that run first where an operation is called by its name or by its operator.
_DIRECTLY = ("_divmod", "_rdivmod", "_to", "as_tensor", "asarray", "bind", "call", "method")


@dataclass(frozen=True)
class GraphBreak:
    """A line where the values of a Tensor were used without their derivative.

    Attributes
    ----------
    kind : str
        ``"number"``, ``"branch"``, ``"array"``, ``"copy"``, ``"detach"``, ``"no_grad"``,
        ``"cast"``, ``"zero"`` or ``"undefined"``.
    operation : str
        The operation or method, such as ``"floor"``, ``"item"`` or ``"float"``.
    filename, line, function
        The innermost line of the program that is in no library.
    through : str
        The library's line, if a library that the program calls loses the derivative.
    count : int
        How many times the line ran.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.testing.graph_breaks() as breaks:
    ...     y = x * x.item()
    >>> breaks[0].kind, breaks[0].operation, breaks[0].lost
    ('number', 'item', True)
    """

    kind: str
    operation: str
    filename: str
    line: int
    function: str
    through: str = ""
    count: int = 1

    @property
    def lost(self) -> bool:
        """Whether a derivative is lost: not by a branch, which is differentiated itself."""
        return self.kind != "branch"

    def __str__(self) -> str:
        what, advice = _KINDS[self.kind]
        times = f" ({self.count} times)" if self.count > 1 else ""
        name = self.filename.removeprefix(f"{Path.cwd()}{os.sep}")
        head = f"{name}:{self.line}, in {self.function}: {what}: {self.operation}{times}"
        source = getline(self.filename, self.line).strip()
        return "\n    ".join(filter(None, (head, source, self.through, f"help: {advice}")))


class GraphBreaks(list[GraphBreak]):
    """Graph breaks in the order in which the lines first ran: a list that prints as a report.

    Examples
    --------
    >>> wg.testing.GraphBreaks()
    no graph breaks
    """

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no graph breaks"


class GraphBreakError(AssertionError):
    """A result does not depend differentiably on an input; ``breaks`` are those that occurred.

    Examples
    --------
    >>> wg.testing.assert_differentiable(lambda x: wg.tensor(x.item()), wg.tensor(2.0))
    Traceback (most recent call last):
        ...
    GraphBreakError: <lambda> is not differentiable: the result does not depend ...
    """

    def __init__(self, message: str, breaks: GraphBreaks) -> None:
        super().__init__(message, breaks)
        self.breaks = breaks

    def __str__(self) -> str:
        return "\n".join(map(str, (self.args[0], *self.breaks)))


@contextmanager
def graph_breaks() -> Iterator[GraphBreaks]:
    """List where tracking is lost inside a ``with`` block, with the lines that lose it.

    A break is where the values of a Tensor that requires grad, or has a tangent in forward mode,
    leave it, or an operation is not recorded or has no derivative but zero. Many are intended (a
    number to print), so nothing is raised. The list that the block gets fills while it runs, in
    this thread or task. A line that runs again is counted.

    Examples
    --------
    >>> x = wg.tensor([2.5], requires_grad=True)
    >>> with wg.testing.graph_breaks() as breaks:
    ...     y = x.detach() * wg.floor(x)
    >>> [(one.kind, one.operation) for one in breaks]
    [('detach', 'detach'), ('zero', 'floor')]
    """
    with observed_by(observer := _Breaks()):
        yield observer.found


class _Breaks(Observer):
    """The observer that lists breaks."""

    def __init__(self) -> None:
        self.found = GraphBreaks()
        #: What was computed from tracked Tensors and is not tracked, as comparisons are.
        self._off: dict[int, weakref.ref[Tensor]] = {}

    def operated(
        self, name: str, primitive: Primitive | None, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        tracked = [x for x in inputs if _is_tracked(x)]
        if tracked and (kind := _loss(name, primitive, tracked, results)):
            self._note(kind, name)
        if tracked or any(id(x) in self._off for x in inputs):
            for result in results:
                if not _is_tracked(result):
                    self._follow(result)

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        if id(result) in self._off:
            self._follow(tensor)

    def left(self, tensor: Tensor, way: str) -> None:
        if _is_tracked(tensor):
            self._note(_WAYS.get(way, "number"), way.strip("_"), way)
        elif way == "__bool__" and id(tensor) in self._off:
            self._note("branch", "bool", way, in_libraries=False)

    def _follow(self, tensor: Tensor) -> None:
        key = id(tensor)
        self._off[key] = weakref.ref(tensor, lambda _: self._off.pop(key, None))

    def _note(self, kind: str, operation: str, way: str = "", in_libraries: bool = True) -> None:
        """List a break, or count it, if the program or a library of its has caused it."""
        site, entry = _site(way)
        user = user_frame()
        if site is None or user is None or not (site is user or in_libraries):
            return
        # Wengert's own functions read and detach on purpose, and round on the way.
        if (entry and way in ("array", "detach")) or (
            kind in ("zero", "cast") and entry not in (operation, *_DIRECTLY)
        ):
            return
        code, through = user.f_code, ""
        if site is not user:
            text = getline(site.f_code.co_filename, site.f_lineno).strip()
            through = f"through {site.f_globals.get('__name__')}:{site.f_lineno}: {text}"
        one = GraphBreak(kind, operation, code.co_filename, user.f_lineno, code.co_name, through)
        for i, held in enumerate(self.found):
            if replace(held, count=1) == one:
                self.found[i] = replace(held, count=held.count + 1)
                return
        self.found.append(one)


def _site(way: str) -> tuple[FrameType | None, str]:
    """The frame that called Wengert, and the function that it called; "" for the method itself."""
    frame: FrameType | None = sys._getframe(1)
    while way and frame is not None and frame.f_code.co_name != way:
        frame = frame.f_back
    frame, entry = frame and frame.f_back, ""
    while frame is not None and is_own(frame):
        # NumPy's names are names more, and the operation's own is there before.
        if not (entry and frame.f_globals["__name__"].startswith("wengert.protocols")):
            entry = frame.f_code.co_name
        frame = frame.f_back
    return frame, entry


def _is_tracked(tensor: Tensor) -> bool:
    """Whether a Tensor requires grad, or has a tangent."""
    array = tensor._array
    while not tensor.requires_grad and hasattr(array, "inner"):
        if getattr(array, "tangent", None) is not None:
            return True
        array = array.inner
    return tensor.requires_grad or (isinstance(array, Tensor) and _is_tracked(array))


def _loss(
    name: str, primitive: Primitive | None, tracked: list[Tensor], results: list[Tensor]
) -> str:
    """The kind of break at an operation on tracked Tensors; "" if there is none."""
    if primitive is None or not primitive.rules:  # a Function, or a comparison
        return ""
    if not any(result.dtype.inexact for result in results):
        return "cast" if name == "astype" and results[0].dtype.name != "bool" else ""
    if not any(map(_is_tracked, results)):
        off = not recording() and any(x.requires_grad for x in tracked)
        return "no_grad" if off else "zero"
    node: Any = results[0]._node
    if node is None:  # in forward mode
        return ""
    node = node.parents[0] if primitive.several else node
    stated = {declaration(node, i) for i, parent in enumerate(node.parents) if parent is not None}
    return next((kind for kind in ("undefined", "", "zero") if kind in stated), "")


def declaration(node: Node, position: int) -> str:
    """What an operation declares of its derivative in an input; "" if it has a rule."""
    plan = getattr(node, "plan", None)  # leaves, Functions and single results have none
    if plan is None:
        return ""
    primitive: Primitive = plan.primitive
    if not primitive.has_slope(position, node.dtype, int(primitive.several)):
        return "zero"
    return "" if callable(primitive.rules.get(primitive.input_at(position))) else "undefined"
