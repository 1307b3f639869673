"""Pooling as modules; each calls the function of its name."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.functional.pooling import MAXIMUM_MODULE, MEAN_MODULE
from wengert.nn.functional.spatial import sizes
from wengert.nn.module import Module
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor

_Size = int | tuple[int, ...]
_Adaptive = Any


@takes()
class _MaxPool(Module):
    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def _options(self) -> tuple[Any, ...]:
        window = (self.kernel_size, self.stride, self.padding, self.dilation)
        return (*window, self.ceil_mode, self.return_indices)


@takes(family=MAXIMUM_MODULE)
class MaxPool1d(_MaxPool):
    """`functional.max_pool1d` as a module."""

    def forward(self, input: Any) -> Any:
        """Take the maximum of each window."""
        return F.max_pool1d(input, *self._options())


@takes(family=MAXIMUM_MODULE)
class MaxPool2d(_MaxPool):
    """`functional.max_pool2d` as a module."""

    def forward(self, input: Any) -> Any:
        """Take the maximum of each window."""
        return F.max_pool2d(input, *self._options())


@takes(family=MEAN_MODULE)
class AvgPool1d(Module):
    """`functional.avg_pool1d` as a module."""

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = sizes(kernel_size, 1, "AvgPool1d", "kernel_size", 1)
        given = kernel_size if stride is None else stride
        self.stride = sizes(given, 1, "AvgPool1d", "stride", 1)
        self.padding = sizes(padding, 1, "AvgPool1d", "padding")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Tensor:
        """Take the mean of each window."""
        window = (self.kernel_size, self.stride, self.padding)
        return F.avg_pool1d(input, *window, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


@takes(family=MEAN_MODULE)
class AvgPool2d(Module):
    """`functional.avg_pool2d` as a module."""

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Tensor:
        """Take the mean of each window."""
        window = (self.kernel_size, self.stride, self.padding)
        counted = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return F.avg_pool2d(input, *window, *counted)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


@takes()
class _AdaptiveAvgPool(Module):
    def __init__(self, output_size: _Adaptive) -> None:
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


@takes(family=MEAN_MODULE)
class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool1d` as a module."""

    def forward(self, input: Any) -> Tensor:
        """Take the means of as many windows as are asked for."""
        return F.adaptive_avg_pool1d(input, self.output_size)


@takes(family=MEAN_MODULE)
class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool2d` as a module."""

    def forward(self, input: Any) -> Tensor:
        """Take the means of as many windows as are asked for."""
        return F.adaptive_avg_pool2d(input, self.output_size)


@takes()
class _AdaptiveMaxPool(Module):
    def __init__(self, output_size: _Adaptive, return_indices: bool = False) -> None:
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


@takes(family=MAXIMUM_MODULE)
class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool1d` as a module."""

    def forward(self, input: Any) -> Any:
        """Take the maxima of as many windows as are asked for."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


@takes(family=MAXIMUM_MODULE)
class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool2d` as a module."""

    def forward(self, input: Any) -> Any:
        """Take the maxima of as many windows as are asked for."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)
