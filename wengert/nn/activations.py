"""Activations as layers; each is the function of its name, which has the formula."""

from operator import index
from typing import Any, Literal

from wengert import ops
from wengert.nn import functional as F
from wengert.nn.define import Single, stores
from wengert.nn.init import constant_
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.axes import number
from wengert.tape.tensor import Tensor


class _InPlace(Single):
    def __init__(self, inplace: bool = False) -> None: ...


class _Along(Single):
    def __init__(self, dim: int | None = None) -> None: ...


@stores(F.relu)
class ReLU(_InPlace):
    r"""Rectifier, :math:`\max(x, 0)`.

    `functional.relu` as a module. PyTorch: ``torch.nn.ReLU``.

    Examples
    --------
    >>> wg.nn.ReLU()(wg.asarray([-1.0, 2.0]))
    tensor([0., 2.])
    """


@stores(F.leaky_relu)
class LeakyReLU(Single):
    """Rectifier with a slope for negative values: ``x``, or ``negative_slope * x``.

    `functional.leaky_relu` as a module. PyTorch: ``torch.nn.LeakyReLU``.

    Examples
    --------
    >>> wg.nn.LeakyReLU(0.1)(wg.asarray([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None: ...


@stores(F.elu)
class ELU(Single):
    r"""Exponential linear unit: :math:`x` above 0, :math:`\alpha (e^x - 1)` below.

    `functional.elu` as a module. PyTorch: ``torch.nn.ELU``.

    Examples
    --------
    >>> wg.nn.ELU()(wg.asarray([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


@stores(F.gelu)
class GELU(Single):
    r"""Gaussian error linear unit, :math:`x \Phi(x)` with the normal distribution :math:`\Phi`.

    `functional.gelu` as a module. PyTorch: ``torch.nn.GELU``.

    Examples
    --------
    >>> wg.nn.GELU()(wg.asarray([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None: ...


@stores(F.silu)
class SiLU(_InPlace):
    r"""Sigmoid linear unit, :math:`x \sigma(x)`.

    `functional.silu` as a module. PyTorch: ``torch.nn.SiLU``.

    Examples
    --------
    >>> wg.nn.SiLU()(wg.asarray([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """


@stores(F.sigmoid)
class Sigmoid(Single):
    r"""Logistic sigmoid, :math:`\sigma(x) = 1 / (1 + e^{-x})`, without overflow.

    `functional.sigmoid` as a module. PyTorch: ``torch.nn.Sigmoid``.

    Examples
    --------
    >>> wg.nn.Sigmoid()(wg.asarray([-1.0, 0.0, 2.0]))
    tensor([0.2689, 0.5000, 0.8808])
    """


@stores(F.logsigmoid)
class LogSigmoid(Single):
    r"""Logarithm of the logistic sigmoid, :math:`\log \sigma(x) = -\log(1 + e^{-x})`.

    `functional.logsigmoid` as a module. PyTorch: ``torch.nn.LogSigmoid``.

    Examples
    --------
    >>> wg.nn.LogSigmoid()(wg.asarray([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """


@stores(F.tanh)
class Tanh(Single):
    r"""Hyperbolic tangent, :math:`\tanh x`.

    `functional.tanh` as a module. PyTorch: ``torch.nn.Tanh``.

    Examples
    --------
    >>> wg.nn.Tanh()(wg.asarray([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """


@stores(F.softplus)
class Softplus(Single):
    r"""Smooth rectifier, :math:`\log(1 + e^{\beta x}) / \beta`.

    `functional.softplus` as a module. PyTorch: ``torch.nn.Softplus``.

    Examples
    --------
    >>> wg.nn.Softplus(beta=2.0)(wg.asarray([-1.0, 0.0, 2.0]))
    tensor([0.0635, 0.3466, 2.0091])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...


@stores(F.softmax)
class Softmax(_Along):
    r"""Probabilities proportional to exponentials, :math:`e^{x_i} / \sum_j e^{x_j}`.

    `functional.softmax` as a module. PyTorch: ``torch.nn.Softmax``.

    Examples
    --------
    >>> wg.nn.Softmax(dim=1)(wg.asarray([[1.0, 2.0, 3.0]]))
    tensor([[0.0900, 0.2447, 0.6652]])
    """


@stores(F.log_softmax)
class LogSoftmax(_Along):
    r"""Logarithm of `softmax`, :math:`x_i - \log \sum_j e^{x_j}`, accurate where that is 0.

    `functional.log_softmax` as a module. PyTorch: ``torch.nn.LogSoftmax``.

    Examples
    --------
    >>> wg.nn.LogSoftmax(dim=1)(wg.asarray([[1.0, 2.0, 3.0]]))
    tensor([[-2.4076, -1.4076, -0.4076]])
    """


@stores(F.relu6)
class ReLU6(_InPlace):
    r"""Rectifier with a limit, :math:`\min(\max(x, 0), 6)`.

    `functional.relu6` as a module. PyTorch: ``torch.nn.ReLU6``.

    Examples
    --------
    >>> wg.nn.ReLU6()(wg.asarray([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """


@stores(F.selu)
class SELU(_InPlace):
    r"""Scaled exponential unit, :math:`\lambda` times `elu`: it keeps mean 0 and variance 1.

    `functional.selu` as a module. PyTorch: ``torch.nn.SELU``.

    Examples
    --------
    >>> wg.nn.SELU()(wg.asarray([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """


@stores(F.celu)
class CELU(Single):
    r"""Smooth exponential unit: :math:`x` above 0, :math:`\alpha (e^{x / \alpha} - 1)` below.

    `functional.celu` as a module. PyTorch: ``torch.nn.CELU``.

    Examples
    --------
    >>> wg.nn.CELU(alpha=2.0)(wg.asarray([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


@stores(F.mish)
class Mish(_InPlace):
    r"""Smooth rectifier :math:`x \tanh(\log(1 + e^x))`.

    `functional.mish` as a module. PyTorch: ``torch.nn.Mish``.

    Examples
    --------
    >>> wg.nn.Mish()(wg.asarray([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """


@stores(F.hardswish, shown="")
class Hardswish(_InPlace):
    """Product with `hardsigmoid`: 0 up to -3, :math:`x (x + 3) / 6`, and :math:`x` from 3 on.

    `functional.hardswish` as a module. PyTorch: ``torch.nn.Hardswish``.

    Examples
    --------
    >>> wg.nn.Hardswish()(wg.asarray([-1.5, 4.0]))
    tensor([-0.3750,  4.0000])
    """


@stores(F.hardsigmoid, shown="")
class Hardsigmoid(_InPlace):
    r"""Sigmoid in three straight pieces, :math:`\min(\max(x, -3), 3) / 6 + 1/2`.

    `functional.hardsigmoid` as a module. PyTorch: ``torch.nn.Hardsigmoid``.

    Examples
    --------
    >>> wg.nn.Hardsigmoid()(wg.asarray([-1.5, 4.0]))
    tensor([0.2500, 1.0000])
    """


@stores(F.hardtanh)
class Hardtanh(Single):
    """Limit each element to a range.

    `functional.hardtanh` as a module. PyTorch: ``torch.nn.Hardtanh``.

    Examples
    --------
    >>> wg.nn.Hardtanh(0.0, 2.0)(wg.asarray([-1.0, 1.5, 4.0]))
    tensor([0.0000, 1.5000, 2.0000])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        if not (hasattr(min_val, "dtype") or hasattr(max_val, "dtype")) and max_val <= min_val:
            raise ValueError(f"max_val should be above min_val, and is {max_val}, not {min_val}")


@stores(F.threshold)
class Threshold(Single):
    """Replace each element that is not above a threshold.

    `functional.threshold` as a module. PyTorch: ``torch.nn.Threshold``.

    Examples
    --------
    >>> wg.nn.Threshold(0.1, 20.0)(wg.asarray([0.0, 0.5]))
    tensor([20.0000,  0.5000])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...


@stores(F.glu)
class GLU(Single):
    """Gated linear unit: the first half of an axis times the sigmoid of the second.

    `functional.glu` as a module. PyTorch: ``torch.nn.GLU``.

    Examples
    --------
    >>> wg.nn.GLU()(wg.ones((3, 8))).shape
    (3, 4)
    """

    def __init__(self, dim: int = -1) -> None: ...


@stores(F.softsign)
class Softsign(Single):
    """Sigmoid that saturates slowly, :math:`x / (1 + |x|)`.

    `functional.softsign` as a module. PyTorch: ``torch.nn.Softsign``.

    Examples
    --------
    >>> wg.nn.Softsign()(wg.asarray([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


@stores(F.tanhshrink)
class Tanhshrink(Single):
    r"""What the hyperbolic tangent takes away, :math:`x - \tanh x`.

    `functional.tanhshrink` as a module. PyTorch: ``torch.nn.Tanhshrink``.

    Examples
    --------
    >>> wg.nn.Tanhshrink()(wg.asarray([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """


class _Shrink(Single):
    lambd: float

    def __init__(self, lambd: float = 0.5) -> None: ...

    def extra_repr(self) -> str:
        return str(self.lambd)


@stores(F.softshrink)
class Softshrink(_Shrink):
    r"""Bring each element nearer to 0 by :math:`\lambda`; those within :math:`\lambda` become 0.

    `functional.softshrink` as a module. PyTorch: ``torch.nn.Softshrink``.

    Examples
    --------
    >>> wg.nn.Softshrink()(wg.asarray([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """


@stores(F.hardshrink)
class Hardshrink(_Shrink):
    r"""Zero for each element of :math:`|x| \le \lambda`; the others stay.

    `functional.hardshrink` as a module. PyTorch: ``torch.nn.Hardshrink``.

    Examples
    --------
    >>> wg.nn.Hardshrink(1.0)(wg.asarray([-0.8, 2.0]))
    tensor([0., 2.])
    """


@stores(F.softmin)
class Softmin(_Along):
    """Probabilities that fall with the input: `softmax` of :math:`-x`.

    `functional.softmin` as a module. PyTorch: ``torch.nn.Softmin``.

    Examples
    --------
    >>> wg.nn.Softmin(dim=1)(wg.asarray([[1.0, 2.0, 3.0]]))
    tensor([[0.6652, 0.2447, 0.0900]])
    """


class Softmax2d(Softmax):
    """`functional.softmax` over the channels of images, (C, H, W) or (N, C, H, W).

    Examples
    --------
    >>> probabilities = wg.nn.Softmax2d()(wg.ones((1, 4, 2, 2)))
    >>> probabilities[0, :, 0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def __init__(self) -> None:
        super().__init__(-3)

    def forward(self, input: Any) -> Tensor:
        """Turn the channels of each place into probabilities."""
        if len(input.shape) not in (3, 4):
            raise ValueError(
                "Softmax2d takes an input (C, H, W) or (N, C, H, W), not one of "
                f"{tuple(input.shape)}"
            )
        return F.softmax(input, -3)

    def extra_repr(self) -> str:
        return ""


class PReLU(Module):
    """`functional.prelu` with a slope that is learnt.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels.
    init : float
        What the slopes start with.
    device, dtype : optional
        Of the slopes; the selected device and the default dtype otherwise.

    Attributes
    ----------
    weight : Parameter
        The slopes, of shape (num_parameters,).

    Examples
    --------
    >>> layer = wg.nn.PReLU()
    >>> layer(wg.asarray([[-1.0], [2.0]])).sum().backward()
    >>> layer.weight.grad
    tensor([-1.])
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        self.num_parameters = index(num_parameters)
        self.init = number(init, "PReLU", "init")
        self.weight = Parameter(ops.empty((self.num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to what they start with."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Tensor:
        """Rectify the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


@stores(F.rrelu)
class RReLU(Single):
    """Rectifier with a random slope for each negative element; their mean when not training.

    `functional.rrelu` as a module. PyTorch: ``torch.nn.RReLU``.

    Examples
    --------
    >>> wg.nn.RReLU().eval()(wg.asarray([-1.0, 2.0]))  # the mean of the slopes
    tensor([-0.2292,  2.0000])
    """

    def __init__(
        self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False
    ) -> None: ...
