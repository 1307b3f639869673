"""Activations as layers; each is the function of its name, which has the formula."""

from operator import index
from typing import Any, Literal

from wengert import ops
from wengert.nn import functional as F
from wengert.nn.define import Stored, stores
from wengert.nn.init import constant_
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.axes import number
from wengert.tape.parameters import takes
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


@stores(F.relu6)
class ReLU6(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.selu)
class SELU(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.celu)
class CELU(_Activation):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


@stores(F.mish)
class Mish(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.hardswish, shown="")
class Hardswish(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.hardsigmoid, shown="")
class Hardsigmoid(_Activation):
    def __init__(self, inplace: bool = False) -> None: ...


@stores(F.hardtanh)
class Hardtanh(_Activation):
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        if not (hasattr(min_val, "dtype") or hasattr(max_val, "dtype")) and max_val <= min_val:
            raise ValueError(f"max_val should be above min_val, and is {max_val}, not {min_val}")


@stores(F.threshold)
class Threshold(_Activation):
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...


@stores(F.glu)
class GLU(_Activation):
    def __init__(self, dim: int = -1) -> None: ...


@stores(F.softsign)
class Softsign(_Activation): ...


@stores(F.tanhshrink)
class Tanhshrink(_Activation): ...


class _Shrink(_Activation):
    lambd: float

    def extra_repr(self) -> str:
        return str(self.lambd)


@stores(F.softshrink)
class Softshrink(_Shrink):
    def __init__(self, lambd: float = 0.5) -> None: ...


@stores(F.hardshrink)
class Hardshrink(_Shrink):
    def __init__(self, lambd: float = 0.5) -> None: ...


@stores(F.softmin)
class Softmin(_Activation):
    def __init__(self, dim: int | None = None) -> None: ...


class Softmax2d(Softmax):
    """`functional.softmax` over the channels of images, (C, H, W) or (N, C, H, W)."""

    def __init__(self) -> None:
        super().__init__(-3)

    def forward(self, input: Any) -> Tensor:
        """Turn the channels of each place into probabilities."""
        if len(input.shape) not in (3, 4):
            raise ValueError(
                "Softmax2d takes an input (C, H, W) or (N, C, H, W), not one of "
                f"{tuple(input.shape)}"
            )
        return F.softmax(input, -3)

    def extra_repr(self) -> str:
        return ""


@takes(num_parameters="an integer", init="a number")
class PReLU(Module):
    """`functional.prelu` with a slope that is learnt.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels.
    init : float
        What the slopes start with.
    device, dtype : optional
        Of the slopes; the selected device and the default dtype otherwise.

    Attributes
    ----------
    weight : Parameter
        The slopes, of shape (num_parameters,).
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        self.num_parameters = index(num_parameters)
        self.init = number(init, "PReLU", "init")
        self.weight = Parameter(ops.empty((self.num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to what they start with."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Tensor:
        """Rectify the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


@stores(F.rrelu)
class RReLU(_Activation):
    def __init__(
        self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False
    ) -> None: ...
