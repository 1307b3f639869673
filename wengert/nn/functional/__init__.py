"""Layers and losses as functions."""

from wengert.nn.functional.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from wengert.nn.functional.attention import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from wengert.nn.functional.binary import binary_cross_entropy, binary_cross_entropy_with_logits
from wengert.nn.functional.classification import cross_entropy, nll_loss, one_hot
from wengert.nn.functional.dropout import alpha_dropout, dropout, dropout1d, dropout2d
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
    "alpha_dropout",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "instance_norm",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "nll_loss",
    "normalize",
    "one_hot",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "rrelu",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


def __dir__() -> list[str]:
    return __all__
