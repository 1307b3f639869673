"""Operations of users that several tests take."""

from typing import Any

import wengert as wg


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
