"""Functions whose derivatives tests write, right or wrong in ways of their own."""

from collections.abc import Callable
from typing import Any

from tests.func.operations import operation


def of_array(value: Callable[[Any], Any], backward: Any, jvp: Any = None) -> Any:
    """An operation of one array, which its rules get before the cotangent or the tangent."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return value(x)

    rules = {} if jvp is None else {"jvp": lambda ctx, t: jvp(*ctx.saved_tensors, t)}
    return operation(forward, lambda ctx, g: backward(*ctx.saved_tensors, g), **rules)


def square(xp: Any, x: Any) -> Any:
    """What is planted: a primitive's composite."""
    return xp.multiply(x, x)


def slope(xp: Any, g: Any, x: Any) -> Any:
    """The rule of a square."""
    return xp.multiply(xp.multiply(g, x), 2)
