"""What losses share."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from wengert import ops
from wengert.backends import backend_of
from wengert.tape.families import Family
from wengert.tape.tensor import Tensor

Reduction = Literal["mean", "sum", "none"]
REDUCTIONS = get_args(Reduction)

_OPTIONS = """\
weight : Tensor, optional
    $weight
ignore_index : int
    Target that adds nothing to the loss; for class indices alone.
reduction : {"mean", "sum", "none"}
    What is done with the elements' losses.
pos_weight : Tensor, optional
    Weights :math:`p` of positive targets, of a shape that broadcasts to the input's.
label_smoothing : float or Tensor
    From 0 to 1: how much of each target is spread over all classes evenly. The loss is
    differentiable in a Tensor.
delta : float or Tensor
    The difference :math:`\\delta` at which the form changes, positive. The loss is differentiable
    in a Tensor.
beta : float or Tensor
    The difference :math:`\\beta` at which the form changes; 0 is the absolute error. The loss is
    differentiable in a Tensor.
"""
_PER_ELEMENT = "Weights :math:`w`, of a shape that broadcasts to the input's."
_PER_CLASS = "A weight :math:`w` for each class, of shape (C,)."
_LOSS = f"""
Parameters
----------
input, target : Tensor
    Real floating, of one shape; both are differentiated.
{_OPTIONS}
Returns
-------
Tensor
    0-d, or of the shape of $shape for ``"none"``.

Raises
------
ValueError
    If the shapes differ.

Notes
-----
PyTorch: ``torch.nn.functional.$name``.
"""
#: Losses of numbers, and of classes, as functions and as modules.
LOSS = Family(_LOSS)(weight=_PER_ELEMENT, shape="``input``")
LOSS_OF_CLASSES = Family(_LOSS)(weight=_PER_CLASS, shape="``input`` without C")
_MODULE = f"Parameters\n----------\n{_OPTIONS}\nNotes\n-----\nPyTorch: ``torch.nn.$name``."
LOSS_MODULE = Family(_MODULE)(weight=_PER_ELEMENT)
LOSS_MODULE_OF_CLASSES = Family(_MODULE)(weight=_PER_CLASS)


_DLPACK_CPU = 1


def on_host(array: Any) -> bool:
    """Whether looking at a raw array's values waits for no device.

    It is False for arrays that are not yet computed.
    """
    try:
        return bool(array.__dlpack_device__()[0] == _DLPACK_CPU)
    except Exception:
        return False


def look(array: Any, check: Callable[..., None], *settings: Any) -> None:
    """Call ``check(values, *settings)``, which raises, where `on_host` finds values.

    A program that is traced does so in each run.
    """
    later = getattr(array, "look", None)
    if later is None:
        if on_host(array):
            check(backend_of(array).to_numpy(array), *settings)
    elif on_host(array.inner):
        later(check, *settings)


def refused(value: Any, holds: Callable[[Any], Any]) -> bool:
    """Whether a condition does not hold of a number, or of a Tensor's where `look` finds any."""
    if not isinstance(value, Tensor):
        return not holds(value)
    try:
        look(value._array, check_holds, holds)
    except ValueError:
        return True
    return False


def check_holds(values: Any, holds: Callable[[Any], Any]) -> None:
    """Raise for a value of which a condition does not hold."""
    wrong = values[~holds(values)]
    if wrong.shape[0]:
        raise ValueError(f"{wrong[0]} is refused")


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
