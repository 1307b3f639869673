"""Lion and Muon, whose steps are signs, and orthogonal matrices."""

import math
from collections.abc import Iterable
from typing import Any

from wengert.backends import DType, dtype_of
from wengert.optim.adapters import Rule, State
from wengert.optim.groups import RANGES, Group, Range, hyper_parameters
from wengert.optim.optimizer import Optimizer

_RATES = (None, "original", "match_rms_adamw")


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
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {"exp_avg": xp.zeros_like(p)}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, decay, (beta1, beta2) = group["lr"], group["weight_decay"], group["betas"]

        def update(p: Any, g: Any, state: State) -> Any:
            held = state["exp_avg"]
            direction = xp.sign(xp.axpby(beta1, held, 1 - beta1, g))
            state["exp_avg"] = xp.axpby(beta2, held, 1 - beta2, g)
            return xp.axpby(1 - lr * decay if decay else 1, p, -lr, direction)

        return update


class Muon(Optimizer):
    r"""Muon: momentum made orthogonal by a Newton-Schulz iteration, for matrices.

    With :math:`b_t = \mu b_{t-1} + (1 - \mu) g_t` and, with Nesterov,
    :math:`\mu b_t + (1 - \mu) g_t` in its place, :math:`X_0 = b_t / \max(\|b_t\|_F, \epsilon)` and

    .. math::
        X_{k+1} &= a X_k + (b A_k + c A_k^2) X_k \\ A_k &= X_k X_k^T \\
        p_t &= (1 - \gamma \lambda) p_{t-1} - \gamma' X_n

    where :math:`X_0` is transposed if it has more rows than columns. Here :math:`\gamma` is ``lr``,
    :math:`\lambda` ``weight_decay``, :math:`\mu` ``momentum`` and :math:`\epsilon` ``eps``. Jordan,
    "Muon: an optimizer for hidden layers in neural networks" (2024). PyTorch iterates in bfloat16,
    and this in the parameter's dtype. PyTorch: ``torch.optim.Muon``.

    Parameters are real matrices. Others, and usually embeddings and the last layer, belong to
    another optimiser, such as `AdamW`. ``ns_coefficients`` are :math:`a`, :math:`b` and :math:`c`,
    and ``ns_steps`` is :math:`n`, below 100. For a matrix of r rows and c columns,
    :math:`\gamma'` is :math:`\gamma \sqrt{\max(1, r / c)}`, ``"original"``, or
    :math:`0.2 \gamma \sqrt{\max(r, c)}`, at which learning rates of AdamW may be used.

    Examples
    --------
    >>> w = wg.tensor([[1.0, 0.0], [0.0, 10.0]], requires_grad=True)
    >>> optimizer = wg.optim.Muon([w], lr=1.0, weight_decay=0.0)
    >>> (w**2).sum().backward()
    >>> optimizer.step()  # about lr along each singular vector of the gradient
    >>> bool(wg.all(w.grad >= 0) & (w[0, 0] < 1) & (w[1, 1] < 10))
    True
    """

    elementwise = True
    ranges = {
        "lr": Range(says="Learning rate should be >= 0 but is: {value}"),
        "momentum": Range(says="momentum should be >= 0 but is: {value}"),
        "weight_decay": Range(says="weight decay should be >= 0 but is: {value}"),
        "ns_coefficients": Range(-math.inf, numbers=3),
        "ns_steps": Range(0, 99),
        "eps": Range(),
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, hyper_parameters(locals()))

    def check(self, group: Group) -> None:
        super().check(group)
        if group["adjust_lr_fn"] not in _RATES:
            raise ValueError(
                f"Adjust learning rate function {group['adjust_lr_fn']} is not supported; "
                f"adjust_lr_fn should be one of {_RATES}"
            )
        for p in group["params"]:
            if p.ndim != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{tuple(p.shape)}; give the others to another optimizer"
                )
            _check_real(p.dtype)

    def init(self, xp: Any, p: Any, group: Group) -> State:
        return {"momentum_buffer": xp.zeros_like(p)}

    def rule(self, xp: Any, group: Group) -> Rule:
        lr, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        nesterov, how = group["nesterov"], group["adjust_lr_fn"]
        coefficients, steps, eps = group["ns_coefficients"], group["ns_steps"], group["eps"]

        def update(p: Any, g: Any, state: State) -> Any:
            _check_real(dtype_of(p.dtype))  # the parameter may have been cast
            held = state["momentum_buffer"]
            state["momentum_buffer"] = move = xp.axpby(momentum, held, 1 - momentum, g)
            if nesterov:
                move = xp.axpby(momentum, move, 1 - momentum, g)
            rows, columns = p.shape
            move = _orthogonalise(xp, move, rows > columns, coefficients, steps, eps)
            if how == "match_rms_adamw":
                ratio = 0.2 * math.sqrt(max(rows, columns))
            else:
                ratio = math.sqrt(max(1, rows / columns)) if columns else 1.0
            return xp.axpby(1 - lr * decay, p, -lr * ratio, move)

        return update


def _check_real(dtype: DType) -> None:
    if dtype.complex:
        raise ValueError("Muon does not support complex parameters")


def _orthogonalise(xp: Any, x: Any, high: bool, coefficients: Any, steps: int, eps: float) -> Any:
    """About the orthogonal matrix that is nearest to ``x``."""
    a, b, c = coefficients
    if high:
        x = xp.matrix_transpose(x)
    norm = xp.linalg.vector_norm(x, axis=(0, 1))
    x = xp.divide(x, xp.maximum(norm, xp.add(xp.zeros_like(norm), eps)))
    for _ in range(steps):
        gram = xp.matmul(x, xp.matrix_transpose(x))
        x = xp.axpby(a, x, 1, xp.matmul(xp.axpby(b, gram, c, xp.matmul(gram, gram)), x))
    return xp.matrix_transpose(x) if high else x
