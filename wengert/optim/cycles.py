"""Schedulers of waves: cosines with warm restarts, one cycle, triangles."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from wengert.optim.groups import Group
from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler, checked, cosine, for_groups


def _is(x: Any, kind: type) -> bool:
    return isinstance(x, kind)  # NumPy's numbers, too


class _Cycle(LRScheduler):
    """A scheduler that may also change the momentum."""

    cycle_momentum: bool
    use_beta1: bool

    def _prepare(self, optimizer: Optimizer, base: Any, most: Any, first: bool) -> Any:
        """Check that there is a momentum, and return its limits, which the groups keep."""
        names = optimizer.defaults
        if "momentum" not in names and "betas" not in names:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in names
        limits = (
            for_groups("base_momentum", optimizer, base),
            for_groups("max_momentum", optimizer, most),
        )
        if first:
            for group, low, high in zip(optimizer.param_groups, *limits, strict=True):
                self._set_momentum(group, high)
                group.update({"max_momentum": high, "base_momentum": low})
        return limits

    def _set_momentum(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Half a wave down, again and again from the initial rate.

    .. math::
        \gamma_t = \eta + (\gamma_0 - \eta) \frac{1 + \cos(\pi c / T_i)}{2}

    where c counts the steps since the last restart. Here :math:`\gamma_0` is the initial rate.
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017).
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
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not (_is(T_0, Integral) and T_0 > 0):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not (_is(T_mult, Integral) and T_mult >= 1):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not _is(eta_min, Real):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        height = (1 + cosine(self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next step, or of a given one, which may be a fraction.

        Parameters
        ----------
        epoch : float, optional
            Such as ``epoch + batch / batches``.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._restarted(epoch)
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = math.floor(epoch)
            self._set(self.get_lr())
        finally:
            self._get_lr_called_within_step = False

    def _restarted(self, epoch: float) -> None:
        """Find the half wave in which a step is."""
        if self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
            return
        self.T_i, self.T_cur = self.T_0, epoch
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult


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
        The largest rate is so many times the initial one, and that so many times the last.
    three_phase : bool
        Whether the rate goes down as long as up, and from the initial to the last one after that.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
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
        most = for_groups("max_lr", optimizer, max_lr)
        if total_steps is not None:
            counts = {"total_steps": total_steps}
        elif epochs is not None and steps_per_epoch is not None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, count in counts.items():
            if not (_is(count, Integral) and count > 0):
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:  # type: ignore[redundant-expr]
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self.optimizer = optimizer
        self.total_steps = math.prod(counts.values())
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        peak = pct_start * self.total_steps
        rates, momenta = ["initial_lr", "max_lr"], ["max_momentum", "base_momentum"]
        ends = [peak - 1]
        if three_phase:
            ends.append(2 * peak - 2)
            rates.append("initial_lr")
            momenta.append("max_momentum")
        ends.append(self.total_steps - 1)
        rates.append("min_lr")
        momenta.append("max_momentum")
        self._schedule_phases: list[dict[str, Any]] = [
            {
                "end_step": end,
                "start_lr": rates[i],
                "end_lr": rates[i + 1],
                "start_momentum": momenta[i],
                "end_momentum": momenta[i + 1],
            }
            for i, end in enumerate(ends)
        ]
        first = last_epoch == -1
        if cycle_momentum:
            self._prepare(optimizer, base_momentum, max_momentum, first)
        if first:
            for group, rate in zip(optimizer.param_groups, most, strict=True):
                start = rate / div_factor
                group.update(
                    {"initial_lr": start, "max_lr": rate, "min_lr": start / final_div_factor}
                )
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                limits = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*limits, part))
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        height: float = (1 + cosine(part)) / 2
        return end + (start - end) * height


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
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.1, 0.3, 0.5, 0.3]
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
        least = for_groups("base_lr", checked(optimizer), base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: {mode}")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        first = last_epoch == -1
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            limits = self._prepare(optimizer, base_momentum, max_momentum, first)
            self.base_momentums, self.max_momentums = limits
        if first:
            for group, rate in zip(optimizer.param_groups, least, strict=True):
                group["lr"] = rate
        super().__init__(optimizer, last_epoch)
        self.base_lrs = least

    def scale_fn(self, x: float) -> float:
        """Factor of the height, of a triangle or in a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def _rates(self) -> list[float]:
        turns = self.last_epoch / self.total_size
        cycle = math.floor(1 + turns)
        x = 1 + turns - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        factor = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = self.base_momentums, self.max_momentums
            for group, low, high in zip(self.optimizer.param_groups, *limits, strict=True):
                self._set_momentum(group, high - (high - low) * height * factor)
        limits = self.base_lrs, self.max_lrs
        return [low + (high - low) * height * factor for low, high in zip(*limits, strict=True)]
