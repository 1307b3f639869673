"""Activations as layers; each is the function of its name, which has the formula."""

from typing import Any, Literal

from wengert.nn import functional as F
from wengert.nn.define import Stored, stores
from wengert.tape.tensor import Tensor


class _Activation(Stored):
    def forward(self, input: Any) -> Tensor:
        raise NotImplementedError


@stores(F.relu)
class ReLU(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.leaky_relu)
class LeakyReLU(_Activation):
    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None: ...


@stores(F.elu)
class ELU(_Activation):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


@stores(F.gelu)
class GELU(_Activation):
    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None: ...


@stores(F.silu)
class SiLU(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.sigmoid)
class Sigmoid(_Activation): ...


@stores(F.logsigmoid)
class LogSigmoid(_Activation): ...


@stores(F.tanh)
class Tanh(_Activation): ...


@stores(F.softplus)
class Softplus(_Activation):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...


@stores(F.softmax)
class Softmax(_Activation):
    def __init__(self, dim: int | None = None) -> None: ...


@stores(F.log_softmax)
class LogSoftmax(_Activation):
    def __init__(self, dim: int | None = None) -> None: ...
