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
    """Examples
    --------
    >>> wg.nn.CosineSimilarity()(wg.asarray([[1.0, 0.0]]), wg.asarray([[1.0, 1.0]]))
    tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None: ...


@stores(F.pairwise_distance)
class PairwiseDistance(_Distance):
    """Examples
    --------
    >>> wg.nn.PairwiseDistance(p=1.0)(wg.zeros((1, 2)), wg.asarray([[3.0, 4.0]]))
    tensor([7.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None: ...


class _Loss(Stored):
    _shown = ()
    reduction: Reduction

    def __init__(self, *, reduction: Reduction = "mean") -> None: ...

    def _check(self) -> None:
        check_reduction(self.reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        raise NotImplementedError


@stores(F.cross_entropy)
class CrossEntropyLoss(_Loss):
    """Examples
    --------
    >>> criterion = wg.nn.CrossEntropyLoss()
    >>> logits = wg.asarray([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).requires_grad_()
    >>> loss = criterion(logits, wg.asarray([0, 2]))
    >>> loss.backward()
    >>> logits.grad
    tensor([[-0.1065,  0.0533,  0.0533],
            [ 0.1060,  0.2881, -0.3940]])
    """

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
    """Examples
    --------
    >>> log_p = wg.nn.LogSoftmax(dim=1)(wg.asarray([[2.0, 0.0, 0.0]]))
    >>> wg.nn.NLLLoss()(log_p, wg.asarray([0]))
    tensor(0.2395)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None: ...


@stores(F.mse_loss)
class MSELoss(_Loss):
    """Examples
    --------
    >>> wg.nn.MSELoss()(wg.asarray([1.0, 5.0]), wg.asarray([2.0, 2.0]))
    tensor(5.)
    """


@stores(F.l1_loss)
class L1Loss(_Loss):
    """Examples
    --------
    >>> wg.nn.L1Loss()(wg.asarray([1.0, 5.0]), wg.asarray([2.0, 2.0]))
    tensor(2.)
    """


@stores(F.huber_loss)
class HuberLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.HuberLoss(delta=2.0)(wg.asarray([0.5, 5.0]), wg.asarray([0.0, 0.0]))
    tensor(4.0625)
    """

    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0) -> None: ...


@stores(F.smooth_l1_loss)
class SmoothL1Loss(_Loss):
    """Examples
    --------
    >>> wg.nn.SmoothL1Loss()(wg.asarray([0.5, 3.0]), wg.asarray([0.0, 0.0]))
    tensor(1.3125)
    """

    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None: ...


@stores(F.binary_cross_entropy)
class BCELoss(_Loss):
    """Examples
    --------
    >>> wg.nn.BCELoss()(wg.asarray([0.9, 0.2]), wg.asarray([1.0, 0.0]))
    tensor(0.1643)
    """

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


@stores(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.BCEWithLogitsLoss()(wg.asarray([2.0, -1.0]), wg.asarray([1.0, 0.0]))
    tensor(0.2201)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
        pos_weight: Tensor | None = None,
    ) -> None: ...


@stores(F.kl_div)
class KLDivLoss(_Loss):
    """Examples
    --------
    >>> criterion = wg.nn.KLDivLoss(reduction="batchmean")
    >>> criterion(wg.log(wg.asarray([[0.5, 0.5]])), wg.asarray([[0.25, 0.75]]))
    tensor(0.1308)
    """

    reduction: Any

    def __init__(
        self,
        *,
        reduction: Reduction | Literal["batchmean"] = "mean",
        log_target: bool = False,
    ) -> None: ...

    def _check(self) -> None:
        check_reduction("mean" if self.reduction == "batchmean" else self.reduction)


@stores(F.gaussian_nll_loss)
class GaussianNLLLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.GaussianNLLLoss()(wg.asarray([1.0]), wg.asarray([3.0]), wg.asarray([4.0]))
    tensor(1.1931)
    """

    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
    ) -> None: ...

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:  # type: ignore[override]
        raise NotImplementedError


@stores(F.poisson_nll_loss)
class PoissonNLLLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.PoissonNLLLoss()(wg.asarray([0.0, 1.0]), wg.asarray([1.0, 3.0]))
    tensor(0.3591)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: Reduction = "mean",
    ) -> None: ...


class _Pairs(_Loss):
    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None: ...

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:  # type: ignore[override]
        raise NotImplementedError


@stores(F.cosine_embedding_loss)
class CosineEmbeddingLoss(_Pairs):
    """Examples
    --------
    >>> x1, x2 = wg.asarray([[1.0, 0.0]]), wg.asarray([[0.0, 1.0]])
    >>> wg.nn.CosineEmbeddingLoss()(x1, x2, wg.asarray([1]))
    tensor(1.)
    """


@stores(F.margin_ranking_loss)
class MarginRankingLoss(_Pairs):
    """Examples
    --------
    >>> criterion = wg.nn.MarginRankingLoss(margin=0.5)
    >>> criterion(wg.asarray([2.0, 1.0]), wg.asarray([1.0, 3.0]), wg.asarray([1.0, 1.0]))
    tensor(1.2500)
    """


@stores(F.hinge_embedding_loss)
class HingeEmbeddingLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.HingeEmbeddingLoss()(wg.asarray([0.5, 0.25]), wg.asarray([1, -1]))
    tensor(0.6250)
    """

    def __init__(self, margin: float = 1.0, *, reduction: Reduction = "mean") -> None: ...


@stores(F.multi_margin_loss)
class MultiMarginLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.MultiMarginLoss()(wg.asarray([[0.5, 1.0, 0.2]]), wg.asarray([1]))
    tensor(0.2333)
    """

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
    """Examples
    --------
    >>> criterion = wg.nn.MultiLabelMarginLoss()
    >>> criterion(wg.asarray([[0.1, 0.2, 0.4, 0.8]]), wg.asarray([[3, 0, -1, 1]]))
    tensor(0.8500)
    """


@stores(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.MultiLabelSoftMarginLoss()(wg.asarray([[2.0, -1.0]]), wg.asarray([[1.0, 0.0]]))
    tensor(0.2201)
    """

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


@stores(F.soft_margin_loss)
class SoftMarginLoss(_Loss):
    """Examples
    --------
    >>> wg.nn.SoftMarginLoss()(wg.asarray([2.0, -1.0]), wg.asarray([1.0, -1.0]))
    tensor(0.2201)
    """


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
    """Examples
    --------
    >>> criterion = wg.nn.TripletMarginLoss(margin=2.0)
    >>> criterion(wg.zeros((1, 2)), wg.ones((1, 2)), wg.full((1, 2), 2.0))
    tensor(0.5858)
    """

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
    """Examples
    --------
    >>> manhattan = lambda x, y: wg.sum(wg.abs(x - y), axis=-1)
    >>> criterion = wg.nn.TripletMarginWithDistanceLoss(distance_function=manhattan, margin=3.0)
    >>> criterion(wg.zeros((1, 2)), wg.ones((1, 2)), wg.full((1, 2), 2.0))
    tensor(1.)
    """

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
