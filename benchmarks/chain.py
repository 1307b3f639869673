"""A chain of multiplications: what one recorded operation costs where arithmetic costs nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CONTESTANTS"]

#: A chain of so many multiplications, forward and backward: its gradients, as NumPy arrays.
Chain = Callable[[int], tuple[Any, Any]]

START = np.asarray([1.0, -0.5, 0.25, 2.0], dtype=np.float32)
FACTOR = np.asarray([1.0, -1.0, 1.0, -1.0], dtype=np.float32)  # keeps every product normal
ONES = np.ones(4, dtype=np.float32)


def wengert() -> Chain:
    """Wengert on NumPy."""
    import wengert as wg

    x = wg.asarray(START).requires_grad_()
    factor = wg.asarray(FACTOR).requires_grad_()
    ones = wg.asarray(ONES)

    def run(length: int) -> tuple[Any, Any]:
        x.grad = factor.grad = None
        y = x
        for _ in range(length):
            y = y * factor
        y.backward(ones)
        return x.grad, factor.grad

    return run


def pytorch() -> Chain:
    """PyTorch, eager."""
    import torch

    torch.set_num_threads(1)
    x = torch.tensor(START, requires_grad=True)
    factor = torch.tensor(FACTOR, requires_grad=True)
    ones = torch.tensor(ONES)

    def run(length: int) -> tuple[Any, Any]:
        x.grad = factor.grad = None
        y = x
        for _ in range(length):
            y = y * factor
        y.backward(ones)
        return x.grad, factor.grad

    return run


def hips_autograd() -> Chain:
    """HIPS/autograd."""
    from autograd import make_vjp

    def product(x: Any, factor: Any, length: int) -> Any:
        for _ in range(length):
            x = x * factor
        return x

    differentiate = make_vjp(product, [0, 1])

    def run(length: int) -> tuple[Any, Any]:
        pull, _ = differentiate(START, FACTOR, length)
        return pull(ONES)  # type: ignore[no-any-return]

    return run


def mygrad() -> Chain:
    """MyGrad, without its locks on arrays."""
    import mygrad

    mygrad.turn_memory_guarding_off()
    x, factor = mygrad.tensor(START), mygrad.tensor(FACTOR)

    def run(length: int) -> tuple[Any, Any]:
        y = x
        for _ in range(length):
            y = y * factor
        y.backward(ONES)
        return x.grad, factor.grad

    return run


class Link:
    """What any list of operations in Python holds at the least: one object for each."""

    __slots__ = ("before", "factor", "product")

    def __init__(self, before: "Link | None", product: Any, factor: Any) -> None:
        self.before, self.product, self.factor = before, product, factor


def linked_list() -> Chain:
    """The chain by hand, on a list of one object for each product: no library at all."""

    def run(length: int) -> tuple[Any, Any]:
        y, last = START, None
        for _ in range(length):
            last = Link(last, y, FACTOR)
            y = np.multiply(y, FACTOR)
        g, by_factor = ONES, np.zeros_like(FACTOR)
        while last is not None:
            by_factor = np.add(by_factor, np.multiply(g, last.product))
            g = np.multiply(g, last.factor)
            last.before, last = None, last.before
        return g, by_factor

    return run


#: Name in the table to the contestant, and the library that it needs.
CONTESTANTS: dict[str, tuple[Callable[[], Chain], str]] = {
    "Wengert": (wengert, "numpy"),
    "PyTorch eager": (pytorch, "torch"),
    "HIPS/autograd": (hips_autograd, "autograd"),
    "MyGrad": (mygrad, "mygrad"),
}
