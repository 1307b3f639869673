"""Pooling as modules; each is the function of its name."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Single, Stored, stores
from wengert.nn.functional.spatial import sizes

_Size = int | tuple[int, ...]
_Adaptive = Any
_WINDOW = "kernel_size stride padding"


class _Windows(Single):
    kernel_size: _Size
    stride: _Size | None
    padding: _Size

    def _check(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class _MaxPool(_Windows):
    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None: ...

    def forward(self, input: Any) -> Any:
        raise NotImplementedError


@stores(F.max_pool1d, shown=f"{_WINDOW} dilation ceil_mode")
class MaxPool1d(_MaxPool):
    """Maxima of a signal's windows.

    `functional.max_pool1d` as a module. PyTorch: ``torch.nn.MaxPool1d``.

    Examples
    --------
    >>> wg.nn.MaxPool1d(3, stride=2)(wg.ones((2, 3, 11))).shape
    (2, 3, 5)
    """


@stores(F.max_pool2d, shown=f"{_WINDOW} dilation ceil_mode")
class MaxPool2d(_MaxPool):
    """Maxima of an image's windows.

    `functional.max_pool2d` as a module. PyTorch: ``torch.nn.MaxPool2d``.

    Examples
    --------
    >>> wg.nn.MaxPool2d(2)(wg.ones((2, 3, 8, 8))).shape
    (2, 3, 4, 4)
    """


@stores(F.avg_pool1d, shown=_WINDOW)
class AvgPool1d(_Windows):
    """Means of a signal's windows.

    `functional.avg_pool1d` as a module. PyTorch: ``torch.nn.AvgPool1d``.

    Examples
    --------
    >>> wg.nn.AvgPool1d(3, stride=2)(wg.ones((2, 3, 11))).shape
    (2, 3, 5)
    """

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None: ...

    def _check(self) -> None:
        super()._check()
        self.kernel_size = sizes(self.kernel_size, 1, "AvgPool1d", "kernel_size", 1)
        self.stride = sizes(self.stride, 1, "AvgPool1d", "stride", 1)
        self.padding = sizes(self.padding, 1, "AvgPool1d", "padding")


@stores(F.avg_pool2d, shown=_WINDOW)
class AvgPool2d(_Windows):
    """Means of an image's windows.

    `functional.avg_pool2d` as a module. PyTorch: ``torch.nn.AvgPool2d``.

    Examples
    --------
    >>> wg.nn.AvgPool2d(2)(wg.ones((2, 3, 8, 8))).shape
    (2, 3, 4, 4)
    """

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None: ...


class _AdaptiveAvgPool(Single):
    def __init__(self, output_size: _Adaptive) -> None: ...


@stores(F.adaptive_avg_pool1d)
class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of as many windows of a signal as are asked for.

    `functional.adaptive_avg_pool1d` as a module. PyTorch: ``torch.nn.AdaptiveAvgPool1d``.

    Examples
    --------
    >>> wg.nn.AdaptiveAvgPool1d(4)(wg.ones((2, 3, 10))).shape
    (2, 3, 4)
    """


@stores(F.adaptive_avg_pool2d)
class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of as many windows of an image as are asked for.

    `functional.adaptive_avg_pool2d` as a module. PyTorch: ``torch.nn.AdaptiveAvgPool2d``.

    Examples
    --------
    >>> wg.nn.AdaptiveAvgPool2d((1, 1))(wg.ones((2, 3, 7, 5))).shape
    (2, 3, 1, 1)
    """


class _AdaptiveMaxPool(Stored):
    def __init__(self, output_size: _Adaptive, return_indices: bool = False) -> None: ...

    def forward(self, input: Any) -> Any:
        raise NotImplementedError


@stores(F.adaptive_max_pool1d, shown="output_size")
class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of as many windows of a signal as are asked for; see `adaptive_avg_pool1d`.

    `functional.adaptive_max_pool1d` as a module. PyTorch: ``torch.nn.AdaptiveMaxPool1d``.

    Examples
    --------
    >>> wg.nn.AdaptiveMaxPool1d(4)(wg.ones((2, 3, 10))).shape
    (2, 3, 4)
    """


@stores(F.adaptive_max_pool2d, shown="output_size")
class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of as many windows of an image as are asked for; see `adaptive_avg_pool2d`.

    `functional.adaptive_max_pool2d` as a module. PyTorch: ``torch.nn.AdaptiveMaxPool2d``.

    Examples
    --------
    >>> wg.nn.AdaptiveMaxPool2d((1, 1))(wg.ones((2, 3, 7, 5))).shape
    (2, 3, 1, 1)
    """
