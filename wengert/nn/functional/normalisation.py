"""Normalisations: numbers less their mean, divided by their deviation."""

import math
from collections.abc import Sequence
from operator import index
from typing import Any

from wengert import ops
from wengert.backends import DTYPES, dtype_of
from wengert.nn.functional.define import detach, integer, real_floating, refusing
from wengert.nn.functional.standardised import standardised
from wengert.ops.axes import as_axes, number, operand
from wengert.ops.limits import finfo
from wengert.ops.linalg import vector_norm
from wengert.ops.linalg.common import inexact
from wengert.ops.shares import by_float32, wide
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor, wrap

Axes = tuple[int, ...]


def _fit(name: str, x: Tensor, what: str, given: Any, shape: Axes, beside: Axes) -> Tensor | None:
    """Numbers of a shape, in another that broadcasts; averages may be wider than half precision."""
    if given is None:
        return None
    given, held = wrap(given), dtype_of(x._array.dtype)
    own = dtype_of(given._array.dtype)
    wider = held.narrow and own.name == "float32" and what.startswith("running")
    if tuple(given.shape) != shape:
        raise RuntimeError(
            f"{name} needs a {what} of shape {shape}, and got one of {tuple(given.shape)}"
        )
    if own is not held and not wider:
        raise RuntimeError(
            f"{name} got an input of {held.name} and a {what} of {own.name}; "
            f"convert the module with module.to(wg.{held.name}), or the input with wg.astype"
        )
    return given if beside == shape else ops.reshape(given, beside)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else ops.multiply(x, weight)
    return x if bias is None else ops.add(x, bias)


def _standard(
    x: Tensor,
    axis: Axes,
    eps: float,
    weight: Tensor | None,
    bias: Tensor | None,
    centred: bool = True,
) -> tuple[Tensor, ...]:
    """Standardised numbers, weighted, and of centred ones the moments before.

    Of half precision it is by way of single, as squares overflow.
    """
    if 0 in x.shape:  # of nothing there is no mean
        return (_affine(ops.positive(x), weight, bias),)
    inside = weight is not None and not x.dtype.narrow
    affine = (weight, bias) if inside else (None, None)
    out, _, *more = standardised(wide(ops, x), *affine, axis=axis, eps=eps, centred=centred)
    out = out if inside else _affine(ops.astype(out, x.dtype, copy=False), weight, bias)
    return out, *more[:2]


def _last_axes(name: str, x: Tensor, normalized_shape: int | Sequence[int]) -> tuple[Axes, Axes]:
    """The shape as a tuple, and the axes of the input that have it."""
    given = normalized_shape if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    shape, whole = tuple([index(n) for n in given]), tuple(x.shape)
    start = len(whole) - len(shape)
    if not shape or whole[max(start, 0) :] != shape:
        raise RuntimeError(
            f"{name}: Given normalized_shape={[*shape]}, expected input with shape "
            f"{['*', *shape]}, but got input of size {[*whole]}"
        )
    return shape, tuple(range(start, len(whole)))


def layer_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalise over the last axes, :math:`w (x - \mu) / \sqrt{\sigma^2 + \epsilon} + b`.

    These are of shape ``normalized_shape``, as weight and bias are; :math:`\sigma^2` is the mean
    square. With the result :math:`y` before the weights, the cotangent is
    :math:`(g - \bar g - y \overline{g y}) / \sqrt{\sigma^2 + \epsilon}`. Ba, Kiros and Hinton,
    "Layer normalization" (2016). Real floating dtypes. Raises `RuntimeError` if shapes do not fit,
    or dtypes differ. PyTorch: ``torch.nn.functional.layer_norm``.

    Examples
    --------
    >>> wg.nn.functional.layer_norm(wg.asarray([[1.0, 3.0], [10.0, 30.0]]), 2)
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    x = real_floating("layer_norm", input)
    shape, axes = _last_axes("layer_norm", x, normalized_shape)
    weight = _fit("layer_norm", x, "weight", weight, shape, shape)
    bias = _fit("layer_norm", x, "bias", bias, shape, shape)
    return _standard(x, axes, number(eps, "layer_norm", "eps"), weight, bias)[0]


