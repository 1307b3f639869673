"""Activations along an axis."""

from collections.abc import Callable
from typing import Any

from wengert import ops
from wengert.ops.special import everyday
from wengert.tape.tensor import Tensor, wrap


def _apply_along(
    function: Callable[..., Tensor], input: Any, dim: int | None, dtype: Any
) -> Tensor:
    x = wrap(input)
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


def softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    r"""Probabilities proportional to exponentials, :math:`e^{x_i} / \sum_j e^{x_j}`.

    They sum to 1 along ``dim``, which has to be given. Cotangent :math:`s (g - \sum_j g_j s_j)`
    with the result :math:`s`. PyTorch: ``torch.nn.functional.softmax``.

    Examples
    --------
    >>> wg.nn.functional.softmax(wg.asarray([[1.0, 2.0, 3.0]]), dim=1)
    tensor([[0.0900, 0.2447, 0.6652]])
    """
    return _apply_along(everyday.softmax, input, dim, dtype)


def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    r"""Logarithm of `softmax`, :math:`x_i - \log \sum_j e^{x_j}`, accurate where that is 0.

    Cotangent :math:`g - e^y \sum_j g_j` with the result :math:`y`.
    PyTorch: ``torch.nn.functional.log_softmax``.

    Examples
    --------
    >>> wg.nn.functional.log_softmax(wg.asarray([[0.0, 1000.0]]), dim=1)
    tensor([[-1000.,     0.]])
    """
    return _apply_along(everyday.log_softmax, input, dim, dtype)
