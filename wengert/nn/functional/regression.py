"""Losses of regression: of predicted numbers against true ones."""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import LOSS, Reduction, check_reduction, reduced, refused
from wengert.ops.axes import operand
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor, wrapped


def _difference(name: str, input: Any, target: Any, reduction: str) -> Tensor:
    check_reduction(reduction)
    x, y = wrapped(input), wrapped(target)
    if x.shape != y.shape:
        raise ValueError(
            f"{name} got an input of shape {tuple(x.shape)} and a target of shape "
            f"{tuple(y.shape)}; they should be the same (broadcast one of them first if that is "
            "what you want)"
        )
    return ops.subtract(x, y)


@takes("input target", family=LOSS)
def mse_loss(input: Any, target: Any, *, reduction: Reduction = "mean") -> Tensor:
    """Squared error, :math:`(x - y)^2`.

    Raises
    ------
    ValueError
        If the shapes differ. PyTorch warns and broadcasts, which is seldom what was meant.
    """
    return reduced(ops.square(_difference("mse_loss", input, target, reduction)), reduction)


@takes("input target", family=LOSS)
def l1_loss(input: Any, target: Any, *, reduction: Reduction = "mean") -> Tensor:
    """Absolute error, :math:`|x - y|`.

    Parameters
    ----------
    input, target : Tensor
        Floating or complex, of one shape; both are differentiated.
    """
    return reduced(ops.abs(_difference("l1_loss", input, target, reduction)), reduction)


def _is_positive(value: Any) -> Any:
    return value > 0


def _is_not_negative(value: Any) -> Any:
    return value >= 0


@takes("input target delta", family=LOSS)
def huber_loss(
    input: Any, target: Any, *, reduction: Reduction = "mean", delta: float = 1.0
) -> Tensor:
    r"""Huber's loss: :math:`d^2/2` for :math:`|d| < \delta`, else :math:`\delta (|d| - \delta/2)`.

    Raises
    ------
    ValueError
        If the shapes differ, or ``delta`` is not positive.
    """
    difference = _difference("huber_loss", input, target, reduction)
    delta = operand(delta, difference, "huber_loss", "delta")
    if refused(delta, _is_positive):
        raise ValueError("huber_loss does not support non-positive values for delta.")
    return reduced(_huber(difference, delta), reduction)


def _huber(difference: Tensor, delta: Any) -> Tensor:
    # With m, which is d clipped to [-delta, delta], both formulas are d m - m^2 / 2.
    lowest = ops.negative(delta) if isinstance(delta, Tensor) else -delta
    near = ops.clip(difference, lowest, delta)
    return ops.multiply(near, ops.subtract(difference, ops.multiply(near, 0.5)))


@takes("input target beta", family=LOSS)
def smooth_l1_loss(
    input: Any, target: Any, *, reduction: Reduction = "mean", beta: float = 1.0
) -> Tensor:
    r"""Absolute error, smooth near 0: :math:`d^2 / 2\beta` and, farther, :math:`|d| - \beta/2`.

    Raises
    ------
    ValueError
        If the shapes differ, or ``beta`` is negative.
    """
    difference = _difference("smooth_l1_loss", input, target, reduction)
    beta = operand(beta, difference, "smooth_l1_loss", "beta")
    if refused(beta, _is_not_negative):
        raise ValueError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    if not isinstance(beta, Tensor):
        if beta == 0:
            return reduced(ops.abs(difference), reduction)
        return reduced(ops.divide(_huber(difference, beta), beta), reduction)
    # The same as above, without dividing the result by beta: the derivative with respect to a small
    # beta would lose all digits. The quotient is not computed where |d| >= beta: it may overflow.
    far = ops.greater_equal(ops.abs(difference), beta)
    share = ops.divide(ops.where(far, 0, difference), ops.where(far, 1, beta))
    share = ops.where(far, ops.sign(difference), share)
    half = ops.multiply(ops.multiply(share, beta), 0.5)
    return reduced(ops.multiply(share, ops.subtract(difference, half)), reduction)
