"""A schedule by a figure, such as the validation loss."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wengert.backends.states import check_names
from wengert.nn.conversion import check_constant
from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import for_groups


@dataclass(repr=False, eq=False)
class ReduceLROnPlateau:
    """The rate times a factor once a figure, such as the validation loss, gets no better.

    Parameters
    ----------
    patience, cooldown : int
        The epochs without an improvement that are allowed, and those after a reduction that do not
        count.
    threshold : float
        How much better is better: a part of the best figure (``"rel"``), or a difference from it.
    eps : float
        A smaller change of the rate is left out.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.ones(1)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (2.0, 1.0, 1.0, 1.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    optimizer: Optimizer
    mode: str = "min"
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: str = "rel"
    cooldown: int = 0
    min_lr: list[float] | float = 0
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if self.factor >= 1:
            raise ValueError(f"Factor should be < 1.0, and is {self.factor}.")
        if self.mode not in ("min", "max") or self.threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not {self.mode!r} and "
                f"{self.threshold_mode!r}"
            )
        for_groups("min_lr", self.optimizer, self.min_lr)
        self.last_epoch = self.cooldown_counter = self.num_bad_epochs = 0
        self.best = math.inf if self.mode == "min" else -math.inf

    def __setattr__(self, name: str, value: Any) -> None:
        check_constant(value, name)
        super().__setattr__(name, value)

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Look at the figure of the next epoch, or of a given one, and reduce the rates if due."""
        figure = float(metrics)
        least = for_groups("min_lr", self.optimizer, self.min_lr)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        change = self.threshold if self.mode == "max" else -self.threshold
        bound = self.best * (1 + change) if self.threshold_mode == "rel" else self.best + change
        if figure < bound if self.mode == "min" else figure > bound:
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

    def state_dict(self) -> dict[str, Any]:
        """Return what has been counted, the best figure and the rates."""
        names = ("last_epoch", "best", "num_bad_epochs", "cooldown_counter")
        return {**{name: getattr(self, name) for name in names}, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load what `state_dict` has returned, before or after the optimiser.

        Raises `ValueError` for missing or unexpected names, or other groups. Nothing has changed
        then.
        """
        check_names("ReduceLROnPlateau", state_dict, self.state_dict())
        own = dict(state_dict)
        rates = for_groups("_last_lr of the state", self.optimizer, [*own.pop("_last_lr")])
        vars(self).update(own)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
