"""NumPy's other functions on Tensors: products, comparisons, and a little numerical analysis."""

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.ops import elementwise as ew
from wengert.ops import manipulation as ma
from wengert.ops import searching, statistical, utility
from wengert.ops import set as sets
from wengert.ops.axes import as_axis, at_axis, keep_axes
from wengert.ops.beyond import einsum, median, quantile
from wengert.ops.data_type import astype
from wengert.ops.indexing import getitem, take
from wengert.ops.linalg.products import trace as matrix_trace
from wengert.ops.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from wengert.ops.operands import operands
from wengert.ops.shares import by_float32
from wengert.protocols import UnsupportedError
from wengert.protocols.shapes import diagonal, of_diagonal
from wengert.protocols.translation import as_new, cast, floats, inexact, refuse
from wengert.tape.tensor import Tensor

# -- products --------------------------------------------------------------------------------------


def inner(a: Any, b: Any) -> Tensor:
    """``np.inner``: over the last axes, with no conjugate."""
    x, y = operands(a, b)
    return tensordot(x, y, axes=([-1], [-1])) if x.ndim and y.ndim else ew.multiply(x, y)


def outer(a: Any, b: Any) -> Tensor:
    """``np.outer``, of flattened arrays."""
    x, y = operands(a, b)
    return ew.multiply(ma.reshape(x, (-1, 1)), ma.reshape(y, (-1,)))


def vdot(a: Any, b: Any) -> Tensor:
    """``np.vdot``, of flattened arrays."""
    x, y = operands(a, b)
    return vecdot(ma.reshape(x, (-1,)), ma.reshape(y, (-1,)))


def kron(a: Any, b: Any) -> Tensor:
    """``np.kron``."""
    x, y = operands(a, b)
    ndim = builtins.max(x.ndim, y.ndim)
    x = ma.reshape(x, (1,) * (ndim - x.ndim) + tuple(x.shape))
    y = ma.reshape(y, (1,) * (ndim - y.ndim) + tuple(y.shape))
    left = ma.expand_dims(x, axis=tuple(range(1, 2 * ndim, 2)))
    right = ma.expand_dims(y, axis=tuple(range(0, 2 * ndim, 2)))
    shape = tuple([m * n for m, n in zip(x.shape, y.shape, strict=True)])
    return ma.reshape(ew.multiply(left, right), shape)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """``np.trace``."""
    plain = isinstance(a, Tensor) and a.ndim == 2 and {*map(type, (axis1, axis2))} == {int}
    if plain and (axis1, axis2, dtype) == (0, 1, None):
        return matrix_trace(a, offset=offset)
    return statistical.sum(cast(diagonal(a, offset, axis1, axis2), dtype), axis=-1)


