"""A course of calls of a function, and of the compiled one, with changes between them."""

from collections.abc import Callable, Sequence
from typing import Any

import wengert as wg

__all__ = ["same_course"]

X = [1.5, -2.0, 0.25]

Made = tuple[Callable[..., Any], Callable[[], Any], Sequence[Callable[[], Any] | None]]


def _plain(x: Any) -> Any:
    """Types and values of a nest of numbers, as text."""
    if isinstance(x, wg.Tensor):
        return "Tensor", x.dtype.name, x.requires_grad, x.detach().numpy().tobytes()
    if isinstance(x, list | tuple):
        return [_plain(part) for part in x]
    return type(x), repr(x)


def same_course(make: Callable[[], Made], **options: Any) -> Any:
    """Run a course eagerly and compiled: what it gives and leaves is the same to the bit.

    Parameters
    ----------
    make : callable
        Gives a function of a Tensor, what looks at the state that it leaves, and what happens
        between the calls; None for nothing. An error of the function is what it gives.
    **options
        Of `wengert.compile`.

    Returns
    -------
    Compiled
        The compiled function.
    """
    courses: list[list[Any]] = []
    function: Any = None
    for compiled in (False, True):
        function, look, changes = make()
        if compiled:
            function = wg.compile(function, **options)
        found: list[Any] = []
        for change in (*changes, None):
            try:
                answer = function(wg.asarray(X))
            except Exception as error:
                answer = type(error).__name__
            found.append((_plain(answer), _plain(look())))
            if change is not None:
                change()
        courses.append(found)
    for i, (expected, got) in enumerate(zip(*courses, strict=True)):
        assert got == expected, f"call {i}: {function.report}"
    return function
