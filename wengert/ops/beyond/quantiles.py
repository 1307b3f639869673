"""Order statistics, and indices as unit vectors."""

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

import numpy as np

from wengert.backends import as_dtype, dtype_of
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import all_axes, as_axes, as_axis, keep_axes, raw_array, shape_of
from wengert.ops.conversion import as_numpy, beside, holds_tensors
from wengert.ops.creation import arange, whole
from wengert.ops.data_type import astype, get_default_dtype
from wengert.ops.elementwise import equal
from wengert.ops.manipulation import expand_dims, moveaxis, permute_dims, reshape
from wengert.ops.sorting import sort
from wengert.tape.tensor import Tensor, wrap

Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]
METHODS: Final = get_args(Method)


def _positions(xp: Any, q: Any, n: int, method: str) -> Any:
    """Positions of the quantiles among ``n`` sorted elements, also between two of them."""
    # A ``q`` out of range must not give an index out of bounds. The caller makes an error or NaN.
    at = xp.clip(q * (n - 1), 0, n - 1)
    if method == "lower":
        return xp.floor(at)
    if method == "higher":
        return xp.ceil(at)
    if method == "nearest":
        return xp.round(at)
    return (xp.floor(at) + xp.ceil(at)) * 0.5 if method == "midpoint" else at


