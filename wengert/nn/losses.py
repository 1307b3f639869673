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
    r"""Cosine of the angle between vectors, :math:`x_1 \cdot x_2 / (\|x_1\| \|x_2\|)`.

    `functional.cosine_similarity` as a module. PyTorch: ``torch.nn.CosineSimilarity``.

    Examples
    --------
    >>> wg.nn.CosineSimilarity()(wg.asarray([[1.0, 0.0]]), wg.asarray([[1.0, 1.0]]))
    tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None: ...


@stores(F.pairwise_distance)
class PairwiseDistance(_Distance):
    r"""Norm of differences along the last axis, :math:`\|x_1 - x_2 + \epsilon\|_p`.

    `functional.pairwise_distance` as a module. PyTorch: ``torch.nn.PairwiseDistance``.

    Examples
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
    """Cross entropy between classes and the softmax of logits.

    `functional.cross_entropy` as a module. PyTorch: ``torch.nn.CrossEntropyLoss``.

    Examples
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
    """Negative log likelihood of classes: `cross_entropy` of logarithms of probabilities.

    `functional.nll_loss` as a module. PyTorch: ``torch.nn.NLLLoss``.

    Examples
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
    """Squared error, :math:`(x - y)^2`.

    `functional.mse_loss` as a module. PyTorch: ``torch.nn.MSELoss``.

    Examples
    --------
    >>> wg.nn.MSELoss()(wg.asarray([1.0, 5.0]), wg.asarray([2.0, 2.0]))
    tensor(5.)
    """


@stores(F.l1_loss)
class L1Loss(_Loss):
    """Absolute error, :math:`|x - y|`.

    `functional.l1_loss` as a module. PyTorch: ``torch.nn.L1Loss``.

    Examples
    --------
    >>> wg.nn.L1Loss()(wg.asarray([1.0, 5.0]), wg.asarray([2.0, 2.0]))
    tensor(2.)
    """


@stores(F.huber_loss)
class HuberLoss(_Loss):
    r"""Huber's loss: :math:`d^2/2` for :math:`|d| < \delta`, else :math:`\delta (|d| - \delta/2)`.

    `functional.huber_loss` as a module. PyTorch: ``torch.nn.HuberLoss``.

    Examples
    --------
    >>> wg.nn.HuberLoss(delta=2.0)(wg.asarray([0.5, 5.0]), wg.asarray([0.0, 0.0]))
    tensor(4.0625)
    """

    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0) -> None: ...


@stores(F.smooth_l1_loss)
class SmoothL1Loss(_Loss):
    r"""Absolute error, smooth near 0: :math:`d^2 / 2\beta` and, farther, :math:`|d| - \beta/2`.

    `functional.smooth_l1_loss` as a module. PyTorch: ``torch.nn.SmoothL1Loss``.

    Examples
    --------
    >>> wg.nn.SmoothL1Loss()(wg.asarray([0.5, 3.0]), wg.asarray([0.0, 0.0]))
    tensor(1.3125)
    """

    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None: ...


@stores(F.binary_cross_entropy)
class BCELoss(_Loss):
    r"""Cross entropy between probabilities, :math:`-w (y \log x + (1 - y) \log(1 - x))`.

    `functional.binary_cross_entropy` as a module. PyTorch: ``torch.nn.BCELoss``.

    Examples
    --------
    >>> wg.nn.BCELoss()(wg.asarray([0.9, 0.2]), wg.asarray([1.0, 0.0]))
    tensor(0.1643)
    """

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


