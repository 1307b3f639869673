"""Initialisers of parameters.

Random numbers are drawn on the CPU, and then moved to the parameter's device. So after
`wengert.manual_seed` a model starts from the same numbers on every backend.
"""

import math
from typing import Any, Literal

import numpy as np

from wengert.backends import DTYPES, dtype_of, use_backend
from wengert.nn.conversion import convert
from wengert.ops.axes import number
from wengert.ops.random import rand, randn
from wengert.tape.grad_mode import recording
from wengert.tape.parameters import takes
from wengert.tape.tensor import IN_PLACE_ON_LEAF, Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def __dir__() -> list[str]:
    return __all__


Mode = Literal["fan_in", "fan_out"]


def _fill(tensor: Tensor, values: Any) -> Tensor:
    """Give a leaf new values; as in PyTorch, that is not recorded."""
    if not tensor.is_leaf and recording():
        raise RuntimeError(IN_PLACE_ON_LEAF.replace("leaf Variable that", "computed Tensor that"))
    tensor._array = convert(
        np.broadcast_to(np.asarray(values), tensor.shape),
        tensor.backend,
        tensor.dtype,
        tensor.device,
    )
    return tensor


def _drawn(draw: Any, tensor: Tensor) -> Any:
    """Random numbers of a Tensor's shape, on the CPU."""
    dtype = dtype_of(tensor._array.dtype)
    if not dtype.inexact:
        raise TypeError(f"only floating and complex Tensors are initialised at random, not {dtype}")
    with use_backend("numpy"):
        return draw(tuple(tensor.shape), dtype=DTYPES[dtype.host]).numpy()


@takes(constant="tensor", a="a number", b="a number")
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill a Tensor with uniform numbers in [a, b); complex ones in both parts.

    Parameters
    ----------
    tensor : Tensor
        A leaf, floating or complex.
    a, b : float
        The interval.

    Returns
    -------
    Tensor
        ``tensor``.
    """
    a, b = number(a, "uniform_", "a"), number(b, "uniform_", "b")
    low = complex(a, a) if tensor.dtype.complex else a
    return _fill(tensor, low + (b - a) * _drawn(rand, tensor))


@takes(constant="tensor", mean="a number", std="a number")
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill a Tensor with normal numbers of a given mean and standard deviation, and return it."""
    mean, std = number(mean, "normal_", "mean"), number(std, "normal_", "std")
    return _fill(tensor, mean + std * _drawn(randn, tensor))


@takes(constant="tensor", val="a number")
def constant_(tensor: Tensor, val: complex) -> Tensor:
    """Fill a Tensor with one value, and return it."""
    return _fill(tensor, number(val, "constant_", "val"))


@takes(constant="tensor")
def ones_(tensor: Tensor) -> Tensor:
    """Fill a Tensor with ones, and return it."""
    return _fill(tensor, 1)


@takes(constant="tensor")
def zeros_(tensor: Tensor) -> Tensor:
    """Fill a Tensor with zeros, and return it."""
    return _fill(tensor, 0)


@takes(param="a number")
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    r"""Return the factor of weights that makes up for the variance that a nonlinearity takes away.

    Parameters
    ----------
    nonlinearity : str
        ``"linear"``, ``"conv1d"`` to ``"conv_transpose3d"``, ``"sigmoid"``: 1; ``"tanh"``: 5/3;
        ``"relu"``: :math:`\sqrt 2`; ``"leaky_relu"``: :math:`\sqrt{2 / (1 + s^2)}`; ``"selu"``:
        3/4.
    param : float, optional
        The slope :math:`s` of ``"leaky_relu"``; 0.01 by default.

    Raises
    ------
    ValueError
        If the nonlinearity is another one, or the slope is no number.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if hasattr(slope, "dtype"):
            slope = number(slope, "calculate_gain", "param")
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4, "linear": 1.0, "sigmoid": 1.0}
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity.startswith("conv") and nonlinearity[-2:] in ("1d", "2d", "3d"):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


@takes(constant="tensor", gain="a number")
def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    r"""Fill a Tensor with uniform numbers in [-b, b), :math:`b = g\sqrt{6 / (n_{in} + n_{out})}`.

    Parameters
    ----------
    tensor : Tensor
        A leaf with at least two axes: outputs, inputs, and those of a kernel.
    gain : float
        :math:`g`, see `calculate_gain`.

    Returns
    -------
    Tensor
        ``tensor``.

    Notes
    -----
    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010).
    """
    bound = number(gain, "xavier_uniform_", "gain") * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


@takes(constant="tensor", gain="a number")
def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    r"""Fill a Tensor with normal numbers of deviation :math:`g\sqrt{2 / (n_{in} + n_{out})}`.

    The parameters, result and source are those of `xavier_uniform_`.
    """
    gain = number(gain, "xavier_normal_", "gain")
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))


def _kaiming(tensor: Tensor, a: float, mode: Mode, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of fan_in, fan_out")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@takes(constant="tensor", a="a number")
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    r"""Fill a Tensor with uniform numbers in [-b, b), :math:`b = g\sqrt{3 / n}`.

    Parameters
    ----------
    tensor : Tensor
        A leaf with at least two axes: outputs, inputs, and those of a kernel. An empty one stays.
    a : float
        The slope of the leaky ReLU that follows.
    mode : {"fan_in", "fan_out"}
        Whether :math:`n` is the number of inputs, which keeps the variance in the forward pass, or
        of outputs, which keeps it in the backward pass.
    nonlinearity : str
        The nonlinearity that follows, of gain :math:`g`; see `calculate_gain`.

    Returns
    -------
    Tensor
        ``tensor``.

    Notes
    -----
    He et al., "Delving deep into rectifiers" (2015).
    """
    if not tensor.size:
        return tensor
    a = number(a, "kaiming_uniform_", "a")
    bound = math.sqrt(3) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


@takes(constant="tensor", a="a number")
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    r"""Fill a Tensor with normal numbers of deviation :math:`g / \sqrt n`.

    The parameters, result and source are those of `kaiming_uniform_`.
    """
    if not tensor.size:
        return tensor
    a = number(a, "kaiming_normal_", "a")
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity))
