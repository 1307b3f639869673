"""Optimisers: they change parameters along their gradients."""

from wengert.optim.adam import Adam, AdamW
from wengert.optim.optimizer import Optimizer
from wengert.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


def __dir__() -> list[str]:
    return __all__
