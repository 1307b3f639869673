"""Dropout."""

from typing import Any

from wengert import ops
from wengert.ops.axes import number
from wengert.tape.parameters import takes
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrapped


@takes("input", p="a probability")
def dropout(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random elements to zero and scale the others, so that the mean stays.

    Parameters
    ----------
    input : Tensor
        Floating or complex.
    p : float
        Probability of zero, from 0 to 1.
    training : bool
        False returns the input's values, in another Tensor.

    Returns
    -------
    Tensor
        ``input`` times 0 with probability :math:`p`, and times :math:`1 / (1 - p)` otherwise. The
        mask is drawn on the device of ``input``; the cotangent is multiplied with the same mask.

    Raises
    ------
    ValueError
        If ``p`` is no probability.

    Notes
    -----
    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014).

    PyTorch: ``torch.nn.functional.dropout``.
    """
    p = number(p, "dropout", "p")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    x = wrapped(input)
    if not training or p == 0.0:
        return anew(x)
    drawn = ops.rand_like(x)
    kept = ops.astype(ops.greater_equal(drawn, p), drawn.dtype)
    return ops.multiply(x, ops.multiply(kept, 1 / (1 - p)) if p < 1 else kept)
