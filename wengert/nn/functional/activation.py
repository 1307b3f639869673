"""Activations, by PyTorch's names and arguments.

All take real floating dtypes, of which `real_floating` makes Tensors; `number` makes an option
Python's number. What `operation` decorates is recorded: ``run`` calls its composite, whose ``xp``
is the library of the arrays, and its rule takes the cotangent ``g`` to the one of the input.
"""

from typing import Any

from wengert import ops
from wengert.nn.functional.define import out_of_place, real_floating
from wengert.ops.axes import number
from wengert.ops.define import operation
from wengert.ops.special import everyday
from wengert.tape.tensor import Tensor, wrap

# These are functions of arrays as well, and some have another name there.
gelu = everyday.gelu
leaky_relu = out_of_place(everyday.leaky_relu)
logsigmoid = everyday.log_expit
relu = out_of_place(everyday.relu)
sigmoid = everyday.expit
silu = out_of_place(everyday.silu)
tanh = ops.tanh
for _own in (leaky_relu, relu, silu):  # pickle finds them here
    _own.__module__ = __name__

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _elu_composite(xp: Any, x: Any, alpha: float) -> Any:
    return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0)) * alpha)


def _elu_rule(xp: Any, g: Any, x: Any, alpha: float) -> Any:
    # Not the minimum, which shares its slope at a tie: the second derivative at 0 is 0.
    slope = xp.exp(xp.where(x < 0, x, xp.zeros_like(x))) * alpha
    return xp.where(x > 0, g, g * xp.conj(slope))


@out_of_place
@operation(
    inputs=("x",), x=_elu_rule, elementwise=True, dtypes="real floating", composite=_elu_composite
)
def elu(input: Any, alpha: float = 1.0) -> Tensor:
    r"""Exponential linear unit: :math:`x` above 0, :math:`\alpha (e^x - 1)` below.

    Derivative 1 above 0 and :math:`\alpha e^x` below; :math:`\alpha` at 0. Clevert, Unterthiner and
    Hochreiter, "Fast and accurate deep network learning by exponential linear units" (2016).
    PyTorch: ``torch.nn.functional.elu``.

    Examples
    --------
    >>> wg.nn.functional.elu(wg.asarray([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """
    return elu.run(real_floating("elu", input), alpha=number(alpha, "elu", "alpha"))


@out_of_place
def selu(input: Any) -> Tensor:
    r"""Scaled exponential unit, :math:`\lambda` times `elu`: it keeps mean 0 and variance 1.

    :math:`\lambda = 1.0507...`, and the unit's :math:`\alpha = 1.6732...`. Klambauer et al.,
    "Self-normalizing neural networks" (2017). PyTorch: ``torch.nn.functional.selu``.

    Examples
    --------
    >>> wg.nn.functional.selu(wg.asarray([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """
    return ops.multiply(elu.run(real_floating("selu", input), alpha=_SELU_ALPHA), _SELU_SCALE)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    r"""Smooth rectifier, :math:`\log(1 + e^{\beta x}) / \beta`; :math:`x` itself for large ones.

    These are where :math:`\beta x` exceeds ``threshold``. Derivative :math:`\sigma(\beta x)`, the
    logistic sigmoid. PyTorch: ``torch.nn.functional.softplus``.

    Examples
    --------
    >>> wg.nn.functional.softplus(wg.asarray([-1.0, 0.0, 100.0]), beta=2.0)
    tensor([6.3464e-02, 3.4657e-01, 1.0000e+02])
    """
    x = wrap(input)
    plain = type(beta) is type(threshold) is float and beta == 1 and threshold >= 20
    if plain and x.dtype.name == "float32":  # in which it is x beyond the threshold
        return everyday.softplus(x)
    scale = number(beta, "softplus", "beta")
    scaled = ops.multiply(x, scale)
    straight = ops.greater(scaled, number(threshold, "softplus", "threshold"))
    return ops.where(straight, x, ops.multiply(everyday.softplus(scaled), 1 / scale))


@out_of_place
def relu6(input: Any) -> Tensor:
    r"""Rectifier with a limit, :math:`\min(\max(x, 0), 6)`.

    Derivative 1 between 0 and 6, 0 elsewhere. Krizhevsky, "Convolutional deep belief networks on
    CIFAR-10" (2010). PyTorch: ``torch.nn.functional.relu6``.

    Examples
    --------
    >>> wg.nn.functional.relu6(wg.asarray([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """
    x = real_floating("relu6", input)
    return ops.where(ops.less_equal(x, 0), 0, ops.where(ops.greater_equal(x, 6), 6, x))


@out_of_place
def hardswish(input: Any) -> Tensor:
    """Smooth switch: 0 up to -3, :math:`x (x + 3) / 6`, and :math:`x` from 3 on.

    Derivative :math:`x / 3 + 1/2` between -3 and 3. Howard et al., "Searching for MobileNetV3"
    (2019). PyTorch: ``torch.nn.functional.hardswish``.

    Examples
    --------
    >>> wg.nn.functional.hardswish(wg.asarray([-4.0, 0.0, 1.5, 4.0]))
    tensor([0.0000, 0.0000, 1.1250, 4.0000])
    """
    x = real_floating("hardswish", input)
    low, high = ops.less_equal(x, -3), ops.greater_equal(x, 3)
    inner = ops.where(ops.logical_or(low, high), 0, x)  # so that no product overflows
    curve = ops.multiply(ops.multiply(inner, ops.add(inner, 3)), 1 / 6)  # exact at -3
    return ops.where(low, 0, ops.where(high, x, curve))
