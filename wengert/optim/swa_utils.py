"""Averages of a model's parameters over training, by PyTorch's names."""

import copy
from collections.abc import Callable
from typing import Any

from wengert import ops
from wengert.nn.conversion import as_number
from wengert.nn.module import Module
from wengert.ops.hints import Refusing, list_public
from wengert.ops.shares import divide
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["AveragedModel", "get_ema_avg_fn"]

Average = Callable[[Tensor, Tensor, Any], Tensor]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function of an exponential moving average, ``decay * a + (1 - decay) * p``.

    It takes the average ``a``, the parameter ``p`` and how many were averaged.

    Examples
    --------
    >>> average = wg.optim.swa_utils.get_ema_avg_fn(decay=0.9)
    >>> average(wg.asarray([1.0]), wg.asarray([2.0]), 5)
    tensor([1.1000])
    """
    decay = as_number(decay, "decay")
    if not 0 <= decay <= 1:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )
    return lambda averaged, current, count: decay * averaged + (1 - decay) * current


def _mean(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
    """The mean of all, with one more."""
    if not averaged.dtype.inexact:
        return averaged + (current - averaged) / (count + 1)  # type: ignore[no-any-return]
    return averaged + divide(ops, current - averaged, count + 1)  # type: ignore[no-any-return]


class AveragedModel(Refusing, Module):
    """A copy of a model whose parameters are averages of the model's.

    Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).

    ``avg_fn`` is a function such as `get_ema_avg_fn`'s; by default averages are means of all. With
    ``use_buffers`` buffers are averaged, too; otherwise they are copied.

    Examples
    --------
    >>> from wengert.optim.swa_utils import AveragedModel, get_ema_avg_fn
    >>> model = wg.nn.Linear(2, 1)
    >>> averaged = AveragedModel(model, avg_fn=get_ema_avg_fn(0.99))
    >>> averaged.update_parameters(model)  # after each step
    >>> int(averaged.n_averaged)
    1
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        *,
        use_buffers: bool = False,
    ) -> None:
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        with no_grad():  # where the averages are
            held = *self.module.parameters(), *self.module.buffers(), ops.zeros((), device=device)
            count = ops.sum(ops.zeros_like(held[0], dtype="int64"), dtype="int64")
        self.register_buffer("n_averaged", count)
        self.avg_fn, self.use_buffers = avg_fn or _mean, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take a model's parameters into the averages. The first are taken as they are.

        Raises `ValueError`, before anything has changed, if the model's parameters or buffers have
        other shapes than those of the one that was copied.
        """
        mine = [*self.module.parameters(), *self.module.buffers()]
        given = [x.detach() for x in (*model.parameters(), *model.buffers())]
        shapes = [[tuple(x.shape) for x in held] for held in (mine, given)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                "the model has parameters or buffers of other shapes than the averaged one: "
                f"{shapes[1]} instead of {shapes[0]}"
            )
        averaged = len(mine if self.use_buffers else [*self.module.parameters()])
        with no_grad():
            found, first = [], self.n_averaged == 0
            for i, (a, p) in enumerate(zip(mine, given, strict=True)):
                if p.backend is a.backend and p.device != a.device:
                    p = p.to_device(a.device)
                if i < averaged:  # no branch on the count: a compiled step takes averages, too
                    mean = ops.astype(self.avg_fn(a, p, self.n_averaged), a.dtype)
                    p = ops.where(first, p, mean)
                found.append(p)
            for a, p in zip(mine, found, strict=True):
                a.copy_(p)
            self.n_averaged.add_(1)


list_public(__name__)
