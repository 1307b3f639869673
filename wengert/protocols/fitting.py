"""NumPy's fits, polynomials, histograms, phases and ranges on Tensors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.interpreters.namespaces import differentiable as xp
from wengert.ops.axes import as_axes
from wengert.ops.beyond.quantiles import between
from wengert.ops.conversion import beside
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError
from wengert.protocols.translation import as_new, cast, floats, inexact, refuse
from wengert.tape.tensor import Tensor, host_values

__all__ = ["TABLE", "values"]


def values(x: Any) -> np.ndarray[Any, Any]:
    """The values by which something is counted or chosen, which no derivative follows."""
    return host_values(operands(x)[0])


# -- least squares and polynomials -----------------------------------------------------------------


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """``np.linalg.lstsq``: by the pseudo-inverse, which has derivatives of any order."""
    x, y = floats(a, b)
    m, n = x.shape
    cut = xp.finfo(x.dtype).eps * max(m, n) if rcond is None else max(rcond, 0.0)
    solution = xp.matmul(xp.linalg.pinv(x, rtol=cut), y)
    sizes = xp.linalg.svdvals(x)
    rank = np.sum(values(sizes) > cut * values(sizes).max(initial=0.0), dtype=np.int32)
    away = xp.abs(y - xp.matmul(x, solution)) ** 2
    away = away if y.ndim > 1 else away[:, None]
    left = xp.sum(away, axis=0) if rank == n < m else xp.reshape(away[:0], (-1,))
    return solution, left, rank, sizes


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """``np.vander``: powers by products, so that derivatives at 0 are finite."""
    (t,) = operands(x)
    if t.ndim != 1 or N == 0:
        raise ValueError(f"a vector is taken, and one column at least, not shape {t.shape}, N={N}")
    columns = [xp.ones_like(t)]
    while len(columns) < (t.shape[0] if N is None else N):
        columns.append(columns[-1] * t)
    return xp.stack(columns if increasing else columns[::-1], axis=1)  # type: ignore[no-any-return]


def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """``np.polyfit``, of one degree."""
    t, wanted = (inexact(one) for one in operands(x, y))
    order = int(deg) + 1
    if t.ndim != 1 or wanted.ndim not in (1, 2) or wanted.shape[0] != t.shape[0] or order < 1:
        raise TypeError("x is a vector, y has its length, and the degree is a number from 0 on")
    several = wanted.ndim == 2
    cut = t.shape[0] * xp.finfo(t.dtype).eps if rcond is None else rcond
    left = vander(t, order)
    if w is not None:
        column = xp.reshape(operands(t, w)[1], (-1, 1))
        left, wanted = left * column, wanted * (column if several else column[:, 0])
    scale = xp.linalg.vector_norm(left, axis=0)
    c, residuals, rank, sizes = lstsq(left / scale, wanted, cut)
    c = c / (scale[:, None] if several else scale)
    if full:
        return c, residuals, rank, sizes, cut
    if not cov:
        return c
    base = xp.linalg.inv(xp.matmul(xp.matrix_transpose(left), left))
    if cov == "unscaled":
        return c, base
    if t.shape[0] <= order:
        raise ValueError(f"{t.shape[0]} points leave no degree of freedom to scale a covariance")
    return c, (base[:, :, None] if several else base) * (residuals / (t.shape[0] - order))


# -- counts ----------------------------------------------------------------------------------------


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """``np.bincount``, with derivatives by the weights."""
    places = values(x)
    t, w = operands(x, 1.0 if weights is None else weights)
    counts = np.bincount(places, minlength=minlength)
    if weights is None:
        return beside(t, counts)
    if w.shape != places.shape:
        raise ValueError(f"weights of shape {w.shape} for places of shape {places.shape}")
    zeros = xp.zeros(counts.shape, dtype=xp.float64, device=xp.device(w))
    return xp.at(zeros, places).add(cast(w, xp.float64))  # type: ignore[no-any-return]


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """``np.histogram``, with derivatives by the weights, and of the edges by the extremes."""
    (x,) = operands(a)
    made = isinstance(bins, int | str)
    flat = values(x).reshape(-1)
    edges = np.histogram_bin_edges(flat, bins if made else values(bins), range)
    found = operands(x, edges if made else bins)[1]
    if made and range is None and flat.size:
        share = beside(x, (np.arange(len(edges)) / (len(edges) - 1)).astype(edges.dtype))
        low, high = edges[0] - flat.min(), edges[-1] - flat.max()
        found = (xp.min(x) + low) * (1 - share) + (xp.max(x) + high) * share
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    at = np.minimum(np.searchsorted(edges, flat[inside], "right"), len(edges) - 1) - 1
    if weights is not None:
        weights = xp.reshape(operands(x, weights)[1], (-1,))[inside]
    counts = bincount(beside(x, at), weights, len(edges) - 1)
    return (counts / xp.diff(found) / xp.sum(counts) if density else counts), found


# -- quantiles and phases --------------------------------------------------------------------------


def nan_quantile(scale: float, share: Any = None) -> Callable[..., Tensor]:
    """``np.nanquantile`` and its kin: of the values that are numbers."""

    def call(
        a: Any, q: Any, axis: Any = None, *, keepdims: bool = False, **keywords: Any
    ) -> Tensor:
        if keywords.pop("method", "linear") != "linear":
            raise UnsupportedError("where NaNs are left out, method is 'linear' for Tensors")
        refuse(keywords)
        x = inexact(*operands(a))
        axes = range(x.ndim) if axis is None else as_axes(axis, x.ndim)
        rest = [i for i in range(x.ndim) if i not in axes]
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        x = xp.permute_dims(x, (*rest, *axes))
        x = xp.reshape(x, (*x.shape[: len(rest)], -1))
        count = np.sum(~np.isnan(values(x)), axis=-1, keepdims=True)
        ordered = xp.sort(xp.where(xp.isnan(x), math.inf, x), axis=-1)
        found = []
        for one in xp.reshape(operands(x, q)[1] / scale, (-1,)):
            place = one * beside(x, np.maximum(count - 1.0, 0))
            first = np.minimum(np.floor(values(place)), np.maximum(count - 2, 0))
            at = (first, np.minimum(first + 1, np.maximum(count - 1, 0)))
            low, high = (
                xp.take_along_axis(ordered, beside(x, i.astype(np.int64)), axis=-1) for i in at
            )
            out = between(xp, low, high, place - beside(x, first))
            out = xp.where(beside(x, count > 0), out, math.nan)
            shape = kept if keepdims else out.shape[:-1]
            found.append(xp.reshape(cast(out, x.dtype), shape))
        return xp.stack(found) if np.ndim(q) else as_new(found[0])

    return call if share is None else lambda a, axis=None, **more: call(a, share, axis, **more)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """``np.unwrap``: the periods that are added have no derivative."""
    x = xp.moveaxis(inexact(*operands(p)), axis, -1)
    step = xp.diff(x.detach(), axis=-1)
    rest = xp.remainder(step + period / 2, period) - period / 2
    rest = xp.where(xp.logical_and(rest == -period / 2, step > 0), period / 2, rest)
    short = xp.abs(step) < (period / 2 if discont is None else discont)
    turns = xp.cumulative_sum(xp.where(short, 0.0, rest - step), axis=-1)
    return xp.moveaxis(xp.concat([x[..., :1], x[..., 1:] + turns], axis=-1), -1, axis)  # type: ignore[no-any-return]


# -- ranges ----------------------------------------------------------------------------------------


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``np.linspace``, with derivatives by both ends."""
    first, last = map(inexact, operands(start, stop))
    parts = int(num) - bool(endpoint)
    k = beside(first, np.arange(int(num)).reshape(-1, *[1] * max(first.ndim, last.ndim)))
    step = (last - first) / (parts or 1)
    points = xp.moveaxis(xp.where(k == (parts or -1), last, k * step + first), 0, axis)
    whole = dtype is not None and cast(points[:0], dtype).dtype.kind.endswith("integer")
    points = cast(xp.floor(points) if whole else points, dtype)
    return (points, step if parts > 0 else math.nan) if retstep else points


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """``np.logspace``, with derivatives by both ends and the base."""
    first, last, one = operands(start, stop, base)
    return cast(one ** linspace(first, last, num, endpoint, axis=axis), dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """``np.geomspace`` of real ends, with derivatives by both."""
    first, last = map(inexact, operands(start, stop))
    sign = np.sign(values(first))
    if np.iscomplexobj(sign) or not np.all(sign * values(last) > 0):
        raise UnsupportedError("the ends of Tensors' ranges are real, of one sign, and not 0")
    turn = beside(first, sign)
    ends = xp.log(first * turn), xp.log(last * turn)
    return cast(xp.exp(linspace(*ends, num, endpoint, axis=axis)) * turn, dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None, **device: Any) -> Any:
    """``np.arange``, with derivatives by its start and its step."""
    ends = (0, start, step) if stop is None else (start, stop, step)
    count = len(np.arange(*[values(one).item() for one in ends]))
    first, _, by = operands(*ends)
    return cast(first + by * beside(first, np.arange(count)), dtype)


#: NumPy's name to its counterpart.
TABLE: dict[str, Callable[..., Any]] = {
    "arange": arange,
    "bincount": bincount,
    "digitize": lambda x, bins, right=False: beside(
        operands(x, bins)[0], np.digitize(values(x), values(bins), right)
    ),
    "geomspace": geomspace,
    "histogram": histogram,
    "linspace": linspace,
    "logspace": logspace,
    "nanmedian": nan_quantile(1.0, 0.5),
    "nanpercentile": nan_quantile(100.0),
    "nanquantile": nan_quantile(1.0),
    "polyfit": polyfit,
    "unwrap": unwrap,
    "vander": vander,
}
