"""Optimisers: they change parameters along their gradients."""

from importlib import import_module
from typing import TYPE_CHECKING, Never

from wengert.optim import lr_scheduler, swa_utils
from wengert.optim.adam import Adam, AdamW
from wengert.optim.adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from wengert.optim.lbfgs import LBFGS
from wengert.optim.lion import Lion
from wengert.optim.muon import Muon
from wengert.optim.optimizer import Optimizer
from wengert.optim.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "lr_scheduler",
    "swa_utils",
]


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Never:
        raise import_module("wengert.ops.hints").no_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return __all__
