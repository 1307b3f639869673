r"""Schedules of learning rates, by PyTorch's names: functions of the step.

A schedule sets ``"lr"`` in the groups of an optimiser. Compiled steps take rates as inputs, and so
are not recorded again. In formulas :math:`\gamma_0` is the initial rate, and :math:`t` the step.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from wengert.ops.hints import Refusing, list_public
from wengert.optim.scheduler import LRScheduler, ReduceLROnPlateau, Schedule, spread_over_groups

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

list_public(__name__)
Function = Callable[[Any], float]


@dataclass(repr=False, eq=False)
class LambdaLR(Schedule):
    r"""The initial rate times a function of the step: :math:`\gamma_t = \gamma_0 f(t)`.

    :math:`f` is ``lr_lambda``, or one of a list for each group. It is not saved in the state.
    """

    lr_lambda: Function | list[Function]

    def lr_factors(self, step: Any) -> list[Any]:
        functions = spread_over_groups("lr_lambda", self.optimizer, self.lr_lambda)
        return [function(step) for function in functions]


@dataclass(repr=False, eq=False)
class StepLR(Schedule):
    r"""The rate times :math:`g` every so many steps: :math:`\gamma_0 g^{\lfloor t / s \rfloor}`.

    Here :math:`g` is ``gamma`` and :math:`s` ``step_size``.
    """

    step_size: int
    gamma: float = 0.1

    _positive = ("step_size",)

    def lr_factor(self, step: Any) -> Any:
        return self.gamma ** (step // self.step_size)


@dataclass(repr=False, eq=False)
class MultiStepLR(Schedule):
    """The rate times ``gamma`` at some steps, as often as each is named."""

    milestones: Iterable[int]
    gamma: float = 0.1

    def __post_init__(self) -> None:
        self.milestones: list[int] = sorted(self.milestones)
        super().__post_init__()

    def lr_factor(self, step: Any) -> Any:
        return self.gamma ** bisect_right([*self.milestones], step)


@dataclass(repr=False, eq=False)
class ConstantLR(Schedule):
    """The rate times ``factor`` for the first ``total_iters`` steps."""

    factor: float = 1.0 / 3
    total_iters: int = 5

    _fractions = ("factor",)

    def lr_factor(self, step: Any) -> Any:
        return self.factor if step < self.total_iters else 1


@dataclass(repr=False, eq=False)
class LinearLR(Schedule):
    """The rate times a factor that changes linearly for ``total_iters`` steps."""

    start_factor: float = 1.0 / 3
    end_factor: float = 1.0
    total_iters: int = 5

    _positive, _fractions = ("start_factor", "total_iters"), ("start_factor", "end_factor")

    def lr_factor(self, step: Any) -> Any:
        part = min(step, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


@dataclass(repr=False, eq=False)
class ExponentialLR(Schedule):
    r"""The rate times ``gamma``, :math:`g`, in each step: :math:`\gamma_t = \gamma_0 g^t`."""

    gamma: float

    def lr_factor(self, step: Any) -> Any:
        return self.gamma**step


def _cosine_factor(part: Any) -> Any:
    """The height of half a wave from 1 to 0, also at a number that a compiled step counts in."""
    angle = math.pi * part
    return (1 + (angle.through(math.cos) if hasattr(angle, "through") else math.cos(angle))) / 2


@dataclass(repr=False, eq=False)
class CosineAnnealingLR(Schedule):
    r"""Half a wave from the initial rate down to ``eta_min``, :math:`\eta`, and up again.

    .. math::
        \gamma_t = \eta + (\gamma_0 - \eta) \frac{1 + \cos(\pi t / T)}{2}

    :math:`T` is ``T_max``. Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm
    restarts" (2017).
    """

    T_max: int
    eta_min: float = 0.0

    _positive = ("T_max",)

    def lr_factor(self, step: Any) -> Any:
        return _cosine_factor(step / self.T_max)


@dataclass(repr=False, eq=False)
class CosineAnnealingWarmRestarts(Schedule):
    r"""Half a wave of `CosineAnnealingLR` down, again and again from the initial rate.

    The first takes ``T_0`` steps, each other one ``T_mult`` times those of the one before.
    """

    T_0: int
    T_mult: int = 1
    eta_min: float = 0.0

    _counts = ("T_0", "T_mult")

    def lr_factor(self, step: Any) -> Any:
        if self.T_mult == 1:
            return _cosine_factor(step % self.T_0 / self.T_0)
        length = self.T_0
        while step >= length:
            step = step - length
            length *= self.T_mult
        return _cosine_factor(step / length)


@dataclass(repr=False, eq=False)
class OneCycleLR(Schedule, Refusing):
    r"""One wave of the rate, up to a large one and down to nearly zero, with a step for each batch.

    Smith and Topin, "Super-convergence: very fast training of neural networks using large learning
    rates" (2018).

    The largest rate ``max_lr`` may be a list for the groups. There are ``total_steps``, or
    ``epochs`` times ``steps_per_epoch``; the rate grows in the part ``pct_start`` of them. The
    first rate, which becomes ``"initial_lr"``, is the largest divided by ``div_factor``; the last
    is the first divided by ``final_div_factor``. With ``cycle_momentum`` the momentum, or
    :math:`\beta_1`, goes the opposite way.
    """

    max_lr: float | list[float]
    total_steps: int | None = None
    epochs: int | None = None
    steps_per_epoch: int | None = None
    pct_start: float = 0.3
    anneal_strategy: str = "cos"
    cycle_momentum: bool = True
    base_momentum: float = 0.85
    max_momentum: float = 0.95
    div_factor: float = 25.0
    final_div_factor: float = 1e4

    _replaces, _counts, _fractions = True, ("total_steps",), ("pct_start",)
    _positive = ("div_factor", "final_div_factor")

    def __post_init__(self) -> None:
        if self.total_steps is None:
            if self.epochs is None or self.steps_per_epoch is None:
                raise ValueError("Define either total_steps OR (epochs AND steps_per_epoch)")
            self.total_steps = self.epochs * self.steps_per_epoch
        if self.anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', not {self.anneal_strategy!r}")
        if self.cycle_momentum and not {"momentum", "betas"} & self.optimizer.defaults.keys():
            raise ValueError("with cycle_momentum the optimizer needs momentum or beta1")
        begins = self.last_epoch == -1
        super().__post_init__()
        if begins:  # schedules that are joined with this one begin at its first rate
            for group, top in zip(self.optimizer.param_groups, self._largest(), strict=True):
                group["initial_lr"] = top / self.div_factor

    def _largest(self) -> list[float]:
        return spread_over_groups("max_lr", self.optimizer, self.max_lr)

    def _interpolate(self, first: float, top: float, last: float, step: Any) -> Any:
        """A number that goes to another one and on to a last one, in a step."""
        count: Any = self.total_steps
        if step > count:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {count}"
            )
        peak = self.pct_start * count - 1
        ends = (0.0, peak, first, top) if step <= peak else (peak, count - 1, top, last)
        begin, end, a, b = ends
        if begin == end:
            raise ValueError(f"pct_start={self.pct_start} of {count} steps leaves a phase none")
        part = (step - begin) / (end - begin)
        return b + (a - b) * (_cosine_factor(part) if self.anneal_strategy == "cos" else 1 - part)

    def get_lr(self) -> list[Any]:
        pairs = [(top / self.div_factor, top) for top in self._largest()]
        return [
            self._interpolate(first, top, first / self.final_div_factor, self.last_epoch)
            for first, top in pairs
        ]

    def _set_momenta(self, step: Any) -> None:
        if self.cycle_momentum:
            most = self.max_momentum
            m = self._interpolate(most, self.base_momentum, most, step)
            for group in self.optimizer.param_groups:
                betas = "betas" in group
                group |= {"betas": (m, *group["betas"][1:])} if betas else {"momentum": m}


@dataclass(repr=False, eq=False)
class SequentialLR(Schedule):
    """One schedule after the other; each but the first counts its steps from its milestone.

    Examples
    --------
    >>> optimizer, schedules = wg.optim.SGD([wg.ones(1)], lr=1.0), wg.optim.lr_scheduler
    >>> warm = schedules.ConstantLR(optimizer, factor=0.1, total_iters=2)
    >>> decay = schedules.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = schedules.SequentialLR(optimizer, [warm, decay], milestones=[2])
    >>> [schedule.rates(step)[0] for step in range(4)]
    [0.1, 0.1, 1.0, 0.5]
    """

    schedulers: list[LRScheduler]
    milestones: list[int]

    _replaces = True

    def __post_init__(self) -> None:
        schedulers, milestones = self.schedulers, self.milestones
        for part in schedulers:
            if getattr(part, "optimizer", None) is not self.optimizer or not hasattr(part, "rates"):
                raise ValueError(
                    "SequentialLR joins functions of the step, of the same optimizer, and was "
                    f"given another {type(part).__name__}"
                )
            warm = part is schedulers[0] and isinstance(part, LinearLR | ConstantLR)
            if not (warm or isinstance(part, OneCycleLR) or part._began == self.base_lrs):
                raise ValueError(
                    f"{type(part).__name__} was made for the initial rates {[*part._began]}, which "
                    f"are {[*self.base_lrs]} now; make it after what sets them, such as OneCycleLR"
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR needs a milestone between two schedulers, and was given "
                f"{len(milestones)} for {len(schedulers)}"
            )
        super().__post_init__()

    @property
    def _multiplies(self) -> bool:
        return all(part._multiplies for part in self.schedulers)

    def _choose(self, step: Any) -> tuple[LRScheduler, Any]:
        """The schedule of a step, and its own step."""
        index = bisect_right(self.milestones, step)
        return self.schedulers[index], step - self.milestones[index - 1] if index else step

    def lr_factors(self, step: Any) -> list[Any]:
        chosen, own = self._choose(step)
        return chosen.lr_factors(own)

    def get_lr(self) -> list[Any]:
        chosen, own = self._choose(self.last_epoch)
        return chosen.rates(own)

    def _set_momenta(self, step: Any) -> None:
        chosen, own = self._choose(step)
        chosen._set_momenta(own)
