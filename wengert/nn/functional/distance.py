"""The cosine of vectors, and its loss."""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import (
    Reduction,
    check_reduction,
    real_floating,
    reduce_losses,
    single_precision,
)
from wengert.nn.functional.normalisation import unit_vectors
from wengert.nn.functional.standardised import standardised
from wengert.ops.axes import as_axes, number
from wengert.ops.shares import by_float32, wide
from wengert.tape.tensor import Tensor, wrap


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Cosine of the angle between vectors, :math:`x_1 \cdot x_2 / (\|x_1\| \|x_2\|)`.

    Vectors lie along an axis of the shape to which both broadcast. Norms below ``eps`` are
    replaced by it, also in the derivative, where PyTorch takes the derivative of the norm.
    PyTorch: ``torch.nn.functional.cosine_similarity``.

    Examples
    --------
    >>> wg.nn.functional.cosine_similarity(wg.asarray([[1.0, 0.0]]), wg.asarray([[1.0, 1.0]]))
    tensor([0.7071])
    """
    small = number(eps, "cosine_similarity", "eps")
    x, y = (real_floating("cosine_similarity", v) for v in (x1, x2))
    if x.shape != y.shape:
        x, y = ops.broadcast_arrays(x, y)
    return _cosine(x, y, dim, small)


def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    """Cosines of vectors of one shape; of half precision by way of single, as squares overflow."""
    if x1.dtype.narrow and x1.dtype is x2.dtype:
        return by_float32(_cosine, x1, x2, dim, eps)  # type: ignore[no-any-return]
    axes = as_axes(dim, x1.ndim)
    return ops.sum(ops.multiply(*[unit_vectors(wide(ops, x), axes, eps) for x in (x1, x2)]), axes)


@single_precision
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, *, reduction: Reduction = "mean"
) -> Tensor:
    r"""Loss of a cosine: :math:`1 - c` of alike vectors, :math:`\max(0, c - m)` of others.

    The target is 1 for alike vectors and -1 for others, of shape (N,) for vectors of shape (N, D),
    or of () for (D,). Derivative by :math:`c`: -1 for alike vectors, and 1 for others above the
    margin :math:`m`. Raises `ValueError` if shapes do not fit.
    PyTorch: ``torch.nn.functional.cosine_embedding_loss``.

    Examples
    --------
    >>> x1, x2 = wg.asarray([[1.0, 0.0], [1.0, 0.0]]), wg.asarray([[0.0, 1.0], [1.0, 1.0]])
    >>> wg.nn.functional.cosine_embedding_loss(x1, x2, wg.asarray([1, -1]), reduction="none")
    tensor([1.0000, 0.7071])
    """
    check_reduction(reduction)
    x, y, t = real_floating("cosine_embedding_loss", input1), wrap(input2), wrap(target)
    if x.ndim not in (1, 2) or x.shape != y.shape or x.shape[:-1] != t.shape:
        raise ValueError(
            "cosine_embedding_loss needs inputs (N, D) and a target (N,), or (D,) and (), and got "
            f"{tuple(x.shape)}, {tuple(y.shape)} and {tuple(t.shape)}"
        )
    if n := x.shape[-1]:  # 1e-12 is added to squared norms
        options = {"axis": (x.ndim - 1,), "eps": 1e-12 / n, "centred": False}
        x, y = (standardised(wide(ops, v), None, None, **options)[0] for v in (x, y))
    cosine = ops.divide(ops.sum(ops.multiply(x, y), axis=-1), max(n, 1))
    apart = ops.clip(cosine - number(margin, "cosine_embedding_loss", "margin"), 0)
    alike = ops.where(ops.equal(t, 1), ops.subtract(1, cosine), 0)
    return reduce_losses(ops.add(alike, ops.where(ops.equal(t, -1), apart, 0)), reduction)
