"""Activations as layers; each is the function of its name, which has the formula."""

from operator import index
from typing import Any, Literal

from wengert import ops
from wengert.nn import functional as F
from wengert.nn.define import Single
from wengert.nn.init import constant_
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.axes import number
from wengert.tape.tensor import Tensor


class _InPlace(Single):
    def __init__(self, inplace: bool = False) -> None: ...


class _Unit(Single):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


class _Along(Single):
    def __init__(self, dim: int | None = None) -> None: ...


class ReLU(_InPlace, of=F.relu): ...


class ReLU6(_InPlace, of=F.relu6): ...


class SiLU(_InPlace, of=F.silu): ...


class SELU(_InPlace, of=F.selu): ...


class Mish(_InPlace, of=F.mish): ...


class Hardswish(_InPlace, of=F.hardswish, shown=""): ...


class Hardsigmoid(_InPlace, of=F.hardsigmoid, shown=""): ...


class ELU(_Unit, of=F.elu): ...


class Sigmoid(Single, of=F.sigmoid): ...


class LogSigmoid(Single, of=F.logsigmoid): ...


class Tanh(Single, of=F.tanh): ...


class Softsign(Single, of=F.softsign): ...


class Softmax(_Along, of=F.softmax): ...


class LogSoftmax(_Along, of=F.log_softmax): ...


class LeakyReLU(Single, of=F.leaky_relu):
    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None: ...


class GELU(Single, of=F.gelu):
    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None: ...


class GLU(Single, of=F.glu):
    def __init__(self, dim: int = -1) -> None: ...


class Softplus(Single, of=F.softplus):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...


class Hardtanh(Single, of=F.hardtanh):
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        if not (hasattr(min_val, "dtype") or hasattr(max_val, "dtype")) and max_val <= min_val:
            raise ValueError(f"max_val should be above min_val, and is {max_val}, not {min_val}")


class PReLU(Module):
    """`functional.prelu` with a slope that is learnt.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels.
    init : float
        What the slopes start with.

    Attributes
    ----------
    weight : Parameter
        The slopes, of shape (num_parameters,).

    Examples
    --------
    >>> layer = wg.nn.PReLU()
    >>> layer(wg.asarray([[-1.0], [2.0]])).sum().backward()
    >>> layer.weight.grad
    tensor([-1.])
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