def _slid(x: Tensor, y: Tensor, mode: str) -> Tensor:
    """Sums of products of ``x`` with ``y`` as it slides along, as far as a mode says."""
    n, m = x.shape[0], y.shape[0]
    before = {"full": m - 1, "same": m // 2, "valid": 0}.get(mode)
    if before is None:
        raise ValueError(f"mode is 'full', 'same' or 'valid', and not {mode!r}")
    after = m - 1 - before if mode == "same" else before
    zero = x[:1] * 0
    x = ma.concat([ma.broadcast_to(zero, (before,)), x, ma.broadcast_to(zero, (after,))], axis=0)
    # For each place of the result, the elements of the longer one that take part.
    places = np.arange(n + before + after - m + 1)[:, None] + np.arange(m)
    return matmul(getitem(x, places), y)


def _sequences(a: Any, v: Any) -> tuple[Tensor, Tensor]:
    x, y = operands(a, v)
    if x.ndim > 1 or y.ndim > 1 or not x.size or not y.size:
        raise ValueError(
            f"two sequences that are not empty are taken, not shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    return ma.reshape(x, (-1,)), ma.reshape(y, (-1,))


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """``np.convolve``."""
    x, y = _sequences(a, v)
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return _slid(x, ma.flip(y), mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """``np.correlate``, which conjugates ``v``."""
    x, y = _sequences(a, v)
    y = ew.conj(y)
    if y.shape[0] > x.shape[0]:
        return ma.flip(_slid(y, x, mode))
    return _slid(x, y, mode)


def contraction(*terms: Any, optimize: Any = None, **keywords: Any) -> Tensor:
    """``np.einsum``, whose arrays may be lists."""
    refuse(keywords)
    # Arrays alone follow a string of subscripts; without one a list of labels follows each array.
    spelt = isinstance(terms[0], str)
    places = range(1, len(terms)) if spelt else range(0, len(terms) - 1, 2)
    given = list(terms)
    for at, x in zip(places, operands(*[terms[at] for at in places]), strict=True):
        given[at] = x
    return einsum(*given, optimize=optimize or None)


# -- statistics ------------------------------------------------------------------------------------


def quantiles(scale: float) -> Callable[..., Tensor]:
    """``np.quantile`` and ``np.percentile``."""

    def call(
        a: Any,
        q: Any,
        axis: Any = None,
        *,
        method: Any = "linear",
        keepdims: bool = False,
        weights: Any = None,
        **keywords: Any,
    ) -> Tensor:
        refuse(keywords)
        if weights is not None:
            raise UnsupportedError("weights are not supported for Tensors")
        x = inexact(*operands(a))
        share = q / scale if hasattr(q, "dtype") else (np.asarray(q) / scale).tolist()
        return as_new(quantile(x, share, axis=axis, keepdims=keepdims, method=method))

    return call


def middle(a: Any, axis: Any = None, *, keepdims: bool = False, **keywords: Any) -> Tensor:
    """``np.median``."""
    refuse(keywords)
    return as_new(median(inexact(*operands(a)), axis=axis, keepdims=keepdims))


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    *,
    dtype: Any = None,
    **keywords: Any,
) -> Tensor:
    """``np.cov``, without weights."""
    for name in ("fweights", "aweights"):
        if keywords.pop(name, None) is not None:
            raise UnsupportedError(f"{name} is not supported for Tensors")
    refuse(keywords)
    parts = []
    for x in operands(m) if y is None else operands(m, y):
        if x.ndim > 2:
            raise ValueError(f"np.cov takes vectors or matrices, not shape {tuple(x.shape)}")
        if x.ndim < 2:
            x = ma.reshape(x, (1, -1))
        elif not rowvar and x.shape[0] != 1:
            x = matrix_transpose(x)
        parts.append(cast(inexact(x), dtype))
    x = ma.concat(parts, axis=0) if len(parts) > 1 else parts[0]
    if x.dtype.narrow:
        return by_float32(cov, x, bias=bias, ddof=ddof)  # type: ignore[no-any-return]
    x = x - statistical.mean(x, axis=1, keepdims=True)
    freedom = x.shape[1] - (ddof if ddof is not None else int(not bias))
    if freedom <= 0:
        raise ValueError(f"{x.shape[1]} observations leave no degree of freedom: choose ddof")
    return ma.squeeze(matmul(x, ew.conj(matrix_transpose(x))) / freedom)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """``np.corrcoef``."""
    parts = [cast(part, dtype) for part in (floats(x) if y is None else floats(x, y))]
    if any(part.dtype.narrow for part in parts):
        return by_float32(corrcoef, *parts, rowvar=rowvar)  # type: ignore[no-any-return]
    axes = [-1 if rowvar or part.ndim < 2 or part.shape[0] == 1 else 0 for part in parts]
    scaled = [
        part / statistical.std(part, axis=axis, keepdims=True)
        for part, axis in zip(parts, axes, strict=True)
    ]
    c = cov(scaled[0], None if y is None else scaled[1], rowvar)
    if not c.ndim:
        return c / c
    deviation = ew.sqrt(ew.real(of_diagonal(c)))
    return c / ma.reshape(deviation, (-1, 1)) / deviation


# -- choices and comparisons -----------------------------------------------------------------------


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """``np.where``."""
    if x is None and y is None:
        return searching.nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both x and y are given, or neither")
    c, x1, x2 = operands(condition, x, y)
    return searching.where(c if c.dtype.kind == "bool" else astype(c, bool), x1, x2)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """``np.select``."""
    result = operands(*choicelist, default)[-1]
    for condition, choice in [*zip(condlist, choicelist, strict=True)][::-1]:
        result = where(condition, choice, result)
    return result


def clip(a: Any, a_min: Any = None, a_max: Any = None, **keywords: Any) -> Tensor:
    """``np.clip``."""
    low, high = keywords.pop("min", a_min), keywords.pop("max", a_max)
    refuse(keywords)
    given = [b for b in (low, high) if isinstance(b, Tensor | list | tuple)]
    x, *bounds = operands(a, *given)
    made = {id(b): bound for b, bound in zip(given, bounds, strict=True)}
    return ew.clip(x, made.get(id(low), low), made.get(id(high), high))


def is_close(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """``np.isclose``."""
    x, y = (one.detach() for one in operands(a, b))
    near = ew.less_equal(ew.abs(x - y), atol + rtol * ew.abs(y))
    close = ew.logical_or(ew.logical_and(near, ew.isfinite(y)), ew.equal(x, y))
    return ew.logical_or(close, ew.logical_and(ew.isnan(x), ew.isnan(y))) if equal_nan else close


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """``np.array_equal``."""
    x, y = operands(a1, a2)
    if tuple(x.shape) != tuple(y.shape):
        return False
    same = ew.equal(x, y)
    if equal_nan:
        same = ew.logical_or(same, ew.logical_and(ew.isnan(x), ew.isnan(y)))
    return bool(utility.all(same))


def unique(ar: Any, *flags: bool, **keywords: Any) -> Any:
    """``np.unique``, of the flattened array."""
    wanted = dict(zip(_PARTS, flags, strict=False))
    wanted |= {name: bool(keywords.pop(name)) for name in _PARTS if name in keywords}
    if keywords.pop("axis", None) is not None or not keywords.pop("equal_nan", True):
        raise UnsupportedError("axis= and equal_nan=False are not supported for Tensors")
    refuse({name: value for name, value in keywords.items() if name != "sorted"})
    (x,) = operands(ar)
    found = sets.unique_all(x.detach())
    values = getitem(ma.reshape(x, (-1,)), found.indices)
    others = (found.indices, found.inverse_indices, found.counts)
    extra = [part for name, part in zip(_PARTS, others, strict=True) if wanted.get(name)]
    return (values, *extra) if extra else values


_PARTS = ("return_index", "return_inverse", "return_counts")


# -- elementwise -----------------------------------------------------------------------------------


def round_to(a: Any, decimals: int = 0) -> Tensor:
    """``np.round``."""
    if not decimals or (decimals > 0 and not a.dtype.inexact):
        return ew.round(a)
    scale = 10.0 ** abs(decimals)
    found = ew.round(a * scale) / scale if decimals > 0 else ew.round(a / scale) * scale
    return astype(found, a.dtype, copy=False)


def angle(z: Any, deg: bool = False) -> Tensor:
    """``np.angle``."""
    result = ew.atan2(ew.imag(z), ew.real(z))
    return result * (180 / math.pi) if deg else result


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """``np.nan_to_num``."""
    (t,) = operands(x)
    if not t.dtype.inexact:
        return t * 1 if copy else t
    if t.dtype.complex:
        raise UnsupportedError("complex parts go one by one")
    if not copy:
        return t.copy_(nan_to_num(t, True, nan, posinf, neginf))
    limits = np.finfo(t.dtype.name)
    top = float(limits.max) if posinf is None else posinf
    bottom = float(limits.min) if neginf is None else neginf
    t = searching.where(ew.isnan(t), nan, t)
    t = searching.where(ew.logical_and(ew.isinf(t), ew.greater(t, 0)), top, t)
    return searching.where(ew.logical_and(ew.isinf(t), ew.less(t, 0)), bottom, t)


# -- numerical analysis ----------------------------------------------------------------------------


def polyval(p: Any, x: Any) -> Tensor:
    """``np.polyval``, by Horner's rule."""
    coefficients, points = operands(p, x)
    result = points * 0
    for coefficient in ma.unstack(coefficients):
        result = result * points + coefficient
    return result


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """``np.interp``, differentiable in the places, the points and their values."""
    if period is not None:
        raise UnsupportedError("period is not supported for Tensors")
    at, points, values = operands(x, xp, fp)
    at, points, values = cast(at, "float64"), cast(points, "float64"), inexact(values)
    n = points.shape[0]
    if points.ndim != 1 or values.ndim != 1 or values.shape[0] != n or not n:
        raise ValueError(
            f"xp and fp are two vectors of one length, not of shapes {tuple(points.shape)} and "
            f"{tuple(values.shape)}"
        )
    flat = ma.reshape(at, (-1,))
    low, high = getitem(points, 0), getitem(points, -1)
    if n == 1:
        result = flat * 0 + getitem(values, 0)
    else:
        found = searching.searchsorted(points.detach(), flat.detach(), side="right")
        cell = ew.clip(found, 1, n - 1)
        x0, x1 = take(points, cell - 1), take(points, cell)
        y0, y1 = take(values, cell - 1), take(values, cell)
        result = y0 + (y1 - y0) * ((flat - x0) / (x1 - x0))
    first = getitem(values, 0) if left is None else operands(at, left)[1]
    last = getitem(values, -1) if right is None else operands(at, right)[1]
    result = searching.where(ew.less(flat, low), first, result)
    result = searching.where(ew.greater(flat, high), last, result)
    return as_new(ma.reshape(result, at.shape))


def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue
) -> Tensor:
    """``np.diff``, whose ends may be numbers."""
    (x,) = operands(a)
    along = as_axis(axis, x.ndim)
    ends: dict[str, Any] = {"axis": along, "n": n}
    for name, end in (("prepend", prepend), ("append", append)):
        if end is np._NoValue:
            continue
        (_, put) = operands(x, end)
        if not put.ndim:
            put = ma.broadcast_to(put, keep_axes(x.shape, (along,)))
        ends[name] = put
    return utility.diff(x, **ends)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """``np.gradient``, of evenly spaced values."""
    x = inexact(*operands(f))
    axes = tuple(range(x.ndim)) if axis is None else axis
    single = isinstance(axes, int) or len(axes) == 1
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"{len(steps)} spacings for {len(axes)} axes")
    if edge_order != 1:
        raise UnsupportedError("edge_order is 1 for Tensors")
    found = [_slope(x, as_axis(one, x.ndim), by) for one, by in zip(axes, steps, strict=True)]
    return found[0] if single else tuple(found)


def _slope(x: Tensor, axis: int, step: Any) -> Tensor:
    if getattr(step, "ndim", 0) or isinstance(step, list | tuple):
        raise UnsupportedError("uneven spacing is not supported for Tensors; give a number")
    n = x.shape[axis]
    if n < 2:
        raise ValueError(f"axis {axis} of length {n} is too short: 2 are needed")

    def at(*key: int | None) -> Tensor:
        return getitem(x, at_axis(axis, slice(*key)))

    first, last = at(1, 2) - at(0, 1), at(n - 1, n) - at(n - 2, n - 1)
    middle = (at(2, None) - at(0, n - 2)) / 2
    return ma.concat([first, middle, last], axis=axis) / step  # type: ignore[no-any-return]
