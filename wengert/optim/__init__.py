"""Optimisers: they change parameters along their gradients."""

from wengert.optim import lr_scheduler, swa_utils
from wengert.optim.adam import Adam, AdamW
from wengert.optim.adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from wengert.optim.averaged import ASGD
from wengert.optim.lbfgs import LBFGS
from wengert.optim.muon import Muon
from wengert.optim.optimizer import Optimizer
from wengert.optim.sgd import SGD
from wengert.optim.signs import Lion, Rprop

__all__ = [
    "ASGD",
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
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]


def __dir__() -> list[str]:
    return __all__
