"""Layers whose numbers a module learns, and those that only change shapes.

`wrap` makes a Tensor of an array, `anew` another Tensor of the same values; `whole` refuses what
is no integer. What calls a function with options alone is a row of `wengert.nn.stored`.
"""

import math
from typing import Any

from wengert import ops
from wengert.nn import functional as F
from wengert.nn import init
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.creation import whole
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrap


class Identity(Module):
    """A layer that returns its input; a Tensor comes back as a new Tensor of the same values.

    It takes any arguments, so that it can stand in for another layer.

    Examples
    --------
    >>> wg.nn.Identity()(wg.asarray([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, input: Any) -> Any:
        return anew(input) if isinstance(input, Tensor) else input


class Affine(Module):
    """A module with a weight and, if it is not None, a bias for each output."""

    weight: Parameter
    bias: Parameter | None

    def _add_parameters(
        self, shape: tuple[int, ...], outputs: int, bias: bool, device: Any, dtype: Any
    ) -> None:
        self.weight = Parameter(ops.empty(shape, device=device, dtype=dtype))
        self.bias = Parameter(ops.empty((outputs,), device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            inputs = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(inputs) if inputs else 0.0
            init.uniform_(self.bias, -bound, bound)


class Linear(Affine):
    r"""Affine map of the last axis, :math:`x W^T + b`.

    ``weight`` is :math:`W`, of shape (out_features, in_features), and ``bias`` :math:`b`. Both
    start uniform within :math:`\pm 1 / \sqrt{\mathrm{in\_as_count}}`.

    Examples
    --------
    >>> layer = wg.nn.Linear(3, 2)
    >>> layer(wg.ones((4, 3))).shape, layer.weight.shape
    ((4, 2), (2, 3))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in_features = whole(in_features, "Linear", "in_features")
        self.out_features = whole(out_features, "Linear", "out_features")
        shape = self.out_features, self.in_features
        self._add_parameters(shape, self.out_features, bias, device, dtype)

    def forward(self, input: Any) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Flatten(Module):
    """Join a range of axes into one.

    Examples
    --------
    >>> wg.nn.Flatten()(wg.ones((4, 3, 8, 8))).shape
    (4, 192)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Reshape the input; one without axes gets one."""
        return wrap(input).flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
