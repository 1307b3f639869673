"""Networks: modules, parameters, layers, losses and initialisers, by PyTorch's names."""

from wengert.nn import functional, init, stored, utils
from wengert.nn.attention import MultiheadAttention
from wengert.nn.cells import GRUCell, LSTMCell
from wengert.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from wengert.nn.convolution import (
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    ReflectionPad2d,
    ZeroPad2d,
)
from wengert.nn.embedding import Embedding
from wengert.nn.layers import Flatten, Identity, Linear
from wengert.nn.module import Module
from wengert.nn.normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    LayerNorm,
    RMSNorm,
)
from wengert.nn.parameter import Parameter
from wengert.nn.recurrent import GRU, LSTM, RNN
from wengert.nn.stored import *  # noqa: F403 -- its rows
from wengert.nn.transformer import TransformerEncoder, TransformerEncoderLayer
from wengert.ops.hints import list_public
from wengert.storage.weights import load, save

__all__ = [
    "GRU", "LSTM", "RNN", "BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d", "ConvTranspose1d",
    "ConvTranspose2d", "Embedding", "Flatten", "GRUCell", "GroupNorm", "Identity", "InstanceNorm1d",
    "InstanceNorm2d", "LSTMCell", "LayerNorm", "Linear", "Module", "ModuleDict", "ModuleList",
    "MultiheadAttention", "Parameter", "ParameterList", "RMSNorm", "ReflectionPad2d", "Sequential",
    "TransformerEncoder", "TransformerEncoderLayer", "ZeroPad2d", "functional", "init", "load",
    "save", "utils",
]  # fmt: skip
__all__ += stored.__all__

list_public(__name__)
