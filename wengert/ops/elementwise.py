"""Elementwise functions: the standard's chapter of that name, with their derivatives."""

from typing import Any

from wengert.ops.define import elementwise
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["add", "exp", "log", "multiply", "negative", "subtract"]


@elementwise(label="Add", kind="linear", weak=True, x1=lambda xp, g: g, x2=lambda xp, g: g)
def add(x1: Any, x2: Any, /) -> Tensor:
    """Sum of two arrays, :math:`x_1 + x_2`."""


@elementwise(
    label="Sub", kind="linear", weak=True, x1=lambda xp, g: g, x2=lambda xp, g: xp.negative(g)
)
def subtract(x1: Any, x2: Any, /) -> Tensor:
    """Difference of two arrays, :math:`x_1 - x_2`."""


@elementwise(
    label="Mul",
    kind="multilinear",
    weak=True,
    x1=lambda xp, g, x2: xp.multiply(g, xp.conj(x2)),
    x2=lambda xp, g, x1: xp.multiply(g, xp.conj(x1)),
)
def multiply(x1: Any, x2: Any, /) -> Tensor:
    """Product of two arrays, :math:`x_1 x_2`."""


@elementwise(label="Neg", kind="linear", x=lambda xp, g: xp.negative(g))
def negative(x: Any, /) -> Tensor:
    """Negative, :math:`-x`."""


@elementwise(kind="linear", x=lambda xp, g: xp.conj(g))
def conj(x: Any, /) -> Tensor:
    """Complex conjugate; a real array is its own."""


@elementwise(x=lambda xp, g, out: xp.multiply(g, xp.conj(out)))
def exp(x: Any, /) -> Tensor:
    """Exponential, :math:`e^x`."""


@elementwise(x=lambda xp, g, x: xp.divide(g, xp.conj(x)))
def log(x: Any, /) -> Tensor:
    """Natural logarithm."""
