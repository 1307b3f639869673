"""Losses of regression: of predicted numbers, or distributions, against true ones."""

import math
from importlib import import_module
from typing import Any, Literal

from wengert import ops
from wengert.nn.functional.define import (
    Reduction,
    at_least,
    look,
    pair,
    reduce_losses,
    single_precision,
)
from wengert.ops.axes import number, operand
from wengert.tape.tensor import Tensor


def _difference(name: str, input: Any, target: Any, reduction: str) -> Tensor:
    return ops.subtract(*pair(name, input, target, reduction))


@single_precision
def mse_loss(input: Any, target: Any, *, reduction: Reduction = "mean") -> Tensor:
    """Squared error, :math:`(x - y)^2`.

    Derivatives :math:`2 (x - y)` and :math:`2 (y - x)`. Real floating dtypes. Raises `ValueError`
    if the shapes differ. PyTorch warns and broadcasts, which is seldom what was meant.
    PyTorch: ``torch.nn.functional.mse_loss``.

    Examples
    --------
    >>> wg.nn.functional.mse_loss(wg.asarray([1.0, 5.0]), wg.asarray([2.0, 2.0]))
    tensor(5.)
    """
    return reduce_losses(ops.square(_difference("mse_loss", input, target, reduction)), reduction)


@single_precision
def l1_loss(input: Any, target: Any, *, reduction: Reduction = "mean") -> Tensor:
    r"""Absolute error, :math:`|x - y|`, of floating or complex numbers.

    Derivatives :math:`\operatorname{sign}(x - y)` and :math:`\operatorname{sign}(y - x)`. Raises
    `ValueError` if the shapes differ. PyTorch: ``torch.nn.functional.l1_loss``.

    Examples
    --------
    >>> wg.nn.functional.l1_loss(wg.asarray([1.0, 5.0]), wg.asarray([2.0, 2.0]))
    tensor(2.)
    """
    return reduce_losses(ops.abs(_difference("l1_loss", input, target, reduction)), reduction)


@single_precision
def huber_loss(
    input: Any, target: Any, *, reduction: Reduction = "mean", delta: float = 1.0
) -> Tensor:
    r"""Huber's loss: :math:`d^2/2` for :math:`|d| < \delta`, else :math:`\delta (|d| - \delta/2)`.

    Derivative by :math:`d = x - y`: :math:`d`, and farther :math:`\delta \operatorname{sign} d`.
    Raises `ValueError` if the shapes differ, or ``delta`` is not positive.
    PyTorch: ``torch.nn.functional.huber_loss``.

    Examples
    --------
    >>> x, y = wg.asarray([0.5, 3.0]), wg.asarray([0.0, 0.0])
    >>> wg.nn.functional.huber_loss(x, y, reduction="none")  # a square, then a line
    tensor([0.1250, 2.5000])
    """
    difference = _difference("huber_loss", input, target, reduction)
    end = number(delta, "huber_loss", "delta")
    if not end > 0:
        raise ValueError("huber_loss does not support non-positive values for delta.")
    return reduce_losses(_huber(difference, end), reduction)


def _huber(difference: Tensor, delta: float) -> Tensor:
    # With m, which is d clipped to [-delta, delta], both formulas are d m - m^2 / 2.
    near = ops.clip(difference, -delta, delta)
    return ops.multiply(near, ops.subtract(difference, ops.multiply(near, 0.5)))


@single_precision
def smooth_l1_loss(
    input: Any, target: Any, *, reduction: Reduction = "mean", beta: float = 1.0
) -> Tensor:
    r"""Absolute error, smooth near 0: :math:`d^2 / 2\beta` and, farther, :math:`|d| - \beta/2`.

    Derivative by :math:`d = x - y`: :math:`d / \beta`, and farther :math:`\operatorname{sign} d`.
    With 0 for :math:`\beta` it is the absolute error. Raises `ValueError` if the shapes differ, or
    ``beta`` is negative. PyTorch: ``torch.nn.functional.smooth_l1_loss``.

    Examples
    --------
    >>> x, y = wg.asarray([0.5, 3.0]), wg.asarray([0.0, 0.0])
    >>> wg.nn.functional.smooth_l1_loss(x, y, reduction="none")  # a square, then a line
    tensor([0.1250, 2.5000])
    """
    difference = _difference("smooth_l1_loss", input, target, reduction)
    end = number(beta, "smooth_l1_loss", "beta")
    if not end >= 0:
        raise ValueError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    losses = ops.divide(_huber(difference, end), end) if end else ops.abs(difference)
    return reduce_losses(losses, reduction)


