"""Stochastic gradient descent that averages its iterates."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, given
from wengert.optim.kernels import slope
from wengert.optim.optimizer import Optimizer


class ASGD(Optimizer):
    r"""Averaged stochastic gradient descent.

    .. math::
        p_t &= (1 - \lambda' \eta_t) p_{t-1} - \eta_t g_t, \qquad
        \eta_1 = \gamma, \quad \eta_{t+1} = \gamma / (1 + \lambda' \gamma t)^\alpha \\
        \bar p_t &= \bar p_{t-1} + \mu_t (p_t - \bar p_{t-1}), \qquad
        \mu_1 = 1, \quad \mu_{t+1} = 1 / \max(1, t - t_0)

    The mean :math:`\bar p_t` is ``"ax"`` in the state. Here :math:`\gamma` is ``lr`` and
    :math:`\lambda` ``weight_decay``. The gradient has :math:`\lambda p_{t-1}` added. Polyak and
    Juditsky, "Acceleration of stochastic approximation by averaging" (1992).
    PyTorch: ``torch.optim.ASGD``.

    Parameters
    ----------
    lambd : float
        :math:`\lambda'`, a decay of the parameter.
    alpha : float
        :math:`\alpha`, the power by which the rate sinks.
    t0 : float
        The step :math:`t_0` at which averaging begins.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.ASGD([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8000, -1.6000], requires_grad=True)
    """

    ranges = {name: RANGES[name] for name in ("lr", "weight_decay")}
    componentwise = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, given(locals()))

    def init(self, xp: Any, p: Any) -> State:
        return {"step": 0, "mu": 1.0, "ax": xp.zeros_like(p)}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, lambd, alpha, t0 = (group[name] for name in ("lr", "lambd", "alpha", "t0"))
        maximize, decay = group["maximize"], group["weight_decay"]

        def update(p: Any, g: Any, state: State) -> Any:
            if maximize or decay:
                g = slope(xp, p, g, maximize, decay)
            state["step"] = step = state["step"] + 1
            eta, mu = state.get("eta", lr), state["mu"]
            p = xp.axpby(1 - lambd * eta, p, -eta, g)
            if mu == 1:  # the mean is the state's, the parameter the user's
                state["ax"] = xp.asarray(p, copy=True)
            else:
                state["ax"] = xp.axpby(1 - mu, state["ax"], mu, p)
            state["eta"] = lr / (1 + lambd * lr * step) ** alpha
            state["mu"] = 1 / max(1, step - t0)
            return p

        return update
