"""Distances, and losses of distances and margins."""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import (
    Reduction,
    check_reduction,
    fails,
    is_positive,
    pair,
    real_floating,
    reduce_losses,
    single_precision,
)
from wengert.nn.functional.standardised import standardised, units
from wengert.ops.axes import as_axes, number, operand
from wengert.ops.linalg import vector_norm
from wengert.ops.shares import by_float32, wide
from wengert.tape.tensor import Tensor, wrapped

_EPSILON = 1e-12


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Cosine of the angle between vectors, :math:`x_1 \cdot x_2 / (\|x_1\| \|x_2\|)`.

    PyTorch: ``torch.nn.functional.cosine_similarity``.

    Parameters
    ----------
    dim : int
        The axis that vectors lie along, of the shape to which both broadcast.
    eps : float
        The least norm that it divides by. Below it the divisor is a constant, also for the
        derivative; in PyTorch the derivative is that of the norm there.

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
    unit1, unit2 = (units(wide(ops, x), axis=axes, eps=eps)[0] for x in (x1, x2))
    return ops.sum(ops.multiply(unit1, unit2), axis=axes)


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    r"""Norm of differences along the last axis, :math:`\|x_1 - x_2 + \epsilon\|_p`.

    PyTorch: ``torch.nn.functional.pairwise_distance``.

    Parameters
    ----------
    eps : float
        Added to the difference, so that the norm has a derivative.

    Examples
    --------
    >>> wg.nn.functional.pairwise_distance(wg.asarray([[0.0, 0.0]]), wg.asarray([[3.0, 4.0]]))
    tensor([5.0000])
    """
    small, order = number(eps, "pairwise_distance", "eps"), number(p, "pairwise_distance", "p")
    difference = ops.add(ops.subtract(wrapped(x1), wrapped(x2)), small)
    return vector_norm(difference, axis=-1, keepdims=bool(keepdim), ord=order)


@single_precision
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0.0,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Loss of a cosine: :math:`1 - c` of alike vectors, :math:`\max(0, c - m)` of others.

    Derivative by :math:`c`: -1 for alike vectors, and 1 for others above :math:`m`. Raises
    `ValueError` if shapes do not fit. PyTorch: ``torch.nn.functional.cosine_embedding_loss``.

    Parameters
    ----------
    input1, input2 : Tensor
        Vectors of cosine :math:`c`, of shape (N, D) or (D,).
    target : Tensor
        1 for alike vectors, -1 for others, of shape (N,) or ().
    margin : float or Tensor
        :math:`m`, below which the cosine of others costs nothing.

    Examples
    --------
    >>> x1, x2 = wg.asarray([[1.0, 0.0], [1.0, 0.0]]), wg.asarray([[0.0, 1.0], [1.0, 1.0]])
    >>> wg.nn.functional.cosine_embedding_loss(x1, x2, wg.asarray([1, -1]), reduction="none")
    tensor([1.0000, 0.7071])
    """
    check_reduction(reduction)
    x, y, t = real_floating("cosine_embedding_loss", input1), wrapped(input2), wrapped(target)
    if x.ndim not in (1, 2) or x.shape != y.shape or x.shape[:-1] != t.shape:
        raise ValueError(
            "cosine_embedding_loss needs inputs (N, D) and a target (N,), or (D,) and (), and got "
            f"{tuple(x.shape)}, {tuple(y.shape)} and {tuple(t.shape)}"
        )
    limit = operand(margin, x, "cosine_embedding_loss", "margin")
    cosine = _smooth_cosine(x, y)
    apart = _beyond(ops.subtract(cosine, limit))
    losses = ops.add(
        ops.where(ops.equal(t, 1), ops.subtract(1, cosine), 0),
        ops.where(ops.equal(t, -1), apart, 0),
    )
    return reduce_losses(losses, reduction)


def _smooth_cosine(x: Tensor, y: Tensor) -> Tensor:
    """Cosines along the last axis, with squared norms of at least an epsilon that is added."""
    if n := x.shape[-1]:
        options = {"axis": (x.ndim - 1,), "eps": _EPSILON / n, "centred": False}
        x, y = (standardised(wide(ops, v), None, None, **options)[0] for v in (x, y))
    return ops.divide(ops.sum(ops.multiply(x, y), axis=-1), max(n, 1))


def _beyond(x: Tensor) -> Tensor:
    """The part above 0, with derivative 1 at 0."""
    return ops.clip(x, 0)


@single_precision
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Loss of a triplet by distances, :math:`\max(0, d(a, p) - d(a, n) + m)`.

    Derivatives 1 by :math:`d(a, p)` and -1 by :math:`d(a, n)` where the loss is positive, 0
    elsewhere. Raises `ValueError` if the margin is not positive.
    PyTorch: ``torch.nn.functional.triplet_margin_loss``.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of shapes that broadcast, real floating: what is compared, what it is like, and what it is
        not.
    margin : float or Tensor
        How much farther :math:`m` the negative should be.
    p, eps : float
        As for `pairwise_distance`, which is :math:`d`.
    swap : bool
        Whether the distance of the negative is also taken from the positive, where that is smaller.
        Balntas et al., "Learning local feature descriptors with triplets" (2016).

    Examples
    --------
    >>> anchor, positive, negative = wg.zeros((1, 2)), wg.ones((1, 2)), wg.full((1, 2), 2.0)
    >>> wg.nn.functional.triplet_margin_loss(anchor, positive, negative, margin=2.0)
    tensor(0.5858)
    """
    check_reduction(reduction)
    one, near, far = (real_floating("triplet_margin_loss", x) for x in (anchor, positive, negative))
    limit = operand(margin, one, "triplet_margin_loss", "margin")
    if fails(limit, is_positive):
        raise ValueError(f"margin must be greater than 0, and is {margin}")
    less, more = (pairwise_distance(one, x, p, eps) for x in (near, far))
    if swap:
        more = ops.minimum(more, pairwise_distance(near, far, p, eps))
    return reduce_losses(_beyond(ops.add(ops.subtract(less, more), limit)), reduction)


