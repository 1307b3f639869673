"""Averages of a model's parameters over training, by PyTorch's names."""

import copy
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from wengert import ops
from wengert.nn.conversion import as_number
from wengert.nn.module import Module
from wengert.nn.normalisation import BatchNorm1d, BatchNorm2d
from wengert.ops.shares import divide
from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler, cosine, for_groups
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function of an exponential moving average, ``decay * a + (1 - decay) * p``.

    Parameters
    ----------
    decay : float
        From 0 to 1.

    Returns
    -------
    callable
        Of the average ``a``, the parameter ``p`` and how many were averaged, it gives the next
        average.

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


def get_swa_avg_fn() -> Average:
    """Return the function of the mean of all, ``a + (p - a) / (count + 1)``.

    Returns
    -------
    callable
        Of the average ``a``, the parameter ``p`` and how many were averaged, it gives the next
        average.

    Examples
    --------
    >>> average = wg.optim.swa_utils.get_swa_avg_fn()
    >>> average(wg.asarray([1.0]), wg.asarray([5.0]), 3)  # the fourth of four
    tensor([2.])
    """

    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        if not averaged.dtype.inexact:
            return averaged + (current - averaged) / (count + 1)  # type: ignore[no-any-return]
        step = divide(ops, current - averaged, count + 1)
        return averaged + step  # type: ignore[no-any-return]

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return `get_ema_avg_fn`'s function of lists, which changes the first.

    Parameters
    ----------
    decay : float
        From 0 to 1.

    Returns
    -------
    callable
        Of two lists of Tensors, and how many were averaged.

    Examples
    --------
    >>> average = wg.optim.swa_utils.get_ema_multi_avg_fn(decay=0.9)
    >>> averages = [wg.asarray([1.0])]
    >>> average(averages, [wg.asarray([2.0])], 5)
    >>> averages
    [tensor([1.1000])]
    """
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """Return `get_swa_avg_fn`'s function of lists, which changes the first.

    Returns
    -------
    callable
        Of two lists of Tensors, and how many were averaged.

    Examples
    --------
    >>> average = wg.optim.swa_utils.get_swa_multi_avg_fn()
    >>> averages = [wg.asarray([1.0])]
    >>> average(averages, [wg.asarray([5.0])], 3)
    >>> averages
    [tensor([2.])]
    """
    return _of_lists(get_swa_avg_fn())


def _of_lists(average: Average) -> Averages:
    def averages(averaged: list[Tensor], current: list[Tensor], count: Any) -> None:
        with no_grad():
            for a, p in zip(averaged, current, strict=True):
                a.copy_(ops.astype(average(a, p, count), a.dtype))

    return averages


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    Parameters
    ----------
    model : Module
        It is copied, and stays as it is.
    device : optional
        Where the copy lives.
    avg_fn : callable, optional
        The next average by the average, the model's parameter and how many there have been, such as
        `get_ema_avg_fn`'s; the mean of all by default.
    multi_avg_fn : callable, optional
        Instead, a function of lists, which changes the first.
    use_buffers : bool
        Whether buffers are averaged, too. Otherwise they are copied.

    Notes
    -----
    Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).
    PyTorch: ``torch.optim.swa_utils.AveragedModel``.

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
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        with no_grad():
            first = next(chain(self.module.parameters(), self.module.buffers()), None)
            if first is None:
                count = ops.zeros((), dtype="int64", device=device)
            else:  # where the averages are
                count = ops.sum(ops.zeros_like(first, dtype="int64"), dtype="int64")
        self.register_buffer("n_averaged", count)
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the copy's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take a model's parameters into the averages. The first are taken as they are.

        Parameters
        ----------
        model : Module
            With as many parameters and buffers, of the same shapes, as the one that was copied.

        Raises
        ------
        ValueError
            If the model has others. Nothing has changed then.
        """
        averaged, current = _contents(self.module, model, Module.parameters)
        held, given = _contents(self.module, model, Module.buffers)
        if self.use_buffers:
            averaged, current = averaged + held, current + given
        with no_grad():
            if self.multi_avg_fn is None:
                self._average(averaged, current)
            elif bool(self.n_averaged == 0):
                _copy(averaged, current)
            else:
                self.multi_avg_fn(averaged, current, self.n_averaged)
            if not self.use_buffers:
                _copy(held, given)
            self.n_averaged.add_(1)

    def _average(self, averaged: list[Tensor], current: list[Tensor]) -> None:
        average, count = self.avg_fn or get_swa_avg_fn(), self.n_averaged
        # No branch on the count, so that a compiled step takes averages, too.
        first = count == 0
        found = [
            ops.where(first, p, ops.astype(average(a, p, count), a.dtype))
            for a, p in zip(averaged, current, strict=True)
        ]
        _copy(averaged, found)


def _contents(
    one: Module, other: Module, of: Callable[[Module], Iterable[Tensor]]
) -> tuple[list[Tensor], list[Tensor]]:
    """What two modules have, the other's on the first's devices, where these are one library's."""
    mine, yours = list(of(one)), [tensor.detach() for tensor in of(other)]
    shapes = [[tuple(tensor.shape) for tensor in each] for each in (mine, yours)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"the model has {of.__name__} of other shapes than the averaged one: {shapes[1]} "
            f"instead of {shapes[0]}"
        )
    pairs = zip(mine, yours, strict=True)
    return mine, [
        p if p.backend is not a.backend or p.device == a.device else p.to_device(a.device)
        for a, p in pairs
    ]


def _copy(into: list[Tensor], given: list[Tensor]) -> None:
    for a, p in zip(into, given, strict=True):
        a.copy_(p)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch normalisation anew, from all data.

    Parameters
    ----------
    loader : iterable
        Batches: the inputs, or a tuple or list whose first item they are.
    model : Module
        Usually an `AveragedModel`. Its mode of training stays.
    device : optional
        Where batches are moved before.

    Examples
    --------
    >>> model = wg.nn.Sequential(wg.nn.BatchNorm1d(2))
    >>> loader = [wg.asarray([[1.0, 2.0], [3.0, 6.0]])]
    >>> wg.optim.swa_utils.update_bn(loader, model)
    >>> model[0].running_mean
    tensor([2., 4.])
    """
    layers = [layer for layer in model.modules() if isinstance(layer, BatchNorm1d | BatchNorm2d)]
    if not layers:
        return
    momenta, training = [layer.momentum for layer in layers], model.training
    try:
        model.train()
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the mean of all batches
        with no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, list | tuple) else batch
                model(x if device is None else x.to_device(device))
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """The rate goes to that of averaging, and stays there.

    PyTorch: ``torch.optim.swa_utils.SWALR``.

    Parameters
    ----------
    swa_lr : float or list of float
        The rate at which models are averaged, or one for each group.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.6, 0.2, 0.2]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_groups("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:  # type: ignore[redundant-expr]
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates

    def _part(self, step: int) -> float:
        """How far the way has been gone, from 0 to 1."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - cosine(part)) / 2


def __dir__() -> list[str]:
    return __all__
