"""Mixed precision: half-precision parameters with float32 masters, and scaled losses."""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from wengert import ops
from wengert.nn.conversion import as_number
from wengert.ops.shares import wide
from wengert.optim import LBFGS
from wengert.optim.optimizer import Optimizer
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["GradScaler", "master_weights"]


def __dir__() -> list[str]:
    return __all__


def master_weights(optimizer: Any) -> Any:
    r"""Give an optimiser's parameters of half precision float32 masters, and return it.

    A step of float16 or bfloat16 numbers that is smaller than half their spacing is lost. The
    update is computed in float32; with masters, what its rounding takes is kept:

    .. math::
        m_t &= \mathrm{update}(p_{t-1} + r_{t-1}) \\
        p_t &= \mathrm{round}(m_t) \\ r_t &= m_t - p_t

    with the parameter :math:`p`, its master :math:`m` and the residual :math:`r`, which the state
    keeps in float32; a parameter that was changed since has none. Parameters of other dtypes are
    updated as before.

    Parameters
    ----------
    optimizer : Optimizer
        Before its first step. Parameters that it is given later have masters, too.

    Returns
    -------
    Optimizer
        The same object.

    Raises
    ------
    TypeError
        If it is no optimiser, or `LBFGS`, which keeps no state for single parameters.
    RuntimeError
        If it has a state already.

    Notes
    -----
    Micikevicius et al., "Mixed precision training" (2018), section 3.1.

    Examples
    --------
    >>> model = wg.nn.Linear(2, 3).half()
    >>> optimizer = wg.amp.master_weights(wg.optim.Adam(model.parameters()))
    """
    if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS):
        raise TypeError(
            "master_weights takes an optimiser that updates each parameter by itself, and was "
            f"given a {type(optimizer).__name__}"
        )
    if any("residual" not in state for state in optimizer.state.values()):
        raise RuntimeError(
            "the optimiser has a state without masters already; call master_weights before the "
            "first step"
        )
    optimizer.defaults["master_weights"] = True
    for group in optimizer.param_groups:
        group["master_weights"] = True
    return optimizer


