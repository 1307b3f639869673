"""Schedules of learning rates, by PyTorch's names.

A scheduler sets ``"lr"`` in the groups of an optimiser. Compiled steps take rates as inputs, and so
are not recorded again.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from wengert.optim.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from wengert.optim.factors import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler, checked

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class ReduceLROnPlateau(LRScheduler):
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
    >>> rates = []
    >>> for loss in (2.0, 1.0, 1.0, 1.0):
    ...     schedule.step(loss)
    ...     rates.append(schedule.get_last_lr()[0])
    >>> rates
    [1.0, 1.0, 1.0, 0.1]
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
        self.optimizer = checked(optimizer)
        count = len(optimizer.param_groups)
        listed = isinstance(min_lr, list | tuple)
        if listed and len(min_lr) != count:  # type: ignore[arg-type]
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")  # type: ignore[arg-type]
        self.default_min_lr = None if listed else min_lr
        self.min_lrs: list[Any] = list(min_lr) if listed else [min_lr] * count  # type: ignore[arg-type]
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self._keep(self._now())
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the rate has been reduced just now."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the figure of an epoch, and reduce the rates if it is time.

        Parameters
        ----------
        metrics : float or Tensor
            The figure, one number.
        epoch : int, optional
            The number of the epoch, if it is not the next one.
        """
        figure = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(figure, self.best):
            self.best, self.num_bad_epochs = figure, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._keep(self._now())

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}); give "
                    "`min_lrs` a rate for each group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            rate = max(group["lr"] * self.factor, least)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate

    def _is_better(self, figure: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            best = best * (1 + sign * self.threshold)
        else:
            best = best + sign * self.threshold
        return figure < best if self.mode == "min" else figure > best


class _Several(LRScheduler):
    """Schedulers of one optimiser."""

    _schedulers: list[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name} at index {index} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(  # noqa: TRY004 -- as PyTorch
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{index} in the given schedulers sequence."
                )
            optimizer = optimizer or scheduler.optimizer
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {index} of another one."
                )
        return checked(optimizer)


class SequentialLR(_Several):
    """One scheduler after the other, such as one of warming up and one of annealing.

    PyTorch: ``torch.optim.lr_scheduler.SequentialLR``.

    Parameters
    ----------
    milestones : list of int
        The step at which each but the first begins, where its own step is 0.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedules = wg.optim.lr_scheduler
    >>> warm = schedules.ConstantLR(optimizer, factor=0.1, total_iters=2)
    >>> decay = schedules.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = schedules.SequentialLR(optimizer, [warm, decay], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(self)
        chosen = schedulers[bisect_right(milestones, 0)]
        chosen._initial_step()
        self._keep(chosen.get_last_lr())

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next step."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        chosen = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            chosen._update_lr(0)
        else:
            chosen.step()
        self._keep(chosen.get_last_lr())


def _undo(scheduler: LRScheduler) -> None:
    """Take back the first step that schedulers have made when they were made."""
    if isinstance(scheduler, _Several):
        for part in scheduler._schedulers:
            _undo(part)
    else:
        scheduler.last_epoch -= 1


class ChainedScheduler(_Several):
    """Several schedulers at a time, each of which changes the rates that the one before has set.

    PyTorch: ``torch.optim.lr_scheduler.ChainedScheduler``.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        Of the same optimiser, which need not be given.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> warm = wg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = wg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = wg.optim.lr_scheduler.ChainedScheduler([warm, decay])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        self._schedulers = schedulers  # type: ignore[assignment]
        self._keep(self._now())

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._keep(self._now())


def __dir__() -> list[str]:
    return __all__
