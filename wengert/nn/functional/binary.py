"""Losses of binary classifiers."""

import math
from typing import Any

from wengert import ops
from wengert.nn.functional.define import (
    Reduction,
    look,
    pair,
    real_floating,
    reduce_losses,
    single_precision,
    weigh_losses,
)
from wengert.ops.define import operation
from wengert.ops.special.everyday import log_expit
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor


# (1 - y) x + softplus(-x), written so that neither term is large where the loss is small: below 0
# that is -y x + softplus(x).
def _logistic_composite(xp: Any, x: Any, y: Any) -> Any:
    above = xp.astype(x > 0, x.dtype)
    return x * (above - y) + xp.log1p(xp.exp(-xp.abs(x)))


_logistic_loss = Primitive(
    "logistic_loss",
    ("x", "y"),
    {"x": lambda xp, g, x, y: g * (xp.expit(x) - y), "y": lambda xp, g, x: -(g * x)},
    elementwise=True,
    dtypes="real floating",
    composite=_logistic_composite,
).bind


def _pair(name: str, input: Any, target: Any, reduction: str) -> tuple[Tensor, Tensor]:
    x, y = real_floating(name, input), real_floating(name, target, "target")
    return pair(name, x, y, reduction)


@single_precision
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    reduction: Reduction = "mean",
    pos_weight: Any = None,
) -> Tensor:
    r"""Cross entropy between probabilities and the logistic sigmoid of logits.

    :math:`-w (p y \log \sigma(x) + (1 - y) \log \sigma(-x))`, computed without forming
    :math:`\sigma`, and so accurate for logits of any size. Cotangent of the logits, without
    weights: :math:`g (\sigma(x) - y)`. Logits and targets are real floating, of one shape. Weights
    :math:`w`, and ``pos_weight`` :math:`p` of positive targets, broadcast to it. Raises
    `ValueError` if shapes do not fit.
    PyTorch: ``torch.nn.functional.binary_cross_entropy_with_logits``.

    Examples
    --------
    >>> cross_entropy = wg.nn.functional.binary_cross_entropy_with_logits
    >>> logits, target = wg.asarray([2.0, -1.0]), wg.asarray([1.0, 0.0])
    >>> wg.grad(lambda x: cross_entropy(x, target, reduction="sum"))(logits)  # p less targets
    tensor([-0.1192,  0.2689])
    """
    name = "binary_cross_entropy_with_logits"
    x, y = _pair(name, input, target, reduction)
    if pos_weight is None:
        losses = _logistic_loss(x, y)
    else:
        scale = ops.add(weigh_losses(name, y, ops.subtract(pos_weight, 1), "pos_weight"), 1)
        above = ops.subtract(ops.multiply(x, ops.subtract(1, y)), ops.multiply(scale, log_expit(x)))
        cost = ops.multiply(ops.multiply(x, y), pos_weight)
        below = ops.negative(ops.add(cost, ops.multiply(scale, log_expit(ops.negative(x)))))
        losses = ops.where(ops.greater(x, 0), above, below)
    return reduce_losses(weigh_losses(name, losses, weight), reduction)


_LOWEST = -100.0
_SEEN = math.exp(_LOWEST)  # above it logarithms are what they are
_LEAST = 1e-12


def _clipped_log(xp: Any, x: Any) -> Any:
    zero = x == 0
    return xp.maximum(xp.where(zero, _LOWEST, xp.log(xp.where(zero, 1, x))), _LOWEST)


def _clipped_log_of_other(xp: Any, x: Any) -> Any:
    one = x == 1  # 1 - x would round a small x
    return xp.maximum(xp.where(one, _LOWEST, xp.log1p(-xp.where(one, 0, x))), _LOWEST)


def check_probabilities(values: Any, what: str) -> None:
    """Raise `ValueError` for a number outside of [0, 1]."""
    wrong = values[~((values >= 0) & (values <= 1) | (values != values))]
    if wrong.shape[0]:
        hint = "; for logits use binary_cross_entropy_with_logits" if what == "input" else ""
        raise ValueError(
            f"all elements of {what} should be between 0 and 1, and one is {wrong[0]}{hint}"
        )


def _bce_composite(xp: Any, x: Any, y: Any) -> Any:
    look(x, check_probabilities, "input")
    look(y, check_probabilities, "target")
    no = (1 - y) * _clipped_log_of_other(xp, x)
    return -(y * _clipped_log(xp, x) + no)


def _bce_slope(xp: Any, x: Any, y: Any) -> Any:
    other = 1 - x
    product = other * x
    inside = product > _SEEN
    slope = (x - y) / xp.where(inside, product, 1)
    # At the ends, where logarithms are limited: each logarithm's own, which is limited, too.
    no = (1 - y) / xp.maximum(xp.where(inside, 1, other), _LEAST)
    yes = y / xp.maximum(xp.where(inside, 1, x), _LEAST)
    return xp.where(inside, slope, no - yes)


def _slope_of_log(xp: Any, x: Any) -> Any:
    inside = x > _SEEN
    return xp.where(inside, xp.divide(1, xp.where(inside, x, 1)), 0)


def _bce_curve(xp: Any, g: Any, x: Any, y: Any) -> Any:
    no, yes = _slope_of_log(xp, 1 - x), _slope_of_log(xp, x)
    # The quotient's terms would cancel. In this order no small cotangent or target underflows.
    return g * no * (1 - y) * no + g * yes * y * yes


Primitive(
    "binary_cross_entropy_slope",
    ("x", "y"),
    {"x": _bce_curve, "y": lambda xp, g, x: -g * (_slope_of_log(xp, 1 - x) + _slope_of_log(xp, x))},
    elementwise=True,
    dtypes="real floating",
    composite=_bce_slope,
)


@single_precision
@operation(
    inputs=("x", "y"),
    x=lambda xp, g, x, y: g * xp.binary_cross_entropy_slope(x, y),
    y=lambda xp, g, x: g * (_clipped_log_of_other(xp, x) - _clipped_log(xp, x)),
    elementwise=True,
    dtypes="real floating",
    composite=_bce_composite,
)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, *, reduction: Reduction = "mean"
) -> Tensor:
    r"""Cross entropy between probabilities, :math:`-w (y \log x + (1 - y) \log(1 - x))`.

    Probabilities :math:`x` and :math:`y` are real floating, of one shape, to which weights
    broadcast. As in PyTorch, logarithms are at least -100. Where one is limited, the denominators
    in the derivative :math:`(1 - y) / (1 - x) - y / x` are at least 1e-12. Raises `ValueError` if
    shapes do not fit, or a number is no probability (checked where `cross_entropy` checks class
    indices; elsewhere the loss is nan). For the result of a sigmoid,
    `binary_cross_entropy_with_logits` of the logits is more accurate.
    PyTorch: ``torch.nn.functional.binary_cross_entropy``.

    Examples
    --------
    >>> p, target = wg.asarray([0.9, 0.2]), wg.asarray([1.0, 0.0])
    >>> wg.nn.functional.binary_cross_entropy(p, target)
    tensor(0.1643)
    """
    x, y = _pair("binary_cross_entropy", input, target, reduction)
    return reduce_losses(
        weigh_losses("binary_cross_entropy", binary_cross_entropy.run(x, y), weight), reduction
    )
