"""Losses as modules; each is the function of its name, which has the formula."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Stored, stores
from wengert.nn.functional.define import Reduction, check_reduction
from wengert.tape.tensor import Tensor


class _Loss(Stored):
    _shown = ()
    reduction: Reduction

    def _check(self) -> None:
        check_reduction(self.reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        raise NotImplementedError


@stores(F.cross_entropy)
class CrossEntropyLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None: ...


@stores(F.nll_loss)
class NLLLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None: ...


@stores(F.mse_loss)
class MSELoss(_Loss):
    def __init__(self, *, reduction: Reduction = "mean") -> None: ...


@stores(F.l1_loss)
class L1Loss(_Loss):
    def __init__(self, *, reduction: Reduction = "mean") -> None: ...


@stores(F.huber_loss)
class HuberLoss(_Loss):
    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0) -> None: ...


@stores(F.smooth_l1_loss)
class SmoothL1Loss(_Loss):
    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None: ...


@stores(F.binary_cross_entropy)
class BCELoss(_Loss):
    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


@stores(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
        pos_weight: Tensor | None = None,
    ) -> None: ...