def _neighbours(x: Tensor, q: Any, n: int, method: str) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of the elements around each quantile, and its way from the first to the second."""
    if isinstance(q, Tensor):
        xp = differentiable
        at = _positions(xp, q, n, method)
        # Also a quantile on an element is between two of them, so that it has a slope by q.
        below = xp.minimum(xp.floor(at), max(n - 2, 0))
        above = xp.minimum(below + 1, n - 1)
        way = xp.astype(at - below, x.dtype, copy=False)
        return xp.astype(below, "int64"), xp.astype(above, "int64"), way
    at = _positions(np, q, n, method)
    below, above = np.floor(at), np.ceil(at)
    # Rounded on the host: a device may have no double precision.
    way = (at - below).astype("float32" if x.dtype.itemsize <= 4 else "float64")
    places = beside(x, below.astype(np.int64)), beside(x, above.astype(np.int64))
    return *places, beside(x, way, x.dtype)


def between(xp: Any, low: Any, high: Any, way: Any) -> Any:
    """A number part of the way from one element to the next, exact at both ends."""
    # Between two equal infinities is that infinity, and not NaN, wherever between them.
    equal = (low == high) & xp.isinf(low)
    distance = xp.where(equal, 0, high - xp.where(equal, 0, low))
    # No product with an infinite distance, or one that overflows: at an end its weight is 0.
    far, last = equal | xp.isinf(distance), way == 1
    distance = xp.where(far, 0, distance)
    out = xp.where(last, high - (1 - way) * xp.where(last, distance, 0), low + way * distance)
    inside = (way > 0) & (way < 1)
    # At an element beside an infinity there is no slope by the way.
    out = out + xp.where(far & ~equal & ~inside, xp.sharp(way), 0)
    for at, share in ((far & ~equal, way), (equal, way.detach())):
        here = at & inside
        first, second = xp.where(here, low, 0), xp.where(here, high, 0)
        out = xp.where(here, first * (1 - share) + second * share, out)
    return out


def _probabilities(q: Any) -> Any:
    """The quantiles asked for: a Tensor as it is, others as a NumPy array, checked."""
    if isinstance(q, list | tuple) and holds_tensors(q):
        q = as_numpy(q)
    if isinstance(q, Tensor) or not isinstance(q, int | float | list | tuple | np.ndarray):
        q = wrap(q)
        if q.dtype.kind != "real floating":
            raise TypeError(f"quantile: q is of a real floating dtype, not {q.dtype.name}")
        return q
    host = np.asarray(q, dtype=np.float64)
    if not ((host >= 0) & (host <= 1)).all():
        raise ValueError(f"quantile: q is between 0 and 1, and not {q!r}")
    return host


def quantile(
    x: Any,
    q: float | Sequence[float] | Any,
    /,
    axis: int | tuple[int, ...] | None = None,
    *,
    keepdims: bool = False,
    method: Method = "linear",
) -> Tensor:
    """Quantiles: a share ``q`` of the elements is not above them.

    The result is NaN if one of the elements is NaN, the quantile is between opposite infinities, or
    an element of a Tensor ``q`` is not from 0 to 1. The cotangent goes to the one or two elements
    that the quantile is made of; among equal ones in their order, as in `sort`. The result is of
    the dtype of ``x`` and the shape of ``q``, followed by that of the reduction. Raises `TypeError`
    if ``x`` or ``q`` is not real and floating; `ValueError` if there is no element, the method is
    unknown, numbers ``q`` are out of range, or an axis comes twice or is out of bounds. NumPy:
    ``quantile``; PyTorch: ``quantile``, which calls the method ``interpolation``.

    Parameters
    ----------
    q : float, sequence, Tensor or array
        From 0 to 1, of any shape. The result is differentiable in a Tensor, too.
    method : str
        What is taken where the quantile, at :math:`q (n - 1)` of the sorted elements, is between
        two of them: ``"linear"`` interpolation, the ``"lower"`` or ``"higher"`` one, their
        ``"midpoint"``, or the ``"nearest"`` (of the even index, half-way).

    Examples
    --------
    >>> x = wg.asarray([1.0, 3.0, 7.0])
    >>> wg.quantile(x, 0.25)
    tensor(2.)
    >>> wg.grad(lambda q: wg.quantile(x, q))(0.25)
    4.0
    """
    return _quantile("quantile", x, q, axis, keepdims, method)


def _quantile(function: str, x: Any, q: Any, axis: Any, keepdims: bool, method: str) -> Tensor:
    shape = shape_of(x)
    dtype = dtype_of(raw_array(x).dtype)
    if dtype.kind != "real floating":
        raise TypeError(f"{function} needs a real floating dtype, not {dtype.name}")
    if method not in METHODS:
        raise ValueError(f"quantile: method is one of {', '.join(METHODS)}, and not {method!r}")
    ndim = len(shape)
    axes = all_axes(None if axis is None else as_axes(axis, ndim), ndim)
    rest = tuple([i for i in range(ndim) if i not in axes])
    n = math.prod([shape[i] for i in axes])
    if not n:
        raise ValueError(f"{function} of no elements: the array has shape {tuple(shape)}")
    xp = differentiable
    q = _probabilities(q)
    outer = [shape[i] for i in rest]
    x = reshape(permute_dims(x, (*rest, *axes)), (*outer, n))
    last = len(rest)
    flat = q.reshape(-1) if isinstance(q, np.ndarray) else reshape(q, (-1,))
    below, above, way = _neighbours(x, flat, n, method)
    ordered = sort(x, axis=last)
    low, high = xp.take(ordered, below, axis=last), xp.take(ordered, above, axis=last)
    out = between(xp, low, high, way)
    unknown = xp.isnan(out) | xp.any(xp.isnan(x), axis=last, keepdims=True)
    if isinstance(flat, Tensor):
        unknown = unknown | (flat < 0) | (flat > 1) | xp.isnan(flat)
    # A factor, so that the derivative is nan, too.
    out = out * xp.where(unknown, math.nan, xp.ones_like(out))
    return reshape(
        moveaxis(out, last, 0), (*q.shape, *(keep_axes(shape, axes) if keepdims else outer))
    )


def median(
    x: Any, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
) -> Tensor:
    """Middle element, or the mean of the two in the middle; NaN if one is NaN.

    The cotangent goes to the middle element, or in halves to the two. Real floating dtypes. Raises
    `ValueError` if there is no element, or an axis comes twice or is out of bounds.
    NumPy: ``median``. (PyTorch's gives the lower one of two.)

    Examples
    --------
    >>> wg.median(wg.asarray([5.0, 1.0, 2.0]))
    tensor(2.)
    >>> wg.grad(wg.median)(wg.asarray([5.0, 1.0, 2.0, 4.0]))  # the mean of the middle two
    tensor([0.0000, 0.0000, 0.5000, 0.5000])
    """
    return _quantile("median", x, 0.5, axis, keepdims, "linear")


def one_hot(x: Any, /, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """Unit vectors: ones at the given indices and zeros elsewhere.

    The result has one axis more than ``x``, of length ``num_classes``; by default it is the last
    one, and of the default floating dtype. An index that is negative or too large gives zeros.
    Raises `TypeError` if ``x`` is not of integers; `ValueError` if ``num_classes`` is negative, or
    the axis is out of bounds. array-api-extra: ``one_hot``.

    Examples
    --------
    >>> wg.one_hot(wg.asarray([0, 2]), 3)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    ndim = len(shape_of(x)) + 1
    given = dtype_of(raw_array(x).dtype)
    if not given.kind.endswith("integer"):
        raise TypeError(f"one_hot needs indices of an integer dtype, not {given.name}")
    num_classes = whole(num_classes, "one_hot", "num_classes")
    if num_classes < 0:
        raise ValueError(f"one_hot: num_classes can't be negative, and is {num_classes}")
    at = as_axis(axis, ndim)
    x = wrap(x)
    x = astype(x, "int64", copy=False)
    classes = arange(num_classes, dtype="int64", device=differentiable.device(x))
    classes = reshape(classes, (num_classes,) + (1,) * (ndim - at - 1))
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    return astype(equal(expand_dims(x, axis=at), classes), wanted)
