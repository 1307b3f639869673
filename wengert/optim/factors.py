"""The schedulers that multiply rates by factors of the step."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable

from wengert.optim.optimizer import Optimizer
from wengert.optim.scheduler import LRScheduler, cosine, for_groups


class LambdaLR(LRScheduler):
    r"""The initial rate times a function of the step: :math:`\gamma_t = \gamma_0 f(t)`.

    Here :math:`\gamma_0` is the initial rate and :math:`t` ``last_epoch``.
    PyTorch: ``torch.optim.lr_scheduler.LambdaLR``.

    Parameters
    ----------
    lr_lambda : callable or list of callable
        :math:`f`, or one for each group. The state has what objects hold, and of functions nothing.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.3333, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = for_groups("lr_lambda", optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        return self._by_functions(self.base_lrs)

    def _by_functions(self, rates: list[float]) -> list[float]:
        return [r * f(self.last_epoch) for f, r in zip(self.lr_lambdas, rates, strict=True)]


class MultiplicativeLR(LambdaLR):
    r"""The rate times a function of the step: :math:`\gamma_t = \gamma_{t-1} f(t)`.

    Here :math:`t` is ``last_epoch``. PyTorch: ``torch.optim.lr_scheduler.MultiplicativeLR``.

    Parameters
    ----------
    lr_lambda : callable or list of callable
        :math:`f`, or one for each group.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _rates(self) -> list[float]:
        return self._now() if self._is_initial else self._by_functions(self._now())


class StepLR(LRScheduler):
    r"""The rate times :math:`g` every so many steps: :math:`\gamma_0 g^{\lfloor t / s \rfloor}`.

    Here :math:`\gamma_0` is the initial rate, :math:`t` ``last_epoch``, :math:`g` ``gamma`` and
    :math:`s` ``step_size``. PyTorch: ``torch.optim.lr_scheduler.StepLR``.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        stays = self.last_epoch == 0 or self.last_epoch % self.step_size
        return self._now() if stays else self._now(self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return self._times(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """The rate times :math:`g` at some steps, as often as each is named.

    Here :math:`g` is ``gamma``. PyTorch: ``torch.optim.lr_scheduler.MultiStepLR``.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        count = sum([n for step, n in self.milestones.items() if step == self.last_epoch])
        return self._now(self.gamma**count) if count else self._now()

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self._times(self.gamma**passed)


class ConstantLR(LRScheduler):
    """The rate times a factor, for the first n steps.

    Here :math:`n` is ``total_iters``. PyTorch: ``torch.optim.lr_scheduler.ConstantLR``.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
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

    def _rates(self) -> list[float]:
        if self.last_epoch == 0:
            return self._now(self.factor)
        return self._now(1 / self.factor) if self.last_epoch == self.total_iters else self._now()

    def _get_closed_form_lr(self) -> list[float]:
        return self._times(1 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(LRScheduler):
    """The rate times a factor that changes linearly for n steps.

    Here :math:`n` is ``total_iters``. PyTorch: ``torch.optim.lr_scheduler.LinearLR``.

    Parameters
    ----------
    start_factor, end_factor : float
        The first, above 0 and at most 1, and the last, from 0 to 1.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.25, 0.5, 0.75, 1.0]
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
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        if self.last_epoch == 0:
            return self._now(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return self._now(1 + change / before)

    def _get_closed_form_lr(self) -> list[float]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return self._times(self.start_factor + (self.end_factor - self.start_factor) * part)


class ExponentialLR(LRScheduler):
    r"""The rate times :math:`g` in each step: :math:`\gamma_t = \gamma_0 g^t`.

    Here :math:`\gamma_0` is the initial rate, :math:`t` ``last_epoch`` and :math:`g` ``gamma``.
    PyTorch: ``torch.optim.lr_scheduler.ExponentialLR``.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        return self._now() if self._is_initial else self._now(self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return self._times(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    r"""A power of a line down to zero: :math:`\gamma_t = \gamma_0 (1 - \min(t, n) / n)^q`.

    Here :math:`\gamma_0` is the initial rate, :math:`t` ``last_epoch``, :math:`n` ``total_iters``
    and :math:`q` ``power``. PyTorch: ``torch.optim.lr_scheduler.PolynomialLR``.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        now, before = (1 - t / self.total_iters for t in (self.last_epoch, self.last_epoch - 1))
        return self._now((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return self._times((1 - part) ** self.power)


class CosineAnnealingLR(LRScheduler):
    r"""Half a wave from the initial rate down, and up again.

    .. math::
        \gamma_t = \eta + (\gamma_0 - \eta) \frac{1 + \cos(\pi t / T)}{2}

    Here :math:`\gamma_0` is the initial rate and :math:`t` ``last_epoch``. Loshchilov and Hutter,
    "SGDR: stochastic gradient descent with warm restarts" (2017).
    PyTorch: ``torch.optim.lr_scheduler.CosineAnnealingLR``.

    Parameters
    ----------
    T_max : int
        :math:`T`, the steps of half a wave.
    eta_min : float
        The least rate, :math:`\eta`.

    Examples
    --------
    >>> w = wg.tensor(1.0, requires_grad=True)
    >>> (w * w).backward()
    >>> optimizer = wg.optim.SGD([w], lr=1.0)
    >>> schedule = wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.8536, 0.5, 0.1464]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        t, least = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._now()
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the least rate no factor leads up
            rise = (1 - cosine(1 / self.T_max)) / 2
            return [
                rate + (base - least) * rise
                for rate, base in zip(self._now(), self.base_lrs, strict=True)
            ]
        now, before = (1 + cosine(s / self.T_max) for s in (t, t - 1))
        return [now / before * (rate - least) + least for rate in self._now()]

    def _get_closed_form_lr(self) -> list[float]:
        height = (1 + cosine(self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]
