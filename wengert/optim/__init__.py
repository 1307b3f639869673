"""Optimisers: they change parameters along their gradients."""

from wengert.ops.hints import list_public
from wengert.optim import lr_scheduler, swa_utils
from wengert.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from wengert.optim.adaptive import Adadelta, Adagrad, RMSprop
from wengert.optim.lbfgs import LBFGS
from wengert.optim.lion_muon import Lion, Muon
from wengert.optim.optimizer import Optimizer
from wengert.optim.sgd import SGD

__all__ = [
    "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "lr_scheduler", "swa_utils",
]  # fmt: skip

list_public(__name__)
