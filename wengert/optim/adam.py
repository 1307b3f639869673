"""Adam and its form with decoupled weight decay."""

from collections.abc import Iterable
from typing import Any

from wengert.backends import dtype_of
from wengert.optim import kernels as kernels
from wengert.optim.optimizer import Group, Optimizer, Rule, State
from wengert.tape.families import Family
from wengert.tape.parameters import takes

#: What the docstrings of Adam and its kin have in common.
ADAM = Family(r"""
Parameters
----------
params : iterable of Tensor or of dict
    The parameters, or groups of them.
lr : float
    Learning rate :math:`\gamma`.
betas : tuple of float
    :math:`\beta_1` and :math:`\beta_2`, at least 0 and below 1.
eps : float
    :math:`\epsilon`.
amsgrad : bool
    Whether the largest :math:`v` so far takes the place of the present one.
maximize : bool
    Whether to climb instead.

Raises
------
ValueError
    For a hyper-parameter outside its range.

Notes
-----
PyTorch: ``torch.optim.$name``.
""")


@takes(constant="params", family=ADAM)
class Adam(Optimizer):
    r"""Adam: steps scaled by running moments of the gradient.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        p_t &= p_{t-1} - \gamma \frac{m_t / (1 - \beta_1^t)}
               {\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    The real and imaginary part of a complex parameter are updated as two real ones.

    Parameters
    ----------
    weight_decay : float
        :math:`\lambda`; :math:`\lambda p_{t-1}` is added to the gradient.
    decoupled_weight_decay : bool
        Whether the parameter is scaled by :math:`1 - \gamma \lambda` instead, as in `AdamW`.

    Notes
    -----
    Kingma and Ba, "Adam: a method for stochastic optimization" (2015); Reddi et al., "On the
    convergence of Adam and beyond" (2018) for AMSGrad. Names and defaults are PyTorch's.
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
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def check(self, group: Group) -> None:
        if not group["lr"] >= 0:
            raise ValueError(f"Invalid learning rate: {group['lr']}")
        if not group["eps"] >= 0:
            raise ValueError(f"Invalid epsilon value: {group['eps']}")
        if len(group["betas"]) != 2:
            raise ValueError(f"betas should be two numbers, not {group['betas']}")
        for index, beta in enumerate(group["betas"]):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        if not group["weight_decay"] >= 0:
            raise ValueError(f"Invalid weight_decay value: {group['weight_decay']}")

    def init(self, xp: Any, p: Any) -> State:
        p = _parts(xp, p)
        return {"step": 0, "exp_avg": xp.zeros_like(p), "exp_avg_sq": xp.zeros_like(p)}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, decay, eps = group["lr"], group["weight_decay"], group["eps"]
        decoupled, maximize, amsgrad = (
            group[name] for name in ("decoupled_weight_decay", "maximize", "amsgrad")
        )
        beta1, beta2 = group["betas"]

        def update(p: Any, g: Any, state: State) -> Any:
            # Not a call of this function on the parts: a closure that refers to itself would be
            # a reference cycle, one for each step.
            whole = dtype_of(p.dtype).complex
            if whole:
                p, g = _parts(xp, p), _parts(xp, g)
            if maximize:
                g = xp.negative(g)
            if decay and decoupled:
                p = xp.multiply(p, 1 - lr * decay)
            elif decay:
                g = xp.axpby(1, g, decay, p)
            state["step"] = step = state["step"] + 1
            state["exp_avg"] = m = xp.axpby(beta1, state["exp_avg"], 1 - beta1, g)
            state["exp_avg_sq"] = v = xp.axpby(
                beta2, state["exp_avg_sq"], 1 - beta2, xp.multiply(g, g)
            )
            if amsgrad:
                held = state.get("max_exp_avg_sq")
                state["max_exp_avg_sq"] = v = v if held is None else xp.maximum(held, v)
            move = xp.normalised(m, v, (1 - beta2**step) ** 0.5, eps)
            p = xp.axpby(1, p, -lr / (1 - beta1**step), move)
            return xp.add(p[..., 0], xp.multiply(p[..., 1], 1j)) if whole else p

        return update


@takes(constant="params", family=ADAM)
class AdamW(Adam):
    r"""Adam with decoupled weight decay: the parameter is scaled by :math:`1 - \gamma \lambda`.

    Parameters
    ----------
    weight_decay : float
        :math:`\lambda`.

    Notes
    -----
    Loshchilov and Hutter, "Decoupled weight decay regularization" (2019).
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
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
        )


def _parts(xp: Any, z: Any) -> Any:
    """A complex array as a real one with an axis more; a real one as it is."""
    if not dtype_of(z.dtype).complex:
        return z
    return xp.stack([xp.real(z), xp.imag(z)], axis=-1)
