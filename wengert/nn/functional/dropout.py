"""Dropout."""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import real_floating
from wengert.ops.axes import number
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrapped


def dropout(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random elements to zero and scale the others, so that the mean stays.

    The mask is drawn on the device of ``input``; the cotangent is multiplied with the same mask.
    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014).
    Raises `ValueError` if ``p`` is no probability. PyTorch: ``torch.nn.functional.dropout``.

    Parameters
    ----------
    p : float
        Probability of zero, from 0 to 1. The others are multiplied by :math:`1 / (1 - p)`.

    Examples
    --------
    >>> x = wg.nn.functional.dropout(wg.ones(1000), p=0.25)
    >>> wg.unique_values(x)  # what is left is larger: the mean stays
    tensor([0.0000, 1.3333])
    """
    return _drop("dropout", input, p, training)


def _drop(name: str, input: Any, p: Any, training: bool, kept_axes: int | None = None) -> Tensor:
    """Dropout of elements, or of all that is along the axes after the first few."""
    p = probability(name, p)
    x = wrapped(input)
    if not training or p == 0.0:
        return anew(x)
    kept = _draw_mask(x, p, kept_axes)
    return ops.multiply(x, ops.multiply(kept, 1 / (1 - p)) if p < 1 else kept)


def probability(name: str, p: Any, option: str = "p") -> Any:
    """A probability of dropout as a number; an error if it is none."""
    p = number(p, name, option)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _draw_mask(x: Tensor, p: float, kept_axes: int | None = None) -> Tensor:
    """Ones, and zeros of probability ``p``, that broadcast with ``x``."""
    if kept_axes is not None:
        x = x[(..., *[slice(1)] * (x.ndim - kept_axes))]
    drawn = ops.rand_like(x)
    return ops.astype(ops.greater_equal(drawn, p), drawn.dtype)


def _channels(name: str, input: Any, p: Any, training: bool, sizes: str) -> Tensor:
    x = wrapped(input)
    members = len(sizes.split(", ")) + 1
    if x.ndim not in (members, members + 1):
        raise ValueError(
            f"{name} takes an input (C, {sizes}) or (N, C, {sizes}), not one of {tuple(x.shape)}"
        )
    return _drop(name, x, p, training, x.ndim - members + 1)


def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random channels of sequences to zero and scale the others.

    The cotangent is multiplied with the same mask. Raises `ValueError` if ``p`` is no probability,
    or the input has another number of axes. The input is of shape (C, L) or (N, C, L); ``p`` is as
    in `dropout`. PyTorch: ``torch.nn.functional.dropout1d``.

    Examples
    --------
    >>> x = wg.nn.functional.dropout1d(wg.ones((4, 8, 3)), p=0.5)
    >>> bool(wg.all(x[:, :, 0] == x[:, :, 2]))  # a channel is kept or zero as a whole
    True
    """
    return _channels("dropout1d", input, p, training, "L")


def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random channels of images to zero and scale the others.

    The input is of shape (C, H, W) or (N, C, H, W); PyTorch warns of three axes, and takes the
    first for N. Tompson et al., "Efficient object localization using convolutional networks"
    (2015). The cotangent, ``p`` and errors are as in `dropout1d`.
    PyTorch: ``torch.nn.functional.dropout2d``.

    Examples
    --------
    >>> x = wg.nn.functional.dropout2d(wg.ones((4, 8, 3, 3)), p=0.5)
    >>> bool(wg.all(x[:, :, 0, 0] == x[:, :, 2, 2]))  # a channel is kept or zero as a whole
    True
    """
    return _channels("dropout2d", input, p, training, "H, W")


_LOWEST = -1.7580993408473766  # of `selu`, far below 0


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False) -> Tensor:
    """Set random elements to the lowest value of `selu`, so that mean 0 and variance 1 stay.

    The result is then scaled and shifted. Klambauer et al., "Self-normalizing neural networks"
    (2017). The cotangent is multiplied with the mask and the scale. Real floating dtypes. Raises
    `ValueError` if ``p`` is no probability. PyTorch: ``torch.nn.functional.alpha_dropout``.

    Parameters
    ----------
    p : float
        Probability of the lowest value, from 0 to 1. With 1, all is zero.

    Examples
    --------
    >>> wg.nn.functional.alpha_dropout(wg.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    p = probability("alpha_dropout", p)
    x = real_floating("alpha_dropout", input)
    if not training or p == 0.0:
        return anew(x)
    if p == 1.0:
        return ops.multiply(x, 0)
    scale = ((_LOWEST**2 * p + 1) * (1 - p)) ** -0.5
    kept = _draw_mask(x, p)
    low = ops.multiply(ops.subtract(1, kept), _LOWEST)
    return ops.multiply(ops.add(ops.add(ops.multiply(x, kept), low), -_LOWEST * p), scale)
