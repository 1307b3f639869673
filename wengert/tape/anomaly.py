"""Anomaly detection: the line of the program whose derivative gave the first NaN or infinity."""

from importlib import import_module
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from wengert.backends import dtype_of, namespaces
from wengert.tape.node import Node, Parts, recorded_by
from wengert.tape.observers import Observer, exchange, observers

Calls = tuple[tuple[str, int, str, None], ...]

#: The number of innermost calls that are shown.
_SHOWN = 6

#: The calls that led to each operation that was recorded while detection was on.
_led: WeakKeyDictionary[Node, Calls] = WeakKeyDictionary()


def detecting() -> "detect_anomaly | None":
    """The detection that is on in this thread or task."""
    return next((one for one in observers() if isinstance(one, detect_anomaly)), None)


class detect_anomaly(Observer):
    """Find the operation whose derivative gives the first NaN or infinity.

    Inside the context, every operation remembers the line of the program that called it. When a
    derivative that is computed inside the context is not finite, the sweep stops with an error
    that names that line, the operation and the shapes. An error in a derivative, such as in a
    user's `Function`, gets a note with the line. Of operations that were recorded outside, the
    name and the shapes are known alone.

    It belongs to the running thread or task, and slows programs down: it is for finding faults.

    With ``check_nan=False`` errors get their notes alone. `backward` and `grad` raise
    `RuntimeError` inside the context; no ``.grad`` has changed then, but for leaves with a hook
    that runs after accumulation.

    Examples
    --------
    >>> x = wg.tensor(1.0, requires_grad=True)
    >>> with wg.detect_anomaly():
    ...     (x * wg.nan).backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'MulBackward0' returned nan values in its 0th output. ...
    """

    looks_inside = True

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._before: list[detect_anomaly | None] = []

    def __enter__(self) -> None:
        self._before.append(detecting())
        exchange(self._before[-1], self)

    def __exit__(self, *exception: object) -> None:
        exchange(detecting(), self._before.pop())

    def operated(self, name: str, primitive: Any, inputs: Any, results: Any) -> None:
        own = next((result._node for result in results if result._node is not None), None)
        if own is not None:
            _led[recorded_by(own)] = _calls()


class set_detect_anomaly(detect_anomaly):
    """Switch `detect_anomaly` on or off, at once and until a ``with`` block ends, or for good.

    Examples
    --------
    >>> x = wg.ones(2, requires_grad=True)
    >>> with wg.autograd.set_detect_anomaly(True):
    ...     wg.exp(x).sum().backward()  # each derivative is looked at
    >>> x.grad
    tensor([2.7183, 2.7183])
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self._before.append(detecting())
        exchange(self._before[-1], self if mode else None)

    def __enter__(self) -> None:
        pass  # the constructor has switched already


def _calls() -> Calls:
    """The calls that led here, outside this package: file, line and function, innermost first."""
    frames = import_module("wengert.tape.leaving").frames()
    return tuple(
        [(x.f_code.co_filename, x.f_lineno, x.f_code.co_name, None) for x in islice(frames, _SHOWN)]
    )


def describe(node: Node) -> str:
    """An operation with its shapes and the line that called it."""
    inputs = ", ".join("-" if p is None else str(tuple(p.shape)) for p in node.parents)
    text = f"{node.operation} of inputs of shape {inputs}, with a result of shape "
    text += ", ".join(str(tuple(s)) for s in (node.shape if node.several else [node.shape]))
    led = _led.get(node)
    if not led:
        return (
            f"{text}. It was recorded outside of detect_anomaly: run the forward pass inside to "
            "see its line"
        )
    listed = import_module("traceback").format_list(led[::-1])
    return f"{text}. It was called at\n" + "".join(listed).rstrip()


def check(node: Node, g: Any, flows: list[tuple[int, Any]]) -> None:
    """Raise if a cotangent that a node gave is not finite."""
    for position, flow in flows:
        fault = _fault(flow)
        if fault:
            already = " The gradient that reached it was not finite already." if _fault(g) else ""
            raise RuntimeError(
                f"Function '{node.name()}' returned {fault} values in its {position}th output."
                f"{already} It is the derivative of {describe(node)}"
            )


def _fault(g: Any) -> str | None:
    """What is wrong with a cotangent: ``"nan"`` or ``"infinite"``."""
    if type(g) is Parts:
        return next((fault for fault in map(_fault, g.items.values()) if fault), None)
    array = getattr(g, "_array", g)
    array = getattr(array, "bottom", array)  # of lifted arrays: what the library computed
    array = getattr(array, "_array", array)
    xp = namespaces[type(array)]
    if not dtype_of(array.dtype).inexact or bool(xp.all(xp.isfinite(array))):
        return None
    return "nan" if bool(xp.any(xp.isnan(array))) else "infinite"
