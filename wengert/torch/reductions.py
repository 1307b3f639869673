"""PyTorch's reductions and orders: its pairs, and N - 1 in variances."""

from collections.abc import Callable
from typing import Any, NamedTuple

import wengert as wg
from wengert.torch.naming import lines, listed
from wengert.torch.shapes import narrow


def _pair(name: str, first: str = "values", second: str = "indices") -> Any:
    return NamedTuple(name, [(first, Any), (second, Any)])


#: PyTorch's pairs, by function.
PAIRS: dict[str, Any] = {
    name: _pair(name)
    for name in ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "sort", "topk")
}


def axes(dim: Any) -> Any:
    """The axes of a reduction: all of them for None, and in PyTorch for an empty list too."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


# -- pairs ----------------------------------------------------------------------------------------


def _chosen(name: str, x: Any, dim: int, places: Any, keepdim: bool) -> Any:
    """The values at one place of each line, and the places: the slope is of that place alone."""
    values = wg.take_along_axis(x, places, axis=dim) if x.ndim else x
    if not keepdim and x.ndim:
        values, places = wg.squeeze(values, axis=dim), wg.squeeze(places, axis=dim)
    return PAIRS[name](values, places)


def _extreme(name: str, place: Any, whole: Any, both: Any) -> Callable[..., Any]:
    def extreme(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if isinstance(dim, wg.Tensor) else other
        if other is not None:
            return both(input, other)
        if dim is None:
            return whole(input)
        if not input.ndim:
            return PAIRS[name](input, wg.asarray(0))
        places = place(input.detach(), axis=dim, keepdims=True)
        return _chosen(name, input, dim, places, keepdim)

    return extreme


@listed
def _sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    places = argsort(input, dim, descending)
    return _chosen("sort", input, dim, places, True)


@listed
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sort, with NaN as the largest number, as in PyTorch in both directions."""
    x = input.detach()
    if not x.ndim:
        return wg.asarray(0)
    if not descending:
        return wg.argsort(x, axis=dim, stable=True)
    order = wg.flip(wg.argsort(wg.flip(x, axis=dim), axis=dim, stable=True), axis=dim)
    return x.shape[dim] - 1 - order


@listed
def _topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    places = narrow(argsort(input, dim, largest), dim, 0, k)
    return _chosen("topk", input, dim, places, True)


@listed
def _kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    places = narrow(argsort(input, dim), dim, k - 1, 1)
    return _chosen("kthvalue", input, dim, places, keepdim)


