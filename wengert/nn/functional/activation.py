"""Activations, by PyTorch's names and arguments."""

from collections.abc import Callable
from typing import Any

from wengert import ops
from wengert.ops.axes import operand
from wengert.ops.special import everyday
from wengert.tape.families import Family
from wengert.tape.parameters import takes
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, wrapped

# These are functions of arrays as well, and some have another name there.
gelu = everyday.gelu
leaky_relu = everyday.leaky_relu
logsigmoid = everyday.log_expit
relu = everyday.relu
sigmoid = everyday.expit
silu = everyday.silu
tanh = ops.tanh


_ACTIVATION = Family("""
Parameters
----------
input : Tensor
    Real floating.

Returns
-------
Tensor
    Of the shape and dtype of ``input``.

Notes
-----
PyTorch: ``torch.nn.functional.$name``.
""")
_SHARES = Family("""
Parameters
----------
input : Tensor
    Floating or complex.
dim : int
    Dimension whose elements, or exponentials, sum to 1.
dtype : dtype, optional
    Taken before the operation.

Returns
-------
Tensor
    Of the shape of ``input``.

Notes
-----
PyTorch: ``torch.nn.functional.$name``.
""")


def _elu_forward(xp: Any, x: Any, alpha: float) -> Any:
    below = xp.multiply(xp.expm1(xp.minimum(x, 0)), alpha)
    return xp.where(xp.greater(x, 0), x, below)


def _elu_rule(xp: Any, g: Any, x: Any, alpha: float) -> Any:
    # Not the minimum, which shares its slope at a tie: the second derivative at 0 is 0.
    negative = xp.where(xp.less(x, 0), x, xp.zeros_like(x))
    slope = xp.multiply(xp.exp(negative), alpha)
    below = xp.multiply(g, xp.conj(slope))
    return xp.where(xp.greater(x, 0), g, below)


_elu = Primitive("elu", ("x",), {"x": _elu_rule}, kind="elementwise", forward=_elu_forward).bind


@takes("input alpha", family=_ACTIVATION)
def elu(input: Any, alpha: float = 1.0) -> Tensor:
    r"""Exponential linear unit: :math:`x` above 0, :math:`\alpha (e^x - 1)` below.

    Derivative 1 above 0 and :math:`\alpha e^x` below; :math:`\alpha` at 0. Clevert, Unterthiner and
    Hochreiter, "Fast and accurate deep network learning by exponential linear units" (2016).

    Parameters
    ----------
    alpha : float or Tensor
        :math:`\alpha`. The result is differentiable in a Tensor, which may also be an array that
        broadcasts with ``input``.
    """
    if type(alpha) is not float:
        x = wrapped(input)
        alpha = operand(alpha, x, "elu", "alpha")
        if isinstance(alpha, Tensor):
            right = ops.greater(x, 0)
            below = ops.multiply(ops.expm1(ops.where(right, 0, x)), alpha)
            return ops.where(right, x, below)
    return _elu(input, alpha=alpha)  # type: ignore[no-any-return]


@takes("input beta", "threshold", family=_ACTIVATION)
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    r"""Smooth rectifier, :math:`\log(1 + e^{\beta x}) / \beta`.

    Derivative :math:`\sigma(\beta x)`, the logistic sigmoid.

    Parameters
    ----------
    beta : float or Tensor
        :math:`\beta`. The result is differentiable in a Tensor, which may also be an array that
        broadcasts with ``input``.
    threshold : float or Tensor
        Where :math:`\beta x` is larger, the result is :math:`x` itself. The derivative with
        respect to a Tensor is 0.
    """
    x = wrapped(input)
    if type(beta) is not float:
        beta = operand(beta, x, "softplus", "beta")
    if type(threshold) is not float:
        threshold = operand(threshold, x, "softplus", "threshold")
    scaled = ops.multiply(x, beta)
    straight = ops.greater(scaled, threshold)
    if isinstance(beta, Tensor):  # an infinity beyond the threshold has no part in its derivative
        scaled = ops.multiply(ops.where(straight, 0, x), beta)
    smooth = ops.multiply(everyday.softplus(scaled), 1 / beta)
    return ops.where(straight, x, smooth)


def _along(function: Callable[..., Tensor], input: Any, dim: int | None, dtype: Any) -> Tensor:
    x = wrapped(input)
    name = function.__name__
    if dim is None:
        raise ValueError(f"{name} needs dim, the dimension along which probabilities sum to 1")
    if dtype is not None:
        x = ops.astype(x, dtype, copy=False)
    if not x.dtype.inexact:
        raise TypeError(f"{name} needs a floating Tensor, not one of {x.dtype.name}; give dtype")
    if x.ndim:
        return function(x, axis=dim)
    return ops.reshape(function(ops.reshape(x, (1,)), axis=dim), ())


@takes("input", family=_SHARES)
def softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    r"""Probabilities proportional to exponentials, :math:`e^{x_i} / \sum_j e^{x_j}`.

    Cotangent :math:`s (g - \sum_j g_j s_j)` with the result :math:`s`.
    """
    return _along(everyday.softmax, input, dim, dtype)


@takes("input", family=_SHARES)
def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    r"""Logarithm of `softmax`, :math:`x_i - \log \sum_j e^{x_j}`, accurate where that is 0.

    Cotangent :math:`g - e^y \sum_j g_j` with the result :math:`y`.
    """
    return _along(everyday.log_softmax, input, dim, dtype)
