"""Optimisers that go by the signs of gradients."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, given
from wengert.optim.kernels import slope
from wengert.optim.optimizer import Optimizer


class Rprop(Optimizer):
    r"""Resilient backpropagation: each number has a step size of its own.

    The size grows where the gradient's sign stays, and shrinks where it changes, where the number
    is then left as it is for a step:

    .. math::
        s_t &= \begin{cases}
            \min(\eta^+ s_{t-1}, s_{\max}) & g_t g_{t-1} > 0 \\
            \max(\eta^- s_{t-1}, s_{\min}),\ g_t \leftarrow 0 & g_t g_{t-1} < 0 \\
            s_{t-1} & g_t g_{t-1} = 0 \end{cases} \\
        p_t &= p_{t-1} - s_t \operatorname{sign}(g_t)

    Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993). It
    is for gradients of all data, not of batches. PyTorch: ``torch.optim.Rprop``.

    Parameters
    ----------
    lr : float
        The first size :math:`s_0`.
    etas : tuple of float
        :math:`\eta^-`, between 0 and 1, and :math:`\eta^+`, above 1.
    step_sizes : tuple of float
        :math:`s_{\min}` and :math:`s_{\max}`.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.Rprop([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    ranges = {"lr": RANGES["lr"]}
    componentwise = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, given(locals()))

    def check(self, group: Group) -> None:
        super().check(group)
        for name in ("etas", "step_sizes"):
            if len(group[name]) != 2:
                raise ValueError(f"{name} should be two numbers, not {group[name]}")
        shrink, grow = group["etas"]
        if not 0 < shrink < 1 < grow:
            raise ValueError(f"Invalid eta values: {shrink}, {grow}")

    def init(self, xp: Any, p: Any) -> State:
        return {"step": 0, "prev": xp.zeros_like(p)}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, maximize, (shrink, grow) = group["lr"], group["maximize"], group["etas"]
        least, most = group["step_sizes"]

        def update(p: Any, g: Any, state: State) -> Any:
            if maximize:
                g = xp.negative(g)
            state["step"] += 1
            agree = xp.multiply(g, state["prev"])
            zeros = xp.zeros_like(g)
            same, turned = xp.greater(agree, zeros), xp.less(agree, zeros)
            size = state.get("step_size")
            if size is None:
                size = xp.add(zeros, lr)
            size = xp.where(same, xp.multiply(size, grow), size)
            size = xp.where(turned, xp.multiply(size, shrink), size)
            # (Sums, as a limit may be a number that differs from call to call.)
            low, high = xp.add(zeros, least), xp.add(zeros, most)
            state["step_size"] = size = xp.minimum(xp.maximum(size, low), high)
            state["prev"] = g = xp.where(turned, zeros, g)
            return xp.subtract(p, xp.multiply(xp.sign(g), size))

        return update


class Lion(Optimizer):
    r"""Lion: steps of one size, along the sign of a momentum.

    .. math::
        p_t &= (1 - \gamma \lambda) p_{t-1}
               - \gamma \operatorname{sign}(\beta_1 m_{t-1} + (1 - \beta_1) g_t) \\
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
        super().__init__(params, given(locals()))

    def init(self, xp: Any, p: Any) -> State:
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
