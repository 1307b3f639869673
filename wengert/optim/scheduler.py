"""The base of the schedules, which are functions of the step, and the one that is none."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from wengert.backends.states import check_names
from wengert.nn.conversion import check_constant
from wengert.optim.optimizer import Optimizer


class LRScheduler:
    """The base of the schedules: after each epoch, or each batch, `step` sets the rates.

    A subclass defines ``lr_factor(step)``, by which the initial rates are multiplied, or PyTorch's
    ``get_lr()``, which returns a rate for each group by ``last_epoch`` and ``base_lrs``. Factors of
    all schedules of one optimiser are multiplied; `SequentialLR` joins others. A rate that no
    schedule has set is never overwritten: `step` raises.

    Attributes
    ----------
    base_lrs : tuple of float
        The groups' initial rates, ``"initial_lr"``. Assigning them makes this the only
        schedule of its optimiser, and its factors multiply them.
    last_epoch : int
        How many steps have been made.

    Examples
    --------
    >>> w = wg.nn.Parameter(wg.ones(3))
    >>> optimizer = wg.optim.SGD([w], lr=0.5)
    >>> schedule = wg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(3):
    ...     wg.sum(w * w).backward()
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr(), schedule.rates(step=4)
    ([0.0625], [0.03125])
    """

    #: The least rate. If it is not 0, rates are no multiples of the initial ones.
    eta_min: Any = 0
    last_epoch: Any = -1
    #: Whether the schedule takes the place of those before.
    _replaces: ClassVar[bool] = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", group["lr"])
        self.last_epoch = last_epoch + 1
        self.rates(self.last_epoch)  # errors come before anything has changed
        #: What the initial rates were when this schedule was made.
        self._began = self.base_lrs
        # Lists of the optimiser, by which its schedules know of each other.
        self._factors, self._rates = optimizer._factors, optimizer._rates
        if not self._rates:
            self._rates[:] = self.base_lrs
        #: This schedule's factors among those of the optimiser; empty if it has none.
        self._own: list[Any] = []
        self._factors[:] = [*([] if self._replaces else self._factors), self._own]
        self._settle()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "eta_min" and hasattr(self, "_own"):  # a compiled step can't begin or end it
            self._set_own()

    @property
    def base_lrs(self) -> tuple[Any, ...]:
        """The groups' initial rates."""
        for i, group in enumerate(self.optimizer.param_groups):
            if "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}]: load the "
                    "optimizer's state_dict before a schedule goes on, and give a group that is "
                    "added later its 'initial_lr'"
                )
        return tuple(group["initial_lr"] for group in self.optimizer.param_groups)

    @base_lrs.setter
    def base_lrs(self, rates: Any) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["initial_lr"] = rate
        self._began, self._factors[:] = self.base_lrs, [self._own]
        self._set(self.rates(self.last_epoch))

    @property
    def _multiplies(self) -> bool:
        """Whether the rates are the initial ones times factors of the step."""
        return type(self).get_lr is LRScheduler.get_lr and self.eta_min == 0

    def lr_factor(self, step: Any) -> Any:
        """The factor of all groups in a step."""
        raise NotImplementedError(f"{type(self).__name__} defines neither lr_factor nor get_lr")

    def lr_factors(self, step: Any) -> list[Any]:
        """The factor of each group in a step."""
        return [self.lr_factor(step)] * len(self.optimizer.param_groups)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group in the step ``last_epoch``, by this schedule alone."""
        low = self.eta_min
        pairs = zip(self.base_lrs, self.lr_factors(self.last_epoch), strict=True)
        return [low + (base - low) * factor for base, factor in pairs]

    def rates(self, step: Any) -> list[Any]:
        """Return the rate of each group in any step, by this schedule alone."""
        here, self.last_epoch = self.last_epoch, step
        try:
            return self.get_lr()
        finally:
            self.last_epoch = here

    def get_last_lr(self) -> list[Any]:
        """Return the rate of each group, as the optimiser's schedules have set it last."""
        return [*self._rates]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next step, or of a given one, which may be a fraction.

        Raises `RuntimeError` for a rate that no schedule has set, or another schedule in the way.
        """
        step = self.last_epoch + 1 if epoch is None else epoch
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        found: Any = self._combine(step)
        what = (
            "goes with no other schedule here: one is no factor, lacks a group that was added, or "
            "has taken its place"
        )
        if what := what if found is None else self._difference(found):
            raise RuntimeError(
                f"{type(self).__name__} {what}. Join schedules by SequentialLR; "
                "assign its base_lrs, and this one goes on from them alone"
            )
        self.last_epoch = step
        self._set(found)

    def _combine(self, step: Any) -> list[Any] | None:
        """The rates by all schedules together, if they go together."""
        others = [factors for factors in self._factors if factors is not self._own]
        if len(others) == len(self._factors) or (others and not self._multiplies):
            return None
        rates = self.rates(step)
        if any(len(factors) != len(rates) for factors in others):
            return None
        for factors in others:
            rates = [rate * factor for rate, factor in zip(rates, factors, strict=True)]
        return rates

    def _difference(self, found: list[Any]) -> str:
        """Name a rate that is neither what schedules have set, nor what is to be set."""
        last, groups = self._rates, self.optimizer.param_groups
        if [group["lr"] for group in groups[: len(last)]] == last:
            return ""
        here: Any = self._combine(self.last_epoch)  # the optimiser may have been loaded since
        for i, (group, now, new) in enumerate(zip(groups, here, found, strict=True)):
            # By more than rounding: PyTorch's recursions round otherwise.
            if all(abs(group["lr"] - rate) > 1e-9 * abs(rate) for rate in (now, new)):
                return (
                    f"has set the rate of group {i} to {now} in step {self.last_epoch}, and it is "
                    f"{group['lr']} now. If the optimizer was loaded, load the schedule, too"
                )
        return ""

    def _settle(self) -> None:
        """Set the rates of this step, unless others have set them; then `step` will tell."""
        self._set_own()
        found = self._combine(self.last_epoch)
        if found is not None and not self._difference(found):
            self._set(found)

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._set_momenta(self.last_epoch)
        self._set_own()
        self._rates[:] = rates  # one list, whose items are inputs of compiled steps

    def _set_own(self) -> None:
        self._own[:] = self.lr_factors(self.last_epoch) if self._multiplies else []

    def _set_momenta(self, step: Any) -> None:
        """Set what a schedule sets beside rates."""

    def state_dict(self) -> dict[str, Any]:
        """Return the step, which is all of the state; the optimiser's has the initial rates."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load what `state_dict` has returned, before or after the optimiser.

        Of PyTorch's states load ``last_epoch``: ``{"last_epoch": state["last_epoch"]}``. Raises
        `ValueError` for missing or unexpected names. Nothing has changed then.
        """
        check_names(type(self).__name__, state_dict, self.state_dict())
        vars(self).update(state_dict)
        self._settle()


@dataclass(repr=False, eq=False)
class Schedule(LRScheduler):
    """The base of those here, whose fields are the parameters."""

    optimizer: Optimizer
    _: KW_ONLY
    last_epoch: int = -1

    #: The parameters that are above 0, whole numbers above 0, and those from 0 to 1.
    _positive: ClassVar[tuple[str, ...]] = ()
    _counts: ClassVar[tuple[str, ...]] = ()
    _fractions: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_constants(self)
        for name in (*self._positive, *self._counts):
            value, whole = getattr(self, name), "integer " * (name in self._counts)
            if not value > 0 or (whole and value % 1):
                raise ValueError(f"Expected positive {whole}{name}, but got {value}")
        for name in self._fractions:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"Expected {name} from 0 to 1, but got {getattr(self, name)}")
        super().__init__(self.optimizer, self.last_epoch)


def check_constants(schedule: Any) -> None:
    """Raise `TypeError` if a derivative flows through a parameter, also an unused one."""
    for name, value in vars(schedule).items():
        check_constant(value, name)


def spread_over_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group: the same, or those of a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return list(value)


@dataclass(repr=False, eq=False)
class ReduceLROnPlateau:
    """The rate times a factor once a figure, such as the validation loss, gets no better.

    ``patience`` epochs without an improvement are allowed, and the ``cooldown`` epochs after a
    reduction do not count. ``threshold`` says how much better is better: a part of the best figure
    (``"rel"``), or a difference from it. A change of the rate below ``eps`` is left out.

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
        check_constants(self)
        if self.factor >= 1:
            raise ValueError(f"Factor should be < 1.0, and is {self.factor}.")
        if self.mode not in ("min", "max") or self.threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not {self.mode!r} and "
                f"{self.threshold_mode!r}"
            )
        spread_over_groups("min_lr", self.optimizer, self.min_lr)
        self.last_epoch = self.cooldown_counter = self.num_bad_epochs = 0
        self.best = math.inf if self.mode == "min" else -math.inf

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Look at the figure of the next epoch, or of a given one, and reduce the rates if due."""
        figure = float(metrics)
        least = spread_over_groups("min_lr", self.optimizer, self.min_lr)
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
        rates = spread_over_groups("_last_lr of the state", self.optimizer, [*own.pop("_last_lr")])
        vars(self).update(own)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
