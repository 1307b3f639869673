"""Lion, whose steps go by the sign of a momentum."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, hyper_parameters
from wengert.optim.kernels import slope
from wengert.optim.optimizer import Optimizer


class Lion(Optimizer):
    r"""Lion: steps of one size, along the sign of a momentum.

    .. math::
        p_t &= (1 - \gamma \lambda) p_{t-1} \\
            &\quad - \gamma \operatorname{sign}(\beta_1 m_{t-1} + (1 - \beta_1) g_t) \\
        m_t &= \beta_2 m_{t-1} + (1 - \beta_2) g_t

    Here :math:`\gamma` is ``lr`` and :math:`\lambda` ``weight_decay``. Chen et al., "Symbolic
    discovery of optimization algorithms" (2023). PyTorch has none; the real and imaginary part of a
    complex parameter have a sign each.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.Lion([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    ranges = {name: RANGES[name] for name in ("lr", "betas", "weight_decay")}
    componentwise = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {"exp_avg": xp.zeros_like(p)}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, decay, maximize = group["lr"], group["weight_decay"], group["maximize"]
        beta1, beta2 = group["betas"]

        def update(p: Any, g: Any, state: State) -> Any:
            g = slope(xp, p, g, maximize, 0)
            held = state["exp_avg"]
            direction = xp.sign(xp.axpby(beta1, held, 1 - beta1, g))
            state["exp_avg"] = xp.axpby(beta2, held, 1 - beta2, g)
            return xp.axpby(1 - lr * decay if decay else 1, p, -lr, direction)

        return update
