"""Layers and losses as functions."""

from wengert.nn.functional.activation import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    logsigmoid,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from wengert.nn.functional.binary import binary_cross_entropy, binary_cross_entropy_with_logits
from wengert.nn.functional.classification import cross_entropy, nll_loss, one_hot
from wengert.nn.functional.dropout import dropout
from wengert.nn.functional.linear import linear
from wengert.nn.functional.normalisation import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    normalize,
    rms_norm,
)
from wengert.nn.functional.regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss

__all__ = [
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "dropout",
    "elu",
    "gelu",
    "group_norm",
    "huber_loss",
    "instance_norm",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "relu",
    "rms_norm",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]


def __dir__() -> list[str]:
    return __all__
