"""Stochastic gradient descent."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, hyper_parameters
from wengert.optim.optimizer import Optimizer


class SGD(Optimizer):
    r"""Stochastic gradient descent with momentum.

    With the gradient :math:`g_t`, to which weight decay adds :math:`\lambda p_{t-1}`,

    .. math::
        b_t &= \mu b_{t-1} + (1 - \tau) g_t, \quad b_1 = g_1 \\
        p_t &= p_{t-1} - \gamma b_t \quad \text{or, with Nesterov,} \\
            &\phantom{=} \; p_{t-1} - \gamma (g_t + \mu b_t).

    Here :math:`\gamma` is ``lr``, :math:`\mu` ``momentum``, :math:`\tau` ``dampening`` and
    :math:`\lambda` ``weight_decay``. Raises `ValueError` for a negative hyper-parameter, or
    Nesterov without momentum or with dampening. Sutskever et al., "On the importance of
    initialization and momentum in deep learning" (2013), differ in where :math:`\gamma` stands.
    PyTorch: ``torch.optim.SGD``.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8000, -1.6000], requires_grad=True)
    """

    elementwise = True
    ranges = {name: RANGES[name] for name in ("lr", "momentum", "weight_decay")}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def check(self, group: Group) -> None:
        super().check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def init(self, xp: Any, p: Any, group: Group) -> State:
        # With dampening, the first buffer is the gradient, and no step from zeros.
        begins = group["momentum"] and not group["dampening"]
        return {"momentum_buffer": xp.zeros_like(p)} if begins else {}

    def rule(self, xp: Any, group: Group) -> Rule:
        step, momentum, decay = -group["lr"], group["momentum"], group["weight_decay"]
        if not (momentum or decay):
            axpby = xp.axpby
            return lambda p, g, state: axpby(1, p, step, g)
        nesterov, dampening = group["nesterov"], group["dampening"]
        fresh = 1 - dampening if dampening else 1

        def update(p: Any, g: Any, state: State) -> Any:
            if decay:
                g = xp.axpby(1, g, decay, p)
            if momentum:
                held = state.get("momentum_buffer")
                if held is None:  # the gradient belongs to the user, the buffer to the state
                    buffer = xp.asarray(g, copy=True)
                else:
                    buffer = xp.axpby(momentum, held, fresh, g)
                state["momentum_buffer"] = buffer
                held = None  # its memory serves for what follows
                g = xp.axpby(1, g, momentum, buffer) if nesterov else buffer
            return xp.axpby(1, p, step, g)

        return update