def rms_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None
) -> Tensor:
    r"""Divide by the root mean square of the last axes, :math:`w x / \sqrt{\bar{x^2} + \epsilon}`.

    By default :math:`\epsilon` is the rounding of the dtype in which the mean square is taken,
    which is float32 for half precision. With the result :math:`y` before the weight, the cotangent
    is :math:`(g - y \overline{g y}) / \sqrt{\bar{x^2} + \epsilon}`. Zhang and Sennrich, "Root mean
    square layer normalization" (2019). Shapes, dtypes and errors are those of `layer_norm`.
    PyTorch: ``torch.nn.functional.rms_norm``.

    Examples
    --------
    >>> wg.nn.functional.rms_norm(wg.asarray([[3.0, 4.0]]), 2)
    tensor([[0.8485, 1.1314]])
    """
    x = real_floating("rms_norm", input)
    shape, axes = _last_axes("rms_norm", x, normalized_shape)
    taken = DTYPES["float32"] if x.dtype.narrow else x.dtype
    smallest = ops.finfo(taken).eps if eps is None else number(eps, "rms_norm", "eps")
    weight = _fit("rms_norm", x, "weight", weight, shape, shape)
    return _standard(x, axes, smallest, weight, None, centred=False)[0]


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Normalise over groups of channels: `layer_norm` of each, weighted by channel.

    The input is of shape (N, C, ...), weight and bias of shape (C,). Wu and He, "Group
    normalization" (2018). The derivative is that of `layer_norm` in each group. Raises
    `RuntimeError` if shapes do not fit, or dtypes differ; `ValueError` if the
    batch has one member and each group one number. PyTorch: ``torch.nn.functional.group_norm``.

    Examples
    --------
    >>> wg.nn.functional.group_norm(wg.asarray([[1.0, 3.0, 10.0, 30.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x = real_floating("group_norm", input)
    shape = tuple(x.shape)
    groups = integer(num_groups, "group_norm", "num_groups")
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise RuntimeError(
            "group_norm expects the number of channels, axis 1, to be divisible by num_groups, and "
            f"got an input of shape {shape} and num_groups={num_groups}"
        )
    within = math.prod(shape[1:]) // groups
    if shape[0] * within == 1:
        raise ValueError(
            f"group_norm expects more than 1 value per group, got input size {[*shape]} and "
            f"num_groups={num_groups}"
        )
    beside = groups, shape[1] // groups, 1
    weight = _fit("group_norm", x, "weight", weight, shape[1:2], beside)
    bias = _fit("group_norm", x, "bias", bias, shape[1:2], beside)
    parts = ops.reshape(x, (shape[0], *beside[:2], math.prod(shape[2:])))
    out = _standard(parts, (2, 3), number(eps, "group_norm", "eps"), weight, bias)[0]
    return ops.reshape(out, shape)


def _by_averages(x: Tensor, mean: Any, var: Any, eps: float) -> Tensor:
    mean, var = (ops.reshape(wide(ops, y), (-1, *[1] * (x.ndim - 2))) for y in (mean, var))
    centred = ops.subtract(wide(ops, x), mean)
    scale = ops.divide(1, ops.sqrt(ops.add(var, eps)))
    return ops.astype(ops.multiply(centred, scale), x.dtype, copy=False)


def _update(
    moments: Sequence[Tensor], factor: float, running: tuple[Tensor | None, ...], momentum: Any
) -> None:
    """Move averages, which may be None, towards the mean and ``factor`` times the variance."""
    momentum = detach(momentum) if isinstance(momentum, Tensor) else momentum
    with no_grad():
        for average, moment, times in zip(running, moments, (1, factor), strict=True):
            if average is None:
                continue
            found = ops.multiply(ops.reshape(detach(moment), (-1,)), times)
            held = wide(ops, average)
            found = ops.astype(found, held.dtype, copy=False)
            moved = ops.add(held, ops.multiply(ops.subtract(found, held), momentum))
            if average.dtype.narrow:  # nan outside the range: by an infinity all would be 0
                moved = ops.astype(moved, average.dtype)
                moved = ops.where(ops.isinf(moved), math.nan, moved)
            average.copy_(moved)


def _of_channels(
    name: str, x: Tensor, weight: Any, bias: Any
) -> tuple[Tensor | None, Tensor | None]:
    """Weight and bias, one number for each channel, beside the input."""
    channels = tuple(x.shape[1:2])
    beside = (*channels, *[1] * (x.ndim - 2))
    return (
        _fit(name, x, "weight", weight, channels, beside),
        _fit(name, x, "bias", bias, channels, beside),
    )


def batch_norm(
    input: Any,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalise each channel over the batch, :math:`w (x - \mu) / \sqrt{\sigma^2 + \epsilon} + b`.

    The input is of shape (N, C, ...), averages, weight and bias of shape (C,). In training with the
    batch's mean and mean square deviation, through which the derivative flows as in `layer_norm`;
    that updates the averages in place, not recorded, by :math:`(1 - m) r + m s`, where the variance
    is without bias. Ioffe and Szegedy, "Batch normalization" (2015). Raises `RuntimeError` if
    shapes do not fit, or dtypes differ; `ValueError` if a channel has a single number in training.
    PyTorch: ``torch.nn.functional.batch_norm``.

    Examples
    --------
    >>> x = wg.asarray([[1.0, 10.0], [3.0, 30.0]])
    >>> wg.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    x = real_floating("batch_norm", input)
    if x.ndim < 2:
        raise RuntimeError(f"batch_norm needs an input (N, C, ...), not one of {tuple(x.shape)}")
    channels = tuple(x.shape[1:2])
    for what, given in ("running_mean", running_mean), ("running_var", running_var):
        _fit("batch_norm", x, what, given, channels, channels)
        if training and not isinstance(given, Tensor | None):
            own = type(given).__name__
            raise TypeError(f"batch_norm updates its {what}, a Tensor and not a {own}, in place")
    eps = number(eps, "batch_norm", "eps")
    weight, bias = _of_channels("batch_norm", x, weight, bias)
    momentum = operand(momentum, x, "batch_norm", "momentum")
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "batch_norm needs running_mean and running_var when training=False, and got None"
            )
        return _affine(_by_averages(x, running_mean, running_var, eps), weight, bias)
    axes = (0, *range(2, x.ndim))
    if math.prod(x.shape[i] for i in axes) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {[*x.shape]}"
        )
    out, *moments = _standard(x, axes, eps, weight, bias)
    if moments:
        count = math.prod([x.shape[i] for i in axes])
        _update(moments, count / (count - 1), (running_mean, running_var), momentum)
    return out


@refusing
def instance_norm(input: Any, *, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise each channel of each member, as `batch_norm` does over the batch.

    Ulyanov, Vedaldi and Lempitsky, "Instance normalization" (2016). The derivative is that of
    `layer_norm` in each channel. Arguments and errors are those of `batch_norm`; there are no
    averages. PyTorch: ``torch.nn.functional.instance_norm``.

    Examples
    --------
    >>> wg.nn.functional.instance_norm(wg.asarray([[[1.0, 3.0], [10.0, 30.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    x = real_floating("instance_norm", input)
    if x.ndim < 3:
        raise RuntimeError(
            f"instance_norm needs an input (N, C, L, ...), not one of {tuple(x.shape)}"
        )
    if math.prod(x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element, got input size {[*x.shape]}")
    weight, bias = _of_channels("instance_norm", x, weight, bias)
    axes = tuple(range(2, x.ndim))
    return _standard(x, axes, number(eps, "instance_norm", "eps"), weight, bias)[0]


def unit_vectors(x: Tensor, axes: Axes, eps: float) -> Tensor:
    """Vectors over their norms, which are at least ``eps``, by way of vectors of moderate sizes."""
    if 0 in x.shape:
        return ops.positive(x)
    size = ops.max(ops.abs(detach(x)), axis=axes, keepdims=True)
    # Below the largest number, so that there is a reciprocal: beside an infinity all others are 0.
    size = ops.clip(size, eps, float(finfo(x.dtype).max) / 16)
    x, least = ops.divide(x, size), ops.divide(eps, size)
    squares = ops.sum(ops.real(ops.multiply(x, ops.conj(x))), axis=axes, keepdims=True)
    return ops.divide(x, ops.sqrt(ops.clip(squares, ops.multiply(least, ops.abs(least)))))


def normalize(input: Any, p: float = 2.0, dim: int | Axes = 1, eps: float = 1e-12) -> Tensor:
    r"""Divide by the norm along an axis, or several as one, :math:`x / \max(\|x\|_p, \epsilon)`.

    The norm is differentiated too; below :math:`\epsilon` the divisor is a constant. Raises
    `ValueError` if an axis is out of bounds. PyTorch: ``torch.nn.functional.normalize``.

    Examples
    --------
    >>> wg.nn.functional.normalize(wg.asarray([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    x = wrap(input)
    order, smallest = number(p, "normalize", "p"), number(eps, "normalize", "eps")
    shape = inexact("normalize", x)
    if x.dtype.narrow:
        return by_float32(normalize, x, order, dim, smallest)  # type: ignore[no-any-return]
    axes = as_axes(dim, len(shape))
    if order == 2 and axes:
        return unit_vectors(x, axes, smallest)
    # A norm may overflow where numbers over it do not: it is scaled to have a reciprocal, too.
    if order and 0 not in shape:
        largest = ops.max(ops.abs(detach(x)), axis=axes, keepdims=True)
        ratio = math.prod([shape[i] for i in axes]) ** max(1.0, 1 / order)
        most = float(finfo(x.dtype).max)
        unit = ops.clip(ops.multiply(largest, 8 * ratio / most), 1, most / 16)
        x, smallest = ops.divide(x, unit), ops.divide(smallest, unit)
    norm = vector_norm(x, axis=axes, keepdims=True, ord=order)
    return ops.divide(x, ops.clip(norm, smallest))
