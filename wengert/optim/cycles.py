"""Schedules that are waves: cosines, and one cycle."""

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler, check_positive, cosine_factor, for_groups


class _Wave(LRScheduler):
    """A schedule between the initial rate and a least one."""

    eta_min: float

    @property
    def _multiplies(self) -> bool:
        return super()._multiplies and self.eta_min == 0

    def _rates_at(self, step: Any) -> list[Any]:
        height = self.lr_factor(step)
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingLR(_Wave):
    r"""Half a wave from the initial rate down, and up again.

    .. math::
        \gamma_t = \eta + (\gamma_0 - \eta) \frac{1 + \cos(\pi t / T)}{2}

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017).
    PyTorch: ``torch.optim.lr_scheduler.CosineAnnealingLR``.

    Parameters
    ----------
    T_max : int
        :math:`T`, the steps of half a wave.
    eta_min : float
        The least rate, :math:`\eta`.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> [round(schedule.rates(step)[0], 4) for step in range(5)]
    [1.0, 0.8536, 0.5, 0.1464, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        check_positive("T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        return cosine_factor(step / self.T_max)


class CosineAnnealingWarmRestarts(_Wave):
    r"""Half a wave down, again and again from the initial rate.

    .. math::
        \gamma_t = \eta + (\gamma_0 - \eta) \frac{1 + \cos(\pi c / T_i)}{2}

    where c counts the steps since the last restart. Loshchilov and Hutter, "SGDR: stochastic
    gradient descent with warm restarts" (2017).
    PyTorch: ``torch.optim.lr_scheduler.CosineAnnealingWarmRestarts``.

    Parameters
    ----------
    T_0 : int
        The steps of the first half wave.
    T_mult : int
        By how much each is longer than the last.
    eta_min : float
        The least rate, :math:`\eta`.

    Examples
    --------
    >>> optimizer = wg.optim.SGD([wg.tensor(1.0, requires_grad=True)], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> [round(schedule.rates(step)[0], 4) for step in (0, 1, 1.5, 2)]
    [1.0, 0.5, 0.1464, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        _check_integer("T_0", T_0)
        _check_integer("T_mult", T_mult)
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def lr_factor(self, step: Any) -> Any:
        if self.T_mult == 1:
            return cosine_factor(step % self.T_0 / self.T_0)
        length = self.T_0
        while step >= length:
            step = step - length
            length *= self.T_mult
        return cosine_factor(step / length)


class OneCycleLR(LRScheduler):
    r"""One wave of the rate, up to a large one and down to nearly zero, with a step for each batch.

    Smith and Topin, "Super-convergence: very fast training of neural networks using large learning
    rates" (2018). PyTorch: ``torch.optim.lr_scheduler.OneCycleLR``.

    Parameters
    ----------
    max_lr : float or list of float
        The largest rate, or one for each group.
    total_steps, epochs, steps_per_epoch : int, optional
        The steps of the cycle, or what their number is the product of.
    pct_start : float
        The part of the steps in which the rate grows.
    cycle_momentum : bool
        Whether the momentum, or :math:`\beta_1`, goes the opposite way.
    base_momentum, max_momentum : float or list of float
        The least momentum, at the largest rate, and the largest.
    div_factor, final_div_factor : float
        The largest rate is so many times the first one, and that so many times the last.
    three_phase : bool
        Whether the rate goes down as long as up, and from the first to the last one after that.

    Examples
    --------
    >>> optimizer = wg.optim.Adam([wg.tensor(1.0, requires_grad=True)])
    >>> schedule = wg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> [round(schedule.rates(step)[0], 4) for step in range(4)]
    [0.04, 0.8117, 0.2831, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if total_steps is not None:
            counts = {"total_steps": total_steps}
        elif epochs is not None and steps_per_epoch is not None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, count in counts.items():
            _check_integer(name, count)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:  # type: ignore[redundant-expr]
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._left = remainder_of(anneal_strategy)
        self.total_steps, self.cycle_momentum = math.prod(counts.values()), cycle_momentum
        if cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
        self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
        self.first_lrs = [rate / div_factor for rate in self.max_lrs]
        self.last_lrs = [rate / final_div_factor for rate in self.first_lrs]
        peak = pct_start * self.total_steps - 1
        #: The steps at which phases end.
        self._ends = [peak, *([2 * peak] if three_phase else []), self.total_steps - 1]
        super().__init__(optimizer, last_epoch)

    def _between(self, stops: list[list[float]], step: Any) -> list[Any]:
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phase = next((i for i, end in enumerate(self._ends) if step <= end), len(self._ends) - 1)
        begin = self._ends[phase - 1] if phase else 0.0
        left = self._left((step - begin) / (self._ends[phase] - begin))
        return [b + (a - b) * left for a, b in zip(stops[phase], stops[phase + 1], strict=True)]

    def _rates_at(self, step: Any) -> list[Any]:
        again = [self.first_lrs] * (len(self._ends) - 2)
        return self._between([self.first_lrs, self.max_lrs, *again, self.last_lrs], step)

    @property
    def _multiplies(self) -> bool:
        return False

    def _register(self) -> None:
        self._take_over()

    def _settings(self, step: Any) -> list[dict[str, Any]]:
        found = super()._settings(step)
        if self.cycle_momentum:
            high, low = self.max_momentums, self.base_momentums
            momenta = self._between([high, low] + [high] * (len(self._ends) - 1), step)
            for group, values, m in zip(self.optimizer.param_groups, found, momenta, strict=True):
                values |= (
                    {"betas": (m, *group["betas"][1:])} if "betas" in group else {"momentum": m}
                )
        return found


def remainder_of(anneal_strategy: str) -> Callable[[Any], Any]:
    """The share of the way that is left, by the share of the steps that have been made."""
    if anneal_strategy not in ("cos", "linear"):
        raise ValueError(
            f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
        )
    return cosine_factor if anneal_strategy == "cos" else _linear_factor


def _linear_factor(part: Any) -> Any:
    return 1 - part


def _check_integer(name: str, count: Any) -> None:
    if not (isinstance(count, Integral) and int(count) > 0):  # NumPy's integers, too
        raise ValueError(f"Expected positive integer {name}, but got {count}")
