"""Layers."""

import math
from typing import Any

from wengert import ops
from wengert.nn import functional as F
from wengert.nn import init
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.axes import as_axis, number
from wengert.ops.creation import whole
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrapped


class Identity(Module):
    """A layer that returns its input: of a Tensor another one of the same values.

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

    def _make(
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
        self._make(shape, self.out_features, bias, device, dtype)

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
        return wrapped(input).flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split an axis into several, of which one length may be -1.

    Examples
    --------
    >>> wg.nn.Unflatten(1, (3, 2))(wg.ones((4, 6))).shape
    (4, 3, 2)
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        shape = tuple(input.shape)
        dim = as_axis(self.dim, len(shape), "unflatten")
        lengths = list(self.unflattened_size)
        if lengths.count(-1) == 1 and (known := -math.prod(lengths)):
            lengths[lengths.index(-1)] = shape[dim] // known
        if math.prod(lengths) != shape[dim] or min(lengths, default=0) < 0:
            raise RuntimeError(
                f"unflatten: sizes {self.unflattened_size} don't multiply up to the size of dim "
                f"{self.dim} ({shape[dim]}) in the input tensor"
            )
        return ops.reshape(input, (*shape[:dim], *lengths, *shape[dim + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PReLU(Module):
    """`functional.prelu` with slopes that are learnt, one or one a channel, from ``init``.

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
        self.num_parameters = whole(num_parameters, "PReLU", "num_parameters")
        self.init = number(init, "PReLU", "init")
        self.weight = Parameter(ops.empty((self.num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to what they start with."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
