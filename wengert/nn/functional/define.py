"""What losses share."""

from collections.abc import Callable
from typing import Any, Literal

from wengert import ops
from wengert.backends import backend_of
from wengert.tape.tensor import Tensor

__all__ = ["REDUCTIONS", "Reduction", "check_reduction", "on_host", "reduced", "refused"]

Reduction = Literal["none", "mean", "sum"]
REDUCTIONS = ("mean", "sum", "none")


_DLPACK_CPU = 1


def on_host(array: Any) -> bool:
    """Whether looking at a raw array's values waits for no device.

    It is False for arrays without values: those of a program that is traced, or not yet computed.
    """
    try:
        return bool(array.__dlpack_device__()[0] == _DLPACK_CPU)
    except Exception:
        return False


def refused(value: Any, holds: Callable[[Any], Any]) -> bool:
    """Whether a condition does not hold of a number, or of a Tensor's where `on_host` finds any."""
    if not isinstance(value, Tensor):
        return not holds(value)
    array = value._array
    return on_host(array) and not backend_of(array).to_numpy(ops.all(holds(value.detach())).array)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the elements' losses, or these as they are."""
    if reduction == "mean":
        return ops.mean(loss)
    if reduction == "sum":
        return ops.sum(loss)
    check_reduction(reduction)
    return loss


def check_reduction(reduction: str) -> None:
    """Raise for a reduction that is none."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"{reduction} is not a valid value for reduction: it is 'mean', 'sum' or 'none'"
        )
