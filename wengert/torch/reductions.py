"""PyTorch's reductions and orders: its pairs, and N - 1 in variances."""

from collections import namedtuple
from collections.abc import Callable
from functools import wraps
from typing import Any

import wengert as wg
from wengert.torch.naming import lines, listed, members
from wengert.torch.shapes import narrow

#: PyTorch's pairs, by function.
PAIRS: dict[str, Any] = {
    name: namedtuple(name, "values indices")
    for name in ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "sort", "topk")
}


def along(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a Tensor without axes one, which ``dim`` may name, as in PyTorch."""

    @wraps(function)
    def called(input: Any, *args: Any, **options: Any) -> Any:
        if getattr(input, "ndim", 1):
            return function(input, *args, **options)
        found = function(input[None], *args, **options)
        if isinstance(found, tuple):
            return type(found)(*[wg.reshape(part, ()) for part in found])
        return wg.reshape(found, ())

    return called


def axes(dim: Any) -> Any:
    """The axes of a reduction: all of them for None, and in PyTorch for an empty list too."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


# -- pairs ----------------------------------------------------------------------------------------


def _chosen(name: str, x: Any, dim: int, places: Any, keepdim: bool) -> Any:
    """The values at one place of each line, and the places: the slope is of that place alone."""
    values = wg.take_along_axis(x, places, axis=dim)
    if not keepdim:
        values, places = wg.squeeze(values, axis=dim), wg.squeeze(places, axis=dim)
    return PAIRS[name](values, places)


def _extreme(name: str, place: Any, whole: Any, both: Any) -> Callable[..., Any]:
    @along
    def pair(input: Any, dim: int, keepdim: bool) -> Any:
        return _chosen(name, input, dim, place(input.detach(), axis=dim, keepdims=True), keepdim)

    def extreme(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if isinstance(dim, wg.Tensor) else other
        if other is not None:
            return both(input, other)
        return whole(input) if dim is None else pair(input, dim, keepdim)

    return extreme


@listed
@along
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sort, with NaN as the largest number, as in PyTorch in both directions."""
    x = input.detach()
    if not descending:
        return wg.argsort(x, axis=dim, stable=True)
    order = wg.flip(wg.argsort(wg.flip(x, axis=dim), axis=dim, stable=True), axis=dim)
    return x.shape[dim] - 1 - order


@listed
@along
def _median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower of two middle values, or NaN where there is one."""
    if dim is None:
        return _median(wg.reshape(input, (-1,)), 0).values
    order = argsort(input, dim)
    n, nans = order.shape[dim], wg.count_nonzero(input != input, axis=dim, keepdims=True)
    middle = wg.where(nans > 0, n - nans, (n - 1) // 2)
    return _chosen("median", input, dim, wg.take_along_axis(order, middle, axis=dim), keepdim)


@listed
@along
def _mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The least of the most frequent values, at the last of its places."""
    x = wg.moveaxis(input.detach(), dim, -1)
    counts, order = wg.sum(x[..., None] == x[..., None, :], axis=-1), argsort(x)
    first = wg.argmax(wg.take_along_axis(counts, order, axis=-1), axis=-1, keepdims=True)
    last = first + wg.max(counts, axis=-1, keepdims=True) - 1
    places = wg.moveaxis(wg.take_along_axis(order, last, axis=-1), -1, dim)
    return _chosen("mode", input, dim, places, keepdim)


def _running(name: str, place: Any) -> Callable[..., Any]:
    @along
    def running(input: Any, dim: int) -> Any:
        x = wg.moveaxis(input.detach(), dim, -1)
        lasts = [i - place(wg.flip(x[..., : i + 1], axis=-1), axis=-1) for i in range(x.shape[-1])]
        return _chosen(name, input, dim, wg.moveaxis(wg.stack(lasts, axis=-1), -1, dim), True)

    return running


# -- other reductions -----------------------------------------------------------------------------


def _moment(function: Any) -> Callable[..., Any]:
    return along(
        lambda input, dim=None, unbiased=True, keepdim=False, *, correction=None, ddof=None: (
            function(
                input,
                axis=None if isinstance(dim, bool) else axes(dim),
                correction=_divisor(correction, ddof, unbiased is not False and dim is not False),
                keepdims=keepdim,
            )
        )
    )


def _divisor(correction: Any, ddof: Any, unbiased: bool) -> float:
    given = [c for c in (correction, ddof) if c is not None]
    return float(given[0] if given else unbiased)


def cast(x: Any, dtype: Any) -> Any:
    """A Tensor of a dtype, or as it is for None."""
    return x if dtype is None else wg.astype(x, dtype, copy=False)


def _sum(function: Any, x: Any, dtype: Any, **options: Any) -> Any:
    """A sum or product of a dtype; by default int64 where the standard has uint64."""
    result = function(cast(x, dtype), **options)
    return cast(result, wg.int64 if dtype is None and result.dtype is wg.uint64 else dtype)


@listed
@along
def _norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    input = cast(input, dtype)
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
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    found = wg.unique_all(input)
    order = wg.argsort(found.values)
    back = wg.reshape(wg.argsort(order)[wg.reshape(found.inverse_indices, (-1,))], input.shape)
    given = [found.values[order], back, found.counts[order]]
    asked = (True, return_inverse, return_counts)
    result = [x for x, wanted in zip(given, asked, strict=True) if wanted]
    return result[0] if len(result) == 1 else tuple(result)


def _reduced(function: Any) -> Callable[..., Any]:
    @along
    def reduced(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return _sum(function, input, dtype, axis=axes(dim), keepdims=keepdim)

    return reduced


def _accumulated(function: Any) -> Callable[..., Any]:
    return along(lambda input, dim, *, dtype=None: _sum(function, input, dtype, axis=dim))


_REDUCED = "all amax=max amin=min any argmax argmin logsumexp mean prod sum"
_ACCUMULATED = "cumprod=cumulative_prod cumsum=cumulative_sum"
lines(
    **{name: _reduced(function) for name, function in members(wg, _REDUCED)},
    **{name: _accumulated(function) for name, function in members(wg, _ACCUMULATED)},
    **{name: _moment(function) for name, function in members(wg, "std var")},
    count_nonzero=along(lambda input, dim=None: wg.count_nonzero(input, axis=axes(dim))),
    cummax=_running("cummax", wg.argmax),
    cummin=_running("cummin", wg.argmin),
    diff=lambda input, n=1, dim=-1: wg.diff(input, axis=dim, n=n),
    kthvalue=along(
        lambda input, k, dim=-1, keepdim=False: _chosen(
            "kthvalue", input, dim, narrow(argsort(input, dim), dim, k - 1, 1), keepdim
        )
    ),
    max=_extreme("max", wg.argmax, wg.max, wg.maximum),
    min=_extreme("min", wg.argmin, wg.min, wg.minimum),
    quantile=lambda input, q, dim=None, keepdim=False, *, interpolation="linear": wg.quantile(
        input, q, axis=dim, keepdims=keepdim, method=interpolation
    ),
    sort=along(
        lambda input, dim=-1, descending=False, stable=False: _chosen(
            "sort", input, dim, argsort(input, dim, descending), True
        )
    ),
    topk=along(
        lambda input, k, dim=-1, largest=True, sorted=True: _chosen(
            "topk", input, dim, narrow(argsort(input, dim, largest), dim, 0, k), True
        )
    ),
)
