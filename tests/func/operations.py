"""Leaves, and operations of users, that several tests take."""

from collections.abc import Callable
from typing import Any

import wengert as wg


def leaf(*values: float) -> Any:
    return wg.tensor(list(values), dtype=wg.float64, requires_grad=True)


def array(*values: float) -> Any:
    return wg.asarray(list(values), dtype=wg.float64)


def operation(forward: Callable[..., Any], backward: Any = None, **more: Any) -> Any:
    """What applies an operation of these static methods, whose name is that of ``forward``."""
    given = {"forward": forward, "backward": backward, **more}
    methods = {name: staticmethod(f) for name, f in given.items() if f is not None}
    return type(forward.__name__, (wg.autograd.Function,), methods).apply


class Cube(wg.autograd.Function):
    """The third power, without a forward derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x**2
