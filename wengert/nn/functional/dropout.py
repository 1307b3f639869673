"""Dropout."""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import out_of_place
from wengert.ops.axes import number
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrap


@out_of_place
def dropout(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Set elements to zero with probability ``p`` and scale the others, so that the mean stays.

    The mask is drawn on the device of ``input``; the cotangent is multiplied with the same mask.
    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014).
    Raises `ValueError` if ``p`` is no probability. PyTorch: ``torch.nn.functional.dropout``.

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
    x = wrap(input)
    if not training or p == 0.0:
        return anew(x)
    like = x if kept_axes is None else x[(..., *[slice(1)] * (x.ndim - kept_axes))]
    drawn = ops.rand_like(like)
    kept = ops.astype(ops.greater_equal(drawn, p), drawn.dtype)
    return ops.multiply(x, ops.multiply(kept, 1 / (1 - p)) if p < 1 else kept)


def probability(name: str, p: Any, option: str = "p") -> Any:
    """A probability of dropout as a number; an error if it is none."""
    p = number(p, name, option)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


@out_of_place
def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random channels of images (C, H, W) or (N, C, H, W) to zero and scale the others.

    PyTorch warns of three axes, and takes the first for N. Tompson et al., "Efficient object
    localization using convolutional networks" (2015). The cotangent is multiplied with the same
    mask. Raises `ValueError` if ``p`` is no probability, or the input has another number of axes.
    PyTorch: ``torch.nn.functional.dropout2d``.

    Examples
    --------
    >>> x = wg.nn.functional.dropout2d(wg.ones((4, 8, 3, 3)), p=0.5)
    >>> bool(wg.all(x[:, :, 0, 0] == x[:, :, 2, 2]))  # a channel is kept or zero as a whole
    True
    """
    x = wrap(input)
    if x.ndim not in (3, 4):
        raise ValueError(
            f"dropout2d takes an input (C, H, W) or (N, C, H, W), not one of {tuple(x.shape)}"
        )
    return _drop("dropout2d", x, p, training, x.ndim - 2)
