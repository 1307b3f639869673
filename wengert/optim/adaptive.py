"""Optimisers that scale steps by running means of the gradient's squares, or by its largest."""

from collections.abc import Iterable
from typing import Any

from wengert.optim.adam import Counting
from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, Range, hyper_parameters

_COMMON = {name: RANGES[name] for name in ("lr", "eps", "weight_decay")}


class RMSprop(Counting):
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
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        names = ["square_avg", *["grad_avg"] * group["centered"]]
        names += ["momentum_buffer"] if group["momentum"] else []
        return {"step": 0, **{name: xp.zeros_like(p) for name in names}}

    def move(self, xp: Any, group: Group) -> Rule:
        lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
        momentum, centered, fresh = group["momentum"], group["centered"], (1 - alpha) ** 0.5

        def move(p: Any, g: Any, state: State) -> Any:
            state["square_avg"] = v = xp.add_squares(alpha, state["square_avg"], fresh, g)
            # Options that are switched on later begin with zeros, as at first.
            if centered:
                held = state["grad_avg"] if "grad_avg" in state else xp.zeros_like(g)
                state["grad_avg"] = mean = xp.axpby(alpha, held, 1 - alpha, g)
                v = xp.subtract(v, xp.multiply(mean, mean))
            if not momentum:
                return xp.add_normalised(p, -lr, g, v, eps)
            held = state["momentum_buffer"] if "momentum_buffer" in state else xp.zeros_like(g)
            held = xp.multiply(held, momentum)
            state["momentum_buffer"] = step = xp.add_normalised(held, 1, g, v, eps)
            return xp.axpby(1, p, -lr, step)

        return move


class Adagrad(Counting):
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


class Adadelta(Counting):
    r"""Adadelta: steps scaled by running means of squared gradients and squared steps.

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
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def move(self, xp: Any, group: Group) -> Rule:
        lr, rho, eps = group["lr"], group["rho"], group["eps"]
        fresh = (1 - rho) ** 0.5

        def move(p: Any, g: Any, state: State) -> Any:
            held = state["acc_delta"]
            state["square_avg"] = v = xp.add_squares(rho, state["square_avg"], fresh, g)
            ratio = xp.divide(xp.sqrt(xp.add(held, eps)), xp.sqrt(xp.add(v, eps)))
            step = xp.multiply(ratio, g)
            state["acc_delta"] = xp.add_squares(rho, held, fresh, step)
            return xp.axpby(1, p, -lr, step)

        return move
