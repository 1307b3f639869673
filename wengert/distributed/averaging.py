"""Means over the processes: of gradients, and of what is reported."""

from collections.abc import Iterable
from typing import Any

from wengert import ops
from wengert.compiler import messages
from wengert.distributed.collectives import all_reduce
from wengert.interpreters.namespaces import device
from wengert.nn.module import Module
from wengert.nn.parameter import list_tensors
from wengert.ops.shares import wide
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["average", "mean"]


@no_grad()
def average(model: Module | Iterable[Tensor], weight: Any = 1) -> None:
    r"""Replace gradients by their weighted mean over the processes.

    With gradients :math:`g_r` and weights :math:`w_r` it is :math:`\sum_r w_r g_r / \sum_r w_r`.
    Where losses are means over the rows of a process and weights count these rows, it is the
    gradient of the mean over all rows, also if batches are uneven. All gradients and the weight
    travel together, in one `all_reduce` for each dtype.

    Weights are 0 or more: ``len(x)``, say. With weight 0 gradients count as zero, whatever they
    are, and may be None. Raises `TypeError` if the weight requires grad: its derivative would be
    lost; `ValueError` if it is negative, or above 0 where a Tensor that requires grad has no
    gradient. PyTorch: ``torch.nn.parallel.DistributedDataParallel``, which divides by the number of
    processes.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> model = wg.nn.Linear(2, 1)
    >>> model(wg.ones((4, 2))).sum().backward()
    >>> wd.average(model)  # each process has the mean of all processes' gradients
    >>> model.weight.grad
    tensor([[4., 4.]])
    """
    _check_weight("average", weight)
    if isinstance(model, Module):
        named = [*model.named_parameters()]
    else:
        named = [(f"Tensor {i}", x) for i, x in enumerate(list_tensors("average", model))]
    named = [(name, x) for name, x in named if x.requires_grad]
    empty = not isinstance(weight, Tensor) and weight == 0
    for name, x in named:
        if x._grad is None and not empty:
            raise ValueError(
                f"average: {name} has no gradient on rank {messages.carrier_for('average').rank}. "
                "Call backward, and requires_grad_(False) for what the loss does not depend on"
            )
    parameters = [x for _, x in named]
    for dtype in dict.fromkeys(x.dtype for x in parameters):
        some = [x for x in parameters if x.dtype is dtype]
        gradients = [ops.zeros_like(x) if x._grad is None else x._grad for x in some]
        weighted = [_weigh(g, weight) for g in gradients]
        total = all_reduce(ops.concat([*weighted, _scalar(some[0], weight)]))
        means, start = ops.divide(total[:-1], total[-1]), 0
        for x in some:
            own = ops.reshape(means[start : start + x.size], tuple(x.shape))
            x.grad = ops.astype(own, x.dtype, copy=False)
            start += x.size


@no_grad()
def mean(x: Any, weight: Any = 1) -> Tensor:
    r"""Weighted mean of a value over the processes, to report it.

    It is :math:`\sum_r w_r x_r / \sum_r w_r`, and has no derivative: `average` is for gradients.

    The value, such as a loss or an accuracy, is floating, and of the same shape and dtype on all
    processes, and so is the result. With weight 0 it counts as zero, whatever it is. Raises
    `TypeError` if the weight requires grad, and `ValueError` if it is negative. Wengert's own.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> wd.mean(wg.asarray(0.5))  # of a loss, for the log
    tensor(0.5000)
    """
    _check_weight("mean", weight)
    held = ops.asarray(x)
    if not held.dtype.inexact:
        raise TypeError(f"mean takes a floating array, and not one of {held.dtype.name}")
    total = all_reduce(ops.concat([_weigh(held, weight), _scalar(held, weight)]))
    found = ops.reshape(ops.divide(total[:-1], total[-1]), tuple(held.shape))
    return ops.astype(found, held.dtype, copy=False)


def _check_weight(function: str, weight: Any) -> None:
    """Raise for a weight whose derivative would be lost."""
    if isinstance(weight, Tensor) and weight.requires_grad:
        raise TypeError(
            f"{function} takes a number as weight, through which no derivative flows: pass "
            "weight.detach()"
        )


def _scalar(like: Tensor, weight: Any) -> Tensor:
    """A weight as an array of shape (1,) beside another, whose sums are at least float32."""
    dtype = wide(ops, like).dtype
    if isinstance(weight, Tensor):
        return ops.reshape(ops.astype(weight, dtype), (1,))
    if weight < 0:
        raise ValueError(f"a weight is 0 or more, and not {weight!r}")
    return ops.full((1,), weight, dtype=dtype, device=device(like))


def _weigh(x: Tensor, weight: Any) -> Tensor:
    """The elements times the weight; zeros for weight 0, also where they are NaN."""
    flat, scale = wide(ops, ops.reshape(x.detach(), (-1,))), _scalar(x, weight)
    return ops.multiply(ops.where(ops.equal(scale, 0), 0, flat), scale)