class GradScaler:
    """Loss scaling: it keeps small cotangents of half precision from becoming zeros.

    The loss is multiplied by a scale before the backward pass, and the gradients are divided by it
    before the optimiser's step. A step with gradients that are infinite or NaN is left out, and the
    scale becomes smaller; after some steps without such it grows.

    Parameters
    ----------
    init_scale : float
        The scale at first.
    growth_factor : float
        What the scale is multiplied by after ``growth_interval`` steps in a row; above 1.
    backoff_factor : float
        What it is multiplied by after a step that was left out; below 1.
    growth_interval : int
        How many steps.
    enabled : bool
        Without, the loss stays as it is, and `step` calls the optimiser's alone.

    Raises
    ------
    ValueError
        For a factor or an interval outside its range.

    Notes
    -----
    PyTorch: ``torch.amp.GradScaler``. Each step reads one bool from the device. Inside `compile`
    nothing is read: every step is computed, and its results are selected if all is finite.
    Micikevicius et al., "Mixed precision training" (2018), section 3.2.

    Examples
    --------
    >>> model = wg.nn.Linear(2, 1).half()
    >>> optimizer = wg.amp.master_weights(wg.optim.SGD(model.parameters(), lr=0.1))
    >>> scaler = wg.amp.GradScaler(init_scale=1024.0)
    >>> out = model(wg.ones((4, 2), dtype=wg.float16))
    >>> loss = wg.mean(wg.astype(out, wg.float32) ** 2)
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled
        self._growth_tracker = 0
        # Whether all gradients were finite, of the optimisers that were unscaled since `update`.
        self._finite: dict[Optimizer, Any] = {}
        self._stepped: dict[Optimizer, bool] = {}
        self._take(init_scale, growth_factor, backoff_factor, growth_interval)

    def _take(self, scale: Any, growth: Any, backoff: Any, interval: Any) -> None:
        scale, growth, backoff, interval = (
            as_number(value, name)
            for value, name in (
                (scale, "the scale"),
                (growth, "growth_factor"),
                (backoff, "backoff_factor"),
                (interval, "growth_interval"),
            )
        )
        if not 0 < scale < float("inf"):
            raise ValueError(f"the scale must be above 0 and finite, and is {scale}")
        if not growth > 1:
            raise ValueError(f"The growth factor must be > 1.0, and is {growth}.")
        if not 0 < backoff < 1:
            raise ValueError(f"The backoff factor must be above 0 and < 1.0, and is {backoff}.")
        if not (interval >= 1 and interval == int(interval)):
            raise ValueError(f"The growth interval must be an integer >= 1, and is {interval}.")
        self._scale = float(scale)
        self._growth_factor, self._backoff_factor = float(growth), float(backoff)
        self._growth_interval = int(interval)

    def is_enabled(self) -> bool:
        """Tell whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale; 1 if not enabled."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """Return a loss, or a list, tuple or other iterable of losses, times the scale.

        Those of half precision become float32, whose range holds the product.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return ops.multiply(wide(ops, outputs), self._scale)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError(
            f"outputs must be a Tensor or an iterable of Tensors, and is a {type(outputs).__name__}"
        )

    @no_grad()
    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimiser's parameters by the scale, as to clip them.

        The gradients of parameters with float32 masters become float32 first: small ones would be
        lost again.

        Raises
        ------
        RuntimeError
            If it was called since the last `update` already, or no parameter has a gradient.
        ValueError
            For gradients of float16 parameters without masters. Nothing has changed then.
        """
        if not self._enabled:
            return
        if optimizer in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if optimizer in self._finite:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        held = [
            (param, param._grad, bool(group.get("master_weights")))
            for group in optimizer.param_groups
            for param in group["params"]
            if param._grad is not None
        ]
        if not held:
            raise RuntimeError("none of the optimizer's parameters has a gradient")
        if any(grad.dtype is ops.float16 and not master for _, grad, master in held):
            raise ValueError(
                "Attempting to unscale FP16 gradients: small ones would be lost. Give the "
                "optimizer float32 masters with wg.amp.master_weights(optimizer)"
            )
        whole = [wide(ops, grad) if master else grad for _, grad, master in held]
        unscaled = [ops.divide(grad, self._scale) for grad in whole]
        finite = [ops.all(ops.isfinite(grad)) for grad in unscaled]
        for (param, _, _), grad in zip(held, unscaled, strict=True):
            param._grad = grad
        self._finite[optimizer] = finite

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Call ``optimizer.step``, unless a gradient is infinite or NaN.

        The gradients are divided by the scale first, if `unscale_` has not done so.

        Returns
        -------
        object
            What ``optimizer.step`` has returned; None if it was not called.

        Raises
        ------
        RuntimeError
            If it was called since the last `update`, or with a closure, or if `unscale_` raises it.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or kwargs:
            raise RuntimeError("Closure use is not supported if GradScaler is enabled.")
        if optimizer in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if optimizer not in self._finite:
            self.unscale_(optimizer)
        self._finite[optimizer] = finite = _all_true(self._finite[optimizer])
        result = None
        if isinstance(finite, Tensor) and type(optimizer).step is Optimizer.step:
            optimizer.update_parameters(finite._array)
        elif finite:
            result = optimizer.step()
        self._stepped[optimizer] = True
        return result

    def update(self, new_scale: float | None = None) -> None:
        """Make the scale smaller after a step that was left out, or count a step towards growth.

        Parameters
        ----------
        new_scale : float, optional
            The scale from now on.

        Raises
        ------
        RuntimeError
            If no gradients were unscaled since the last call.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            factors = self._growth_factor, self._backoff_factor, self._growth_interval
            self._take(new_scale, *factors)
        elif not self._finite:
            raise RuntimeError("No gradients were unscaled since the last update(); call step()")
        else:
            flags = map(_all_true, self._finite.values())
            # Without a branch, for numbers that a trace follows.
            taken = prod(x._array.truth() if isinstance(x, Tensor) else x for x in flags)
            steps = (self._growth_tracker + 1) * taken
            fits = self._scale * self._growth_factor <= _LARGEST
            left = self._growth_interval - steps
            due = 1 // (1 + left * left)  # 1 if none is left, and otherwise 0
            self._scale *= self._growth_factor ** (due * fits) * self._backoff_factor ** (1 - taken)
            self._growth_tracker = steps * (1 - due)
        self._finite.clear()
        self._stepped.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the factors and the count; an empty dict if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take what `state_dict` has given.

        Raises
        ------
        RuntimeError
            If keys are missing or unknown. Nothing has changed then.
        ValueError
            For values outside their ranges, likewise.
        """
        if not self._enabled:
            return
        if state_dict.keys() != self.state_dict().keys():
            raise RuntimeError(
                f"the state of a GradScaler has {', '.join(self.state_dict())}, and was given "
                f"{', '.join(map(str, state_dict)) or 'nothing'}; perhaps it is that of a scaler "
                "that was not enabled"
            )
        *factors, tracker = (state_dict[name] for name in self.state_dict())
        if not ((steps := as_number(tracker, "_growth_tracker")) >= 0 and steps == int(steps)):
            raise ValueError(f"_growth_tracker counts steps, and is {tracker}")
        self._take(*factors)
        self._growth_tracker = int(steps)


#: The largest scale whose product with 1 is a float32.
_LARGEST = 2.0**127


def _all_true(flags: Any) -> Any:
    """Whether all of several bools are true, in one transfer from each device.

    On one device that is a Tensor where a trace follows it, whose value is not read.
    """
    if not isinstance(flags, list):
        return flags
    if len({(flag.backend.name, str(flag.device)) for flag in flags}) == 1:
        flags = [ops.all(ops.stack(flags))]
    followed = len(flags) == 1 and hasattr(flags[0]._array, "truth")
    return flags[0] if followed else all(x.item() for x in flags)
