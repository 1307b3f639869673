"""The cosine of vectors."""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import real_floating
from wengert.nn.functional.normalisation import unit_vectors
from wengert.ops.axes import as_axes, number
from wengert.ops.shares import by_float32, wide
from wengert.tape.tensor import Tensor


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
