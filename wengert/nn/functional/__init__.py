"""Layers and losses as functions."""

from wengert.nn.functional.activation import (
    elu,
    gelu,
    hardswish,
    leaky_relu,
    logsigmoid,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from wengert.nn.functional.attention import scaled_dot_product_attention
from wengert.nn.functional.binary import binary_cross_entropy, binary_cross_entropy_with_logits
from wengert.nn.functional.classification import cross_entropy, nll_loss
from wengert.nn.functional.convolution import (
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    unfold,
)
from wengert.nn.functional.distance import cosine_similarity
from wengert.nn.functional.dropout import dropout, dropout2d
from wengert.nn.functional.embedding import embedding, one_hot
from wengert.nn.functional.linear import linear
from wengert.nn.functional.normalisation import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    normalize,
    rms_norm,
)
from wengert.nn.functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from wengert.nn.functional.regression import (
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from wengert.nn.functional.resampling import interpolate, pixel_shuffle
from wengert.nn.functional.softmaxes import log_softmax, softmax
from wengert.nn.functional.spatial import pad
from wengert.ops.hints import list_public

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d",
    "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "conv1d", "conv2d",
    "conv_transpose1d", "conv_transpose2d", "cosine_similarity",
    "cross_entropy", "dropout", "dropout2d", "elu", "embedding", "gaussian_nll_loss", "gelu",
    "group_norm", "hardswish", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss",
    "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool1d", "max_pool2d",
    "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "pixel_shuffle", "relu", "relu6",
    "rms_norm", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss",
    "softmax", "softplus", "tanh", "unfold",
]  # fmt: skip

list_public(__name__)
