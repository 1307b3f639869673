"""Losses of classifiers."""

import math
from typing import Any, cast

from wengert import ops
from wengert.backends import DTYPES, add_composite, dtype_of, namespaces
from wengert.interpreters.lifted import lifted
from wengert.nn.functional.define import (
    REDUCTIONS,
    Reduction,
    check_reduction,
    detach,
    integer,
    look,
    reduce_losses,
    refusing,
    single_precision,
)
from wengert.nn.functional.softmaxes import log_softmax
from wengert.nn.kernels import numpy_classification as numpy_classification
from wengert.ops.axes import number
from wengert.ops.euclidean import factor_of
from wengert.ops.shares import by_float32
from wengert.tape.grad_mode import recording
from wengert.tape.marks import off_tape
from wengert.tape.node import running_forwards
from wengert.tape.observers import observing
from wengert.tape.primitive import Primitive
from wengert.tape.record import observe, record
from wengert.tape.tensor import Tensor, untracked, wrap

_INT64 = DTYPES["int64"]
Places = tuple[Any, Any, Any]


def check_classes(target: Any, classes: int, ignore_index: int | None = None) -> bool:
    """Raise for a class index out of range where `look` finds any; elsewhere losses are nan."""
    return look(target, check_indices, classes, ignore_index)


def check_indices(values: Any, classes: int, ignore_index: int | None) -> None:
    """Raise for a class index out of range."""
    outside = (values < 0) | (values >= classes)
    wrong = values[outside if ignore_index is None else outside & (values != ignore_index)]
    if wrong.shape[0]:
        other = "" if ignore_index is None else f", or ignore_index={ignore_index}"
        raise IndexError(
            f"Target {wrong[0]} is out of bounds: there are {classes} classes, so targets are "
            f"from 0 to {classes - 1}{other}"
        )


def _places(xp: Any, target: Any, classes: int, ignore_index: int) -> Places:
    """Indices that can be looked up; which of them count; which of those are out of range."""
    valid = target != ignore_index
    inside = (target >= 0) & (target < classes)
    return xp.where(inside, target, xp.zeros_like(target)), valid, valid & ~inside


# -- the common case, fused ------------------------------------------------------------------------


def _loss_and_slope(
    xp: Any, x: Any, target: Any, *, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Any, Any]:
    """The loss, and its slope: its derivative by each logit."""
    classes = x.shape[1]
    check_classes(target, classes, ignore_index)
    z = x - xp.max(x, axis=1, keepdims=True)
    e = xp.exp(z)
    total = xp.sum(e, axis=1, keepdims=True)
    places = safe, valid, wrong = _places(xp, target, classes, ignore_index)
    chosen = xp.take_along_axis(z, xp.expand_dims(safe, axis=1), axis=1)
    if label_smoothing:
        even = xp.mean(z, axis=1, keepdims=True) * label_smoothing
        chosen = chosen * (1 - label_smoothing) + even
    losses = xp.squeeze(xp.log(total) - chosen, axis=1)
    losses = xp.where(valid, xp.where(wrong, math.nan, losses), 0.0)
    slope = _slope(xp, e / total, target, places, reduction, label_smoothing)
    if reduction == "none":
        return losses, slope
    loss = xp.sum(losses)
    return loss / xp.sum(xp.astype(valid, x.dtype)) if reduction == "mean" else loss, slope


def _slope(
    xp: Any, probs: Any, target: Any, places: Places, reduction: str, label_smoothing: float
) -> Any:
    """The softmax less the target in rows that count, divided by their number for a mean."""
    classes = probs.shape[1]
    right = xp.astype(xp.class_mask(target, classes=classes), probs.dtype)
    if label_smoothing:
        right = right * (1 - label_smoothing) + label_smoothing / classes
    _, valid, wrong = places
    weights = xp.astype(valid, probs.dtype)
    if reduction == "mean":  # if no target counts, it is nan, and its derivative is 0 all the same
        weights = weights / xp.maximum(xp.sum(weights), 1)
    weights = xp.where(wrong, math.nan, weights)  # as the loss is
    return (probs - right) * xp.expand_dims(weights, axis=1)


add_composite("softmax_cross_entropy_parts", _loss_and_slope)


