"""Adam and its form with decoupled weight decay."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, hyper_parameters
from wengert.optim.kernels import add_corrected, slope
from wengert.optim.optimizer import Optimizer

#: The ranges of Adam and its kin.
MOMENTS = {name: RANGES[name] for name in ("lr", "eps", "betas", "weight_decay")}


class Adam(Optimizer):
    r"""Adam: steps scaled by running moments of the gradient.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        p_t &= p_{t-1} - \gamma \frac{m_t / (1 - \beta_1^t)}
               {\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    The real and imaginary part of a complex parameter are updated as two real ones. Here
    :math:`\gamma` is ``lr``, :math:`\epsilon` ``eps`` and :math:`\lambda` ``weight_decay``. The
    gradient has :math:`\lambda p_{t-1}` added. Kingma and Ba, "Adam: a method for stochastic
    optimization" (2015); Reddi et al., "On the convergence of Adam and beyond" (2018) for AMSGrad.
    Names and defaults are PyTorch's. PyTorch: ``torch.optim.Adam``.

    Parameters
    ----------
    amsgrad : bool
        Whether the largest :math:`v` so far takes the place of the present one.
    decoupled_weight_decay : bool
        Whether the parameter is scaled by :math:`1 - \gamma \lambda` instead, as in `AdamW`.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.Adam([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()  # the first step is lr, whatever the gradient
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    ranges = MOMENTS
    componentwise = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        names = "exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"]
        return {"step": 0, **{name: xp.zeros_like(p) for name in names}}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, decay, eps = group["lr"], group["weight_decay"], group["eps"]
        decoupled, maximize, amsgrad = (
            group[name] for name in ("decoupled_weight_decay", "maximize", "amsgrad")
        )
        beta1, beta2 = group["betas"]
        scaled, added = (decay, 0) if decoupled else (0, decay)

        def update(p: Any, g: Any, state: State) -> Any:
            if maximize or added:
                g = slope(xp, p, g, maximize, added)
            if scaled:
                p = xp.multiply(p, 1 - lr * scaled)
            state["step"] = step = state["step"] + 1
            state["exp_avg"] = m = xp.axpby(beta1, state["exp_avg"], 1 - beta1, g)
            state["exp_avg_sq"] = v = xp.add_squares(beta2, state["exp_avg_sq"], 1 - beta2, g)
            if amsgrad:
                held = state.get("max_exp_avg_sq")
                state["max_exp_avg_sq"] = v = v if held is None else xp.maximum(held, v)
            return add_corrected(xp, p, -lr / (1 - beta1**step), m, v, 1 - beta2**step, eps)

        return update


class AdamW(Adam):
    r"""Adam with decoupled weight decay: the parameter is scaled by :math:`1 - \gamma \lambda`.

    Here :math:`\gamma` is ``lr`` and :math:`\lambda` ``weight_decay``. Loshchilov and Hutter,
    "Decoupled weight decay regularization" (2019). Other options are those of `Adam`.
    PyTorch: ``torch.optim.AdamW``.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8500, -1.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, **hyper_parameters(locals()), decoupled_weight_decay=True)
