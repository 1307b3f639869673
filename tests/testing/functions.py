"""A function whose derivatives tests write, wrong in ways of their own."""

from typing import Any

import wengert as wg

__all__ = ["Square"]


class Square(wg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x
