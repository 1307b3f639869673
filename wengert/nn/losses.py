"""Losses and distances as modules; each is the function of its name, which has the formula."""

from collections.abc import Callable
from typing import Any, Literal

from wengert.nn import functional as F
from wengert.nn.define import Stored, stores
from wengert.nn.functional.define import Reduction, check_reduction, is_positive, refused
from wengert.tape.tensor import Tensor


class _Distance(Stored):
    _shown = ()

    def forward(self, x1: Any, x2: Any) -> Tensor:
        raise NotImplementedError


@stores(F.cosine_similarity)
class CosineSimilarity(_Distance):
    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None: ...


@stores(F.pairwise_distance)
class PairwiseDistance(_Distance):
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None: ...


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


@stores(F.kl_div)
class KLDivLoss(_Loss):
    reduction: Any

    def __init__(
        self,
        *,
        reduction: Reduction | Literal["batchmean"] = "mean",
        log_target: bool = False,
    ) -> None: ...

    def _check(self) -> None:
        check_reduction("mean" if self.reduction == "batchmean" else self.reduction)


class _Variance(_Loss):
    def forward(self, input: Any, target: Any, var: Any) -> Tensor:  # type: ignore[override]
        raise NotImplementedError


@stores(F.gaussian_nll_loss)
class GaussianNLLLoss(_Variance):
    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
    ) -> None: ...


@stores(F.poisson_nll_loss)
class PoissonNLLLoss(_Loss):
    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: Reduction = "mean",
    ) -> None: ...


class _Pairs(_Loss):
    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:  # type: ignore[override]
        raise NotImplementedError


@stores(F.cosine_embedding_loss)
class CosineEmbeddingLoss(_Pairs):
    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None: ...


@stores(F.margin_ranking_loss)
class MarginRankingLoss(_Pairs):
    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None: ...


@stores(F.hinge_embedding_loss)
class HingeEmbeddingLoss(_Loss):
    def __init__(self, margin: float = 1.0, *, reduction: Reduction = "mean") -> None: ...


@stores(F.multi_margin_loss)
class MultiMarginLoss(_Loss):
    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
    ) -> None: ...


@stores(F.multilabel_margin_loss)
class MultiLabelMarginLoss(_Loss):
    def __init__(self, *, reduction: Reduction = "mean") -> None: ...


@stores(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(_Loss):
    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


@stores(F.soft_margin_loss)
class SoftMarginLoss(_Loss):
    def __init__(self, *, reduction: Reduction = "mean") -> None: ...


class _Triplet(_Loss):
    margin: float

    def _check(self) -> None:
        super()._check()
        if refused(self.margin, is_positive):
            raise ValueError(f"margin must be greater than 0, and is {self.margin}")

    def forward(  # type: ignore[override]
        self, anchor: Any, positive: Any, negative: Any
    ) -> Tensor:
        raise NotImplementedError


@stores(F.triplet_margin_loss)
class TripletMarginLoss(_Triplet):
    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: Reduction = "mean",
    ) -> None: ...


@stores(F.triplet_margin_with_distance_loss)
class TripletMarginWithDistanceLoss(_Triplet):
    distance_function: Callable[[Any, Any], Tensor] | None

    def __init__(
        self,
        *,
        distance_function: Callable[[Any, Any], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None: ...

    def _check(self) -> None:
        super()._check()
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()
