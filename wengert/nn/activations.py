"""Activations as layers; each calls the function of its name, which has the formula."""

from typing import Any, Literal

from wengert.nn import functional as F
from wengert.nn.module import Module
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor


@takes()
class ReLU(Module):
    """`functional.relu` as a layer.

    Parameters
    ----------
    inplace : bool
        Accepted for PyTorch's sake. Values are never changed in place.
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Any) -> Tensor:
        """Rectify the input."""
        return F.relu(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


@takes("negative_slope")
class LeakyReLU(Module):
    """`functional.leaky_relu` as a layer.

    Parameters
    ----------
    negative_slope : float
        The slope for negative numbers.
    inplace : bool
        As for `ReLU`.
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Tensor:
        """Rectify the input."""
        return F.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" * self.inplace)


@takes("alpha")
class ELU(Module):
    """`functional.elu` as a layer.

    Parameters
    ----------
    alpha : float
        The limit for very negative numbers is ``-alpha``.
    inplace : bool
        As for `ReLU`.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Tensor:
        """Apply the unit to each element."""
        return F.elu(input, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" * self.inplace)


@takes()
class GELU(Module):
    """`functional.gelu` as a layer.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        Whether the normal distribution is approximated.
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Any) -> Tensor:
        """Apply the unit to each element."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


@takes()
class SiLU(Module):
    """`functional.silu` as a layer.

    Parameters
    ----------
    inplace : bool
        As for `ReLU`.
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Any) -> Tensor:
        """Apply the unit to each element."""
        return F.silu(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """`functional.sigmoid` as a layer."""

    def forward(self, input: Any) -> Tensor:
        """Squash each element between 0 and 1."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """`functional.logsigmoid` as a layer."""

    def forward(self, input: Any) -> Tensor:
        """Take the logarithm of each element's sigmoid."""
        return F.logsigmoid(input)


class Tanh(Module):
    """`functional.tanh` as a layer."""

    def forward(self, input: Any) -> Tensor:
        """Squash each element between -1 and 1."""
        return F.tanh(input)


@takes("beta", "threshold")
class Softplus(Module):
    """`functional.softplus` as a layer.

    Parameters
    ----------
    beta, threshold : float
        As for the function.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Tensor:
        """Rectify the input smoothly."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


@takes()
class Softmax(Module):
    """`functional.softmax` as a layer.

    Parameters
    ----------
    dim : int
        Dimension whose elements sum to 1.
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def forward(self, input: Any) -> Tensor:
        """Turn logits into probabilities."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


@takes()
class LogSoftmax(Module):
    """`functional.log_softmax` as a layer.

    Parameters
    ----------
    dim : int
        Dimension along which the probabilities sum to 1.
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def forward(self, input: Any) -> Tensor:
        """Turn logits into logarithms of probabilities."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
