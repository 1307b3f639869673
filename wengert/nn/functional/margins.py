"""Losses of classifiers by margins."""

import math
from typing import Any

from wengert import ops
from wengert.nn.functional.classification import check_classes
from wengert.nn.functional.define import (
    Reduction,
    check_reduction,
    detached,
    pair,
    real_floating,
    reduce_losses,
    single_precision,
    weigh_losses,
)
from wengert.nn.functional.embedding import one_hot
from wengert.ops.axes import number, operand
from wengert.ops.special.activation import relu
from wengert.ops.special.everyday import log_expit, softplus
from wengert.tape.tensor import Tensor, wrapped


@single_precision
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Hinge loss of classes, :math:`\sum_{j \ne y} w_y \max(0, m - x_y + x_j)^p / C`.

    Derivative by :math:`x_j`, where its term is positive: :math:`p w_y (m - x_y + x_j)^{p-1} / C`.
    That by :math:`x_y` is minus their sum. The result is 0-d, or of the shape of ``input`` without
    C for ``"none"``. Raises `ValueError` or `IndexError` if shapes or options do not fit, or a
    class index is out of range (checked where `cross_entropy` checks).
    PyTorch: ``torch.nn.functional.multi_margin_loss``.

    Parameters
    ----------
    input : Tensor
        Scores :math:`x` of shape (N, C) or (C,), real floating.
    target : Tensor
        Class indices :math:`y` of shape (N,) or (), integer.
    margin : float or Tensor
        :math:`m`, by how much the score of the class should be larger.
    weight : Tensor, optional
        A weight :math:`w` for each class, of shape (C,).

    Examples
    --------
    >>> wg.nn.functional.multi_margin_loss(wg.asarray([[0.5, 1.0, 0.2]]), wg.asarray([1]))
    tensor(0.2333)
    """
    check_reduction(reduction)
    name = "multi_margin_loss"
    x, y = real_floating(name, input), wrapped(target)
    power = number(p, name, "p")
    if power not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, and p is {p}")
    if x.ndim not in (1, 2) or x.shape[:-1] != y.shape or not y.dtype.kind.endswith("integer"):
        raise ValueError(
            f"{name} needs scores (N, C) and integer class indices (N,), or (C,) and (), and got "
            f"{tuple(x.shape)} and {tuple(y.shape)} of {y.dtype.name}"
        )
    classes = x.shape[-1]
    checked = check_classes(y._array, classes, None)
    places = ops.expand_dims(ops.astype(y, "int64"), axis=-1)
    limit = operand(margin, x, name, "margin")
    own = ops.take_along_axis(x, places, axis=-1)
    terms = relu(ops.add(ops.subtract(x, own), limit))
    terms = ops.square(terms) if power == 2 else terms
    if weight is not None:
        w = wrapped(weight)
        if tuple(w.shape) != (classes,):
            raise ValueError(f"{name} needs a weight of shape ({classes},), not {tuple(w.shape)}")
        each = ops.take(w, ops.reshape(places, (-1,)), axis=0)
        terms = ops.multiply(terms, ops.reshape(each, places.shape))
    others = ops.equal(one_hot(y, classes), 0)
    losses = ops.divide(ops.sum(ops.where(others, terms, 0), axis=-1), classes)
    if not checked:  # neither the loss of a class that there is not, nor its derivative, is finite
        inside = ops.logical_and(ops.greater_equal(y, 0), ops.less(y, classes))
        one = ops.ones_like(detached(losses))
        losses = ops.multiply(losses, ops.where(inside, one, math.nan))
    return reduce_losses(losses, reduction)


@single_precision
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, *, reduction: Reduction = "mean"
) -> Tensor:
    r"""Mean of binary cross entropies, :math:`-y \log \sigma(x) - (1 - y) \log \sigma(-x)`.

    Derivative of a term: :math:`\sigma(x) - y`. The result is 0-d, or of the shape of ``input``
    without C for ``"none"``. Raises `ValueError` if the shapes differ, or those of weights do not
    fit. PyTorch: ``torch.nn.functional.multilabel_soft_margin_loss``.

    Parameters
    ----------
    input : Tensor
        Logits :math:`x` of shape (..., C), real floating.
    target : Tensor
        0 or 1 for each class, of the same shape. The mean is taken over C.
    weight : Tensor, optional
        Weights :math:`w`, of a shape that broadcasts to the input's.

    Examples
    --------
    >>> logits, labels = wg.asarray([[2.0, -1.0]]), wg.asarray([[1.0, 0.0]])
    >>> wg.nn.functional.multilabel_soft_margin_loss(logits, labels)
    tensor(0.2201)
    """
    name = "multilabel_soft_margin_loss"
    x, y = pair(name, real_floating(name, input), target, reduction)
    losses = ops.subtract(ops.multiply(x, ops.subtract(1, y)), log_expit(x))
    return reduce_losses(ops.mean(weigh_losses(name, losses, weight), axis=-1), reduction)


@single_precision
def soft_margin_loss(input: Any, target: Any, *, reduction: Reduction = "mean") -> Tensor:
    r"""Logistic loss of two classes, :math:`\log(1 + e^{-y x})`, without overflow.

    Derivative :math:`-y / (1 + e^{y x})`. Raises `ValueError` if the shapes differ.
    PyTorch: ``torch.nn.functional.soft_margin_loss``.

    Parameters
    ----------
    input : Tensor
        Scores :math:`x`, real floating.
    target : Tensor
        1 or -1, of the same shape.

    Examples
    --------
    >>> wg.nn.functional.soft_margin_loss(wg.asarray([2.0, -1.0]), wg.asarray([1.0, -1.0]))
    tensor(0.2201)
    """
    name = "soft_margin_loss"
    x, y = pair(name, real_floating(name, input), target, reduction)
    return reduce_losses(softplus(ops.negative(ops.multiply(y, x))), reduction)