@single_precision
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, *, reduction: Reduction = "mean"
) -> Tensor:
    r"""Loss of an order, :math:`\max(0, m - y (x_1 - x_2))`.

    Derivatives :math:`-y` and :math:`y` where the loss is positive, 0 elsewhere. Raises
    `ValueError` if the shapes differ. PyTorch: ``torch.nn.functional.margin_ranking_loss``.

    Parameters
    ----------
    input1, input2, target : Tensor
        :math:`x_1`, :math:`x_2`, and 1 where the first should be larger or -1 where the second
        should, of one shape.
    margin : float or Tensor
        :math:`m`, by how much.

    Examples
    --------
    >>> x1, x2, target = wg.asarray([2.0, 1.0]), wg.asarray([1.0, 3.0]), wg.asarray([1.0, 1.0])
    >>> wg.nn.functional.margin_ranking_loss(x1, x2, target, margin=0.5, reduction="none")
    tensor([0.0000, 2.5000])
    """
    name = "margin_ranking_loss"
    x1, x2 = pair(name, real_floating(name, input1), input2, reduction)
    _, y = pair(name, x1, target, reduction)
    limit = operand(margin, x1, name, "margin")
    return reduce_losses(
        _beyond(ops.subtract(limit, ops.multiply(y, ops.subtract(x1, x2)))), reduction
    )


@single_precision
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, *, reduction: Reduction = "mean"
) -> Tensor:
    r"""Loss of a distance: :math:`x` of what is alike, :math:`\max(0, m - x)` of what is not.

    Derivative 1 of what is alike; of what is not, -1 below :math:`m` and 0 above. Raises
    `ValueError` if the shapes differ. PyTorch: ``torch.nn.functional.hinge_embedding_loss``.

    Parameters
    ----------
    input : Tensor
        Distances :math:`x`, real floating.
    target : Tensor
        1 for what is alike, -1 for what is not, of the same shape.
    margin : float or Tensor
        :math:`m`, from which on the distance of what is not alike costs nothing.

    Examples
    --------
    >>> distance, target = wg.asarray([0.5, 0.25]), wg.asarray([1, -1])
    >>> wg.nn.functional.hinge_embedding_loss(distance, target, reduction="none")
    tensor([0.5000, 0.7500])
    """
    name = "hinge_embedding_loss"
    x, y = pair(name, real_floating(name, input), target, reduction)
    limit = operand(margin, x, name, "margin")
    apart = ops.where(ops.equal(y, 1), 0, _beyond(ops.subtract(limit, x)))
    return reduce_losses(ops.add(apart, ops.where(ops.equal(y, -1), 0, x)), reduction)
