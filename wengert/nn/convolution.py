"""Convolutions as modules, their windows as columns, and margins."""

from typing import Any, Literal

from wengert.nn import functional as F
from wengert.nn.functional.convolution import Padding, margins
from wengert.nn.functional.spatial import Sizes, sizes
from wengert.nn.layers import Affine
from wengert.nn.module import Module
from wengert.ops.hints import Refusing
from wengert.tape.tensor import Tensor


class _Convolution(Refusing, Affine):
    """What convolutions and their adjoints share."""

    _count = 0
    _transposed = False
    output_padding: Sizes

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: Padding = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        *,  # in PyTorch's place of these there is padding_mode
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        name, count = type(self).__name__, self._count
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for option, given in (("in_channels", in_channels), ("out_channels", out_channels)):
            if given % groups:
                raise ValueError(f"{option} must be divisible by groups, and {given} is not")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = sizes(kernel_size, count, name, "kernel_size", 1)
        self.stride = sizes(stride, count, name, "stride", 1)
        self.dilation = sizes(dilation, count, name, "dilation", 1)
        self.groups = groups
        # What does not go with the stride is an error now.
        pairs = margins(padding, self.kernel_size, self.stride, self.dilation, name)
        self.padding: Any = padding if isinstance(padding, str) else tuple([p for p, _ in pairs])
        first, second = out_channels, in_channels
        if self._transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        self._add_parameters(shape, out_channels, bias, device, dtype)

    def extra_repr(self) -> str:
        none, one = (0,) * self._count, (1,) * self._count
        defaults: dict[str, Any] = {"padding": none, "dilation": one, "output_padding": none}
        defaults |= {"groups": 1, "bias": True}
        values = {name: getattr(self, name) for name in ("kernel_size", "stride", *defaults)}
        values["bias"] = self.bias is not None
        shown = [f"{n}={v}" for n, v in values.items() if n not in defaults or v != defaults[n]]
        return ", ".join([f"{self.in_channels}, {self.out_channels}", *shown])


class _Forward(_Convolution):
    def forward(self, input: Any) -> Tensor:
        convolve = (F.conv1d, F.conv2d)[self._count - 1]
        options: Any = (self.stride, self.padding, self.dilation, self.groups)
        return convolve(input, self.weight, self.bias, *options)


class Conv1d(_Forward):
    r"""`functional.conv1d` as a module with its weights.

    ``weight`` is of shape (O, C/groups, k) for C channels of the input and O of the result, and
    ``bias`` of shape (O,). Both start uniform within :math:`\pm 1 / \sqrt n` for the n weights in
    each element of the weight's first axis.

    Examples
    --------
    >>> layer = wg.nn.Conv1d(3, 8, kernel_size=5, padding="same")
    >>> layer(wg.ones((2, 3, 20))).shape
    (2, 8, 20)
    """

    _count = 1
    output_padding = (0,)


class Conv2d(_Forward):
    """`functional.conv2d` as a module with its weights.

    ``weight`` is of shape (O, C/groups, h, w); all else is as in `Conv1d`.

    Examples
    --------
    >>> layer = wg.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)
    >>> layer(wg.ones((2, 3, 32, 32))).shape
    (2, 8, 16, 16)
    >>> layer.weight.shape
    (8, 3, 3, 3)
    """

    _count = 2
    output_padding = (0, 0)


class _Transposed(_Convolution):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        self.output_padding = sizes(output_padding, self._count, name, "output_padding")
        how = stride, padding, dilation, groups, bias
        super().__init__(in_channels, out_channels, kernel_size, *how, device=device, dtype=dtype)

    def forward(self, input: Any) -> Tensor:
        convolve = (F.conv_transpose1d, F.conv_transpose2d)[self._count - 1]
        more: Any = (self.output_padding, self.groups, self.dilation)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, *more)


class ConvTranspose1d(_Transposed):
    """`functional.conv_transpose1d` as a module with its weights.

    ``weight`` is of shape (C, O/groups, k); the bias is as in `Conv1d`.

    Examples
    --------
    >>> wg.nn.ConvTranspose1d(8, 3, kernel_size=4, stride=2)(wg.ones((2, 8, 10))).shape
    (2, 3, 22)
    """

    _count = 1


class ConvTranspose2d(_Transposed):
    """`functional.conv_transpose2d` as a module with its weights.

    ``weight`` is of shape (C, O/groups, h, w); the bias is as in `Conv1d`.

    Examples
    --------
    >>> wg.nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2)(wg.ones((2, 8, 5, 5))).shape
    (2, 3, 10, 10)
    """

    _count = 2


class _Pad(Module):
    _mode: Literal["constant", "reflect"] = "constant"

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        self.padding = sizes(padding, 4, type(self).__name__, "padding", -(2**62))

    def forward(self, input: Any) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(_Pad):
    """`functional.pad` with zeros as a module, for images.

    ``padding`` is one number, or those of zeros before and after the last axis, and the one before.

    Examples
    --------
    >>> wg.nn.ZeroPad2d(1)(wg.ones((1, 3, 8, 8))).shape
    (1, 3, 10, 10)
    """


class ReflectionPad2d(_Pad):
    """`functional.pad` with the image mirrored at its edges, as a module.

    ``padding`` is as in `ZeroPad2d`, and less than an axis has elements.

    Examples
    --------
    >>> wg.nn.ReflectionPad2d((2, 0, 0, 0))(wg.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 2., 1., 2., 3.]]])
    """

    _mode = "reflect"
