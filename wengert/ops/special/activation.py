"""Activation functions of networks."""

import math
from typing import Any, Literal

from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import operand
from wengert.ops.define import elementwise, operation
from wengert.ops.domain import NOT_ZERO
from wengert.tape.primitive import ZERO, Primitive
from wengert.tape.tensor import Tensor, wrap

__all__ = ["gelu", "leaky_relu", "relu", "silu"]


Primitive(
    "mask",
    ("x", "by"),
    {"x": lambda xp, g, by: xp.mask(g, by), "by": ZERO},
    elementwise=True,
    dtypes={"x": "any"},
    composite=lambda xp, x, by: xp.where(by != 0, x, 0),
)


@elementwise(
    dtypes="real numeric",
    composite=lambda xp, x: xp.maximum(x, 0),
    # Where the result is positive or nan the gradient passes, as in PyTorch.
    x=lambda xp, g, out: xp.mask(g, out),
    domain=NOT_ZERO,
)
def relu(x: Any, /) -> Tensor:
    r"""Rectifier, :math:`\max(x, 0)`.

    Derivative 1 for positive ``x`` and 0 elsewhere, also at 0. Real dtypes.
    PyTorch: ``torch.nn.functional.relu``.

    Examples
    --------
    >>> wg.relu(wg.asarray([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    >>> wg.grad(lambda x: wg.relu(x).sum())(wg.asarray([-1.0, 0.0, 2.0]))
    tensor([0., 0., 1.])
    """


@operation(
    x=lambda xp, g, x, negative_slope: xp.where(x > 0, g, g * negative_slope),
    elementwise=True,
    dtypes="real floating",
    composite=lambda xp, x, *, negative_slope: xp.where(x > 0, x, x * negative_slope),
    domain=NOT_ZERO,
)
def leaky_relu(x: Any, /, negative_slope: float = 0.01) -> Tensor:
    """Rectifier with a slope for negative values: ``x``, or ``negative_slope * x``.

    Derivative 1 for positive ``x`` and ``negative_slope`` elsewhere, also at 0. A. L. Maas et al.,
    "Rectifier nonlinearities improve neural network acoustic models", ICML 2013. Real floating
    dtypes. The result is differentiable in a Tensor ``negative_slope``, which broadcasts with
    ``x``. PyTorch: ``torch.nn.functional.leaky_relu``.

    Examples
    --------
    >>> wg.leaky_relu(wg.asarray([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    >>> wg.grad(wg.leaky_relu)(-1.0)
    0.01
    """
    if type(negative_slope) is not float:
        x = wrap(x)
        negative_slope = operand(negative_slope, x, "leaky_relu", "negative_slope")
        if isinstance(negative_slope, Tensor):
            xp = differentiable
            right = x > 0
            below = xp.where(right, 0, x) * negative_slope
            return xp.where(right, x, below)
    return leaky_relu.run(x, negative_slope=float(negative_slope))


def _silu_rule(xp: Any, g: Any, x: Any) -> Any:
    slope = xp.expit(x) + x * xp.logistic_bell(x, width=1)
    return g * xp.conj(slope)


@elementwise(dtypes="real floating", composite=lambda xp, x: x * xp.expit(x), x=_silu_rule)
def silu(x: Any, /) -> Tensor:
    r"""Sigmoid linear unit, :math:`x \sigma(x)`.

    Derivative :math:`\sigma(x) (1 + x (1 - \sigma(x)))`. D. Hendrycks and K. Gimpel, "Gaussian
    error linear units", arXiv:1606.08415. Real floating dtypes.
    PyTorch: ``torch.nn.functional.silu``.

    Examples
    --------
    >>> wg.silu(wg.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    >>> wg.grad(wg.silu)(0.0)
    0.5
    """


_CUBIC = 0.044715
_SCALE = math.sqrt(2 / math.pi)
_FLAT = 45.0  # beyond, the densities are 0 in every precision


def _bound(xp: Any, x: Any) -> Any:
    """``x`` up to where the densities are 0, so that its powers do not overflow."""
    return xp.clip(x, -_FLAT, _FLAT)


def _logit_gate(xp: Any, x: Any) -> Any:
    """The gate of GELU's approximation: ``(1 + tanh(u)) / 2`` is the sigmoid of ``2 u``."""
    cubic = xp.square(x) * _CUBIC + 1
    return x * cubic * (2 * _SCALE)


def _gelu_composite(xp: Any, x: Any, *, approximate: str) -> Any:
    if approximate == "none":
        return x * xp.ndtr(x)
    return x * xp.expit(_logit_gate(xp, _bound(xp, x)))


def _gelu_rule(xp: Any, g: Any, x: Any, approximate: str) -> Any:
    inner = _bound(xp, x)
    square = xp.square(inner)
    if approximate == "none":
        density = xp.exp(square * -0.5) * (1 / math.sqrt(2 * math.pi))
        slope = xp.ndtr(inner) + inner * density
        return g * xp.conj(slope)
    gate = _logit_gate(xp, inner)
    steep = xp.logistic_bell(gate, width=1) * (inner * (2 * _SCALE))
    slope = steep * (square * (3 * _CUBIC) + 1)
    return g * xp.conj(xp.expit(gate) + slope)


@operation(x=_gelu_rule, elementwise=True, dtypes="real floating", composite=_gelu_composite)
def gelu(x: Any, /, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    r"""Gaussian error linear unit, :math:`x \Phi(x)` with the normal distribution :math:`\Phi`.

    Derivative :math:`\Phi(x) + x \phi(x)` with the normal density :math:`\phi`. D. Hendrycks and K.
    Gimpel, "Gaussian error linear units", arXiv:1606.08415. Real floating dtypes. Raises
    `ValueError` if ``approximate`` is neither. ``"tanh"`` computes :math:`\frac x 2 (1 +
    \tanh(\sqrt{2/\pi} (x + 0.044715 x^3)))`. PyTorch: ``torch.nn.functional.gelu``.

    Examples
    --------
    >>> wg.gelu(wg.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    >>> wg.grad(wg.gelu)(0.0)
    0.5
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu's approximate is 'none' or 'tanh', and not {approximate!r}")
    return gelu.run(x, approximate=approximate)