@listed
def _median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower of two middle values, or NaN where there is one."""
    if dim is None:
        return _median(wg.reshape(input, (-1,)), 0).values
    order = argsort(input, dim)
    n = order.shape[dim]
    middle, last = narrow(order, dim, (n - 1) // 2, 1), narrow(order, dim, n - 1, 1)
    if input.dtype.inexact:
        nan = wg.isnan(wg.take_along_axis(input.detach(), last, axis=dim))
        first = wg.argmax(wg.astype(wg.isnan(input), wg.int8), axis=dim, keepdims=True)
        middle = wg.where(nan, first, middle)
    return _chosen("median", input, dim, middle, keepdim)


@listed
def _mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    x = wg.moveaxis(input.detach(), dim, -1)
    counts = wg.sum(wg.expand_dims(x, axis=-1) == wg.expand_dims(x, axis=-2), axis=-1)
    most = counts == wg.max(counts, axis=-1, keepdims=True)
    order = wg.argsort(x, axis=-1)
    lead = wg.take_along_axis(most, order, axis=-1)
    first = wg.argmax(wg.astype(lead, wg.int8), axis=-1, keepdims=True)
    value = wg.take_along_axis(wg.take_along_axis(x, order, axis=-1), first, axis=-1)
    same = wg.astype(wg.flip(x == value, axis=-1), wg.int8)  # the last of equals
    places = x.shape[-1] - 1 - wg.argmax(same, axis=-1, keepdims=True)
    return _chosen("mode", input, dim, wg.moveaxis(places, -1, dim), keepdim)


def _running(name: str, beyond: Any) -> Callable[..., Any]:
    def running(input: Any, dim: int) -> Any:
        x = wg.moveaxis(input.detach(), dim, -1)
        places = wg.broadcast_to(wg.arange(x.shape[-1]), x.shape)
        step = 1
        while step < x.shape[-1]:
            before = wg.concat([places[..., :step], places[..., :-step]], axis=-1)
            own, earlier = (wg.take_along_axis(x, p, axis=-1) for p in (places, before))
            nan = (earlier != earlier) & (own == own)
            places, step = wg.where(nan | beyond(earlier, own), before, places), 2 * step
        return _chosen(name, input, dim, wg.moveaxis(places, -1, dim), True)

    return running


# -- other reductions -----------------------------------------------------------------------------


def _moment(function: Any) -> Callable[..., Any]:
    def moment(
        input: Any,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        ddof: float | None = None,
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = ddof if ddof is not None else float(unbiased is not False)
        return function(input, axis=axes(dim), correction=correction, keepdims=keepdim)

    return moment


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else wg.astype(x, dtype, copy=False)


def _sum(function: Any, x: Any, dtype: Any, **options: Any) -> Any:
    """A sum or product of a dtype; by default int64 where the standard has uint64."""
    result = function(_cast(x, dtype), **options)
    return _cast(result, wg.int64 if dtype is None and result.dtype is wg.uint64 else dtype)


@listed
def _norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    input = _cast(input, dtype)
    if p == "nuc":
        moved = input if dim is None else wg.moveaxis(input, tuple(dim), (-2, -1))
        return wg.linalg.matrix_norm(moved, ord="nuc", keepdims=keepdim)
    order = 2 if p in ("fro", None) else float(p)
    return wg.linalg.vector_norm(input, ord=order, axis=axes(dim), keepdims=keepdim)


@listed
def _bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    lengths = tuple(input.shape), tuple((input if weights is None else weights).shape)
    if input.ndim != 1 or lengths[0] != lengths[1] or bool(wg.any(input < 0)):
        raise RuntimeError("bincount takes 1-d integers of 0 or more, and as many weights")
    n = max(int(wg.max(input)) + 1 if input.size else 0, minlength)
    add = wg.ones_like(input, dtype=wg.int64) if weights is None else weights
    add = add if weights is None or add.dtype in (wg.float32, wg.float64) else add.double()
    return wg.zeros((n,), dtype=add.dtype, device=add.device).at(input).add(add)


@listed
def _unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    if dim is not None:
        raise NotImplementedError("unique of slices along dim is not there: np.unique(x, axis=dim)")
    found = wg.unique_all(input)
    order = wg.argsort(found.values)
    back = wg.reshape(wg.argsort(order)[wg.reshape(found.inverse_indices, (-1,))], input.shape)
    given = [found.values[order], back, found.counts[order]]
    asked = (True, return_inverse, return_counts)
    result = [x for x, wanted in zip(given, asked, strict=True) if wanted]
    return result[0] if len(result) == 1 else tuple(result)


def _reduced(function: Any) -> Callable[..., Any]:
    return lambda input, dim=None, keepdim=False: function(input, axis=axes(dim), keepdims=keepdim)


def _summed(function: Any) -> Callable[..., Any]:
    def summed(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return _sum(function, input, dtype, axis=axes(dim), keepdims=keepdim)

    return summed


lines(
    all=_reduced(wg.all),
    amax=_reduced(wg.max),
    amin=_reduced(wg.min),
    any=_reduced(wg.any),
    argmax=lambda input, dim=None, keepdim=False: wg.argmax(input, axis=dim, keepdims=keepdim),
    argmin=lambda input, dim=None, keepdim=False: wg.argmin(input, axis=dim, keepdims=keepdim),
    count_nonzero=lambda input, dim=None: wg.count_nonzero(input, axis=axes(dim)),
    cummax=_running("cummax", lambda before, own: before > own),
    cummin=_running("cummin", lambda before, own: before < own),
    cumprod=lambda input, dim, *, dtype=None: _sum(wg.cumulative_prod, input, dtype, axis=dim),
    cumsum=lambda input, dim, *, dtype=None: _sum(wg.cumulative_sum, input, dtype, axis=dim),
    diff=lambda input, n=1, dim=-1: wg.diff(input, axis=dim, n=n),
    logsumexp=_reduced(wg.logsumexp),
    max=_extreme("max", wg.argmax, wg.max, wg.maximum),
    mean=_summed(wg.mean),
    min=_extreme("min", wg.argmin, wg.min, wg.minimum),
    prod=_summed(wg.prod),
    quantile=lambda input, q, dim=None, keepdim=False, *, interpolation="linear": wg.quantile(
        input, q, axis=dim, keepdims=keepdim, method=interpolation
    ),
    std=_moment(wg.std),
    sum=_summed(wg.sum),
    var=_moment(wg.var),
)
