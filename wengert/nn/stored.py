"""Modules that only store options: each calls a function, which has the formula and the options."""

from functools import partial
from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import module
from wengert.nn.functional.define import check_reduction
from wengert.nn.functional.dropout import probability

# Activations.
ELU = module("ELU", F.elu, inplace=True)
GELU = module("GELU", F.gelu)
Hardswish = module("Hardswish", F.hardswish, inplace=True, shown="")
LeakyReLU = module("LeakyReLU", F.leaky_relu, inplace=True)
LogSigmoid = module("LogSigmoid", F.logsigmoid)
LogSoftmax = module("LogSoftmax", F.log_softmax)
ReLU = module("ReLU", F.relu, inplace=True)
ReLU6 = module("ReLU6", F.relu6, inplace=True)
SELU = module("SELU", F.selu, inplace=True)
SiLU = module("SiLU", F.silu, inplace=True)
Sigmoid = module("Sigmoid", F.sigmoid)
Softmax = module("Softmax", F.softmax)
Softplus = module("Softplus", F.softplus)
Tanh = module("Tanh", F.tanh)


# Dropout.
def _check_share(layer: Any) -> None:
    probability(type(layer).__name__, layer.p)


_dropout = partial(module, inplace=True, shown="p={0.p}, inplace={0.inplace}", check=_check_share)
Dropout = _dropout("Dropout", F.dropout)
Dropout2d = _dropout("Dropout2d", F.dropout2d)


# Pooling, and windows as columns.
def _set_stride(layer: Any) -> None:
    layer.stride = layer.kernel_size if layer.stride is None else layer.stride


_WINDOW = "kernel_size={0.kernel_size}, stride={0.stride}, padding={0.padding}"
_average = partial(module, shown=_WINDOW, check=_set_stride)
_maximum = partial(
    module, shown=_WINDOW + ", dilation={0.dilation}, ceil_mode=False", check=_set_stride
)
_adaptive = partial(module, shown="output_size={0.output_size}")
AdaptiveAvgPool1d = _adaptive("AdaptiveAvgPool1d", F.adaptive_avg_pool1d)
AdaptiveAvgPool2d = _adaptive("AdaptiveAvgPool2d", F.adaptive_avg_pool2d)
AvgPool1d = _average("AvgPool1d", F.avg_pool1d)
AvgPool2d = _average("AvgPool2d", F.avg_pool2d)
MaxPool1d = _maximum("MaxPool1d", F.max_pool1d)
MaxPool2d = _maximum("MaxPool2d", F.max_pool2d)
Unfold = module("Unfold", F.unfold)


# Resampling.
def _set_scale(layer: Any) -> None:
    scale = layer.scale_factor
    several = isinstance(scale, tuple)
    layer.scale_factor = tuple(map(float, scale)) if several else float(scale) if scale else None


def _show_lengths(layer: Any) -> str:
    name = "size" if layer.scale_factor is None else "scale_factor"
    return f"{name}={getattr(layer, name)!r}, mode={layer.mode!r}"


PixelShuffle = module("PixelShuffle", F.pixel_shuffle)
Upsample = module("Upsample", F.interpolate, shown=_show_lengths, check=_set_scale)


# Losses and distances.
def _check_batches(loss: Any) -> None:
    check_reduction("mean" if loss.reduction == "batchmean" else loss.reduction)


_loss = partial(module, shown="", check=lambda loss: check_reduction(loss.reduction))
BCELoss = _loss("BCELoss", F.binary_cross_entropy)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits)
CosineSimilarity = module("CosineSimilarity", F.cosine_similarity, shown="")
CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy)
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss)
HuberLoss = _loss("HuberLoss", F.huber_loss)
KLDivLoss = _loss("KLDivLoss", F.kl_div, check=_check_batches)
L1Loss = _loss("L1Loss", F.l1_loss)
MSELoss = _loss("MSELoss", F.mse_loss)
NLLLoss = _loss("NLLLoss", F.nll_loss)
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss)

__all__ = [
    name
    for name, kind in [*globals().items()]
    if getattr(kind, "__module__", "") == __name__
    if name[0] != "_"
]
