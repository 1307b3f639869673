"""Activations along an axis."""

from collections.abc import Callable
from typing import Any

from wengert import ops
from wengert.ops.axes import as_axis, at_axis
from wengert.ops.special import everyday
from wengert.tape.tensor import Tensor, wrapped


def _apply_along(
    function: Callable[..., Tensor], input: Any, dim: int | None, dtype: Any
) -> Tensor:
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


def glu(input: Any, dim: int = -1) -> Tensor:
    r"""Gated linear unit: the first half of an axis times the sigmoid of the second.

    Dauphin et al., "Language modeling with gated convolutional networks" (2017). Derivatives of
    :math:`a \sigma(b)`: :math:`\sigma(b)` and :math:`a \sigma(b) (1 - \sigma(b))`. The result is of
    half of the length along the axis. Raises `RuntimeError` if the length is odd.
    PyTorch: ``torch.nn.functional.glu``.

    Examples
    --------
    >>> wg.nn.functional.glu(wg.asarray([1.0, 2.0, 0.0, 100.0]))  # halves: values and gates
    tensor([0.5000, 2.0000])
    """
    x = wrapped(input)
    axis = as_axis(dim, x.ndim, "glu")
    if x.shape[axis] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {x.shape[axis]}"
        )
    half = x.shape[axis] // 2
    first, second = (x[at_axis(axis, part)] for part in (slice(half), slice(half, None)))
    return ops.multiply(first, everyday.expit(second))
