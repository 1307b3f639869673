"""What another library, or a formula, gives for a call of a public function."""

from operator import attrgetter
from typing import Any

import numpy as np
import scipy.special

from tests.ops.spaces import options

#: Functions that NumPy has by the same name, and with the same options.
NUMPYS = (
    "sum mean prod max min median var std quantile all any argmax argmin count_nonzero isin "
    "flip roll take tril triu diff "
    "cumulative_sum cumulative_prod concat stack unstack repeat squeeze vecdot tensordot "
    "linalg.vector_norm linalg.matrix_norm linalg.cholesky linalg.cross linalg.diagonal "
    "linalg.trace linalg.svd linalg.qr "
    "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fftn fft.ifftn fft.rfftn "
    "fft.irfftn fft.fftshift fft.ifftshift"
)
NAMED = ("ord", "correction", "prepend", "append")


def reduced(losses: np.ndarray, reduction: str, count: float | None = None) -> np.ndarray:
    if reduction == "none":
        return losses
    total = losses.sum()
    return np.asarray(total if reduction == "sum" else total / (count or losses.size))


def pointwise(loss: Any) -> Any:
    """A loss of each pair of elements, reduced."""

    def function(input: Any, target: Any, reduction: str, weight: Any = None, **more: Any) -> Any:
        losses = loss(input, target, **more)
        return reduced(losses if weight is None else losses * weight, reduction)

    return function


def with_logits(x: Any, y: Any, pos_weight: Any) -> Any:
    positive = 1 if pos_weight is None else pos_weight
    return positive * y * np.log1p(np.exp(-x)) + (1 - y) * np.log1p(np.exp(x))


def of_classes(
    log_p: Any,
    target: Any,
    reduction: str,
    weight: Any = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """The mean is weighted as the classes are, and goes over what is not ignored."""
    classes = log_p.shape[1]
    w = np.ones(classes) if weight is None else weight
    log_p = np.moveaxis(log_p, 1, -1)
    if target.dtype.kind == "f":
        share = np.moveaxis(target, 1, -1) * (1 - label_smoothing) + label_smoothing / classes
        losses = -(share * w * log_p).sum(-1)
        return reduced(losses, reduction, losses.size)
    used = target != ignore_index
    right = np.eye(classes)[np.where(used, target, 0)]
    share = right * (1 - label_smoothing) + label_smoothing / classes
    losses = np.where(used, -(share * w * log_p).sum(-1), 0.0)
    return reduced(losses, reduction, ((right * w).sum(-1) * used).sum())


OTHERS: dict[str, Any] = {
    "logsumexp": scipy.special.logsumexp,
    "softmax": scipy.special.softmax,
    "log_softmax": scipy.special.log_softmax,
    "sort": lambda x, axis, descending, stable: (
        -np.sort(-x, axis=axis) if descending else np.sort(x, axis=axis)
    ),
    "argsort": lambda x, axis, descending, stable: np.argsort(
        -x if descending else x, axis=axis, stable=stable
    ),
    "searchsorted": lambda x1, x2, side, sorter: np.searchsorted(x1, x2, side, sorter),
    "F.softmax": lambda input, dim: scipy.special.softmax(input, axis=dim),
    "F.log_softmax": lambda input, dim: scipy.special.log_softmax(input, axis=dim),
    "F.l1_loss": pointwise(lambda x, y: abs(x - y)),
    "F.mse_loss": pointwise(lambda x, y: (x - y) ** 2),
    "F.huber_loss": pointwise(lambda x, y, delta: scipy.special.huber(delta, x - y)),
    "F.smooth_l1_loss": pointwise(lambda x, y, beta: scipy.special.huber(beta, x - y) / beta),
    "F.binary_cross_entropy": pointwise(lambda x, y: -(y * np.log(x) + (1 - y) * np.log1p(-x))),
    "F.binary_cross_entropy_with_logits": pointwise(with_logits),
    "F.nll_loss": lambda input, target, **more: of_classes(input, target, **more),
    "F.cross_entropy": lambda input, target, **more: of_classes(
        scipy.special.log_softmax(input, axis=1), target, **more
    ),
    "gelu": lambda x, approximate: (
        x * scipy.special.ndtr(x)
        if approximate == "none"
        else x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2
    ),
}


def reference(name: str, chosen: dict[str, Any]) -> list[np.ndarray] | None:
    """What another library gives for a call; None where there is none."""
    if name in OTHERS:
        found = OTHERS[name](**chosen)
    elif name in NUMPYS.split():
        own = {
            each: given for each, given in chosen.items() if each in NAMED or each in options(name)
        }
        given = [each for other, each in chosen.items() if other not in own]
        found = attrgetter(name)(np)(*given, **own)
    else:
        return None
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]
