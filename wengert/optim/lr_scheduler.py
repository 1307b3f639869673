r"""Schedules of learning rates, by PyTorch's names: functions of the step.

A schedule sets ``"lr"`` in the groups of an optimiser. Compiled steps take rates as inputs, and so
are not recorded again. In formulas :math:`\gamma_0` is the initial rate, and :math:`t` the step.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Never

from wengert.backends.states import check_names
from wengert.nn.conversion import check_constant
from wengert.optim.cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts, OneCycleLR
from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler, SequentialLR, check_positive, for_groups

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

Function = Callable[[Any], float]


class LambdaLR(LRScheduler):
    r"""The initial rate times a function of the step: :math:`\gamma_t = \gamma_0 f(t)`.

    PyTorch: ``torch.optim.lr_scheduler.LambdaLR``.

    Parameters
    ----------
    lr_lambda : callable or list of callable
        :math:`f`, or one for each group. The state has nothing of it.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> [schedule.rates(step)[0] for step in (0, 1, 3)]
    [1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas = for_groups("lr_lambda", optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def lr_factors(self, step: Any) -> list[Any]:
        return [function(step) for function in self.lr_lambdas]


class StepLR(LRScheduler):
    r"""The rate times :math:`g` every so many steps: :math:`\gamma_0 g^{\lfloor t / s \rfloor}`.

    Here :math:`g` is ``gamma`` and :math:`s` ``step_size``.
    PyTorch: ``torch.optim.lr_scheduler.StepLR``.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> [schedule.rates(step)[0] for step in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        check_positive("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        return self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at some steps, as often as each is named.

    PyTorch: ``torch.optim.lr_scheduler.MultiStepLR``.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> [schedule.rates(step)[0] for step in range(5)]
    [1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        return self.gamma ** bisect_right(self.milestones, step)


class ConstantLR(LRScheduler):
    """The rate times ``factor``, from 0 to 1, for the first ``total_iters`` steps.

    PyTorch: ``torch.optim.lr_scheduler.ConstantLR``.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> [schedule.rates(step)[0] for step in range(4)]
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(
                f"Constant multiplicative factor expected to be between 0 and 1, not {factor}."
            )
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        return self.factor if step < self.total_iters else 1


class LinearLR(LRScheduler):
    """The rate times a factor that changes linearly for ``total_iters`` steps.

    PyTorch: ``torch.optim.lr_scheduler.LinearLR``.

    Parameters
    ----------
    start_factor, end_factor : float
        The first, above 0 and at most 1, and the last, from 0 to 1.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> [schedule.rates(step)[0] for step in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                f"to 1, not {start_factor}."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                f"Ending multiplicative factor expected to be between 0 and 1, not {end_factor}."
            )
        check_positive("total_iters", total_iters)
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        part = min(step, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class ExponentialLR(LRScheduler):
    r"""The rate times ``gamma``, :math:`g`, in each step: :math:`\gamma_t = \gamma_0 g^t`.

    PyTorch: ``torch.optim.lr_scheduler.ExponentialLR``.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> [schedule.rates(step)[0] for step in range(4)]
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        return self.gamma**step


class PolynomialLR(LRScheduler):
    r"""A power of a line down to zero: :math:`\gamma_t = \gamma_0 (1 - \min(t, n) / n)^q`.

    Here :math:`n` is ``total_iters`` and :math:`q` ``power``.
    PyTorch: ``torch.optim.lr_scheduler.PolynomialLR``.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> [schedule.rates(step)[0] for step in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        check_positive("total_iters", total_iters)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        return (1 - min(step, self.total_iters) / self.total_iters) ** self.power


class ReduceLROnPlateau:
    """The rate times a factor once a figure, such as the validation loss, gets no better.

    PyTorch: ``torch.optim.lr_scheduler.ReduceLROnPlateau``.

    Parameters
    ----------
    mode : {"min", "max"}
        Whether less is better, or more.
    patience : int
        How many epochs without an improvement are allowed.
    threshold : float
        How much better is better.
    threshold_mode : {"rel", "abs"}
        Whether the threshold is a part of the best figure, or a difference from it.
    cooldown : int
        How many epochs do not count after the rate has been reduced.
    min_lr : float or list of float
        The least rate, or one for each group.
    eps : float
        A smaller change of the rate is left out.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (2.0, 1.0, 1.0, 1.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"Factor should be < 1.0, and is {factor}.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown; it should be 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"threshold mode {threshold_mode} is unknown; it should be 'rel' or 'abs'"
            )
        for_groups("min_lr", optimizer, min_lr)
        self.optimizer, self.min_lr = optimizer, min_lr
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.last_epoch = self.cooldown_counter = self.num_bad_epochs = 0
        self.best = math.inf if mode == "min" else -math.inf

    def __setattr__(self, name: str, value: Any) -> None:
        check_constant(value, name)
        super().__setattr__(name, value)

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Look at the figure of an epoch, and reduce the rates if it is time.

        Parameters
        ----------
        metrics : float or Tensor
            The figure, one number.
        epoch : int, optional
            The number of the epoch, if it is not the next one.
        """
        figure = float(metrics)
        least = for_groups("min_lr", self.optimizer, self.min_lr)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._is_better(figure):
            self.best, self.num_bad_epochs = figure, 0
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, least, strict=True):
                rate = max(group["lr"] * self.factor, low)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, figure: float) -> bool:
        change = self.threshold if self.mode == "max" else -self.threshold
        bound = self.best * (1 + change) if self.threshold_mode == "rel" else self.best + change
        return figure < bound if self.mode == "min" else figure > bound

    def state_dict(self) -> dict[str, Any]:
        """Return what has been counted, the best figure and the rates."""
        names = ("last_epoch", "best", "num_bad_epochs", "cooldown_counter")
        return {**{name: getattr(self, name) for name in names}, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load what `state_dict` has returned, before or after the optimiser.

        Raises
        ------
        ValueError
            If names are missing or unexpected, or the groups are others. Nothing has changed then.
        """
        check_names("ReduceLROnPlateau", state_dict, self.state_dict())
        own = dict(state_dict)
        rates = for_groups("_last_lr of the state", self.optimizer, [*own.pop("_last_lr")])
        vars(self).update(own)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Never:
        raise import_module("wengert.ops.hints").no_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return __all__
