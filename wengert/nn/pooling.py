"""Pooling as modules; each is the function of its name."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Single, Stored
from wengert.nn.functional.spatial import sizes

_Size = int | tuple[int, ...]


class _Windows(Stored, shown="kernel_size stride padding"):
    kernel_size: _Size
    stride: _Size | None
    padding: _Size

    def _check(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class _MaxPool(_Windows, shown="kernel_size stride padding dilation ceil_mode"):
    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None: ...

    def forward(self, input: Any) -> Any:  # with indices two
        raise NotImplementedError


class MaxPool1d(_MaxPool, of=F.max_pool1d): ...


class MaxPool2d(_MaxPool, of=F.max_pool2d): ...


class AvgPool1d(_Windows, Single, of=F.avg_pool1d):
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


class AvgPool2d(_Windows, Single, of=F.avg_pool2d):
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
    def __init__(self, output_size: Any) -> None: ...


class AdaptiveAvgPool1d(_AdaptiveAvgPool, of=F.adaptive_avg_pool1d): ...


class AdaptiveAvgPool2d(_AdaptiveAvgPool, of=F.adaptive_avg_pool2d): ...


class _AdaptiveMaxPool(Stored, shown="output_size"):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None: ...

    def forward(self, input: Any) -> Any:
        raise NotImplementedError


class AdaptiveMaxPool2d(_AdaptiveMaxPool, of=F.adaptive_max_pool2d): ...