def _find_slope(
    xp: Any, x: Any, target: Any, slope: Any, ignore_index: int, reduction: str, smoothing: float
) -> Any:
    """The slope that the forward pass has saved; anew where it has a derivative, too."""
    if slope is not None and not xp.records:
        return slope
    places = _places(xp, target, x.shape[1], ignore_index)
    return _slope(xp, xp.softmax(x, axis=(1,)), target, places, reduction, smoothing)


_fused = Primitive(
    "softmax_cross_entropy",
    ("x", "target", "slope"),
    {
        "x": lambda xp, g, x, target, slope, ignore_index, reduction, label_smoothing: (
            _find_slope(xp, x, target, slope, ignore_index, reduction, label_smoothing)
            * (xp.expand_dims(g, axis=1) if len(g.shape) else g)
        )
    },
    jvps={
        "x": lambda xp, t, x, target, slope, ignore_index, reduction, label_smoothing: xp.sum(
            _find_slope(xp, x, target, slope, ignore_index, reduction, label_smoothing) * t,
            axis=1 if reduction == "none" else None,
        )
    },
    composite=lambda xp, x, target, slope, **options: xp.softmax_cross_entropy_parts(
        x, target, **options
    )[0],
)
_plan = _fused.plans[(True, False, False)]


def _softmax_cross_entropy(
    logits: Tensor, target: Tensor, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    """The cross entropy of logits (N, C) and class indices (N,)."""
    x, labels, node = logits._array, target._array, logits._node
    options = {
        "ignore_index": ignore_index,
        "reduction": reduction,
        "label_smoothing": label_smoothing,
    }
    xp = namespaces[type(x)]
    if namespaces[type(labels)] is not xp or xp is lifted:
        return cast(Tensor, _fused.bind(logits, target, None, **options))
    # `Primitive.bind` without its loop, and the slope by one pass with the loss.
    loss, slope = xp.softmax_cross_entropy_parts(x, labels, **options)
    if node is None or not recording():
        result = off_tape(loss, _fused, (node,)) if running_forwards else untracked(loss)
    else:
        saved = (x, labels, slope, ignore_index, reduction, label_smoothing)
        result = record(_plan, (node, None, None), saved, loss)
    if observing:
        observe(_fused.name, _fused, (logits, target), result)
    return result


# -- what users call -------------------------------------------------------------------------------


@refusing
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Cross entropy between classes and the softmax of logits.

    For an element with logits :math:`x` and target probabilities :math:`t` (1 for a class that is
    given by its index), :math:`-\sum_c w_c t_c \log \mathrm{softmax}(x)_c`. Cotangent of the
    logits, without weights: :math:`g (\mathrm{softmax}(x)_c - t_c)`. The result is 0-d, or of the
    shape of ``input`` without C for ``"none"``. Raises `IndexError` if a class index is out of
    range; `ValueError` or `RuntimeError` if shapes or options do not fit. If the values are on
    another device than the host, or not computed yet, the loss is nan instead, because a check
    would have to wait for them. PyTorch: ``torch.nn.functional.cross_entropy``.

    Parameters
    ----------
    input : Tensor
        Logits of shape (C,), (N, C) or (N, C, d1, ...), real floating.
    target : Tensor
        Class indices of the shape without C, integer; or probabilities of ``input``'s shape.
    weight : Tensor, optional
        A weight :math:`w` for each class, of shape (C,). The mean over class indices is weighted.
    ignore_index : int
        The class index whose targets are left out of the loss.
    label_smoothing : float
        The share of each target, from 0 to 1, that is spread evenly over all classes.

    Examples
    --------
    >>> logits, target = wg.asarray([[2.0, 0.0, 0.0]]), wg.asarray([0])
    >>> wg.nn.functional.cross_entropy(logits, target)
    tensor(0.2395)
    >>> wg.grad(wg.nn.functional.cross_entropy)(logits, target)  # p less the one-hot target
    tensor([[-0.2130,  0.1065,  0.1065]])
    """
    logits = input if isinstance(input, Tensor) else Tensor(input)
    labels = target if isinstance(target, Tensor) else Tensor(target)
    x, shape = logits._array, labels._array.shape
    kind, held = dtype_of(labels._array.dtype), dtype_of(x.dtype)
    if (  # the most frequent call by far
        weight is None
        and type(ignore_index) is int
        and ignore_index.bit_length() < 64
        and type(label_smoothing) is float
        and 0.0 <= label_smoothing <= 1.0
        and x.ndim == 2
        and shape == x.shape[:1]
        and reduction in REDUCTIONS
        and kind is _INT64
        and held.kind == "real floating"
        and not held.narrow
    ):
        return _softmax_cross_entropy(logits, labels, ignore_index, reduction, label_smoothing)
    if hasattr(label_smoothing, "pin"):  # a trace's number, whose value says which way is taken
        label_smoothing = label_smoothing.pin()
    check_reduction(reduction)
    ignore_index = integer(ignore_index, "cross_entropy", "ignore_index")
    label_smoothing = number(label_smoothing, "cross_entropy", "label_smoothing")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if logits.ndim < 1 or held.kind != "real floating":
        raise ValueError(
            f"cross_entropy needs floating logits of at least one axis, not {held.name} of shape "
            f"{tuple(logits.shape)}"
        )
    if held.narrow:  # in which a share of a large batch would vanish
        found: Tensor = by_float32(
            cross_entropy,
            *(logits, labels, weight),
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
        return found
    if kind.inexact:
        if ignore_index >= 0 and labels.shape == logits.shape:
            raise RuntimeError(
                f"ignore_index is not supported for floating point target: ignore_index="
                f"{ignore_index} is a class, and the target has probabilities; weigh the losses "
                "that reduction='none' gives instead"
            )
        return _with_probabilities(logits, labels, weight, reduction, label_smoothing)
    labels = _class_indices("cross_entropy", logits, labels)
    how = ignore_index, reduction, label_smoothing
    if weight is not None:
        return _weigh(logits, labels, weight, *how)
    if logits.ndim == 1:
        logits, labels = ops.expand_dims(logits, axis=0), ops.expand_dims(labels, axis=0)
    elif logits.ndim > 2:
        logits = ops.reshape(ops.moveaxis(logits, 1, -1), (math.prod(shape), logits.shape[1]))
        labels = ops.reshape(labels, (math.prod(shape),))
    loss = _softmax_cross_entropy(logits, labels, *how)
    if reduction == "none" and len(shape) != 1:
        loss = ops.reshape(loss, tuple(shape))
    return loss


@single_precision
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log likelihood of classes: `cross_entropy` of logarithms of probabilities.

    The derivative is :math:`-w` at the target's class, and 0 elsewhere. Shapes, options, result and
    errors are those of `cross_entropy`. PyTorch: ``torch.nn.functional.nll_loss``.

    Examples
    --------
    >>> log_p = wg.log(wg.asarray([[0.5, 0.25, 0.25]]))
    >>> wg.nn.functional.nll_loss(log_p, wg.asarray([1]))
    tensor(1.3863)
    """
    x, labels = wrap(input), wrap(target)
    check_reduction(reduction)
    if x.ndim < 1 or not x.dtype.inexact:
        raise ValueError(
            f"nll_loss needs floating values of at least one axis, not {x.dtype.name} of shape "
            f"{tuple(x.shape)}"
        )
    ignore_index = integer(ignore_index, "nll_loss", "ignore_index")
    weight = _scale_weights(weight, reduction)
    labels = _class_indices("nll_loss", x, labels)
    return _reduce(*_likelihoods(x, labels, weight, ignore_index), reduction)


def _reduce(losses: Tensor, total: Tensor, reduction: str) -> Tensor:
    """The mean by a sum of weights, or what `reduce_losses` gives."""
    if reduction == "mean":
        return ops.divide(ops.sum(losses), total)
    return reduce_losses(losses, reduction)


# -- the other cases, composed ---------------------------------------------------------------------


def _misfit(name: str, x: Tensor, target: Tensor) -> str:
    """What a target is, and what it should be."""
    without = tuple(x.shape[:1] + x.shape[2:] if x.ndim > 1 else ())
    likely, other = "an input", ""
    if name == "cross_entropy":
        likely, other = "logits", f"; probabilities are real floating, of shape {tuple(x.shape)}"
    integers = target.dtype.kind.endswith("integer")
    hint = "" if integers else " (cast with wg.astype(target, wg.int64))"
    return (
        f"{name} got a target of {target.dtype.name} and shape {tuple(target.shape)} for {likely} "
        f"of shape {tuple(x.shape)}: class indices are integers of shape {without}{hint}{other}"
    )


def _class_indices(name: str, x: Tensor, target: Tensor) -> Tensor:
    """Class indices that fit the logits, as int64."""
    kind = dtype_of(target._array.dtype).kind
    if not kind.endswith("integer"):
        raise RuntimeError(_misfit(name, x, target))
    shape = tuple(target.shape)
    if shape != (*x.shape[:1], *x.shape[2:]) if len(x.shape) > 1 else shape:
        if len(x.shape) > 1 and shape[:1] != tuple(x.shape[:1]):
            raise ValueError(
                f"Expected input batch_size ({x.shape[0]}) to match target batch_size "
                f"({shape[0] if shape else 'none'})."
            )
        raise ValueError(_misfit(name, x, target))
    return target if target.dtype is _INT64 else ops.astype(target, "int64")


def _likelihoods(
    x: Tensor, target: Tensor, weight: Any, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The weighted loss of each element, and the sum of all weights."""
    axis = min(1, x.ndim - 1)
    check_classes(target._array, x.shape[axis], ignore_index)
    safe, valid, wrong = _places(ops, target, x.shape[axis], ignore_index)
    chosen = ops.take_along_axis(x, ops.expand_dims(safe, axis=axis), axis=axis)
    weights = ops.astype(valid, x.dtype)
    losses = ops.negative(ops.squeeze(chosen, axis=axis))
    # A factor, so that the derivative is nan, too.
    losses = ops.multiply(losses, ops.where(wrong, math.nan, weights))
    if weight is not None:
        w = _class_weights(x, weight, axis)
        each = ops.reshape(ops.take(w, ops.reshape(safe, (safe.size,)), axis=0), safe.shape)
        losses = ops.multiply(losses, each)
        weights = ops.multiply(weights, each)
    return ops.where(valid, losses, 0.0), ops.sum(weights)


def _scale_weights(weight: Any, reduction: str) -> Any:
    """Weights, and for a mean a power of two times them: the square of their sum is in range."""
    if weight is None or reduction != "mean":
        return weight
    w = wrap(weight)
    if w.ndim != 1 or not w.size or not w.dtype.inexact:
        return w
    return ops.multiply(w, factor_of(ops, ops.abs(detach(w)), (0,)))


def _class_weights(x: Tensor, weight: Any, axis: int) -> Tensor:
    w = wrap(weight)
    if tuple(w.shape) != (x.shape[axis],):
        raise RuntimeError(
            "weight tensor should be defined either for all or no classes: expected shape "
            f"({x.shape[axis]},), got {tuple(w.shape)}"
        )
    return w


def _reshape_weights(w: Tensor, x: Tensor, axis: int) -> Tensor:
    """Weights (C,) in a shape that broadcasts with the logits."""
    return ops.reshape(w, (-1, *[1] * (x.ndim - axis - 1)))


def _weigh(
    logits: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float
) -> Tensor:
    axis = min(1, logits.ndim - 1)
    x = log_softmax(logits, axis)
    weight = _scale_weights(weight, reduction)
    losses, total = _likelihoods(x, target, weight, ignore_index)
    if smoothing:
        spread = x
        if weight is not None:
            spread = ops.multiply(x, _reshape_weights(_class_weights(x, weight, axis), x, axis))
        even = ops.negative(ops.sum(spread, axis=axis))
        even = ops.where(ops.not_equal(target, ignore_index), even, 0.0)
        losses = ops.multiply(losses, 1 - smoothing)
        even = ops.multiply(even, smoothing / x.shape[axis])
        if reduction == "mean":  # of both: without weight the first is nan, and so is their sum
            return ops.add(*(_reduce(each, total, reduction) for each in (losses, even)))
        losses = ops.add(losses, even)
    return _reduce(losses, total, reduction)


def _with_probabilities(
    logits: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float
) -> Tensor:
    if logits.shape != target.shape or target.dtype.complex:
        raise RuntimeError(_misfit("cross_entropy", logits, target))
    axis = min(1, logits.ndim - 1)
    classes = logits.shape[axis]
    x = log_softmax(logits, axis)
    # An impossible class that is not the target's either adds nothing, as in 0 log 0.
    x = ops.where(ops.logical_and(ops.equal(target, 0), ops.isinf(x)), 0, x)
    if smoothing:
        target = ops.add(ops.multiply(target, 1 - smoothing), smoothing / classes)
    if weight is not None:
        x = ops.multiply(x, _reshape_weights(_class_weights(x, weight, axis), x, axis))
    losses = ops.negative(ops.sum(ops.multiply(x, target), axis=axis))
    return reduce_losses(losses, reduction)
