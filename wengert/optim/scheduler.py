"""The base of the schedulers: steps, states and groups."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, ClassVar

from wengert.backends.states import check_names
from wengert.nn.conversion import check_constant
from wengert.optim.optimizer import IDLE, Optimizer
from wengert.tape.leaving import warn


class LRScheduler:
    """The base of the schedulers: after each epoch, or each batch, `step` sets the rates.

    A subclass defines `get_lr`, which returns a rate for each group by ``last_epoch``.

    Parameters
    ----------
    optimizer : Optimizer
        Its groups' rates are set.
    last_epoch : int
        The number of the last step; -1 begins anew.

    Attributes
    ----------
    base_lrs : list of float
        The groups' initial rates.
    last_epoch : int
        How many steps have been made.

    Raises
    ------
    KeyError
        If training goes on from ``last_epoch`` and a group has no ``"initial_lr"``.

    Examples
    --------
    >>> w = wg.nn.Parameter(wg.ones(3))
    >>> optimizer = wg.optim.SGD([w], lr=0.5)
    >>> scheduler = wg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(3):
    ...     wg.sum(w * w).backward()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.0625]
    """

    _last_lr: list[float]
    _is_initial: bool = False
    _get_lr_called_within_step: bool = False
    #: Attributes that are no part of the state.
    _left_out: ClassVar[tuple[str, ...]] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0; load the optimizer's state_dict first"
                )
        self.base_lrs = each(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def __setattr__(self, name: str, value: Any) -> None:
        check_constant(value, name)
        super().__setattr__(name, value)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def __getstate__(self) -> dict[str, Any]:  # a copy has rates of its own
        return {**vars(self), "_last_lr": self.get_last_lr()}

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimiser; of functions nothing, of callables their own."""
        return {k: _saved(x) for k, x in vars(self).items() if k not in self._left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` has returned, here or in PyTorch.

        Raises
        ------
        ValueError
            If names are missing or unexpected, or the schedulers, functions or groups are others.
            Nothing has changed then.
        """
        self._check_state(state_dict)
        for name, value in state_dict.items():
            vars(self)[name] = _restored(vars(self).get(name), value)

    def _check_state(self, state: Any) -> None:
        """Refuse a state that does not fit."""
        name = type(self).__name__
        check_names(name, state, self.state_dict())
        rates, groups = state.get("_last_lr", self._last_lr), len(self.optimizer.param_groups)
        if len(rates) != groups:
            raise ValueError(
                f"the state has the rates of {len(rates)} groups, and the optimizer of this {name} "
                f"has {groups}"
            )
        for key, value in state.items():
            _check_fit(f"{name}'s {key}", vars(self).get(key), value)

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group, as the last step has set it."""
        return [*self._last_lr]

    def get_lr(self) -> list[float]:
        """Return the rates for the step ``last_epoch``; for use by `step`."""
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`."
            )
        return self._rates()

    def _rates(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next step, or of a given one.

        Parameters
        ----------
        epoch : int, optional
            PyTorch has deprecated it.
        """
        optimizer = self.optimizer
        if self._step_count == 1 and not optimizer.state and optimizer not in IDLE:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value "
                "of the learning rate schedule is skipped. Call `optimizer.step()` first."
            )
        self._step_count += 1
        if epoch is not None:
            warn(
                "The epoch parameter in `scheduler.step()` is deprecated; call `step()` without it"
            )
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        try:
            closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
            rates = (closed or self.get_lr)()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: Iterable[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._keep(self._now())

    def _keep(self, rates: list[float]) -> None:
        """Keep the rates that were set in one list, whose items are inputs of compiled steps."""
        vars(self).setdefault("_last_lr", [])[:] = rates

    def _now(self, factor: float | None = None) -> list[float]:
        """The groups' rates, times a factor if there is one."""
        rates = each(self.optimizer, "lr")
        return rates if factor is None else [rate * factor for rate in rates]

    def _times(self, factor: float) -> list[float]:
        """The initial rates times a factor."""
        return [rate * factor for rate in self.base_lrs]


def checked(optimizer: Any) -> Optimizer:
    """The optimiser itself, if it is one."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def cosine(x: Any) -> Any:
    """The cosine of pi times a number, which may be one that a compiled step counts in."""
    angle = math.pi * x
    return angle.through(math.cos) if hasattr(angle, "through") else math.cos(angle)


def each(optimizer: Optimizer, name: str) -> list[Any]:
    """What each group has under a name."""
    return [group[name] for group in optimizer.param_groups]


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group: the same, or those of a list."""
    count = len(checked(optimizer).param_groups)
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return list(value)


def _saved(x: Any) -> Any:
    """What a state has of an attribute."""
    if isinstance(x, LRScheduler):
        return x.state_dict()
    if isinstance(x, list | tuple):
        return type(x)(_saved(part) for part in x)
    if callable(x):
        return None if isinstance(x, FunctionType) else dict(getattr(x, "__dict__", {}))
    return x


def _has_own(held: Any) -> bool:
    """Whether a list's parts have states of their own: schedulers and callables."""
    return isinstance(held, list | tuple) and any(
        isinstance(x, LRScheduler) or callable(x) for x in held
    )


def _check_fit(what: str, held: Any, saved: Any) -> None:
    """Refuse what a state has of an attribute, if the attribute is of another kind."""
    if isinstance(held, LRScheduler):
        held._check_state(saved)
    elif _has_own(held):
        if not isinstance(saved, list | tuple) or len(saved) != len(held):
            raise ValueError(f"{what} are {len(held)} here, and in the state {saved!r}")
        for at, pair in enumerate(zip(held, saved, strict=True)):
            _check_fit(f"{what}[{at}]", *pair)
    elif held is None or callable(held) or isinstance(held, Counter):
        own = held is not None and not isinstance(held, FunctionType)
        if own != isinstance(saved, Mapping):
            raise ValueError(f"{what} is {held!r} here, and in the state {saved!r}")


def _restored(held: Any, saved: Any) -> Any:
    """An attribute by what a state has of it."""
    if isinstance(held, LRScheduler):
        held.load_state_dict(saved)
        return held
    if _has_own(held):
        return type(held)(_restored(x, y) for x, y in zip(held, saved, strict=True))
    if callable(held):
        if saved:
            vars(held).update(saved)
        return held
    if isinstance(held, Counter):  # JSON makes its keys strings
        return Counter({int(step): count for step, count in saved.items()})
    return [*saved] if isinstance(held, list) else saved  # `step` changes the list
