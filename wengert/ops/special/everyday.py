"""The special functions of networks, which `wengert` has beside the standard's."""

from wengert.ops.special.activation import gelu, leaky_relu, relu, silu
from wengert.ops.special.error import erf, erfc
from wengert.ops.special.logistic import expit, log_expit, logit, softplus, xlogy
from wengert.ops.special.softmax import log_softmax, logsumexp, softmax

__all__ = [
    "erf",
    "erfc",
    "expit",
    "gelu",
    "leaky_relu",
    "log_expit",
    "log_softmax",
    "logit",
    "logsumexp",
    "relu",
    "silu",
    "softmax",
    "softplus",
    "xlogy",
]
