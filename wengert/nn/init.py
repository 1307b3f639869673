"""Initialisers of parameters, by PyTorch's names.

Random numbers are drawn on the CPU, and then moved to the parameter's device. So after
`wengert.manual_seed` a model starts from the same numbers on every backend.
"""

import math
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np

from wengert import ops
from wengert.backends import DTYPES, dtype_of, use_backend
from wengert.names import KEYWORDS
from wengert.nn.conversion import convert
from wengert.ops.axes import number
from wengert.ops.data_type import check_storable
from wengert.ops.hints import list_public, refuse_keywords
from wengert.ops.random import rand, randn
from wengert.tape.grad_mode import recording
from wengert.tape.tensor import IN_PLACE_ON_LEAF, Tensor, check_views

__all__ = [
    "calculate_gain", "constant_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

list_public(__name__)


Mode = Literal["fan_in", "fan_out"]
_seeded = partial(refuse_keywords, refused=KEYWORDS["init"])


def _fill(tensor: Tensor, values: Any) -> Tensor:
    """Give a leaf new values; as in PyTorch, that is not recorded."""
    if not tensor.is_leaf and recording():
        raise RuntimeError(IN_PLACE_ON_LEAF.replace("leaf Variable that", "computed Tensor that"))
    check_views(tensor)
    array = np.broadcast_to(np.asarray(values), tensor.shape)
    tensor._array = convert(array, tensor.backend, tensor.dtype, tensor.device)
    return tensor


def _draw(random: Any, tensor: Tensor, *, double: bool = False) -> Any:
    """Random numbers of a Tensor's shape, on the CPU; of double precision if asked for."""
    dtype = dtype_of(tensor._array.dtype)
    if not dtype.inexact:
        raise TypeError(f"only floating and complex Tensors are initialised at random, not {dtype}")
    wide = "complex128" if dtype.complex else "float64"
    with use_backend("numpy"):
        return random(tuple(tensor.shape), dtype=DTYPES[wide if double else dtype.host]).numpy()


@_seeded
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill a Tensor with uniform numbers in [a, b); complex ones in both parts.

    Examples
    --------
    >>> w = wg.nn.init.uniform_(wg.empty(100), -0.1, 0.1)
    >>> bool(wg.all(wg.abs(w) <= 0.1))
    True
    """
    a, b = number(a, "uniform_", "a"), number(b, "uniform_", "b")
    if not a <= b:
        raise ValueError(f"uniform_ draws from [a, b), and a={a} is above b={b}")
    low = complex(a, a) if tensor.dtype.complex else a
    return _fill(tensor, low + (b - a) * _draw(rand, tensor))


@_seeded
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill a Tensor with normal numbers; complex ones share the variance between their parts.

    Examples
    --------
    >>> w = wg.nn.init.normal_(wg.empty((300, 200)), std=0.02)
    >>> round(wg.std(w).item(), 3)
    0.02
    """
    mean, std = number(mean, "normal_", "mean"), number(std, "normal_", "std")
    if not std >= 0:
        raise ValueError(f"normal_ expects a deviation of 0 or more, and std={std}")
    return _fill(tensor, mean + std * _draw(randn, tensor))


def constant_(tensor: Tensor, val: complex) -> Tensor:
    """Fill a Tensor with one value.

    Examples
    --------
    >>> wg.nn.init.constant_(wg.empty(3), 0.3)
    tensor([0.3000, 0.3000, 0.3000])
    """
    val = number(val, "constant_", "val")
    check_storable("constant_", val, tensor.dtype)
    return _fill(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a Tensor with ones.

    Examples
    --------
    >>> wg.nn.init.ones_(wg.empty(3))
    tensor([1., 1., 1.])
    """
    return _fill(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a Tensor with zeros.

    Examples
    --------
    >>> wg.nn.init.zeros_(wg.empty(3))
    tensor([0., 0., 0.])
    """
    return _fill(tensor, 0)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    r"""Return the factor of weights that makes up for the variance that a nonlinearity takes away.

    It is 1 for ``"linear"``, ``"conv1d"`` to ``"conv_transpose3d"`` and ``"sigmoid"``, 5/3 for
    ``"tanh"``, :math:`\sqrt 2` for ``"relu"``, 3/4 for ``"selu"``, and
    :math:`\sqrt{2 / (1 + s^2)}` for ``"leaky_relu"`` of the slope ``param``, 0.01 by default.

    Examples
    --------
    >>> round(wg.nn.init.calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if hasattr(slope, "dtype"):
            slope = number(slope, "calculate_gain", "param")
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4, "linear": 1.0, "sigmoid": 1.0}
    convolution = nonlinearity.startswith("conv") and nonlinearity[-2:] in ("1d", "2d", "3d")
    if not convolution and nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains.get(nonlinearity, 1.0)


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


@_seeded
def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    r"""Fill a Tensor with uniform numbers in [-b, b), :math:`b = g\sqrt{6 / (n_{in} + n_{out})}`.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010).

    Examples
    --------
    >>> w = wg.nn.init.xavier_uniform_(wg.empty((300, 200)))
    >>> round(w.max().item(), 2)  # sqrt(6 / (300 + 200))
    0.11
    """
    bound = number(gain, "xavier_uniform_", "gain") * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


@_seeded
def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    r"""Fill a Tensor with normal numbers of deviation :math:`g\sqrt{2 / (n_{in} + n_{out})}`.

    The source is that of `xavier_uniform_`.

    Examples
    --------
    >>> w = wg.nn.init.xavier_normal_(wg.empty((300, 200)))
    >>> round(wg.std(w).item(), 2)  # sqrt(2 / (300 + 200))
    0.06
    """
    gain = number(gain, "xavier_normal_", "gain")
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))


def _kaiming_deviation(tensor: Tensor, a: float, mode: Mode, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of fan_in, fan_out")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@_seeded
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    r"""Fill a Tensor with uniform numbers in [-b, b), :math:`b = g\sqrt{3 / n}`.

    :math:`n` is the number of inputs, which keeps the variance in the forward pass, or of outputs,
    which keeps it in the backward pass. He et al., "Delving deep into rectifiers" (2015).

    Examples
    --------
    >>> w = wg.nn.init.kaiming_uniform_(wg.empty((300, 200)), nonlinearity="relu")
    >>> round(w.max().item(), 2)  # sqrt(6 / 200)
    0.17
    """
    if not tensor.size:
        return tensor
    a = number(a, "kaiming_uniform_", "a")
    bound = math.sqrt(3) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


@_seeded
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    r"""Fill a Tensor with normal numbers of deviation :math:`g / \sqrt n`.

    Options and source are those of `kaiming_uniform_`.

    Examples
    --------
    >>> w = wg.nn.init.kaiming_normal_(wg.empty((300, 200)), nonlinearity="relu")
    >>> round(wg.std(w).item(), 2)  # sqrt(2 / 200)
    0.1
    """
    if not tensor.size:
        return tensor
    a = number(a, "kaiming_normal_", "a")
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity))


@_seeded
def orthogonal_(tensor: Tensor, gain: float = 1) -> Tensor:
    """Fill a Tensor with a random matrix of orthonormal rows or columns, those that are fewer.

    All such matrices are equally likely: it is the first factor of a QR decomposition of normal
    numbers, with columns turned so that the second has a positive diagonal. Saxe, McClelland and
    Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks"
    (2013).

    Examples
    --------
    >>> w = wg.nn.init.orthogonal_(wg.empty((3, 3)))
    >>> bool(wg.all(wg.abs(w @ w.mT - wg.eye(3)) < 1e-5))
    True
    """
    gain = number(gain, "orthogonal_", "gain")
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_ needs 2 axes or more, not a shape {tuple(tensor.shape)}")
    drawn = _draw(randn, tensor, double=True)
    if not tensor.size:
        return tensor
    matrix = drawn.reshape(tensor.shape[0], -1)
    wide = matrix.shape[0] < matrix.shape[1]
    q, r = np.linalg.qr(matrix.T if wide else matrix)
    diagonal = np.diagonal(r)
    q = q * np.where(diagonal == 0, 1, np.sign(diagonal))
    return _fill(tensor, gain * (q.T if wide else q).reshape(tensor.shape))


@_seeded
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """Fill a Tensor with normal numbers under the condition that they are in [a, b].

    Examples
    --------
    >>> w = wg.nn.init.trunc_normal_(wg.empty((100, 100)), a=-1.0, b=1.0)
    >>> bool(wg.all(wg.abs(w) <= 1))
    True
    """
    mean, std = number(mean, "trunc_normal_", "mean"), number(std, "trunc_normal_", "std")
    a, b = number(a, "trunc_normal_", "a"), number(b, "trunc_normal_", "b")
    if tensor.dtype.complex:
        raise TypeError("trunc_normal_ fills real Tensors; a complex number has no order")
    uniform = _draw(rand, tensor, double=True)
    if not std > 0 or not a < b:
        raise ValueError(f"std should be positive and a below b, and they are {std}, {a} and {b}")
    low, high = (a - mean) / std, (b - mean) / std
    # To the left of the mean, where small probabilities have all their digits.
    turn = -1 if low > 0 else 1
    low, high = sorted((turn * low, turn * high))
    below, above = (math.erfc(-x / math.sqrt(2)) / 2 for x in (low, high))
    if not below < above:
        raise ValueError(
            f"the normal numbers of mean {mean} and deviation {std} have no share in [{a}, {b}] "
            "that can be told from 0"
        )
    with use_backend("numpy"):
        ndtri = import_module("wengert.ops.special.normal").ndtri
        standard = ndtri(ops.asarray(below + (above - below) * uniform)).numpy()
    return _fill(tensor, np.clip(mean + std * turn * standard, a, b))
