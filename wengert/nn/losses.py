"""Losses as modules; each calls the function of its name, which has the formula."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.functional.define import (
    LOSS_MODULE,
    LOSS_MODULE_OF_CLASSES,
    Reduction,
    check_reduction,
)
from wengert.nn.module import Module
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor


class _Loss(Module):
    def __init__(self, reduction: Reduction) -> None:
        check_reduction(reduction)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss whose weights move with the module, as buffers do."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, reduction: Reduction) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


@takes("weight label_smoothing", family=LOSS_MODULE_OF_CLASSES)
class CrossEntropyLoss(_WeightedLoss):
    """`functional.cross_entropy` as a module."""

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the loss of logits for class indices or probabilities."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


@takes("weight", family=LOSS_MODULE_OF_CLASSES)
class NLLLoss(_WeightedLoss):
    """`functional.nll_loss` as a module."""

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the loss of logarithms of probabilities for class indices."""
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


@takes(family=LOSS_MODULE)
class MSELoss(_Loss):
    """`functional.mse_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the squared error."""
        return F.mse_loss(input, target, reduction=self.reduction)


@takes(family=LOSS_MODULE)
class L1Loss(_Loss):
    """`functional.l1_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the absolute error."""
        return F.l1_loss(input, target, reduction=self.reduction)


@takes("delta", family=LOSS_MODULE)
class HuberLoss(_Loss):
    """`functional.huber_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the error, squared where it is small."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@takes("beta", family=LOSS_MODULE)
class SmoothL1Loss(_Loss):
    """`functional.smooth_l1_loss` as a module."""

    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the absolute error, rounded near 0."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@takes("weight", family=LOSS_MODULE)
class BCELoss(_WeightedLoss):
    """`functional.binary_cross_entropy` as a module."""

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None:
        super().__init__(weight, reduction)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the loss of probabilities."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


@takes("weight pos_weight", family=LOSS_MODULE)
class BCEWithLogitsLoss(_WeightedLoss):
    """`functional.binary_cross_entropy_with_logits` as a module."""

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the loss of logits."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )
