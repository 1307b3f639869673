"""Adam and its kin: steps scaled by running moments of the gradient."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, Range, hyper_parameters
from wengert.optim.kernels import add_corrected
from wengert.optim.optimizer import Optimizer

#: The ranges of Adam and its kin.
MOMENTS = {name: RANGES[name] for name in ("lr", "eps", "betas", "weight_decay")}


class Counting(Optimizer):
    """Optimisers with weight decay and a count of steps; `move` does the rest of an update."""

    ranges = MOMENTS
    componentwise = True
    means: tuple[str, ...] = ("exp_avg", "exp_avg_sq")

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {"step": 0, **{name: xp.zeros_like(p) for name in self.means}}

    def rule(self, xp: Any, group: Group) -> Rule:
        move, decay = self.move(xp, group), group["weight_decay"]
        scaled, added = (decay, 0) if group.get("decoupled_weight_decay") else (0, decay)
        shrink = 1 - group["lr"] * scaled

        def update(p: Any, g: Any, state: State) -> Any:
            if added:
                g = xp.axpby(1, g, added, p)
            if scaled:
                p = xp.multiply(p, shrink)
            state["step"] += 1
            return move(p, g, state)

        return update

    def move(self, xp: Any, group: Group) -> Rule:
        """Return the function that moves a parameter, whose decay and step are done."""
        raise NotImplementedError


def _moments(xp: Any, g: Any, state: State, beta1: float, beta2: float) -> tuple[Any, Any]:
    """Adam's running moments, with one gradient more."""
    state["exp_avg"] = m = xp.axpby(beta1, state["exp_avg"], 1 - beta1, g)
    state["exp_avg_sq"] = v = xp.add_squares(beta2, state["exp_avg_sq"], (1 - beta2) ** 0.5, g)
    return m, v


class Adam(Counting):
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

    With ``amsgrad`` the largest :math:`v` so far takes the place of the present one. With
    ``decoupled_weight_decay`` the parameter is scaled by :math:`1 - \gamma \lambda` instead.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.Adam([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()  # the first step is lr, whatever the gradient
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        more = {"max_exp_avg_sq": xp.zeros_like(p)} if group["amsgrad"] else {}
        return {**super().init(xp, p, group), **more}

    def move(self, xp: Any, group: Group) -> Rule:
        lr, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]
        amsgrad = group["amsgrad"]

        def move(p: Any, g: Any, state: State) -> Any:
            step, (m, v) = state["step"], _moments(xp, g, state, beta1, beta2)
            if amsgrad:
                state["max_exp_avg_sq"] = v = xp.maximum(state.get("max_exp_avg_sq", v), v)
            return add_corrected(xp, p, -lr / (1 - beta1**step), m, v, 1 - beta2**step, eps)

        return move


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
    ) -> None:
        super().__init__(params, **hyper_parameters(locals()), decoupled_weight_decay=True)


class Adamax(Counting):
    r"""Adamax: Adam with a decaying maximum instead of the second moment.

    .. math::
        u_t = \max(\beta_2 u_{t-1}, |g_t| + \epsilon), \qquad
        p_t = p_{t-1} - \frac{\gamma}{1 - \beta_1^t} \frac{m_t}{u_t}

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), section 7.
    PyTorch: ``torch.optim.Adamax``.

    Examples
    --------
    >>> optimizer = wg.optim.Adamax(wg.nn.Linear(2, 1).parameters(), lr=0.01)
    """

    means = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def move(self, xp: Any, group: Group) -> Rule:
        lr, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]

        def move(p: Any, g: Any, state: State) -> Any:
            state["exp_avg"] = m = xp.axpby(beta1, state["exp_avg"], 1 - beta1, g)
            largest = xp.maximum(xp.add(xp.abs(g), eps), xp.multiply(state["exp_inf"], beta2))
            state["exp_inf"] = largest
            return xp.axpby(1, p, -lr / (1 - beta1 ** state["step"]), xp.divide(m, largest))

        return move


class NAdam(Counting):
    r"""NAdam: Adam with Nesterov's momentum, which grows as training goes on.

    .. math::
        \mu_t &= \beta_1 (1 - 0.96^{t \psi} / 2), \qquad M_t = \mu_1 \dots \mu_t \\
        \hat m_t &= \frac{\mu_{t+1} m_t}{1 - M_{t+1}} + \frac{(1 - \mu_t) g_t}{1 - M_t}

    Here :math:`\psi` is ``momentum_decay``, and :math:`\hat m_t` is in place of Adam's. Dozat,
    "Incorporating Nesterov momentum into Adam" (2016). PyTorch: ``torch.optim.NAdam``.

    Examples
    --------
    >>> optimizer = wg.optim.NAdam(wg.nn.Linear(2, 1).parameters(), momentum_decay=0.01)
    """

    ranges = MOMENTS | {"momentum_decay": Range()}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {**super().init(xp, p, group), "mu_product": 1.0}

    def move(self, xp: Any, group: Group) -> Rule:
        lr, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]
        psi = group["momentum_decay"]

        def move(p: Any, g: Any, state: State) -> Any:
            step, (m, v) = state["step"], _moments(xp, g, state, beta1, beta2)
            mu = beta1 * (1 - 0.5 * 0.96 ** (step * psi))
            after = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * psi))
            state["mu_product"] = product = state["mu_product"] * mu
            ahead = xp.axpby(after / (1 - product * after), m, (1 - mu) / (1 - product), g)
            return add_corrected(xp, p, -lr, ahead, v, 1 - beta2**step, eps)

        return move


class RAdam(Counting):
    r"""RAdam: Adam whose steps are scaled once the second moment's variance is bounded.

    With :math:`\rho = 2 / (1 - \beta_2) - 1` and
    :math:`\rho_t = \rho - 2 t \beta_2^t / (1 - \beta_2^t)`,

    .. math::
        p_t = p_{t-1} - \gamma \frac{m_t}{1 - \beta_1^t}
              \sqrt{\frac{(\rho_t - 4) (\rho_t - 2) \rho}{(\rho - 4) (\rho - 2) \rho_t}}
              \frac{\sqrt{1 - \beta_2^t}}{\sqrt{v_t} + \epsilon}

    where :math:`\rho_t > 5`, and without the last two factors elsewhere. Liu et al., "On the
    variance of the adaptive learning rate and beyond" (2020). PyTorch: ``torch.optim.RAdam``.

    Examples
    --------
    >>> optimizer = wg.optim.RAdam(wg.nn.Linear(2, 1).parameters(), lr=0.01)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def move(self, xp: Any, group: Group) -> Rule:
        lr, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]
        limit = 2 / (1 - beta2) - 1

        def move(p: Any, g: Any, state: State) -> Any:
            step, (m, v) = state["step"], _moments(xp, g, state, beta1, beta2)
            rate, left = lr / (1 - beta1**step), 1 - beta2**step
            rho = limit - 2 * step * beta2**step / left
            if rho <= 5:
                return xp.axpby(1, p, -rate, m)
            ratio = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
            return xp.add_normalised(p, -rate * (ratio * left) ** 0.5, m, v, eps)

        return move