@single_precision
def kl_div(
    input: Any,
    target: Any,
    *,
    reduction: Reduction | Literal["batchmean"] = "mean",
    log_target: bool = False,
) -> Tensor:
    r"""Kullback-Leibler divergence of distributions from the target, :math:`y (\log y - x)`.

    The input holds logarithms :math:`x` of probabilities; the target, of the same shape,
    probabilities, or with ``log_target`` their logarithms. ``"batchmean"`` is the sum divided by
    the length of the first axis. Derivatives :math:`-y` and, without ``log_target``,
    :math:`\log y + 1 - x`. Raises `ValueError` if the shapes differ.
    PyTorch: ``torch.nn.functional.kl_div``.

    Examples
    --------
    >>> log_p, q = wg.log(wg.asarray([0.5, 0.5])), wg.asarray([0.25, 0.75])
    >>> wg.nn.functional.kl_div(log_p, q, reduction="sum")
    tensor(0.1308)
    """
    of_members = reduction == "batchmean"
    x, y = pair("kl_div", input, target, "sum" if of_members else reduction)
    if log_target:
        losses = ops.multiply(ops.exp(y), ops.subtract(y, x))
    else:
        entr = import_module("wengert.ops.special.entropy").entr  # its slope at 0 is infinite
        losses = ops.negative(ops.add(entr(y), ops.multiply(y, x)))
    if of_members and x.ndim:
        return ops.divide(ops.sum(losses), x.shape[0])
    return reduce_losses(losses, "sum" if of_members else reduction)


def check_variances(values: Any) -> None:
    """Raise `ValueError` for a negative number."""
    if values[values < 0].shape[0]:
        raise ValueError("var has negative entry/entries: it holds variances")


@single_precision
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Negative log likelihood of normal numbers, :math:`(\log v + (x - y)^2 / v) / 2`.

    The variances :math:`v` are of the shape of the means :math:`x` and the numbers :math:`y`, or
    without its last axis, or with length 1 there. They are at least ``eps``, which does not change
    the derivative; ``full`` adds :math:`\log(2 \pi) / 2`. Nix and Weigend, "Estimating the mean and
    variance of the target probability distribution" (1994). Derivatives :math:`(x - y) / v` by
    :math:`x`, and :math:`(1 - (x - y)^2 / v) / 2 v` by :math:`v`. Raises `ValueError` if shapes do
    not fit, or a variance is negative (checked where `cross_entropy` checks class indices).
    PyTorch: ``torch.nn.functional.gaussian_nll_loss``.

    Examples
    --------
    >>> mean, target, var = wg.asarray([1.0]), wg.asarray([3.0]), wg.asarray([4.0])
    >>> wg.nn.functional.gaussian_nll_loss(mean, target, var)
    tensor(1.1931)
    """
    x, y = pair("gaussian_nll_loss", input, target, reduction)
    least = number(eps, "gaussian_nll_loss", "eps")
    v = operand(var, x, "gaussian_nll_loss", "var")
    if not isinstance(v, Tensor):
        v = ops.full_like(x, v)
    shape, own = tuple(x.shape), tuple(v.shape)
    if own == shape[:-1] and own != shape:
        v = ops.expand_dims(v, axis=-1)
    elif own not in (shape, (*shape[:-1], 1)[: len(shape)]):
        raise ValueError(
            f"var is of incorrect size: it is of shape {own}, and needs the input's, {shape}, or "
            f"{shape[:-1]}"
        )
    look(v._array, check_variances)
    v = at_least(v, least)
    squares = ops.divide(ops.square(ops.subtract(x, y)), v)
    losses = ops.multiply(ops.add(ops.log(v), squares), 0.5)
    return reduce_losses(ops.add(losses, math.log(2 * math.pi) / 2) if full else losses, reduction)
