"""Clipping of gradients by their norm or their values."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from wengert import ops
from wengert.names import KEYWORDS
from wengert.nn.conversion import as_number
from wengert.nn.parameter import list_tensors
from wengert.ops.euclidean import SCALES, factor_of
from wengert.ops.hints import refuse_keywords
from wengert.ops.linalg import vector_norm
from wengert.ops.shares import wide
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor, untracked

_refusing = partial(refuse_keywords, refused=KEYWORDS["clip_grad"])


def _gradients(function: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """Gradients, each once: a tied parameter that comes twice would be scaled twice."""
    held = [tensor._grad for tensor in list_tensors(function, parameters)]
    return [*{id(grad): grad for grad in held if grad is not None}.values()]


def _norm_on_host(arrays: list[Any]) -> Any:
    """The Euclidean norm of NumPy's real arrays of one dtype; None where `factor_of` has to help.

    The steps are those of `_euclidean_norm` with a scale of 1, so programs give the same digits.
    """
    dtype = arrays[0].dtype
    if any(type(x) is not np.ndarray or x.dtype != dtype for x in arrays) or dtype.char not in "fd":
        return None
    with np.errstate(all="ignore"):
        squares = np.asarray([np.vdot(x, x) for x in arrays])
    high, low, _ = SCALES[dtype.itemsize]
    least = 4.0**low * max(x.size for x in arrays)
    if not (np.minimum.reduce(squares) > least and np.maximum.reduce(squares) < 4.0**high):
        return None
    roots = np.sqrt(squares)
    return untracked(np.sqrt(np.vdot(roots, roots)))


def _euclidean_norm(x: Tensor) -> Tensor:
    """The Euclidean norm of all elements, by a dot product of what `factor_of` makes safe."""
    x = ops.abs(ops.reshape(wide(ops, x), (-1,)))  # of complex numbers inf * 0j would be nan
    factor = factor_of(ops, x, (0,))
    x = x * factor
    return ops.reshape(ops.sqrt(ops.vecdot(x, x)) / factor, ())


@_refusing
def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float | Literal["inf"] = 2.0
) -> Tensor:
    """Return the norm of all elements of several Tensors together, a 0-d Tensor.

    ``norm_type`` is the p of `linalg.vector_norm`, or ``"inf"``; of order 0 or below it is the norm
    of the Tensors' norms. Half precision has its norm in float32, and no Tensors have zero.

    Examples
    --------
    >>> wg.nn.utils.get_total_norm([wg.asarray([3.0]), wg.asarray([[4.0]])])
    tensor(5.)
    """
    order: Any = as_number(norm_type, "norm_type")
    order = math.inf if order == "inf" else order
    with no_grad():
        held = list_tensors("get_total_norm", tensors)
        filled = [x for x in held if x.size]
        if not filled:
            return ops.asarray(0.0)
        if order != 2 or not all(x.dtype.inexact for x in filled):
            norms = [vector_norm(wide(ops, x), ord=order) for x in filled]
            return vector_norm(ops.stack(norms), ord=order)
        if (total := _norm_on_host([x._array for x in filled])) is not None:
            return total  # type: ignore[no-any-return]
        if filled[0].backend.name == "numpy":
            return vector_norm(ops.stack([_euclidean_norm(x) for x in filled]))
        # Where a call costs more than a copy.
        return vector_norm(ops.concat([ops.reshape(wide(ops, x), -1) for x in filled]))


@_refusing
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float | Literal["inf"] = 2.0
) -> Tensor:
    r"""Scale gradients so that their norm together is at most ``max_norm``.

    All are multiplied by :math:`\min(1, c / (n + 10^{-6}))` with the bound :math:`c` and the norm
    :math:`n` of `get_total_norm`, which is returned. By an infinite norm they are nan. A gradient
    that comes twice counts once, where PyTorch scales it twice. Parameters without a gradient are
    passed over.

    Examples
    --------
    >>> w = wg.tensor([1.0, 1.0], requires_grad=True)
    >>> (w * wg.asarray([3.0, 4.0])).sum().backward()
    >>> wg.nn.utils.clip_grad_norm_([w], max_norm=1.0)  # the norm before
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    max_norm, norm_type = as_number(max_norm, "max_norm"), as_number(norm_type, "norm_type")
    with no_grad():
        gradients = _gradients("clip_grad_norm_", parameters)
        total = get_total_norm(gradients, norm_type)
        norm: Any = total._array  # of which an infinite one makes no gradient 0 in silence
        if type(norm) in (np.ndarray, np.float32, np.float64):
            norm = math.nan if math.isinf(norm) else norm
            factor = np.minimum(max_norm / (norm + 1e-6), 1.0)
            if factor == 1:
                return total
            with np.errstate(under="ignore"):
                for grad in gradients:
                    scaled = grad._array * factor
                    grad._array = scaled.astype(grad._array.dtype, copy=False)
            return total
        known = ops.where(ops.isinf(total), math.nan, total)
        scale = ops.clip(ops.divide(max_norm, ops.add(known, 1e-6)), None, 1.0)
        for grad in gradients:
            grad._array = ops.astype(ops.multiply(grad, scale), grad.dtype, copy=False)._array
    return total


@_refusing
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clip each element of the gradients to the range from ``-clip_value`` to ``clip_value``.

    Raises `TypeError` for a complex gradient; none has changed then.

    Examples
    --------
    >>> w = wg.tensor([1.0, 1.0], requires_grad=True)
    >>> (w * wg.asarray([3.0, -0.5])).sum().backward()
    >>> wg.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    clip_value = as_number(clip_value, "clip_value")
    gradients = _gradients("clip_grad_value_", parameters)
    if any(grad.dtype.complex for grad in gradients):
        raise TypeError(
            "clip_grad_value_ takes real gradients, and complex numbers have no order; "
            "clip_grad_norm_ scales them"
        )
    with no_grad():
        for grad in gradients:
            grad._array = ops.clip(grad, -clip_value, clip_value)._array
