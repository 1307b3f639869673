"""Optimisers that scale steps by running means of the gradient's squares, or by its largest."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adam import MOMENTS
from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, Range, hyper_parameters
from wengert.optim.kernels import add_corrected, slope
from wengert.optim.optimizer import Optimizer

_COMMON = {name: RANGES[name] for name in ("lr", "eps", "weight_decay")}


class _Kin(Optimizer):
    """Optimisers whose weight decay and count of steps are alike."""

    ranges = MOMENTS
    componentwise = True
    means: tuple[str, ...] = ("exp_avg", "exp_avg_sq")

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {"step": 0, **{name: xp.zeros_like(p) for name in self.means}}

    def rule(self, xp: Any, group: Group) -> Rule:
        move, maximize, decay = self.move(xp, group), group["maximize"], group["weight_decay"]
        scaled, added = (decay, 0) if group.get("decoupled_weight_decay") else (0, decay)
        shrink, sloped = 1 - group["lr"] * scaled, maximize or added

        def update(p: Any, g: Any, state: State) -> Any:
            if sloped:
                g = slope(xp, p, g, maximize, added)
            if scaled:
                p = xp.multiply(p, shrink)
            state["step"] += 1
            return move(p, g, state)

        return update

    def move(self, xp: Any, group: Group) -> Rule:
        """Return the function that moves a parameter, whose decay and step are done."""
        raise NotImplementedError


class RMSprop(_Kin):
    r"""RMSprop: steps scaled by a running mean of squares.

    .. math::
        v_t &= \alpha v_{t-1} + (1 - \alpha) g_t^2 \\
        b_t &= \mu b_{t-1} + g_t / (\sqrt{v_t} + \epsilon) \\
        p_t &= p_{t-1} - \gamma b_t

    The centred form takes :math:`v_t - \bar g_t^2` for :math:`v_t`, with the running mean
    :math:`\bar g_t` of the gradient. Here :math:`\gamma` is ``lr``, :math:`\epsilon` ``eps`` and
    :math:`\mu` ``momentum``. ``weight_decay`` adds its multiple of the parameter to the gradient.
    Hinton, "Neural networks for machine learning" (2012), lecture 6e; Graves, "Generating sequences
    with recurrent neural networks" (2013) for the centred form. PyTorch: ``torch.optim.RMSprop``.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.RMSprop([w], lr=0.01)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    ranges = _COMMON | {"momentum": RANGES["momentum"], "alpha": Range()}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        names = ["square_avg", *["grad_avg"] * group["centered"]]
        names += ["momentum_buffer"] if group["momentum"] else []
        return {"step": 0, **{name: xp.zeros_like(p) for name in names}}

    def move(self, xp: Any, group: Group) -> Rule:
        lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
        momentum, centered = group["momentum"], group["centered"]

        def move(p: Any, g: Any, state: State) -> Any:
            state["square_avg"] = v = xp.add_squares(alpha, state["square_avg"], 1 - alpha, g)
            if centered:
                held = state.get("grad_avg")
                mean = xp.multiply(g, 1 - alpha)
                mean = mean if held is None else xp.axpby(alpha, held, 1, mean)
                state["grad_avg"] = mean
                v = xp.subtract(v, xp.multiply(mean, mean))
            if not momentum:
                return xp.add_normalised(p, -lr, g, v, eps)
            held = state.get("momentum_buffer")
            held = xp.zeros_like(p) if held is None else xp.multiply(held, momentum)
            state["momentum_buffer"] = step = xp.add_normalised(held, 1, g, v, eps)
            return xp.axpby(1, p, -lr, step)

        return move


class Adagrad(_Kin):
    r"""Adagrad: steps scaled by the sum of squares so far.

    .. math::
        s_t &= s_{t-1} + g_t^2 \\
        p_t &= p_{t-1} - \frac{\gamma}{1 + (t - 1) \eta} \frac{g_t}{\sqrt{s_t} + \epsilon}

    Here :math:`\gamma` is ``lr``, :math:`\eta` ``lr_decay`` and :math:`\epsilon` ``eps``.
    ``weight_decay`` adds its multiple of the parameter to the gradient. Duchi, Hazan and Singer,
    "Adaptive subgradient methods for online learning and stochastic optimization" (2011).
    PyTorch: ``torch.optim.Adagrad``.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.Adagrad([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    ranges = _COMMON | {"lr_decay": Range(), "initial_accumulator_value": Range()}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {"step": 0, "sum": xp.full_like(p, 1.0 * group["initial_accumulator_value"])}

    def move(self, xp: Any, group: Group) -> Rule:
        lr, slower, eps = group["lr"], group["lr_decay"], group["eps"]

        def move(p: Any, g: Any, state: State) -> Any:
            state["sum"] = total = xp.add_squares(1, state["sum"], 1, g)
            rate = lr / (1 + (state["step"] - 1) * slower) if slower else lr
            return xp.add_normalised(p, -rate, g, total, eps)

        return move


def _moments(xp: Any, g: Any, state: State, beta1: float, beta2: float) -> tuple[Any, Any]:
    """Adam's running moments, with one gradient more."""
    state["exp_avg"] = m = xp.axpby(beta1, state["exp_avg"], 1 - beta1, g)
    state["exp_avg_sq"] = v = xp.add_squares(beta2, state["exp_avg_sq"], 1 - beta2, g)
    return m, v


