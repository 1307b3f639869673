"""A function and the compiled one, called alike: what they give, and what they leave."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg

__all__ = ["alike", "batch", "network", "training_step"]


def alike(
    make: Callable[[], tuple[Callable[..., Any], Callable[[], Any]]],
    calls: Sequence[tuple[Any, ...]],
    *,
    compiles: bool = True,
) -> Any:
    """Compare a function with the compiled one, to the bit and the type, and what they leave.

    ``make`` gives a function, and what looks at the state that it leaves; ``calls`` are the
    arguments. With ``compiles``, no call may run as it is.
    """
    answers: list[list[Any]] = []
    function: Any = None
    for compiled in (False, True):
        wg.manual_seed(0)
        function, state = make()
        if compiled:
            function = wg.compile(function)
        own = [[x.copy() if type(x) is np.ndarray else x for x in call] for call in calls]
        answers.append([[_seen((function(*call), call)), _seen(state())] for call in own])
    for expected, found in zip(*answers, strict=True):
        assert found == expected, function.report
    if compiles:
        assert "ran eagerly" not in str(function.report), function.report
    return function


def training_step(optimizer: Any, loss: Callable[..., Any]) -> Callable[..., Any]:

    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        value = loss(*batch)
        value.backward()
        optimizer.step()
        return value

    return step


def network(optimiser: str, *middle: Any, **options: Any) -> tuple[Any, Any, Callable[..., Any]]:
    """A classifier of five numbers, its optimiser and its training step."""
    wg.manual_seed(3)
    layers = middle or (wg.nn.ReLU(),)
    model = wg.nn.Sequential(wg.nn.Linear(5, 4), *layers, wg.nn.Linear(4, 3))
    optimizer = getattr(wg.optim, optimiser)(model.parameters(), lr=0.1, **options)
    loss = lambda x, y: wg.nn.functional.cross_entropy(model(x), y)
    return model, optimizer, training_step(optimizer, loss)


def batch() -> tuple[Any, Any]:
    return wg.randn(6, 5), wg.random.randint(0, 3, (6,))


def _seen(answer: Any) -> list[Any]:
    return [_leaf(x) for x in wg.func.tree_leaves(answer)]


def _leaf(x: Any) -> Any:
    array = getattr(x, "_array", x)
    if not hasattr(array, "dtype"):
        return type(x), repr(x)
    return type(x), type(array), array.dtype, tuple(array.shape), np.asarray(array).tobytes()
