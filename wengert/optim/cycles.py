"""Schedules that are waves: cosines, one cycle, triangles."""

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import (
    LRScheduler,
    check_positive,
    checked,
    cosine_factor,
    for_groups,
)


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


class _Cycle(LRScheduler):
    """A schedule with rates of its own, which may also change the momentum."""

    cycle_momentum: bool
    _momenta: Callable[[Any], list[Any]]

    @property
    def _multiplies(self) -> bool:
        return False

    def _check_momentum(self, optimizer: Optimizer, base: Any, most: Any) -> None:
        if not self.cycle_momentum:
            return
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.base_momentums = for_groups("base_momentum", optimizer, base)
        self.max_momentums = for_groups("max_momentum", optimizer, most)

    def _register(self) -> None:
        self._take_over()

    def _settings(self, step: Any) -> list[dict[str, Any]]:
        found = super()._settings(step)
        if self.cycle_momentum:
            groups = self.optimizer.param_groups
            for group, values, momentum in zip(groups, found, self._momenta(step), strict=True):
                if "betas" in group:
                    values["betas"] = (momentum, *group["betas"][1:])
                else:
                    values["momentum"] = momentum
        return found


class OneCycleLR(_Cycle):
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
        self._check_momentum(optimizer, base_momentum, max_momentum)
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

    def _momenta(self, step: Any) -> list[Any]:
        high, low = self.max_momentums, self.base_momentums
        return self._between([high, low] + [high] * (len(self._ends) - 1), step)


class CyclicLR(_Cycle):
    r"""Triangles of the rate, from the least one to the largest and back.

    Smith, "Cyclical learning rates for training neural networks" (2017).
    PyTorch: ``torch.optim.lr_scheduler.CyclicLR``.

    Parameters
    ----------
    base_lr : float or list of float
        The least rate, or one for each group.
    max_lr : float or list of float
        The largest rate, or one for each group.
    step_size_up, step_size_down : int
        How many steps the rate grows, and how many it sinks; if not given, as many.
    mode : {"triangular", "triangular2", "exp_range"}
        Triangles of one height, of heights that halve, or of heights times a power of ``gamma``.
    gamma : float
        The base of ``"exp_range"``, whose exponent is the step.
    scale_fn : callable, optional
        Factor of the height, instead of a mode.
    scale_mode : {"cycle", "iterations"}
        Whether ``scale_fn`` takes the number of the triangle, from 1, or that of the step.
    cycle_momentum : bool
        Whether the momentum, or :math:`\beta_1`, goes the opposite way.
    base_momentum, max_momentum : float or list of float
        The least momentum, at the largest rate, and the largest.

    Examples
    --------
    >>> optimizer = wg.optim.Adam([wg.tensor(1.0, requires_grad=True)])
    >>> schedule = wg.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    >>> [round(schedule.rates(step)[0], 4) for step in range(5)]
    [0.1, 0.3, 0.5, 0.3, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.min_lrs = for_groups("base_lr", checked(optimizer), base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: {mode}")
        check_positive("step_size_up", step_size_up)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        self._check_momentum(optimizer, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _scale(self, step: Any, cycle: Any) -> Any:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else step)
        if self.mode == "triangular2":
            return 1 / 2 ** (cycle - 1)
        return self.gamma**step if self.mode == "exp_range" else 1.0

    def _height(self, step: Any) -> Any:
        turns = step / self.total_size
        cycle = math.floor(1 + turns)
        x, ratio = 1 + turns - cycle, self.step_ratio
        return (x / ratio if x <= ratio else (x - 1) / (ratio - 1)) * self._scale(step, cycle)

    def _rates_at(self, step: Any) -> list[Any]:
        height, limits = self._height(step), zip(self.min_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in limits]

    def _momenta(self, step: Any) -> list[Any]:
        height = self._height(step)
        limits = zip(self.base_momentums, self.max_momentums, strict=True)
        return [high - (high - low) * height for low, high in limits]


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