class Adadelta(_Kin):
    r"""Adadelta: steps in units of the parameter, by running means of squares of both.

    .. math::
        v_t &= \rho v_{t-1} + (1 - \rho) g_t^2 \\
        d_t &= g_t \sqrt{u_{t-1} + \epsilon} / \sqrt{v_t + \epsilon} \\
        u_t &= \rho u_{t-1} + (1 - \rho) d_t^2 \\ p_t &= p_{t-1} - \gamma d_t

    Zeiler, "ADADELTA: an adaptive learning rate method" (2012). PyTorch: ``torch.optim.Adadelta``.

    Examples
    --------
    >>> optimizer = wg.optim.Adadelta(wg.nn.Linear(2, 1).parameters(), rho=0.95)
    """

    ranges = _COMMON | {"rho": Range(0, 1)}
    means = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def move(self, xp: Any, group: Group) -> Rule:
        lr, rho, eps = group["lr"], group["rho"], group["eps"]

        def move(p: Any, g: Any, state: State) -> Any:
            held = state["acc_delta"]
            state["square_avg"] = v = xp.add_squares(rho, state["square_avg"], 1 - rho, g)
            ratio = xp.divide(xp.sqrt(xp.add(held, eps)), xp.sqrt(xp.add(v, eps)))
            step = xp.multiply(ratio, g)
            state["acc_delta"] = xp.add_squares(rho, held, 1 - rho, step)
            return xp.axpby(1, p, -lr, step)

        return move


class Adamax(_Kin):
    r"""Adamax: Adam with a decaying maximum instead of the second moment.

    .. math::
        u_t &= \max(\beta_2 u_{t-1}, |g_t| + \epsilon) \\
        p_t &= p_{t-1} - \frac{\gamma}{1 - \beta_1^t} \frac{m_t}{u_t}

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
        *,
        maximize: bool = False,
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


class NAdam(_Kin):
    r"""NAdam: Adam with Nesterov's momentum, which grows as training goes on.

    .. math::
        \mu_t &= \beta_1 (1 - 0.96^{t \psi} / 2) \\ M_t &= \mu_1 \dots \mu_t \\
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
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {**super().init(xp, p, group), "mu_product": 1.0}

    def move(self, xp: Any, group: Group) -> Rule:
        lr, eps, psi, betas = group["lr"], group["eps"], group["momentum_decay"], group["betas"]

        def move(p: Any, g: Any, state: State) -> Any:
            step, (m, v) = state["step"], _moments(xp, g, state, *betas)
            mu, after = (betas[0] * (1 - 0.5 * 0.96 ** (t * psi)) for t in (step, step + 1))
            state["mu_product"] = product = state["mu_product"] * mu
            ahead = xp.axpby(after / (1 - product * after), m, (1 - mu) / (1 - product), g)
            return add_corrected(xp, p, -lr, ahead, v, 1 - betas[1] ** step, eps)

        return move


class RAdam(_Kin):
    r"""RAdam: Adam whose steps are scaled once the second moment's variance is bounded.

    With :math:`\rho = 2 / (1 - \beta_2) - 1` and
    :math:`\rho_t = \rho - 2 t \beta_2^t / (1 - \beta_2^t)`,

    .. math::
        p_t &= p_{t-1} - \gamma \frac{m_t}{1 - \beta_1^t}
              \sqrt{\frac{(\rho_t - 4) (\rho_t - 2) \rho}{(\rho - 4) (\rho - 2) \rho_t}} \\
              &\quad \times \frac{\sqrt{1 - \beta_2^t}}{\sqrt{v_t} + \epsilon}

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
        *,
        maximize: bool = False,
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
