"""Written by tests/project/stubs.py, from the functions' own signatures."""

# ruff: noqa: RUF022 -- the order is that of the rows

from typing import Any, Literal

from wengert.nn.define import Stored
from wengert.tape.tensor import Tensor

__all__ = [
    "ELU",
    "GELU",
    "Hardswish",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "Dropout",
    "Dropout2d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "MaxPool1d",
    "MaxPool2d",
    "Unfold",
    "PixelShuffle",
    "Upsample",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]

class ELU(Stored):
    alpha: float
    inplace: bool
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class GELU(Stored):
    approximate: Literal["none", "tanh"]
    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Hardswish(Stored):
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class LeakyReLU(Stored):
    negative_slope: float
    inplace: bool
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class LogSigmoid(Stored):
    def __init__(self) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class LogSoftmax(Stored):
    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class ReLU(Stored):
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class ReLU6(Stored):
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class SELU(Stored):
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class SiLU(Stored):
    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Sigmoid(Stored):
    def __init__(self) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Softmax(Stored):
    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Softplus(Stored):
    beta: float
    threshold: float
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Tanh(Stored):
    def __init__(self) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Dropout(Stored):
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Dropout2d(Stored):
    p: float
    inplace: bool
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class AdaptiveAvgPool1d(Stored):
    output_size: int | tuple[int, ...]
    def __init__(self, output_size: int | tuple[int, ...]) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class AdaptiveAvgPool2d(Stored):
    output_size: int | tuple[int, ...] | tuple[int | None, ...] | None
    def __init__(
        self, output_size: int | tuple[int, ...] | tuple[int | None, ...] | None
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class AvgPool1d(Stored):
    kernel_size: int | tuple[int, ...]
    stride: int | tuple[int, ...] | None
    padding: int | tuple[int, ...]
    count_include_pad: bool
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        *,
        count_include_pad: bool = True,
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class AvgPool2d(Stored):
    kernel_size: int | tuple[int, ...]
    stride: int | tuple[int, ...] | None
    padding: int | tuple[int, ...]
    count_include_pad: bool
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        *,
        count_include_pad: bool = True,
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class MaxPool1d(Stored):
    kernel_size: int | tuple[int, ...]
    stride: int | tuple[int, ...] | None
    padding: int | tuple[int, ...]
    dilation: int | tuple[int, ...]
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class MaxPool2d(Stored):
    kernel_size: int | tuple[int, ...]
    stride: int | tuple[int, ...] | None
    padding: int | tuple[int, ...]
    dilation: int | tuple[int, ...]
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Unfold(Stored):
    kernel_size: int | tuple[int, ...]
    dilation: int | tuple[int, ...]
    padding: int | tuple[int, ...]
    stride: int | tuple[int, ...]
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        dilation: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class PixelShuffle(Stored):
    upscale_factor: int
    def __init__(self, upscale_factor: int) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class Upsample(Stored):
    size: int | tuple[int, ...] | None
    scale_factor: float | tuple[float, ...] | None
    mode: Literal["nearest", "linear", "bilinear"]
    align_corners: bool | None
    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: Literal["nearest", "linear", "bilinear"] = "nearest",
        align_corners: bool | None = None,
    ) -> None: ...
    def forward(self, input: Any) -> Tensor: ...

class BCELoss(Stored):
    weight: Tensor | None
    reduction: Literal["mean", "sum", "none"]
    def __init__(
        self, weight: Tensor | None = None, *, reduction: Literal["mean", "sum", "none"] = "mean"
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class BCEWithLogitsLoss(Stored):
    weight: Tensor | None
    reduction: Literal["mean", "sum", "none"]
    pos_weight: Tensor | None
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: Literal["mean", "sum", "none"] = "mean",
        pos_weight: Tensor | None = None,
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class CosineSimilarity(Stored):
    dim: int
    eps: float
    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None: ...
    def forward(self, x1: Any, x2: Any) -> Tensor: ...

class CrossEntropyLoss(Stored):
    weight: Tensor | None
    ignore_index: int
    reduction: Literal["mean", "sum", "none"]
    label_smoothing: float
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Literal["mean", "sum", "none"] = "mean",
        label_smoothing: float = 0.0,
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class GaussianNLLLoss(Stored):
    full: bool
    eps: float
    reduction: Literal["mean", "sum", "none"]
    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-06,
        reduction: Literal["mean", "sum", "none"] = "mean",
    ) -> None: ...
    def forward(self, input: Any, target: Any, var: Any) -> Tensor: ...

class HuberLoss(Stored):
    reduction: Literal["mean", "sum", "none"]
    delta: float
    def __init__(
        self, *, reduction: Literal["mean", "sum", "none"] = "mean", delta: float = 1.0
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class KLDivLoss(Stored):
    reduction: Literal["mean", "sum", "none"] | Literal["batchmean"]
    log_target: bool
    def __init__(
        self,
        *,
        reduction: Literal["mean", "sum", "none"] | Literal["batchmean"] = "mean",
        log_target: bool = False,
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class L1Loss(Stored):
    reduction: Literal["mean", "sum", "none"]
    def __init__(self, *, reduction: Literal["mean", "sum", "none"] = "mean") -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class MSELoss(Stored):
    reduction: Literal["mean", "sum", "none"]
    def __init__(self, *, reduction: Literal["mean", "sum", "none"] = "mean") -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class NLLLoss(Stored):
    weight: Tensor | None
    ignore_index: int
    reduction: Literal["mean", "sum", "none"]
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Literal["mean", "sum", "none"] = "mean",
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...

class SmoothL1Loss(Stored):
    reduction: Literal["mean", "sum", "none"]
    beta: float
    def __init__(
        self, *, reduction: Literal["mean", "sum", "none"] = "mean", beta: float = 1.0
    ) -> None: ...
    def forward(self, input: Any, target: Any) -> Tensor: ...
