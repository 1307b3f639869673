"""Losses and distances as modules; each is the function of its name, which has the formula."""

from typing import Any, Literal

from wengert.nn import functional as F
from wengert.nn.define import Stored
from wengert.nn.functional.define import Reduction, check_reduction, fails, is_positive
from wengert.tape.tensor import Tensor


class _Distance(Stored, shown=""):
    def forward(self, x1: Any, x2: Any) -> Tensor:
        raise NotImplementedError


class CosineSimilarity(_Distance, of=F.cosine_similarity):
    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None: ...


class PairwiseDistance(_Distance, of=F.pairwise_distance):
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None: ...


class _Reduced(Stored, shown=""):
    reduction: Any

    def __init__(self, *, reduction: Reduction = "mean") -> None: ...

    def _check(self) -> None:
        check_reduction(self.reduction)


class _Loss(_Reduced):
    def forward(self, input: Any, target: Any) -> Tensor:
        raise NotImplementedError


class _Weighted(_Loss):
    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


class MSELoss(_Loss, of=F.mse_loss): ...


class L1Loss(_Loss, of=F.l1_loss): ...


class BCELoss(_Weighted, of=F.binary_cross_entropy): ...


class BCEWithLogitsLoss(_Loss, of=F.binary_cross_entropy_with_logits):
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
        pos_weight: Tensor | None = None,
    ) -> None: ...


class CrossEntropyLoss(_Loss, of=F.cross_entropy):
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None: ...


class NLLLoss(_Loss, of=F.nll_loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None: ...


class HuberLoss(_Loss, of=F.huber_loss):
    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0) -> None: ...


class SmoothL1Loss(_Loss, of=F.smooth_l1_loss):
    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None: ...


class KLDivLoss(_Loss, of=F.kl_div):
    def __init__(
        self,
        *,
        reduction: Reduction | Literal["batchmean"] = "mean",
        log_target: bool = False,
    ) -> None: ...

    def _check(self) -> None:
        check_reduction("mean" if self.reduction == "batchmean" else self.reduction)


class GaussianNLLLoss(_Reduced, of=F.gaussian_nll_loss):
    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
    ) -> None: ...

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:
        raise NotImplementedError


class _Pairs(_Reduced):
    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None: ...

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        raise NotImplementedError


class CosineEmbeddingLoss(_Pairs, of=F.cosine_embedding_loss): ...


class TripletMarginLoss(_Reduced, of=F.triplet_margin_loss):
    margin: float

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: Reduction = "mean",
    ) -> None: ...

    def _check(self) -> None:
        super()._check()
        if fails(self.margin, is_positive):
            raise ValueError(f"margin must be greater than 0, and is {self.margin}")

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        raise NotImplementedError