@stores(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_Loss):
    """Cross entropy between probabilities and the logistic sigmoid of logits.

    `functional.binary_cross_entropy_with_logits` as a module.
    PyTorch: ``torch.nn.BCEWithLogitsLoss``.

    Examples
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
    r"""Kullback-Leibler divergence of distributions from the target, :math:`y (\log y - x)`.

    `functional.kl_div` as a module. PyTorch: ``torch.nn.KLDivLoss``.

    Examples
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
    r"""Negative log likelihood of normal numbers, :math:`(\log v + (x - y)^2 / v) / 2`.

    `functional.gaussian_nll_loss` as a module. PyTorch: ``torch.nn.GaussianNLLLoss``.

    Examples
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
    """Negative log likelihood of counts, :math:`e^x - y x`.

    `functional.poisson_nll_loss` as a module. PyTorch: ``torch.nn.PoissonNLLLoss``.

    Examples
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
    r"""Loss of a cosine: :math:`1 - c` of alike vectors, :math:`\max(0, c - m)` of others.

    `functional.cosine_embedding_loss` as a module. PyTorch: ``torch.nn.CosineEmbeddingLoss``.

    Examples
    --------
    >>> x1, x2 = wg.asarray([[1.0, 0.0]]), wg.asarray([[0.0, 1.0]])
    >>> wg.nn.CosineEmbeddingLoss()(x1, x2, wg.asarray([1]))
    tensor(1.)
    """


@stores(F.margin_ranking_loss)
class MarginRankingLoss(_Pairs):
    r"""Loss of an order, :math:`\max(0, m - y (x_1 - x_2))`.

    `functional.margin_ranking_loss` as a module. PyTorch: ``torch.nn.MarginRankingLoss``.

    Examples
    --------
    >>> criterion = wg.nn.MarginRankingLoss(margin=0.5)
    >>> criterion(wg.asarray([2.0, 1.0]), wg.asarray([1.0, 3.0]), wg.asarray([1.0, 1.0]))
    tensor(1.2500)
    """


@stores(F.hinge_embedding_loss)
class HingeEmbeddingLoss(_Loss):
    r"""Loss of a distance: :math:`x` of what is alike, :math:`\max(0, m - x)` of what is not.

    `functional.hinge_embedding_loss` as a module. PyTorch: ``torch.nn.HingeEmbeddingLoss``.

    Examples
    --------
    >>> wg.nn.HingeEmbeddingLoss()(wg.asarray([0.5, 0.25]), wg.asarray([1, -1]))
    tensor(0.6250)
    """

    def __init__(self, margin: float = 1.0, *, reduction: Reduction = "mean") -> None: ...


@stores(F.multi_margin_loss)
class MultiMarginLoss(_Loss):
    r"""Hinge loss of classes, :math:`\sum_{j \ne y} w_y \max(0, m - x_y + x_j)^p / C`.

    `functional.multi_margin_loss` as a module. PyTorch: ``torch.nn.MultiMarginLoss``.

    Examples
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
    r"""Hinges of several classes, :math:`\sum_{j \in Y, i \notin Y} \max(0, 1 - x_j + x_i) / C`.

    `functional.multilabel_margin_loss` as a module. PyTorch: ``torch.nn.MultiLabelMarginLoss``.

    Examples
    --------
    >>> criterion = wg.nn.MultiLabelMarginLoss()
    >>> criterion(wg.asarray([[0.1, 0.2, 0.4, 0.8]]), wg.asarray([[3, 0, -1, 1]]))
    tensor(0.8500)
    """


@stores(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(_Loss):
    r"""Mean of binary cross entropies, :math:`-y \log \sigma(x) - (1 - y) \log \sigma(-x)`.

    `functional.multilabel_soft_margin_loss` as a module.
    PyTorch: ``torch.nn.MultiLabelSoftMarginLoss``.

    Examples
    --------
    >>> wg.nn.MultiLabelSoftMarginLoss()(wg.asarray([[2.0, -1.0]]), wg.asarray([[1.0, 0.0]]))
    tensor(0.2201)
    """

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None: ...


@stores(F.soft_margin_loss)
class SoftMarginLoss(_Loss):
    r"""Logistic loss of two classes, :math:`\log(1 + e^{-y x})`, without overflow.

    `functional.soft_margin_loss` as a module. PyTorch: ``torch.nn.SoftMarginLoss``.

    Examples
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
    r"""Loss of a triplet by distances, :math:`\max(0, d(a, p) - d(a, n) + m)`.

    `functional.triplet_margin_loss` as a module. PyTorch: ``torch.nn.TripletMarginLoss``.

    Examples
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
    r"""Loss of a triplet by any distance, :math:`\max(0, d(a, p) - d(a, n) + m)`.

    `functional.triplet_margin_with_distance_loss` as a module.
    PyTorch: ``torch.nn.TripletMarginWithDistanceLoss``.

    Examples
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
